"""One step: read pinned inputs, compute, stage, digest, commit."""
