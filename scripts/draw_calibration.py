"""Takes the picture of a calibration in docs/search.md: `python -m scripts.draw_calibration RUN`, a run on glyphs.

The first half of the images of every unseen class is in the index, the others ask. It needs Chromium.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from lookalike import files
from lookalike.search import Index
from lookalike.search.calibration.measuring import Queries, run
from lookalike.search.items import Item
from lookalike.search.pages import calibration_page
from scripts import draw_report
from tests.fixtures.chromium import chromium, lacking, show

FOLDER = Path(__file__).parents[1] / "docs" / "pictures" / "search"
ASKING = 1500  # images


def page(folder: Path, vectors: np.ndarray, labels: np.ndarray) -> str:
    """The page that `lookalike calibrate --page` writes."""
    codes = np.unique(labels, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    number = np.empty(len(codes), int)
    number[order] = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])  # within its class
    kept = number < (np.bincount(codes) / 2)[codes]
    index = Index.create(folder / "glyphs.index", dim=vectors.shape[1])
    index.store.put([Item(f"{row:05d}", label=labels[row]) for row in np.flatnonzero(kept)], vectors[kept])
    asking = np.random.default_rng(0).permutation(np.flatnonzero(~kept))[:ASKING]
    queries = Queries(vectors[asking], vectors[asking], labels[asking].tolist(), [()] * len(asking))
    text = calibration_page(index, run(index.store, queries, 0.8, False, lambda _: None))
    index.close()
    return text.replace(str(folder), "shop")


def main(folder: Path) -> None:
    if lacking():
        sys.exit(lacking())
    FOLDER.mkdir(parents=True, exist_ok=True)
    with np.load(folder / "test.npz", allow_pickle=False) as content:
        vectors, labels = content["embeddings"].astype(np.float32), content["labels"].astype(str)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as name, chromium() as window:
        file = Path(name) / "calibration.html"
        files.write_text(file, page(Path(name), vectors, labels))
        draw_report.FOLDER = FOLDER
        show(window, file)
        draw_report.save(window, "calibration", (0, 0, 1280, 1000))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
