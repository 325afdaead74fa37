"""What a store must answer, the slow way: every score in float64, every item sorted, ties by id."""

import math

import numpy as np

from lookalike.search.items import Item


class Brute:
    """Items in a dictionary."""

    def __init__(self, geometry):
        self.geometry, self.items, self.rows = geometry, {}, {}

    def put(self, items, vectors):
        for item, vector in zip(items, vectors, strict=True):
            self.items[item.id], self.rows[item.id] = item, vector.astype(np.float32)

    def remove(self, ids):
        for one in ids:
            self.items.pop(one, None)
            self.rows.pop(one, None)

    def scores(self, query, ids):
        exact, rows = query.astype(np.float32).astype(np.float64), np.stack([self.rows[one] for one in ids])
        if self.geometry == "sphere":
            return (rows.astype(np.float64) * exact).sum(1)
        return -np.square(rows.astype(np.float64) - exact).sum(1) / 2

    def search(self, query, k, keep=lambda _: True):
        ids = [one for one, item in self.items.items() if keep(item)]
        ranked = sorted(zip(-self.scores(query, ids), ids, strict=True)) if ids else []
        return [(one, -score) for score, one in ranked[:k]]

    def things(self, queries, k, column, pooled=1, keep=lambda _: True):
        """Every thing scored by every photo: its score, its best photo, its name, the photos that speak for it."""
        photos = {}
        for one, item in self.items.items():
            if keep(item):
                name = item.value(column)
                photos.setdefault(("photo", one) if name is None else ("thing", name), []).append(one)
        every = []
        for (kind, name), ids in photos.items():
            best = [sorted(zip(-self.scores(query, ids), ids, strict=True))[:pooled] for query in queries]
            score = math.fsum(math.fsum(-own for own, _ in some) / len(some) for some in best) / len(best)
            speaking = dict.fromkeys(one for _, one in sorted(pair for some in best for pair in some))
            every.append((-score, next(iter(speaking)), name if kind == "thing" else None, list(speaking)))
        return [(name, -score, speaking) for score, _, name, speaking in sorted(every, key=lambda row: row[:2])[:k]]


def same(answer, expected):
    """Ids, order and scores, to the bit."""
    return [(hit.id, hit.similarity) for hit in answer.hits] == expected


def same_things(found, expected):
    """Names, scores to the bit, and the photos that speak for each."""
    return [(one.name, one.score, [photo.id for photo in one.photos]) for one in found.things] == expected


def some_items(number, start=0, draw=None):
    draw = draw or np.random.default_rng(start)
    order = draw.permutation(number)
    return [
        Item(
            f"item-{start + order[row]:06d}",
            label=f"class {row % 5}",
            columns={"price": row % 11, "brand": "xyz"[row % 3]} | ({} if row % 7 == 3 else {"sku": f"s{row // 4}"}),
        )
        for row in range(number)
    ]


def on(geometry, vectors):
    """Vectors as a model of that geometry gives them."""
    if geometry == "none":
        return vectors.astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths = np.maximum(lengths, 1e-12) if geometry == "sphere" else np.maximum(lengths, 1.0)
    return (vectors / lengths).astype(np.float32)
