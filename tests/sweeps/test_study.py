"""Studies: files read, cells run once by whoever has them, tables that say what the runs said."""

from pathlib import Path

import pytest
import torch

from lookalike.data import arrays
from lookalike.errors import UserError
from lookalike.recipe import of_tree, overridden, tree
from lookalike.recipe.validity import check_recipe
from lookalike.runs.finished import load_results
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import ignore
from lookalike.sweeps import as_text, gather, possible, read, table, trial, work
from lookalike.sweeps.ranges import Corner, draw, take
from lookalike.sweeps.study import done, folder_of
from papers.reproduction.planned import SEARCH_FILE
from papers.reproduction.planned import STUDIES as PLANNED
from tests.cli.processes import Python
from tests.sweeps.searching import LEARNING

ROOT = Path(__file__).parents[2]
TABLES = ("table_", "figure_", "supplement_", "ablation_")  # tests/papers/test_tables.py has those
FILES = [file for file in sorted(ROOT.glob("papers/*/*.toml")) if not file.name.startswith(TABLES)]
STUDIES = [file for file in FILES if "recipe" in tree(file)]
RECIPE = f"""
[data]
validation = 0.2
[images]
preset = "glyphs"
size = 16
{LEARNING}
margin = 0.1
[train]
steps = 2
"""
STUDY = """
recipe = "recipe.toml"
seeds = 2
baseline = "plain"
metrics = ["recall@1", "map@r", "train:rho", "train:rho_class"]
[rows."plain"]
[rows."other"]
loss.name = "contrastive"
"""


@pytest.fixture
def write(tmp_path):
    (tmp_path / "recipe.toml").write_text(RECIPE)

    def write(text: str = STUDY) -> Path:
        (tmp_path / "study.toml").write_text(text)
        return tmp_path / "study.toml"

    return write


@pytest.fixture(scope="module")
def shapes():
    generator = torch.Generator().manual_seed(0)
    looks = torch.randint(0, 256, (16, 16, 16, 1), generator=generator).repeat_interleave(4, 0)
    pixels = (looks + 40 * torch.randn(64, 16, 16, 1, generator=generator)).clamp(0, 255).to(torch.uint8)
    return arrays(pixels.expand(-1, -1, -1, 3).numpy(), torch.arange(64) // 4, name="shapes")


def test_settings_stick_whatever_names_the_loss(write):
    """Of an override, of [change] and of the grid: none is lost when a row or another axis names the loss."""
    losses = '[grid]\nloss.similarity = ["euclidean", "cosine"]\nloss.name = ["triplet", "contrastive"]\n'
    study = read(write('recipe = "recipe.toml"\n[change]\nloss.normalise = "ball"\n' + losses))
    assert [(cell.recipe.loss.name, cell.recipe.loss.settings) for cell in study.cells] == [
        (name, {"normalise": "ball", "similarity": similarity} | ({"margin": 0.1} if name == "triplet" else {}))
        for similarity in ("euclidean", "cosine")
        for name in ("triplet", "contrastive")
    ]
    study = read(write(), overrides=["loss.normalise=ball"])
    settings = [cell.recipe.loss.settings for cell in study.cells[:2]]
    assert settings == [{"margin": 0.1, "normalise": "ball"}, {"normalise": "ball"}]


def test_a_typo_beside_a_new_name_is_refused(write, shapes):
    study = possible(read(write(STUDY + "loss.treshold = 0.2\n")), shapes)
    assert "unknown setting of contrastive 'treshold': did you mean 'threshold'" in study.refused["other"]
    assert study.rows == ["plain"]


def test_rows_grid_and_seeds_make_cells(write):
    study = read(
        write(STUDY.replace('"plain"\n', '"plain, batch_size 4"\n', 1) + "[grid]\nsampler.batch_size = [4, 8]\n")
    )
    assert study.rows == ["plain, batch_size 4", "plain, batch_size 8", "other, batch_size 4", "other, batch_size 8"]
    assert len(study.cells) == 8
    assert len({cell.key for cell in study.cells}) == 8
    other = study.cells[3].recipe
    assert (other.loss.name, dict(other.loss.settings)) == ("contrastive", {})  # the old loss's margin is gone
    assert other.sampler.settings["batch_size"] == 8
    assert other.evaluation.metrics == ("recall@1", "map@r")
    assert other.evaluation.train == ("rho", "rho_class")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seeds = 2", "seed = 2"), "did you mean 'seeds'"),
        (('baseline = "plain"', 'baseline = "plian"'), "did you mean 'plain'"),
        (("seeds = 2", "seeds = 0"), "a number of runs"),
        (("recipe.toml", "recipes.toml"), "there is no recipe"),
    ],
)
def test_mistakes_in_a_study_are_one_line(write, change, message, shapes):
    with pytest.raises(UserError, match=message):
        possible(read(write(STUDY.replace(*change))), shapes)


