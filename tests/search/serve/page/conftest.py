"""A drawn shop, a server of it, and a window on that server, for all tests of the page."""

import pytest

from tests.search.serve.client import Server
from tests.search.serve.page.drawn_shop import make_shop
from tests.search.serve.page.opened import Page


@pytest.fixture(scope="session")
def shop(tmp_path_factory, model):
    return make_shop(tmp_path_factory.mktemp("page"), model)


@pytest.fixture(scope="session")
def server(shop):
    with Server(shop) as running:
        yield running


@pytest.fixture
def page(window, server):
    return Page(window, f"http://127.0.0.1:{server.port}")
