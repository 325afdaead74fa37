"""The report of one run: what its folder holds, and the sections made from it."""
