"""A Ray cluster whose nodes are killed and added: every piece once, and the same to the bit as by one process."""

import json
import socket
import warnings

import pytest

from lookalike.data import folder
from lookalike.features import embed_shards
from lookalike.runs.log import ignore
from lookalike.search import Index
from lookalike.search.adding import update
from lookalike.sweeps import gather, read, work
from lookalike.workers import Workers
from tests.cli import photos as drawn
from tests.cli.processes import Lookalike
from tests.features import scenes
from tests.sweeps.searching import LEARNING

STORE = 80 << 20  # bytes of memory for objects of a node
RECIPE = f"""
[data]
validation = 0.2
[images]
size = 16
short_side = 16
{LEARNING}
[train]
steps = 3
validate_every = 3
"""
STUDY = """
recipe = "recipe.toml"
seeds = 2
baseline = "plain"
[rows."plain"]
[rows."other"]
loss = { name = "multi_similarity" }
"""


class Nodes:
    """A cluster of a head, which does no work, and some nodes with one processor each."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE, "ray_client_server_port": port}
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):  # Ray leaves two files open
            self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = []
        self.address, self.client = self.cluster.address, f"ray://127.0.0.1:{port}"

    def add(self):
        self.nodes.append(self.cluster.add_node(num_cpus=1, object_store_memory=STORE))

    def kill(self):
        self.cluster.remove_node(self.nodes.pop(0), allow_graceful=False)


@pytest.fixture(scope="module")
def nodes():
    ray = pytest.importorskip("ray", reason="the extra cluster is not installed")
    made = Nodes()
    try:
        made.add()
        yield made
    finally:
        ray.shutdown()
        made.cluster.shutdown()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return drawn.folder(tmp_path_factory.mktemp("cluster") / "photos", classes=12, each=6)


def shards(out):
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.npz"))}


@pytest.mark.slow
def test_everything_is_as_by_one_process_whatever_happens_to_the_nodes(nodes, images, tmp_path, monkeypatch):
    model, data, workers = scenes.model(), folder(images), Workers(on=nodes.address)
    embed_shards(model, data, tmp_path / "one", 72, backend="torch")
    monkeypatch.setattr(update, "BATCH", 4)

    def disturb(done, _):
        if done == 4:
            nodes.kill()
            nodes.add()

    embed_shards(model, data, tmp_path / "many", 72, backend="torch", workers=workers, progress=disturb)
    assert shards(tmp_path / "many") == shards(tmp_path / "one")

    alone, shared = (Index.create(tmp_path / f"{name}.index", model) for name in ("alone", "shared"))
    alone.add(str(images))
    assert shared.add(str(images), workers=workers, progress=disturb).added == 72
    assert shared.add(str(images), workers=workers).unchanged == 72
    ids = [item.id for item in alone.store.listed(())]
    assert [item.id for item in shared.store.listed(())] == ids
    assert (alone.store.vectors(ids) == shared.store.vectors(ids)).all()

    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "study.toml").write_text(STUDY)
    study = read(tmp_path / "study.toml", str(images))

    work(study, data, tmp_path / "study one", ignore, lambda: False)
    work(study, data, tmp_path / "study many", ignore, lambda: False, workers=workers)
    assert figures(study, tmp_path / "study many") == figures(study, tmp_path / "study one")
    by_the_command(nodes.client, images, tmp_path)


def by_the_command(address, images, place):
    """`lookalike embed`, alone and with the address that the guide gives; it prints nothing of Ray's."""
    scenes.model().save(place / "model")
    lookalike = Lookalike(place, place / "cache")
    embed = ("embed", place / "model", images, "--backend", "torch", "--shards", 3, "--out")
    alone, many = lookalike(*embed, place / "alone"), lookalike(*embed, place / "by client", "--on", address)
    assert (alone.code, many.code) == (0, 0), many.error
    assert [line for line in many.error.splitlines() if not line.startswith("embedding: ")] == []
    assert shards(place / "by client") == shards(place / "alone")


def figures(study, out):
    """Everything a study tells but how long it took."""
    content = json.loads(json.dumps(gather(study, out)))
    assert content["done"] == 4, content["rows"]
    for row in content["rows"]:
        del row["seconds"]
        for run in row["runs"]:
            del run["seconds"]
    return content
