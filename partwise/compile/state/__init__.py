"""State of a view: joins of its inputs that are kept as helper parts, so that repairs do not make them again."""