def test_an_impossible_row_is_named_and_the_others_are_run(write, shapes, tmp_path):
    odd = '[rows.odd]\nsampler.batch_size = 7\n[rows.typo]\nlos.name = "triplet"\n[compare]\nodd = ["plain"]\n'
    study = possible(read(write(STUDY.replace("seeds = 2", "seeds = 1") + odd)), shapes)
    assert study.rows == ["plain", "other"]
    assert "multiple" in study.refused["odd"]
    assert "did you mean 'loss'" in study.refused["typo"]
    work(study, shapes, tmp_path / "out", ignore, lambda: False)
    text = as_text(gather(study, tmp_path / "out"))
    assert "2 of 2 cells" in text
    assert "row 'odd' cannot run: " in text


def test_where_no_row_can_run_the_first_one_is_the_mistake(write, shapes):
    study = read(write(STUDY), overrides=["sampler.batch_size=7"])
    with pytest.raises(UserError, match=r"row 'plain' cannot run: .*multiple"):
        possible(study, shapes)


def test_a_study_like_another_says_only_what_differs(write, tmp_path):
    first = STUDY + '[published]\nplain = [12.5, "30.0 ± 0.4"]\nother = ["", 31]\n'
    write(first).rename(tmp_path / "first.toml")
    more = 'like = "first.toml"\nbaseline = "other"\n[change]\nmodel.dim = 4\n[rows]\nplain = "none"\n'
    study = read(write(more + "other.loss.threshold = 0.2\n[published]\nother = [9]\n"))
    assert study.rows == ["other"]
    assert {cell.recipe.model.architecture.dim for cell in study.cells} == {4}
    assert study.cells[0].recipe.loss.settings == {"threshold": 0.2}
    assert study.published == {"other": {"recall@1": (0.09,)}}
    assert read(tmp_path / "first.toml").published == {
        "plain": {"recall@1": (0.125,), "map@r": (0.3, 0.004)},
        "other": {"map@r": (0.31,)},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[published]\nplian = [1]\n", "did you mean 'plain'"),
        ('[published]\nplain = ["much"]\n', "a figure is a number"),
        ("[published]\nplain = [1, 2, 3, 4, 5]\n", "5 figures for 4 metrics"),
        ('metrics = ["trian:rho"]\n', "did you mean 'train'"),
    ],
)
def test_mistakes_in_published_figures_and_parts_are_refused(write, text, message):
    lines = (
        STUDY.replace('metrics = ["recall@1", "map@r", "train:rho", "train:rho_class"]\n', "")
        if "met" in text
        else STUDY
    )
    with pytest.raises(UserError, match=message):
        read(write(text + lines if "met" in text else lines + text))


def test_variants_are_rows_of_every_row_and_the_papers_figures_stand_beside_ours(write, shapes, tmp_path):
    text = STUDY.replace("seeds = 2", "seeds = 1").replace('baseline = "plain"\n', 'note = "Not known: much."\n')
    text += '[variants."narrow"]\nmodel.dim = 2\n[variants."wide"]\nmodel.dim = 6\n'
    text += '[published]\n"plain, wide" = ["90.00 ± 0.50"]\n'
    study, out = read(write(text)), tmp_path / "out"
    assert study.rows == [f"{row}, {width}" for row in ("plain", "other") for width in ("narrow", "wide")]
    work(study, shapes, out, ignore, lambda: False)
    content = gather(study, out)
    mean = content["rows"][1]["metrics"]["recall@1"]["mean"]
    line = next(line for line in as_text(content).splitlines() if line.startswith("plain, wide"))
    assert f"{100 * mean:.2f}" in line
    assert f"90.00 ± 0.50 {100 * (mean - 0.9):+.2f} " in " ".join(line.split())
    assert as_text(content).splitlines()[2].split()[:6] == ["recall@1", "mean", "±", "std", "paper", "−"]
    assert as_text(content).endswith("Not known: much.")


def test_a_row_drops_the_miner_of_another_loss_and_refuses_its_own(write, shapes):
    """Triplets mean nothing to a loss of class weights: inherited ones are left out, named ones are a mistake."""
    rows = STUDY.replace('loss.name = "contrastive"', 'loss.name = "arcface"')
    named = '[rows."named"]\nloss.name = "arcface"\nminer.name = "semihard"\n[rows."fits"]\nloss.name = "margin"\n'
    study = possible(read(write(rows + named), overrides=["miner.name=semihard"]), shapes)
    recipes = {cell.row: cell.recipe for cell in study.cells}
    assert recipes["other"].miner is None
    assert recipes["fits"].miner.name == recipes["plain"].miner.name == "semihard"
    assert "takes labels or Classes, not Triplets" in study.refused["named"]


