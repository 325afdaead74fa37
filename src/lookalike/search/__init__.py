"""Search: an index of images that remembers, finds, and knows when it does not know."""
