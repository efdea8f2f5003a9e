"""DAGs that are not a view's own: backfills, the reconciler, upkeep."""