def test_all_folds_in_a_cell_are_measured_side_by_side_and_in_the_mean(write, shapes, tmp_path):
    text = STUDY.replace("seeds = 2", "seeds = 1").replace('"train:rho", "train:rho_class"', '"mean:recall@1"')
    changes = ["protocol.name=cross_validation", "protocol.folds=2"]
    study, out = read(write(text), overrides=changes), tmp_path / "out"
    assert len(study.cells) == 2
    work(study, shapes, out, ignore, lambda: False)
    folder = folder_of(out, study.cells[0])
    folds = [load_results(RunFolder(folder.path / f"fold-{fold}"))[0].result["recall@1"] for fold in (1, 2)]
    figures = gather(study, out)["rows"][0]["metrics"]
    assert figures["mean:recall@1"]["mean"] == pytest.approx(sum(folds) / 2)
    assert figures["recall@1"]["mean"] == load_results(folder)[0].result["recall@1"]
    assert "side by side" in load_results(folder)[0].name
    assert not list(out.rglob("test.npz"))


def test_a_row_of_the_untrained_network_and_every_metrics_maximum(write, shapes, tmp_path):
    text = STUDY.replace("seeds = 2", "seeds = 1").replace('"train:rho", "train:rho_class"', '"max:recall@1"')
    text += '[rows."before"]\nmodel.dim = "none"\ntrain.deliver = "untrained"\n'
    study, out = read(write(text), overrides=["protocol.select=test_max", "train.validate_every=1"]), tmp_path / "out"
    work(study, shapes, out, ignore, lambda: False)
    rows = {row["name"]: row for row in gather(study, out)["rows"]}
    before = rows["before"]
    assert (before["runs"][0]["steps"], before["runs"][0]["course"]) == (0, [])
    assert before["metrics"]["recall@1"] == before["metrics"]["max:recall@1"] | before["metrics"]["recall@1"]
    course = [point["recall@1"] for point in rows["plain"]["runs"][0]["course"]]
    assert rows["plain"]["metrics"]["max:recall@1"]["mean"] == pytest.approx(max(course))


def test_a_study_is_run_once_and_its_table_is_right(write, shapes, tmp_path, monkeypatch):
    study, out, decoded = read(write()), tmp_path / "out", []
    decode = trial.stages.decode
    monkeypatch.setattr(trial.stages, "decode", lambda *about: decoded.append(about) or decode(*about))
    work(study, shapes, out, ignore, lambda: False)
    assert all(done(out, cell) for cell in study.cells)
    assert len(decoded) == 1
    stamps = [(folder_of(out, cell).result).stat().st_mtime_ns for cell in study.cells]
    work(study, shapes, out, ignore, lambda: False)
    assert stamps == [(folder_of(out, cell).result).stat().st_mtime_ns for cell in study.cells]
    assert not [path for path in out.rglob("*") if path.name in ("checkpoint", "model", "test.npz", "report.html")]
    content = gather(study, out)
    values = {cell.name: load_results(folder_of(out, cell))[0].result["map@r"] for cell in study.cells}
    plain, other = ([values[f"{row}, seed {seed}"] for seed in (0, 1)] for row in ("plain", "other"))
    assert content["rows"][1]["metrics"]["map@r"]["mean"] == pytest.approx(sum(other) / 2)
    gap = content["rows"][1]["differences"]["map@r"]
    assert gap["mean"] == pytest.approx((sum(other) - sum(plain)) / 2)
    assert "rho" in load_results(folder_of(out, study.cells[0]))[1].result
    assert content["rows"][0]["metrics"]["train:rho"]["mean"] > 0
    spectrum = content["rows"][0]["runs"][0]["class_spectrum"]
    assert spectrum == sorted(spectrum, reverse=True)
    assert len(spectrum) == 4  # images of a class
    assert "4 of 4 cells" in as_text(content)
    assert "− plain" in as_text(content)


