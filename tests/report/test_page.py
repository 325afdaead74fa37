"""The page says what evaluation says, in the order a reader asks, with names as text and nothing from outside."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from lookalike import evaluate, report
from lookalike.errors import UserError
from lookalike.report.charts.layout import clipped
from tests.report.conftest import CLASSES, EACH, HOSTILE, NAMES, fill, labels, picture, vectors
from tests.report.page_reader import Reader

ORDER = [
    "verdict",
    "results",
    "training",
    "queries",
    "labels",
    "confusions",
    "classes",
    "pairs",
    "map",
    "shape",
    "data",
]
ORDER += ["repeat", "glossary"]
AXES = {  # a list of names, a number without a unit and a rate need none
    "results": ("value of the metric", ""),
    "recall": ("K, the number of answers looked at", "share of queries with a hit in K"),
    "loss": ("training step", "loss"),
    "validation": ("training step", "validation metric"),
    "learning_rate": ("training step", "learning rate"),
    "speed": ("training step", "images per second"),
    "similarity": ("cosine similarity", "share of pairs of each kind"),
    "precision_recall": ("recall (share of same-class pairs)", "precision (share of accepted pairs)"),
    "roc": ("false-accept rate", "true-accept rate"),
    "map": ("first t-SNE axis", "second t-SNE axis"),
    "spectrum": ("rank of the singular value", "share of the sum"),
}
TILES = {"queries_best", "queries_typical", "queries_worst", "confusions"}


pytestmark = pytest.mark.usefixtures("no_tsne")


def test_sections_come_in_the_order_of_the_questions(reader):
    assert [attributes["id"] for tag, attributes in reader.elements if tag == "section"] == ORDER


def test_names_from_data_are_text(reader, text):
    assert [tag for tag, _ in reader.elements].count("script") == 2  # the map's data and the page's own code
    assert not [attributes for _, attributes in reader.elements if any(name.startswith("on") for name in attributes)]
    assert not [
        attributes for tag, attributes in reader.elements if tag == "img" and not attributes["src"].startswith("data:")
    ]
    for name in HOSTILE[:3]:
        assert name in reader.words or any(name in words for words in reader.words)
    assert "alert(3)</script>" not in text
    assert "lower the <b>learning rate</b>" in "".join(reader.words)


def test_data_of_the_map_reads_back_with_every_name(text):
    block = re.search(r'<script type="application/json" id="map-data">(.*?)</script>', text, re.S).group(1)
    content = json.loads(block)
    assert sorted(content["label_names"]) == sorted(NAMES)
    assert len(content["points"]) == len(content["labels"]) == CLASSES * EACH
    assert min(content["cells"]) == 0  # every point has a picture


def test_nothing_comes_from_outside(reader, text):
    addresses = [
        attributes[name] for _, attributes in reader.elements for name in ("src", "href") if name in attributes
    ]
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert not re.findall(r"(?:src|href|url\()\s*=?[\"'(]?https?:", text)
    policy = next(attributes["content"] for _, attributes in reader.elements if attributes.get("http-equiv"))
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_main_numbers_intervals_and_baseline_are_at_the_top(reader):
    words = "".join(reader.words)
    for expected in ("0.900", "95% interval 0.880 to 0.920", "+0.600 against raw pixels (+0.550 to +0.650)"):
        assert expected in words
    assert words.index("0.900") < words.index("Training loss")


def test_settings_seed_versions_command_cost_and_audit_are_there(reader):
    words = "".join(reader.words)
    assert "lookalike fit birds/ --seed 17" in words
    for expected in (
        'name = "<b>bold</b>"',
        "seed17",
        "lookalike0.1.0",
        "<i>.jpg",
        "memory1.23 GB",
        "seconds3 min 20 s",
    ):
        assert expected in words


def test_every_figure_has_axes_a_caption_and_its_files(run, reader):
    folder = run / "figures"
    assert {file.stem for file in folder.glob("*.svg")} == set(AXES) | TILES
    assert {file.stem for file in folder.glob("*.png")} == set(AXES) | TILES
    for name, axes in AXES.items():
        numbers = json.loads((folder / f"{name}.json").read_text())
        assert numbers["caption"].endswith(".")
        assert (numbers["x"], numbers["y"]) == axes
        assert numbers["series"]
        assert "prefers-color-scheme" in (folder / f"{name}.svg").read_text()
        with Image.open(folder / f"{name}.png") as image:
            assert image.width > 600
    figures = [attributes for tag, attributes in reader.elements if tag == "svg"]
    assert len(figures) == len(AXES) - 1  # the map is a canvas
    assert all(attributes["aria-label"] for attributes in figures)


def test_files_of_figures_are_valid_xml(run):
    from xml.etree import ElementTree

    for file in (run / "figures").glob("*.svg"):
        assert ElementTree.parse(file).getroot().tag.endswith("svg")


def test_classes_and_categories_are_those_of_evaluate(run):
    expected = evaluate(vectors(0.8), labels(), categories=[f"kind {row // EACH % 3}" for row in range(CLASSES * EACH)])
    rows = json.loads((run / "figures" / "classes.json").read_text())
    assert {row["class"]: row["map@r"] for row in rows} == pytest.approx(
        {name: share.value for name, share in expected.by_class("map@r").items()}
    )
    kinds = json.loads((run / "figures" / "categories.json").read_text())
    assert {row["category"]: row["recall@1"] for row in kinds} == pytest.approx(
        {name: share.value for name, share in expected.by_category("recall@1").items()}
    )
    assert [row["map@r"] for row in rows] == sorted(row["map@r"] for row in rows)


@pytest.mark.parametrize("kind", ["best", "typical", "worst"])
def test_strips_are_true_neighbours_and_never_the_query_itself(run, kind):
    x = vectors(0.8).astype(np.float64)
    for strip in json.loads((run / "figures" / f"queries_{kind}.json").read_text()):
        scores = x @ x[strip["row"]]
        scores[strip["row"]] = -2
        expected = np.argsort(-scores, kind="stable")[: len(strip["answers"])]
        assert [answer["row"] for answer in strip["answers"]] == expected.tolist()
        assert all(answer["hit"] == (answer["label"] == strip["label"]) for answer in strip["answers"])
        assert strip["answers"][0]["score"] == pytest.approx(scores[expected[0]], abs=1e-6)


def test_confusions_are_counted_in_both_directions(run):
    x = vectors(0.8).astype(np.float64)
    scores = x @ x.T
    np.fill_diagonal(scores, -2)
    nearest = scores.argmax(1) // EACH
    for pair in json.loads((run / "figures" / "confusions.json").read_text()):
        one, other = NAMES.index(pair["one"]), NAMES.index(pair["other"])
        assert pair["forth"] == (nearest[one * EACH : one * EACH + EACH] == other).sum()
        assert pair["back"] == (nearest[other * EACH : other * EACH + EACH] == one).sum()
        assert pair["of_one"] == EACH


def test_pictures_are_kept_for_a_page_written_again(tmp_path):
    folder = fill(tmp_path / "again")
    report.write(folder, picture)
    first = (folder / "report.html").read_text()
    report.write(folder)
    assert (folder / "report.html").read_text() == first
    with np.load(folder / "thumbnails.npz") as saved:
        assert saved["pixels"].shape[1:] == (20, 20, 3)
        np.testing.assert_array_equal(saved["pixels"][0, 0, 0], picture(int(saved["rows"][0]))[0, 0])


def test_pictures_are_read_from_the_files_of_the_run(tmp_path):
    folder = fill(tmp_path / "files")
    (folder / "photos").mkdir()
    for row in range(CLASSES * EACH - 1):  # one file is gone
        Image.fromarray(np.ascontiguousarray(picture(row))).save(folder / "photos" / f"{row}.png")
    with np.load(folder / "test.npz") as content:
        paths = [f"photos/{row}.png" for row in range(CLASSES * EACH)]
        np.savez(folder / "test.npz", **{**content, "paths": paths})
    words = report.write(folder).read_text()
    assert words.count('src="data:image/webp') > 50
    cells = json.loads(re.search(r'"cells":(\[.*?\])', words).group(1))
    assert cells[-1] == -1
    assert min(cells[:-1]) == 0


def test_pictures_of_the_reader_are_shown_only_where_he_says_so(tmp_path):
    """A stranger's test.npz and recipe name files of the reader: by whole paths, upwards, by a link."""
    folder, private = fill(tmp_path / "received"), tmp_path / "private"
    private.mkdir()
    for row in range(CLASSES * EACH):
        Image.fromarray(np.ascontiguousarray(picture(row))).save(private / f"{row}.png")
    (folder / "link").symlink_to(private)
    for form in (f"{private}/{{}}.png", "../private/{}.png", "link/{}.png", "{}.png"):
        with np.load(folder / "test.npz") as content:
            paths = [form.format(row) for row in range(CLASSES * EACH)]
            np.savez(folder / "test.npz", **{**content, "paths": paths})
        (folder / "recipe.toml").write_text(f'[data]\nsource = "{private}"\n')
        assert 'src="data:image/webp' not in report.write(folder).read_text()
    assert report.write(folder, photos=private).read_text().count('src="data:image/webp') > 50


