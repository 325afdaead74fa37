"""The page on which a person names and mends groups: what it shows, and its routes."""
