"""The same photos and the same processes as the tests of the command line."""

from tests.cli.conftest import lookalike, photos

__all__ = ["lookalike", "photos"]
