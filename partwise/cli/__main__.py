"""`python -m partwise.cli`: the same as `partwise`."""

from partwise.cli.app import main

main()
