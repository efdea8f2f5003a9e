"""What commands print: tables and sentences made from plain data."""
