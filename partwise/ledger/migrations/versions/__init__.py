"""One file per version. Never change one that has been released: write the next."""
