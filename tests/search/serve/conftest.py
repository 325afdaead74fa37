"""One small shop, and one server of it for all tests that do not change it."""

import shutil
from io import BytesIO

import pytest

from lookalike.search import Index
from tests.search.conftest import CLASSES, photo
from tests.search.serve.client import Server
from tests.search.serve.inside import Inside


def encoded(label="figs", number=99, kind="JPEG", **settings) -> bytes:
    file = BytesIO()
    photo(label, number).save(file, kind, **settings)
    return file.getvalue()


@pytest.fixture(scope="session")
def template(tmp_path_factory, model):
    """An index with columns, made from a table."""
    root = tmp_path_factory.mktemp("shop")
    lines = ["path,label,brand,price"]
    for label in CLASSES:
        for number in range(6):
            photo(label, number).save(root / f"{label}{number}.png")
            lines.append(f"{label}{number}.png,{label},{'odd' if number % 2 else 'even'},{10 * number}")
    (root / "table.csv").write_text("\n".join(lines))
    index = Index.create(root / "shop.index", model)
    index.add(root / "table.csv")
    index.ready()
    index.close()
    return root / "shop.index"


@pytest.fixture
def shop(template, tmp_path):
    """An index of one's own."""
    return shutil.copytree(template, tmp_path / "shop.index")


@pytest.fixture(scope="session")
def server(template, tmp_path_factory):
    place = shutil.copytree(template, tmp_path_factory.mktemp("served") / "shop.index")
    with Server(place) as running:
        yield running


@pytest.fixture(scope="session")
def inside(template, tmp_path_factory):
    """The same in this process, for tests that look at one function."""
    place = shutil.copytree(template, tmp_path_factory.mktemp("inside") / "shop.index")
    with Inside(place, log=False) as running:
        yield running
