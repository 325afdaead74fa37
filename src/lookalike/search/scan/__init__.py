"""Exact nearest items by a scan of small integers; `rounded` is the way in."""
