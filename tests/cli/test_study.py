"""`lookalike study`: the figures are those of one worker, whoever ran the cells and however often one was killed;
rows that cannot run are named."""

import json
import signal

from tests.cli.processes import Death
from tests.sweeps.searching import LEARNING

RECIPE = f"""
[data]
validation = 0.2
[images]
size = 16
short_side = 16
{LEARNING}
[train]
steps = 12
validate_every = 3
"""
STUDY = """
recipe = "recipe.toml"
seeds = 2
baseline = "plain"
metrics = ["recall@1", "map@r", "train:rho"]
[rows."plain"]
[rows."proxies"]
ccp = { proxies = 2, pool = 3, patience = 1 }
[rows."other"]
loss = { name = "multi_similarity" }
"""
SABOTAGED = """
[rows."unknown miner"]
miner.name = "semihart"
[rows."wrong setting"]
loss.margn = 0.1
[rows."unknown table"]
los.name = "triplet"
"""
DEATHS = (
    Death("lookalike.training.train:_Training", "step", call=8),
    Death("lookalike.sweeps.study", "until_proved", call=2, after=True),
    Death("lookalike.sweeps.trial", "run_recipe", call=1, after=True),
)


def figures(out):
    """Everything a study tells but how long it took."""
    content = json.loads((out / "study.json").read_text())
    for row in content["rows"]:
        del row["seconds"]
        for run in row["runs"]:
            del run["seconds"]
    return content


def test_killed_workers_and_several_of_them_change_no_figure(lookalike, photos, tmp_path):
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "study.toml").write_text(STUDY)
    words = ("study", tmp_path / "study.toml", photos, "--out")
    alone = lookalike(*words, tmp_path / "alone")
    assert alone.code == 0, alone.error
    killed = [lookalike.start(*words, tmp_path / "many", death=death) for death in DEATHS]
    assert [worker.end().code for worker in killed] == [-signal.SIGKILL] * len(DEATHS)
    assert json.loads(lookalike(*words, tmp_path / "many", "--table", "--json").out)["done"] < 6
    both = lookalike(*words, tmp_path / "many", "--workers", 2)
    assert both.code == 0, both.error
    one, many = (figures(tmp_path / name) for name in ("alone", "many"))
    assert one["done"] == 6
    assert many == one


def test_every_row_is_rehearsed(lookalike, photos, tmp_path):
    """A line for each, exit code 0 only if all of them can run, and nothing is left behind."""
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "study.toml").write_text(STUDY)
    words = ("study", tmp_path / "study.toml", photos, "--out", tmp_path / "out")
    good = lookalike(*words, "--rehearse")
    assert (good.code, good.out.splitlines()) == (0, [f"row '{row}' can run" for row in ("plain", "proxies", "other")])
    assert not (tmp_path / "out").exists()
    (tmp_path / "study.toml").write_text(STUDY + SABOTAGED)
    bad = lookalike(*words, "--rehearse")
    assert bad.code == 2
    for row, hint in (("unknown miner", "semihard"), ("wrong setting", "margin"), ("unknown table", "loss")):
        assert any(line.startswith(f"row '{row}' cannot run: ") and hint in line for line in bad.out.splitlines())
    assert bad.out.count("can run") == 3
    run = lookalike(*words, "--set", "train.steps=3")
    assert run.code == 2
    assert "6 of 6 cells" in run.out
    assert run.error.count("cannot run: ") == 3
