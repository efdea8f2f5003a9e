"""One file per command; see `partwise.cli.app`."""
