"""`lookalike study --rehearse`: a line for every row, exit 0 only if all of them can run, and nothing left behind."""

from tests.cli.test_study import RECIPE, STUDY

SABOTAGED = """
[rows."unknown miner"]
miner.name = "semihart"
[rows."wrong setting"]
loss.margn = 0.1
[rows."unknown table"]
los.name = "triplet"
"""


def test_every_row_is_tried_by_hand(lookalike, photos, tmp_path):
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
