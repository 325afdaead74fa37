"""From a table with several labels, none, or judged pairs to a report, with real images."""

import json
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image, ImageDraw

from lookalike.errors import UserError
from lookalike.evaluation import evaluate
from lookalike.fit import fit
from lookalike.fit.choose import choose
from lookalike.label_sets import LabelSets
from lookalike.report.run.record import read

COLOURS = {"red": (200, 40, 40), "green": (40, 180, 60), "blue": (50, 60, 210)}
RECIPE = {
    "loss": {"name": "supcon"},
    "sampler": {"name": "class_balanced", "batch_size": 12, "per_class": 2},
    "images": {"preset": "glyphs", "size": 16, "short_side": 16},
    "model": {"backbone": "conv4", "dim": 8, "channels": 3},
    "memory": {"batches": 2, "start": 2},
    "train": {"steps": 4, "validate_every": 2},
    "data": {"validation": 0.25},
}

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def toys(tmp_path):
    """Three colours × three shapes × four images, and tables of them."""
    random = np.random.default_rng(0)
    rows, pairs = [], []
    for colour, paint in COLOURS.items():
        for shape in ("round", "square", "flat"):
            for number in range(4):
                name = f"{colour}-{shape}-{number}.png"
                image = Image.fromarray(random.integers(0, 60, (16, 16, 3), dtype=np.uint8))
                left, top = random.integers(1, 5, 2).tolist()
                draw = ImageDraw.Draw(image)
                box = [left, top, left + 9, top + (3 if shape == "flat" else 9)]
                (draw.ellipse if shape == "round" else draw.rectangle)(box, fill=paint)
                image.save(tmp_path / name)
                rows.append((name, f"{colour}|{shape}", number))
    test = [f"{name},{labels},test" for name, labels, number in rows if number < 2]
    head = "path,labels,split"
    labelled = [f"{name},{labels},train" for name, labels, number in rows if number >= 2]
    unlabelled = [f"{name},,train" for name, _, number in rows if number >= 2]
    for first, second in pairwise(rows):
        pairs.append(f"{first[0]},{second[0]},{'yes' if first[1] == second[1] else 'no'}")
    for name, lines in (
        ("toys", [head, *test, *labelled]),
        ("bare", [head, *test, *unlabelled]),
        ("pairs", ["left,right,same", *pairs]),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_several_labels_from_table_to_report(toys):
    run = fit(toys / "toys.csv", toys / "run", recipe=RECIPE)
    names = [labels for _, labels, _ in (line.split(",") for line in (toys / "toys.csv").read_text().split()[1:19])]
    again = evaluate(run.entries[0].embeddings, [set(labels.split("|")) for labels in names])
    assert dict(again) == dict(run.result)
    assert run.result.labels == ["|".join(sorted(labels.split("|"))) for labels in names]
    test = read(run.folder).test
    assert isinstance(test.sets, LabelSets)
    assert test.alike(0, 2)  # red round and red square
    assert not test.alike(0, 17)
    assert run.report.stat().st_size > 10_000
    log = (run.folder / "log.jsonl").read_text()
    assert "labels occur in several of them" in log
    assert any("memory" in json.loads(line) for line in log.splitlines())


@pytest.mark.slow
def test_unlabelled_images_train_in_two_views(toys):
    recipe = RECIPE | {"loss": {"name": "info_nce"}, "optimiser": {"name": "adamw", "lr": 3e-3}}
    run = fit(toys / "bare.csv", toys / "run", recipe=recipe, overrides=["train.steps=20", "memory.batches=0"])
    before = next(entry for entry in run.entries if entry.name == "untrained network")
    assert run.result["map@r"] > before.result["map@r"]


@pytest.mark.slow
def test_judged_pairs_from_table_to_report(toys):
    run = fit(toys / "pairs.csv", toys / "run", recipe=RECIPE | {"loss": {"name": "contrastive"}})
    assert 0 < run.result["recall@1"] <= 1
    assert read(run.folder).test.sets.opposed is not None
    assert run.report.is_file()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["loss.name=proxy_anchor", "memory.batches=0"], "learns weights per class and takes one label per sample"),
        (["loss.name=quadruplet", "memory.batches=0"], "third class"),
        (["head.steps=5"], "head.steps trains on classes"),
        (["sampler.name=class_queue"], "choose class_balanced"),
    ],
)
def test_what_needs_one_class_is_refused_before_an_image_is_read(toys, overrides, message):
    with pytest.raises(UserError, match=message) as error:
        choose(toys / "toys.csv", RECIPE, overrides)
    assert "\n" not in str(error.value)
