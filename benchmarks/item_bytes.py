"""Bytes of one image with 128 numbers: in a shard of `lookalike embed --shards`, in an index, in the cache of its scan.

python -m benchmarks.item_bytes [--items 50000]

The last figure is that of an index which also has a column of things, four photos each, named by eight characters.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lookalike.search.items import Identity, Item, Stamp, Vectors
from lookalike.search.stores.sqlite.store import FILE, SqliteStore

WIDTH, BULK = 128, 10_000


def measure(count: int, place: Path) -> dict[str, float]:
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((count, WIDTH), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    names = [f"class {row // 20:05d}/{row:07d}.jpg" for row in range(count)]
    sizes, times = draw.integers(10**5, 3 * 10**5, count), draw.integers(17 * 10**17, 18 * 10**17, count)
    stamps = [Stamp(int(size), int(time), draw.bytes(16).hex()) for size, time in zip(sizes, times, strict=True)]
    items = [
        Item(f"photos/{name}", f"/data/photos/{name}", name[:11], {}, "/data/photos", stamp)
        for name, stamp in zip(names, stamps, strict=True)
    ]
    np.savez_compressed(
        place / "shard.npz",
        embeddings=vectors,
        ids=np.array([item.id for item in items]),
        paths=np.array([str(item.path) for item in items]),
        labels=np.array([str(item.label) for item in items]),
        file_size=sizes,
        file_time=times,
        file_digest=np.array([stamp.digest for stamp in stamps]),
    )
    index, cache = stored(place / "index", items, vectors)
    named = [replace(item, columns={"sku": f"{row // 4:08d}"}) for row, item in enumerate(items)]
    things, _ = stored(place / "things", named, vectors)
    files = {"shard": (place / "shard.npz").stat().st_size, "index": index, "cache": cache, "index of things": things}
    return {name: round(size / count) for name, size in files.items()}


def stored(place: Path, items: Sequence[Item], vectors: Vectors) -> tuple[int, int]:
    """Bytes of the database and of the cache."""
    store = SqliteStore.create(place, Identity("benchmark", "sphere", WIDTH))
    for start in range(0, len(items), BULK):
        store.put(items[start : start + BULK], vectors[start : start + BULK])
    store.search(vectors[:1], 10)
    store.close()
    cache = sum(file.stat().st_size for file in (place / "cache").rglob("*") if file.is_file())
    return (place / FILE).stat().st_size, cache


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=50_000)
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(measure(parser.parse_args().items, Path(place)), indent=2))


if __name__ == "__main__":
    main()