def test_embeddings_alone_make_a_page(tmp_path):
    np.savez(tmp_path / "test.npz", embeddings=vectors(0.5), labels=np.arange(CLASSES * EACH) // EACH)
    page = Reader(report.write(tmp_path).read_text())
    assert not [attributes for tag, attributes in page.elements if tag == "img"]
    assert "training" not in [attributes["id"] for tag, attributes in page.elements if tag == "section"]
    expected = evaluate(vectors(0.5), np.arange(CLASSES * EACH) // EACH)
    assert f"{expected['map@r']:.3f}" in "".join(page.words)


def test_png_only_when_asked_for(tmp_path):
    folder = fill(tmp_path / "run")
    report.write(folder, png=True)
    assert (folder / "figures" / "roc.png").is_file()
    report.write(folder)  # and what would show older numbers goes
    assert not list((folder / "figures").glob("*.png"))
    assert (folder / "figures" / "roc.svg").is_file()


def test_what_was_measured_is_not_ranked_again(tmp_path):
    folder = fill(tmp_path / "run")
    first = report.write(folder).read_text()
    known = evaluate(vectors(0.8), labels(), categories=[f"kind {row // EACH % 3}" for row in range(CLASSES * EACH)])
    assert report.write(folder, result=known).read_text() == first
    assert report.write(folder, result=evaluate(vectors(0.8)[::2], labels()[::2])).read_text() == first  # not these
    known.per_query["recall@1"][:] = 0  # what ranking would not find
    assert report.write(folder, result=known).read_text() != first


def test_a_gallery_of_its_own(tmp_path):
    x, names = vectors(0.6), np.array([name.replace("\x00", "") for name in labels()])
    queries, rest = np.arange(len(x)) % 4 == 0, np.arange(len(x)) % 4 != 0
    np.savez(
        tmp_path / "test.npz",
        embeddings=x[queries],
        labels=names[queries],
        gallery_embeddings=x[rest],
        gallery_labels=names[rest],
    )
    opened = []
    report.write(tmp_path, lambda row: opened.append(row) or picture(row))
    assert max(opened) >= queries.sum()  # answers are rows of the gallery
    strips = json.loads((tmp_path / "figures" / "queries_worst.json").read_text())
    everything = np.concatenate((names[queries], names[rest]))
    assert all(everything[answer["row"]] == answer["label"] for strip in strips for answer in strip["answers"])
    assert all(answer["row"] >= queries.sum() for strip in strips for answer in strip["answers"])


@pytest.mark.parametrize("geometry", ["ball", "none"])
def test_other_geometries(tmp_path, geometry):
    np.savez(tmp_path / "test.npz", embeddings=3 * vectors(0.6), labels=labels())
    (tmp_path / "result.json").write_text(json.dumps({"model": {"geometry": geometry}}))
    assert "similarity (−½ squared distance)" in report.write(tmp_path).read_text()


def test_a_perfect_and_a_collapsed_embedding(tmp_path):
    perfect = np.repeat(np.eye(CLASSES, dtype="float32"), EACH, 0)
    for name, x in {"perfect": perfect, "collapsed": np.ones_like(perfect)}.items():
        folder = tmp_path / name
        folder.mkdir()
        np.savez(folder / "test.npz", embeddings=x, labels=labels())
        words = report.write(folder).read_text()
        assert ("No query has its nearest neighbour in another class" in words) == (name == "perfect")


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda run: (run / "test.npz").unlink(), "holds no test.npz"),
        (lambda run: (run / "test.npz").write_text("x"), "cannot be read as .npz"),
        (lambda run: np.savez(run / "test.npz", embeddings=vectors(1)), "has no array 'labels'"),
        (lambda run: (run / "result.json").write_text("{"), "is not JSON"),
    ],
)
def test_mistakes_are_one_line(tmp_path, break_it, message):
    folder = fill(tmp_path / "broken")
    break_it(folder)
    with pytest.raises(UserError, match=message):
        report.write(folder)
    with pytest.raises(UserError, match="is not a folder"):
        report.write(tmp_path / "nowhere")


def test_long_names_are_cut_in_figures_only():
    assert clipped("a" * 40) == "a" * 23 + "…"
