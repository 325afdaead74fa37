"""The tables of losses in the pages are the catalogue."""

import pytest

from docs import loss_tables


@pytest.mark.parametrize("name", ["counts", "losses"])
def test_the_tables_are_the_catalogue(name):
    assert loss_tables.printed(name) == loss_tables.TABLES[name][1](), "run python -m docs.loss_tables"
