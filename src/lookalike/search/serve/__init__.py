"""An index as a page and an API: `lookalike serve INDEX` [architecture tree]."""
