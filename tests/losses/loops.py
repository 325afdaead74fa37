"""What the equations of losses have in common when they are written as loops, sharing nothing with the package.

The loops of a pair loss, each in the test file of the loss, take raw rows z and columns c (tensors, so that autograd
gives their gradient), the lists pos[i] and neg[i] of the columns that are positives and negatives of row i, and the
symbols of the equation. Nothing is vectorised beyond the dot product of two vectors, nothing is stabilised, and the
rules for degenerate batches are plain `if`s.
"""

import math

import torch


def sides(labels, candidate_labels=None, ids=None, candidate_ids=None):
    """The positives and negatives of every row: within the batch without itself, across without equal ids."""
    within = candidate_labels is None
    columns = labels if within else candidate_labels
    positives, negatives = [], []
    for i, label in enumerate(labels):
        others = [j for j in range(len(columns)) if not (within and i == j)]
        if ids is not None:
            others = [j for j in others if ids[i] != candidate_ids[j]]
        positives.append([j for j in others if columns[j] == label])
        negatives.append([j for j in others if columns[j] != label])
    return positives, negatives


def placed(vector, geometry):
    """NORM-S, NORM-B or NORM-0 of one vector."""
    length = math.sqrt(sum(x.item() ** 2 for x in vector))
    if geometry == "none" or (geometry == "ball" and length <= 1):
        return vector
    return vector / (vector * vector).sum().sqrt() if length > 0 else 0 * vector


def dots(z, c, geometry):
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    return [[(a * b).sum() for b in columns] for a in rows]


def distance(a, b):
    """‖a − b‖, with gradient 0 at 0."""
    square = ((a - b) ** 2).sum()
    return square.sqrt() if square > 0 else 0 * square


def apart(z, c, geometry):
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    return [[distance(a, b) for b in columns] for a in rows]


def hinge(x):
    return x if x > 0 else 0 * x


def lse(values):
    return sum(x.exp() for x in values).log()


def log_one_plus(values):
    return (1 + sum((x.exp() for x in values), torch.zeros((), dtype=torch.float64))).log()


def mean(values, z):
    """The mean of a list, 0 (attached) for an empty one."""
    return sum(values) / len(values) if values else 0 * z.sum()


def mean_active(values, z):
    return mean([x for x in values if x > 0], z)


def mean_length(z, squared=False):
    lengths = [distance(v, torch.zeros_like(v)) for v in z]
    return mean([x**2 if squared else x for x in lengths], z)


def listed(pos, neg):
    """All triplets."""
    return [(i, p, n) for i in range(len(pos)) for p in pos[i] for n in neg[i]]


def pairs_of(lists):
    return [(i, j) for i in range(len(lists)) for j in lists[i]]


def soft_count(own, others, temperature, z):
    """How many of the others lie above, by sigmoids."""
    return sum((torch.sigmoid((x - own) / temperature) for x in others), 0 * z.sum())


def taking_part(pos, neg, columns):
    return [j for j in range(columns) if any(j in pos[i] + neg[i] for i in range(len(pos)))]


def cross_entropy(logits, label):
    return lse(logits) - logits[label]
