"""Another model for an index at once: old vectors are mapped to its space, and items embedded again one by one."""
