"""Every table of the papers: its command, its figures, and every row rehearsed on its official layout in miniature.

`UPDATE_DOCS=1 pytest tests/papers/test_tables.py -k listed` writes the list in papers/README.md.
"""

import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
import torch

from lookalike.data import arrays
from lookalike.data.formats import vehicle_id
from lookalike.recipe import build, to_toml, tree
from lookalike.runs.log import ignore
from lookalike.sweeps import read, rehearse
from lookalike.sweeps.rehearsal import in_short
from papers.reproduction.planned import ROOT
from papers.tables import IMAGES, listing, tables
from tests.fixtures.tables_in_docs import check_table
from tests.papers.miniatures import as_study, first_cells, miniature, stand_in
from tests.recipe.layouts import EACH, LISTS, TRAIN

pytestmark = pytest.mark.plain  # most of its time would be spent on looking at shapes
README = ROOT / "papers" / "README.md"
CLASSES = {"cub200": 100, "cars196": 98, "sop": 11_318, "inshop": 3_997, "vehicle_id": 13_134}
DATA = sorted(CLASSES)
CATEGORIES = {"cub200": 70, "cars196": 49, "sop": 12, "inshop": 23, "vehicle_id": 250}
OWN_NETWORK = {  # a row per protocol, and the network that only one table has
    "roth/table_4_cub": "Margin(D, b 1.2)",
    "ccp/table_2_cub": "C2-CCP-L",
    "fastap/table_3_sop": "ResNet-18",
    "multi_similarity/table_3_cars": "MS, 512-D",
    "top_k/table_2_sop": "Top-k precision, DenseNet-201",
}


@pytest.fixture(scope="module")
def every():
    return tables()


