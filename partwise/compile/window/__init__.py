"""WINDOW queries: panes per part, cells that merge or subtract, and the view over them."""
