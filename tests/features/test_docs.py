"""The examples of the pages about features and scale run as they stand."""

import re
from pathlib import Path

from PIL import Image

from tests.features import scenes

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


def test_the_example_of_workers_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenes.model().save("run/model")
    for row, image in enumerate(scenes.images(6)):
        place = tmp_path / "photos" / f"class {row % 2}" / f"{row}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place)
    (example,) = examples("scale.md")
    monkeypatch.setattr("lookalike.models.backends.possible", lambda: False)  # exporting a graph takes long
    made = run("scale.md", example, {})["vectors"](None)  # None: no cluster
    assert len(made.joined()["ids"]) == 6
