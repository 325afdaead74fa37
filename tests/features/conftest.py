import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Every test has a cache of its own."""
    place = tmp_path / "cache"
    monkeypatch.setenv("LOOKALIKE_CACHE", str(place))
    return place
