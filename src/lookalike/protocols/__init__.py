"""Protocols: which images train, validate and test, and what is reported."""
