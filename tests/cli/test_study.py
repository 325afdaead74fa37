"""`lookalike study`: the figures are those of one worker, whoever ran the cells and however often one was killed."""

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
