"""An index in a folder: one SQLite file is the truth, memory-mapped segments beside it are searched."""