def test_folds_are_cells_of_their_own_and_paired(write, shapes, tmp_path):
    text = STUDY.replace("seeds = 2", "seeds = 1\nfolds = 2") + '[compare]\n"other" = ["plain"]\n'
    study, out = read(write(text), overrides=["protocol.folds=2"]), tmp_path / "out"
    assert [cell.name for cell in study.cells] == [
        f"{row}, seed 0, fold {fold}" for fold in (1, 2) for row in ("plain", "other")
    ]
    assert {cell.recipe.protocol.name for cell in study.cells} == {"cross_validation"}
    work(study, shapes, out, ignore, lambda: False)
    content = gather(study, out)
    plain, other = content["rows"]
    assert [(run["seed"], run["fold"]) for run in plain["runs"]] == [(0, 1), (0, 2)]
    gaps = [
        two["metrics"]["map@r"] - one["metrics"]["map@r"] for one, two in zip(plain["runs"], other["runs"], strict=True)
    ]
    (pair,) = content["compare"]
    assert (pair["row"], pair["against"]) == ("other", "plain")
    assert pair["differences"]["map@r"] == other["differences"]["map@r"]
    assert pair["differences"]["map@r"]["mean"] == pytest.approx(sum(gaps) / 2)
    assert pair["differences"]["map@r"]["seeds"] == 2
    assert [point["step"] for point in plain["runs"][0]["course"]] == [0, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [("folds = -1\n", "folds is how many"), ('[compare]\nplain = ["plian"]\n', "did you mean 'plain'")],
)
def test_mistakes_in_folds_and_pairs_are_refused(write, text, message):
    with pytest.raises(UserError, match=message):
        read(write(STUDY.replace("seeds = 2\n", text if "folds" in text else "") + (text if "comp" in text else "")))


def test_a_cell_killed_between_its_last_files_is_not_done(write, tmp_path):
    study = read(write())
    place = folder_of(tmp_path, study.cells[0]).path
    place.mkdir(parents=True)
    (place / "measured.json").write_text("[]")
    assert not done(tmp_path, study.cells[0])
    assert gather(study, tmp_path)["done"] == 0


def test_a_cell_that_ends_while_the_table_is_made_is_in_all_of_it_or_in_none(write, shapes, tmp_path, monkeypatch):
    study, out = read(write()), tmp_path / "out"
    work(study, shapes, out, ignore, lambda: False)
    late, looked = study.cells[-1], []

    def done(_, cell):
        looked.append(cell)
        return cell is not late or looked.count(late) > 1  # it ends after the first look

    monkeypatch.setattr(table, "done", done)
    content = gather(study, out)
    assert content["done"] == sum(len(row["seeds"]) for row in content["rows"]) == len(study.cells) - 1


def test_a_cell_that_fails_is_told_and_the_others_go_on(write, shapes, tmp_path):
    wild = '[rows."wild"]\noptimiser = { name = "sgd", lr = 1e38 }\n'
    study, out = read(write(STUDY.replace("seeds = 2", "seeds = 1") + wild)), tmp_path / "out"
    work(study, shapes, out, ignore, lambda: False)
    content = gather(study, out)
    assert content["done"] == 2
    assert "learning rate" in content["rows"][2]["failed"]["0"]
    assert "wild, seed 0" in as_text(content)


HOLD = """
import sys, time
from pathlib import Path
from lookalike.runs.folder import RunFolder
with RunFolder(Path(sys.argv[1])).locked() as mine:
    print(mine, flush=True)
    time.sleep(1000)
"""


def test_a_cell_belongs_to_one_process_until_it_dies(tmp_path):
    cell = RunFolder(tmp_path / "cell")
    other = Python(HOLD, cell.path)
    try:
        assert other.output.readline() == "True\n"
        with cell.locked() as mine:
            assert not mine
    finally:
        other.killed()
    with cell.locked() as mine:
        assert mine


def test_cells_in_other_hands_are_left_alone(write, shapes, tmp_path):
    study, out = read(write(STUDY.replace("seeds = 2", "seeds = 1"))), tmp_path / "out"
    (out / "cells").mkdir(parents=True)
    with folder_of(out, study.cells[0]).locked():
        work(study, shapes, out, ignore, lambda: False)
    assert [done(out, cell) for cell in study.cells] == [False, True]
    work(study, shapes, out, ignore, lambda: False)
    assert all(done(out, cell) for cell in study.cells)


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_shipped_study_is_possible_and_says_how_it_is_run(file):
    study = read(file)
    for row in study.rows:
        check_recipe(next(cell.recipe for cell in study.cells if cell.row == row))
    assert f"lookalike study {file.relative_to(ROOT)}" in file.read_text()
    assert len({cell.key for cell in study.cells}) == len(study.cells)


def test_the_shipped_search_is_possible():
    base, ranges = take(tree(SEARCH_FILE))
    check_recipe(of_tree(overridden(base, draw(ranges, base, Corner()))))
    assert [each.key for each in ranges] == ["ccp.pull", "ccp.proxies"]


def test_the_papers_experiments_are_shipped():
    names = {f"{file.parent.name}/{file.stem}" for file in STUDIES}
    assert "multi_similarity/ablation" in names
    assert {study.place for study in PLANNED} <= names
