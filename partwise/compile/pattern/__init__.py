"""PATTERN queries: an automaton, the open runs of every group as a helper, the runs that match as the view."""
