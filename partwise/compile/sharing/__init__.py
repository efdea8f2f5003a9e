"""Helpers that several views can read: named by what they mean, not by the view that they were generated for."""

from partwise.compile.sharing.names import shared as shared
