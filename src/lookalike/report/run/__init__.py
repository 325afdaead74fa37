"""The report of one run: what its folder holds, what is measured from it, and the sections of its page."""
