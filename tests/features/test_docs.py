"""The examples of the pages about features run as they stand."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def examples(page):
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def run(page, example, names):
    exec(compile(example, str(DOCS / page), "exec"), names)
    return names


def test_the_example_runs():
    assert examples("features.md")
    for example in examples("features.md"):
        run("features.md", example, {})
