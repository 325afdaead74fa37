"""The same photos and the same processes as the tests of the command line."""

from tests.cli.conftest import cache, lookalike, photos

__all__ = ["cache", "lookalike", "photos"]
