"""Several stores as one index."""
