"""What a store must answer, the slow way: every score in float64, every item sorted, ties by id."""

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

    def search(self, query, k, keep=lambda _: True, group=None):
        ids = [one for one, item in self.items.items() if keep(item)]
        ranked = sorted(zip(-self.scores(query, ids), ids, strict=True)) if ids else []
        if group is not None:
            first = {}
            for score, one in ranked:
                first.setdefault(self.value(one, group), (score, one))
            ranked = sorted(first.values())
        return [(one, -score) for score, one in ranked[:k]]

    def value(self, one, column):
        item = self.items[one]
        return item.label if column == "label" else item.columns.get(column)


def same(answer, expected):
    """Ids, order and scores, to the bit."""
    return [(hit.id, hit.similarity) for hit in answer.hits] == expected


def some_items(number, start=0, draw=None):
    draw = draw or np.random.default_rng(start)
    order = draw.permutation(number)
    return [
        Item(
            f"item-{start + order[row]:06d}",
            label=f"class {row % 5}",
            columns={"price": row % 11, "brand": "xyz"[row % 3]},
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