@pytest.fixture(scope="module")
def rows(every):
    """A recipe for every row of every table."""
    return {table.place: first_cells(table.study) for table in every}


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """All official layouts, and a cache of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOKALIKE_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(vehicle_id, "VEHICLES", LISTS)
        patch.setattr(vehicle_id, "TRAIN", [(TRAIN, TRAIN * EACH)])
        folder = tmp_path_factory.mktemp("official")
        yield {name: miniature(name, folder) for name in DATA}


def rehearsed(recipes, dataset):
    return rehearse(as_study(recipes), dataset, ignore, lambda: False)


@pytest.mark.parametrize("data", DATA)
def test_every_row_takes_a_step_and_is_evaluated(datasets, every, rows, data):
    """Rows that are the same with a stand-in for their network and a small batch are tried once."""
    recipes = {}
    for table in every:
        if table.data == data:
            for row, recipe in rows[table.place].items():
                small = stand_in(recipe)
                recipes.setdefault(to_toml(small), (f"{table.place}: {row}", small))
    assert {row: why for row, why in rehearsed(dict(recipes.values()), datasets[data]).items() if why} == {}


@pytest.mark.parametrize("place", OWN_NETWORK)
def test_a_row_of_every_protocol_runs_with_its_own_network(datasets, rows, place):
    recipe = rows[place][OWN_NETWORK[place]]
    small = stand_in(recipe, own_network=True, pixels=32)
    assert small.model.architecture == recipe.model.architecture
    assert rehearsed({place: small}, datasets[recipe.data.name]) == {place: ""}


@pytest.mark.parametrize("data", DATA)
def test_every_batch_can_be_filled_from_as_many_classes_and_images_as_the_data_have(every, rows, data):
    settings = {}
    for table in every:
        if table.data == data:
            for row, recipe in rows[table.place].items():
                settings.setdefault((str(recipe.sampler), recipe.protocol.name), (f"{table.place}: {row}", recipe))
    images = IMAGES[data][0]
    for name, recipe in settings.values():
        part = 3 / 4 if recipe.protocol.name == "cross_validation" else 1
        count, classes = int(part * images), int(part * CLASSES[data])
        labels = np.sort(np.arange(count) % classes)
        kinds = [str(label % CATEGORIES[data]) if data != "vehicle_id" or label % 2 else "" for label in labels]
        train = arrays(torch.zeros(count, 1, 1, dtype=torch.uint8), labels, categories=kinds)
        bank = build.bank(recipe, train, dim=2)
        sampler = build.sampler(recipe, train, bank)
        assert len(sampler) > 0, name
        if bank is None:
            assert len(next(iter(sampler))) == recipe.sampler.settings.get("batch_size", sampler.batch_size), name


def test_a_sabotaged_row_is_named_and_the_others_are_tried(datasets, tmp_path):
    file = tmp_path / "sabotaged.toml"
    file.write_text(
        f'like = "{ROOT / "papers/top_k/table_1_cub.toml"}"\nbaseline = "Contrastive"\n[rows]\n'
        '"Triplet, uniform".miner.name = "radnom"\n"N-pair".loss.positive = "all"\n"Angular".miner.name = "hard"\n'
        '"Proxy-NCA".optimizer.lr = 1e-3\n'
    )
    study = read(file)
    recipes = {row: stand_in(recipe) for row, recipe in first_cells(study).items()}
    names = ("Triplet, uniform", "N-pair", "Angular", "Contrastive")
    outcome = rehearsed({row: recipes[row] for row in names}, datasets["cub200"])
    assert "did you mean 'random'" in outcome["Triplet, uniform"]
    assert "did you mean 'positives'" in outcome["N-pair"]
    assert "takes labels or Pairs, not Triplets" in outcome["Angular"]
    assert outcome["Contrastive"] == ""
    assert "did you mean 'optimiser'" in study.refused["Proxy-NCA"]


def test_the_tables_of_the_readme_are_listed_as_they_are(every):
    check_table(README, "tables", listing(every))


def test_every_command_of_the_readme_is_that_of_a_table_on_its_data(every):
    commands = re.findall(r"^\| `(lookalike study [^`]*)`", README.read_text(), flags=re.MULTILINE)
    assert len(commands) == len(every)
    for command, table in zip(commands, every, strict=True):
        program, verb, file, source, option, out = shlex.split(command)
        assert (program, verb, option) == ("lookalike", "study", "--out")
        assert (ROOT / file) == table.file
        assert source.split("=")[0] == table.data
        assert f"lookalike study {file} {source} --out {out}" in table.file.read_text()


def test_a_table_is_complete(every):
    """One dataset, no row that cannot be read, no two cells alike, what is not known, and figures that are shares."""
    for table in every:
        study = table.study
        assert not study.refused, table.place
        assert len({cell.key for cell in study.cells}) == len(study.cells), table.place
        assert {cell.recipe.data.name for cell in study.cells} == {table.data}
        assert study.note, table.place
        assert all(study.published.values()), table.place
        assert all(0 < figure[0] < 1 for row in study.published.values() for figure in row.values()), table.place


def test_every_paper_has_its_tables_on_all_of_its_data(every):
    places = {table.place for table in every}
    assert {
        f"roth/{name}"
        for name in (
            "table_4_cub",
            "table_5_cars",
            "table_6_sop",
            "table_7_cub",
            "table_8_cars",
            "table_9_sop",
            "figure_13_cub",
            *(f"figure_{number}_{data}" for number in (5, 8) for data in ("cub", "cars", "sop")),
        )
    } <= places
    assert {f"ccp/table_{name}" for name in ("1_sop", "1_inshop", "2_cub", "2_cars")} <= places
    assert {f"fastap/table_{n}_{data}" for n in (2, 3) for data in ("sop", "inshop", "vehicle_id")} <= places
    assert {f"multi_similarity/table_{name}" for name in ("2_cars", "3_cub", "3_cars", "4_inshop", "5_sop")} <= places
    assert {f"top_k/table_{name}" for name in ("1_cub", "1_cars", "1_sop", "2_sop")} <= places


def test_printed_settings_win(rows):
    margin, plain = (rows["roth/table_4_cub"][f"Margin(D, b 1.2){more}"] for more in ("", ", released code"))
    assert (margin.miner.settings, plain.miner.settings) == (
        {"upper_cutoff": 1.4},
        {"upper_cutoff": "none"},
    )
    assert rows["roth/table_4_cub"]["Quadruplet(D)"].loss.preset == "doc"
    assert {
        row.miner.settings["probability"] for name, row in rows["roth/table_6_sop"].items() if name[:2] == "R-"
    } == {0.15}
    assert rows["roth/table_6_sop"]["Histogram"].loss.settings == {"nodes": 11}
    assert rows["roth/table_6_sop"]["MS"].miner is None  # the protocol's goes with its loss
    proxies = [rows["ccp/table_1_sop"][name] for name in ("ProxyAnchor", "ProxyNCA++", "SoftTriple-S", "HPL-PA")]
    assert {row.loss.settings["normalise"] for row in proxies} == {"ball"}
    assert {(row.schedule.head_epochs, *row.optimiser.settings["betas"]) for row in proxies} == {(1, 0.9, 0.99)}
    assert rows["ccp/table_1_sop"]["C2-XBM-L"].memory.start == 1000
    assert in_short(rows["ccp/table_1_sop"]["C2-XBM-L"]).memory.start == 0
    lengths = {row.train.steps for row in rows["fastap/table_2_sop"].values()}
    assert len(lengths) == 1
    assert all(row.sampler.settings["whole"] for row in rows["fastap/table_2_vehicle_id"].values())
    assert rows["multi_similarity/table_5_sop"]["MS, 512-D"].sampler.settings["batch_size"] == 640


def test_the_figures_are_those_of_the_papers(every):
    """As the package has them for `lookalike compare --published`."""
    text = tree(ROOT / "papers/roth/table_4_cub.toml")["published"]["Angular"]
    assert text == ["62.10 ± 0.27", "73.68 ± 0.39", "37.53 ± 0.13", "22.06 ± 0.20", "30.56 ± 0.27", "67.59 ± 0.26"]
    study = next(table.study for table in every if table.place == "ccp/table_2_cub")
    assert study.published["C2-CCP-L"] == {
        "recall@1": (0.6973,),
        "r_precision": (0.3869,),
        "map@r": (0.2802,),
        "mean:recall@1": (0.6239,),
        "mean:r_precision": (0.3349,),
        "mean:map@r": (0.2267,),
    }


def test_figures_that_the_runs_of_a_table_draw_are_not_run_twice(every):
    keys = {table.place: {cell.key for cell in table.study.cells} for table in every}
    for figure, table in (("5_cub", "4_cub"), ("5_cars", "5_cars"), ("5_sop", "6_sop")):
        assert keys[f"roth/figure_{figure}"] == keys[f"roth/table_{table}"]


def test_the_hours_follow_the_length_of_the_runs(every):
    table = next(table for table in every if table.place == "roth/table_4_cub")
    longer = tuple(
        cell._replace(recipe=replace(cell.recipe, train=replace(cell.recipe.train, epochs=300)))
        for cell in table.study.cells
    )
    assert table._replace(study=replace(table.study, cells=longer)).hours == pytest.approx(2 * table.hours, rel=0.05)
