"""What a source names: files, folders, tables, data sets, the unseen images of a run."""

from contextlib import closing

import numpy as np
import pytest
import torch

from lookalike.data import arrays, load
from lookalike.errors import UserError
from lookalike.runs.embeddings import save_embeddings
from lookalike.search import Index
from lookalike.search.adding.sources import listing
from tests.search.conftest import photo


@pytest.fixture
def folder(tmp_path):
    for name in ("figs/dried/1.png", "figs/2.png", "3.png"):
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        photo("figs", 1).save(tmp_path / "shop" / name)
    (tmp_path / "shop" / "note.txt").write_text("no picture")
    return tmp_path / "shop"


def items(source):
    return [entry.item for entry in listing(source).entries]


def test_folders_are_labels_and_levels(folder):
    found = {item.id: (item.label, dict(item.columns)) for item in items(folder)}
    assert found == {
        "shop/3.png": (None, {}),
        "shop/figs/2.png": ("figs", {}),
        "shop/figs/dried/1.png": ("figs/dried", {"folder_1": "figs", "folder_2": "dried"}),
    }
    assert {item.root for item in items(folder)} == {listing(folder).root} == {str(folder)}


def test_files_by_name_and_by_pattern(folder):
    file = folder / "3.png"
    for source, root in (([str(file)], "a list of files"), ((file,), "a list of files"), (file, str(file))):
        assert listing(source).root == root
        assert [(item.id, item.path, item.root) for item in items(source)] == [(str(file), str(file), root)]
    pattern = f"{folder}/**/*"
    assert [item.path for item in items(pattern)] == [
        str(folder / name) for name in ("3.png", "figs/2.png", "figs/dried/1.png")
    ]
    for wrong, message in (([folder / "none.png"], "there is no image"), (f"{folder}/*.gif", "no image matches")):
        with pytest.raises(UserError, match=message):
            listing(wrong)


def test_a_table_has_numbers_and_texts(folder):
    table = folder.parent / "table.csv"
    table.write_text("path,label,price,size\nshop/3.png,x,3,1.5\n\nshop/figs/2.png,,,small\n")
    first, second = items(table)
    assert (first.id, first.path, first.label) == ("table/shop/3.png", str(folder / "3.png"), "x")
    assert (first.columns, second.columns) == ({"price": 3, "size": "1.5"}, {"price": None, "size": "small"})
    assert (second.label, listing(table).several) == (None, False)
    for text, message in (
        ("file\na", "has no column path"),
        ("path,price,Price\na,1,2", "has two columns 'price'"),
        ("path,a\nx", "line 2 has 1 cells, its first line 2"),
        ("path,a\n ,1", "line 2 has no path"),
    ):
        table.write_text(text)
        with pytest.raises(UserError, match=message):
            listing(table)


def test_a_data_set_in_memory_has_pixels_and_columns():
    pixels = np.arange(2 * 8 * 8 * 3, dtype=np.uint8).reshape(2, 8, 8, 3)
    made = arrays(pixels, ["owl", "hen"], categories=["bird", ""], splits=["train", "test"], name="birds")
    first, second = listing(made).entries
    assert (first.item.label, first.item.path) == ("owl", None)
    assert (first.item.columns, second.item.columns) == ({"category": "bird", "split": "train"}, {"split": "test"})
    assert np.array_equal(second.pixels().permute(1, 2, 0).numpy(), pixels[1])


def test_a_run_names_its_test_images(tmp_path):
    for label in ("figs", "dates"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(2):
            photo(label, number).save(tmp_path / "photos" / label / f"{number}.png")
    dataset = load(tmp_path / "photos")
    unseen = [row for row in range(4) if dataset.images.name(row).startswith("figs")]
    run = tmp_path / "run"
    run.mkdir()
    save_embeddings(run / "test.npz", torch.zeros(2, 3), dataset.subset(unseen))
    (run / "recipe.toml").write_text(f'[data]\nsource = "{tmp_path / "photos"}"\n')
    found = listing(run)
    assert (found.root, found.several) == (str(run), False)
    assert [entry.item.label for entry in found.entries] == ["figs", "figs"]
    for damaged, message in (("[data", "is not a recipe"), ("data = 3", "cannot be read")):
        (run / "recipe.toml").write_text(damaged)
        with pytest.raises(UserError, match=message):
            listing(run)
    (run / "recipe.toml").write_text("seed = 1\n")
    with pytest.raises(UserError, match="was made from a dataset in memory"):
        listing(run)


def test_a_table_whose_column_is_of_another_kind_is_refused_whole(tmp_path, model, photos):
    """The row is named, and nothing of the table is in the index."""
    for name, price in (("first", "5"), ("second", "n/a")):
        rows = [f"{photos}/figs/{number}.png,{value}" for number, value in ((0, "1"), (1, "2.5"), (2, price))]
        (tmp_path / f"{name}.csv").write_text("\n".join(["path,price", *rows]))
    with closing(Index.create(tmp_path / "index", model)) as index:
        assert index.add(tmp_path / "first.csv").added == 3
        index.remove([item.id for item in index.store.listed()])
        with pytest.raises(
            UserError, match=r"second\.csv' line 4: 'price' of the item 'second/.*figs/2\.png' is 'n/a'"
        ):
            index.add(tmp_path / "second.csv")
        assert len(index) == 0
