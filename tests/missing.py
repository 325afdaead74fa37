"""What a test needs and this machine lacks."""

import os

import pytest


def missing(what: str) -> None:
    """Skips the test, but not in CI, where nobody would notice."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: this test must run in CI")
    pytest.skip(what, allow_module_level=True)
