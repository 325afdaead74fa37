"""Exact ranks by counting: score blocks, the compiled kernel, and how ties are read."""
