"""Takes the picture of a calibration in docs/answers.md: `python -m scripts.draw_calibration RUN`, a run on glyphs.

The images of unseen classes calibrate an index of themselves. It needs Chromium.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from lookalike import files
from lookalike.search import Index
from lookalike.search.items import Item
from lookalike.search.pages import calibration_page
from scripts.draw_report import save
from tests.fixtures.chromium import chromium, lacking, show


def page(folder: Path, vectors: np.ndarray, labels: np.ndarray) -> str:
    """The page that `lookalike calibrate --page` writes."""
    index = Index.create(folder / "glyphs.index", dim=vectors.shape[1])
    index.store.put([Item(f"{row:05d}", label=label) for row, label in enumerate(labels)], vectors)
    text = calibration_page(index, index.calibrate())
    index.close()
    return text.replace(str(folder), "shop")


def main(folder: Path) -> None:
    if lacking():
        sys.exit(lacking())
    with np.load(folder / "test.npz", allow_pickle=False) as content:
        vectors, labels = content["embeddings"].astype(np.float32), content["labels"].astype(str)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as name, chromium() as window:
        file = Path(name) / "calibration.html"
        files.write_text(file, page(Path(name), vectors, labels))
        show(window, file)
        save(window, "search/calibration", (0, 0, 1280, 1000))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
