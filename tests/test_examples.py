"""Every example runs as it stands, and does what it says: the numbers it ends with are good ones."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PROMISES = {
    "judged_triplets": lambda names: names["after"] > names["before"] + 0.2,
    "plain_loop": lambda names: names["after"]["recall@1"] > names["before"]["recall@1"] + 0.04,
    "several_labels": lambda names: names["after"]["ndcg@10"] > names["before"]["ndcg@10"] + 0.2,
    "tabular": lambda names: names["after"]["recall@1"] > names["before"]["recall@1"] + 0.1,
    "text": lambda names: names["result"]["recall@1"] > 0.9,
    "visual_search": lambda names: names["right"] >= 6,
    "verification": lambda names: names["accepted"] > 0.5 and 0.003 < names["false"] < 0.03,
}


@pytest.mark.parametrize("name", PROMISES)
def test_an_example_keeps_its_promise(name, capsys):
    names = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert PROMISES[name](names), capsys.readouterr().out
    assert capsys.readouterr().out


def test_every_example_is_run():
    assert sorted(PROMISES) == sorted(path.stem for path in EXAMPLES.glob("*.py"))
