"""The pair losses a second time, as loops: one function per equation of [math A], sharing nothing with the package.

An oracle takes raw rows z and columns c (tensors, so that autograd gives its gradient), the lists pos[i] and neg[i]
of the columns that are positives and negatives of row i, and the symbols of the equation. Nothing here is vectorised
beyond the dot product of two vectors, nothing is stabilised, and the rules for degenerate batches are plain `if`s.
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


# A1
def contrastive(z, c, pos, neg, low=0.0, high=1.0, geometry="sphere"):
    return contrastive_listed(z, c, pairs_of(pos), pairs_of(neg), low, high, geometry)


def contrastive_listed(z, c, near, far, low=0.0, high=1.0, geometry="sphere"):
    d = apart(z, c, geometry)
    return mean([hinge(d[i][j] - low) for i, j in near], z) + mean([hinge(high - d[i][j]) for i, j in far], z)


def contrastive_gpw(z, c, pos, neg, lam=0.5, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        total = total + sum(hinge(S[i][j] - lam) for j in neg[i]) - sum(S[i][j] for j in pos[i])
    return total / len(z)


def c1(z, c, pos, neg, lam=0.5, geometry="ball"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        total = total + sum(hinge(1 - S[i][j]) for j in pos[i]) + sum(hinge(S[i][j] - lam) for j in neg[i])
    return total / len(z)


def c2(z, c, pos, neg, low=0.0, high=0.3841, geometry="ball"):
    d = apart(z, c, geometry)
    pull = mean_active([hinge(d[i][j] - low) for i, j in pairs_of(pos)], z)
    return pull + mean_active([hinge(high - d[i][j]) for i, j in pairs_of(neg)], z)


# A2
def triplet(z, c, pos, neg, gap=0.2, geometry="sphere", squared=False, cosine=False):
    return mean_active(triplet_terms(z, c, listed(pos, neg), gap, geometry, squared, cosine), z)


def triplet_listed(z, c, triplets, gap=0.2, geometry="sphere", squared=False, cosine=False):
    return mean(triplet_terms(z, c, triplets, gap, geometry, squared, cosine), z)


def triplet_terms(z, c, triplets, gap, geometry, squared, cosine):
    if cosine:
        S = dots(z, c, geometry)
        return [hinge(S[a][n] - S[a][p] + gap) for a, p, n in triplets]
    d, power = apart(z, c, geometry), 2 if squared else 1
    return [hinge(d[a][p] ** power - d[a][n] ** power + gap) for a, p, n in triplets]


# A3
def lifted_structure(z, c, pos, neg, gap=1.0, geometry="sphere", ordered=False):
    """Unordered pairs within a batch; `ordered` for rectangles, where column j's negatives are the rows it repels."""
    d = apart(z, c, geometry)
    pairs = [(i, j) for i, j in pairs_of(pos) if ordered or i < j]
    total = 0 * z.sum()
    for i, j in pairs:
        mine = [gap - d[i][k] for k in neg[i]]
        theirs = [gap - d[r][j] for r in range(len(z)) if j in neg[r]]
        if mine or theirs:
            total = total + hinge(lse(mine + theirs) + d[i][j]) ** 2
    return total / (2 * len(pairs)) if pairs else total


def generalised_lifted(z, c, pos, neg, gap=1.0, nu=0.005, squared=False, reduction="mean", geometry="none"):
    d = apart(z, c, geometry)
    full = [i for i in range(len(z)) if pos[i] and neg[i]]
    terms = [hinge(lse([d[i][p] for p in pos[i]]) + lse([gap - d[i][n] for n in neg[i]])) for i in full]
    main = mean(terms, z) if reduction == "mean" else sum(terms, 0 * z.sum())
    return main + nu * mean_length(z, squared)


def lifted_cosine(z, c, pos, neg, lam=1.0, geometry="sphere", reduction="sum"):
    S = dots(z, c, geometry)
    full = [i for i in range(len(z)) if pos[i] and neg[i]]
    terms = [hinge(lse([lam - S[i][p] for p in pos[i]]) + lse([S[i][n] for n in neg[i]])) for i in full]
    return sum(terms, 0 * z.sum()) if reduction == "sum" else mean(terms, z)


def lifted_star(z, c, pos, neg, al=2.0, be=50.0, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        if pos[i] and neg[i]:
            total = total + lse([-al * S[i][p] for p in pos[i]]) / al + lse([be * S[i][n] for n in neg[i]]) / be
    return total / len(z)


# A4, A5
def n_pair(z, c, pos, neg, nu=0.005, squared=False, geometry="none", over=mean):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        if pos[i]:
            terms.append(over([log_one_plus([S[i][n] - S[i][p] for n in neg[i]]) for p in pos[i]], z))
    return mean(terms, z) + nu * mean_length(z, squared)


def n_pair_as_lifted(z, c, pos, neg, lam=1.0, geometry="sphere"):
    """Multi-Similarity's reading: eq. 6 with a single positive, here averaged over which one it is."""
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        if pos[i] and neg[i]:
            total = total + mean([hinge(lam - S[i][p] + lse([S[i][n] for n in neg[i]])) for p in pos[i]], z)
    return total


def angular(z, c, pos, neg, degrees=45.0, lam=2.0, nu=0.005, geometry="sphere", over=mean):
    t = math.tan(math.radians(degrees)) ** 2
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    terms = []
    for a in range(len(z)):
        of_positives = []
        for p in pos[a]:
            agreement = 2 * (1 + t) * (rows[a] * columns[p]).sum()
            values = [4 * t * ((rows[a] + columns[p]) * columns[n]).sum() - agreement for n in neg[a]]
            of_positives.append(log_one_plus(values))
        if of_positives:
            terms.append(over(of_positives, z))
    return n_pair(z, c, pos, neg, nu, over=over) + lam * mean(terms, z)


# A7
def histogram(z, c, pos, neg, nodes=65, geometry="sphere"):
    S, width = dots(z, c, geometry), 2 / (nodes - 1)

    def heights(pairs):
        values = []
        for r in range(nodes):
            node = -1 + r * width
            values.append(mean([hinge(1 - (S[i][j] - node).abs() / width) for i, j in pairs], z))
        return values

    if not pairs_of(pos) or not pairs_of(neg):
        return 0 * z.sum()
    near, far = heights(pairs_of(pos)), heights(pairs_of(neg))
    return sum(far[r] * near[q] for r in range(nodes) for q in range(r + 1))


# A8
def margin(z, c, pos, neg, beta, rows_beta, gap=0.2, nu=0.0, separate=False, geometry="sphere"):
    """All pairs; 0 where the batch has no negative or no positive at all, as with triplets [math A21]."""
    if not any(pos) or not any(neg):
        return nu * sum(beta) + 0 * z.sum()
    return margin_listed(z, c, pairs_of(pos), pairs_of(neg), beta, rows_beta, gap, nu, separate, geometry)


def margin_listed(z, c, near, far, beta, rows_beta, gap=0.2, nu=0.0, separate=False, geometry="sphere"):
    """`beta` are the parameters, `rows_beta[i]` the one of row i."""
    d = apart(z, c, geometry)
    pull = [hinge(d[i][j] - beta[rows_beta[i]] + gap) for i, j in near]
    push = [hinge(beta[rows_beta[i]] - d[i][j] + gap) for i, j in far]
    main = mean_active(pull, z) + mean_active(push, z) if separate else mean_active(pull + push, z)
    return main + nu * sum(beta)
