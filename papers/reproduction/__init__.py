"""What the five papers claim, and what came out here: runs the studies, judges every claim, draws docs/reproduction.md.

`claims.toml` says what is claimed and by which figures of a study it is judged; `results/` keeps what the studies
found, so that the page can be drawn from data.
"""
