"""Oracles of the losses of [math A24]; see `oracles`."""

import math

import torch

from tests.losses.oracles import apart, dots, hinge, log_one_plus, mean, pairs_of, placed


# A24a
def tuplet_margin(z, c, pos, neg, slack=0.1, scale=64.0, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i, p in pairs_of(pos):
        within = S[i][p] >= math.cos(slack)
        near = 1.0 + 0 * S[i][p] if within else (S[i][p].acos() - slack).cos()
        terms.append(log_one_plus([scale * (S[i][n] - near) for n in neg[i]]) + 0 * z.sum())
    return mean(terms, z)


# A24b
def intra_pair_variance(z, c, pos, neg, low=0.01, high=0.01, geometry="sphere"):
    S = dots(z, c, geometry)
    near, far = ([S[i][j] for i, j in pairs_of(side)] for side in (pos, neg))
    usual, rivals = mean(near, z), mean(far, z)
    pull = mean([hinge((1 - low) * usual - x) ** 2 for x in near], z)
    return pull + mean([hinge(x - (1 + high) * rivals) ** 2 for x in far], z)


# A24c
def threshold_consistent_margin(z, c, pos, neg, above=0.9, below=0.5, pull=1.0, push=1.0, geometry="sphere"):
    S = dots(z, c, geometry)
    low = mean([above - S[i][p] for i, p in pairs_of(pos) if S[i][p] <= above], z)
    return pull * low + push * mean([S[i][n] - below for i, n in pairs_of(neg) if S[i][n] >= below], z)


# A24d
def siglip(z, c, pos, neg, scale=10.0, bias=-10.0, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for sign, side in ((1, pos), (-1, neg)):
        for i, j in pairs_of(side):
            total = total + log_one_plus([-sign * (scale * S[i][j] + bias)])
    return total / len(z)


# A24e
def weighed(values, temperature, z):
    """The mean weighted by e^{T x}, the weights being numbers."""
    weights = [math.exp(temperature * x.item()) for x in values]
    return sum(w * x for w, x in zip(weights, values, strict=True)) / sum(weights) if values else 0 * z.sum()


def ranked_list(z, c, pos, neg, al=1.2, gap=0.4, lam=0.5, t_pos=0.0, t_neg=10.0, geometry="sphere"):
    d = apart(z, c, geometry)
    terms = []
    for i in range(len(z)):
        far = [d[i][p] - (al - gap) for p in pos[i] if d[i][p] > al - gap]
        near = [al - d[i][n] for n in neg[i] if d[i][n] < al]
        terms.append((1 - lam) * weighed(far, t_pos, z) + lam * weighed(near, t_neg, z))
    return mean(terms, z)


# A24k
WORTH = {
    "O": lambda r: r,
    "Iu": lambda r: (1 + r) * (1 + r).log(),
    "Ib": lambda r: (3 * r - (1 + 3 * r).log()) / 9,
    "Ds": lambda r: (1 + r).log(),
    "Dq": lambda r: 1 - 1 / (1 + r) ** 2,
}


def soft_count(own, others, temperature, z):
    """How many of the others lie above, by sigmoids."""
    return sum((torch.sigmoid((x - own) / temperature) for x in others), 0 * z.sum())


def pnp(z, c, pos, neg, variant="O", temperature=0.01, geometry="sphere"):
    """With b = 3 and α = 2 where the variant has them."""
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        before = [soft_count(S[i][p], [S[i][n] for n in neg[i]], temperature, z) for p in pos[i]]
        terms += [mean([WORTH[variant](r) for r in before], z)] if before else []
    return mean(terms, z)


# A24l
def recall_at_k(z, c, pos, neg, ks=(1, 2, 4, 8, 16), temperature=0.01, outer=1.0, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        ranks = []
        for p in pos[i]:
            others = [S[i][j] for j in pos[i] + neg[i] if j != p]
            ranks.append(1 + soft_count(S[i][p], others, temperature, z))
        for k in ks if ranks else ():
            terms.append(1 - sum(torch.sigmoid((k - r) / outer) for r in ranks) / min(k, len(ranks)))
    return mean(terms, z)


# A24m
def dynamic_soft_margin(z, c, pos, neg, nodes=512, geometry="sphere"):
    d = apart(z, c, geometry)
    values = []
    for i, p in pairs_of(pos):
        rivals = [d[i][n] for n in neg[i]] + [d[k][p] for k in range(len(z)) if p in neg[k]]
        if rivals:
            values.append(d[i][p] - min(rivals, key=lambda x: x.item()))
    width, heights = 4 / (nodes - 1), [0.0] * (nodes + 1)
    for x in values:
        place = (x.item() + 2) / width
        lower = math.floor(place)
        heights[lower] += 1 - (place - lower)
        heights[lower + 1] += place - lower
    easier = [sum(heights[: math.floor((x.item() + 2) / width) + 1]) / len(values) for x in values]
    return mean([w * x for w, x in zip(easier, values, strict=True)], z)


def taking_part(pos, neg, columns):
    return [j for j in range(columns) if any(j in pos[i] + neg[i] for i in range(len(pos)))]


# A24n
def centroid_triplet(z, c, pos, neg, labels, gap=0.5, geometry="sphere"):
    """`labels` of the columns."""
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    present, terms = taking_part(pos, neg, len(c)), []
    for i in range(len(z)):
        if pos[i] and neg[i]:
            own = sum(columns[p] for p in pos[i]) / len(pos[i])
            far = []
            for label in {labels[n] for n in neg[i]}:
                members = [columns[j] for j in present if labels[j] == label]
                far.append(((rows[i] - sum(members) / len(members)) ** 2).sum())
            nearest = min(far, key=lambda x: x.item())
            terms.append(hinge(((rows[i] - own) ** 2).sum() - nearest + gap))
    return mean(terms, z)


# A24p
def covariance(vectors, i, j):
    means = [sum(v[k] for v in vectors) / len(vectors) for k in (i, j)]
    return sum((v[i] - means[0]) * (v[j] - means[1]) for v in vectors) / (len(vectors) - 1)


def vicreg(z, c, pos, neg, lam=25.0, mu=25.0, nu=1.0, eps=1e-4, geometry="none"):
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    size = z.shape[1]
    total = lam * mean([((rows[i] - columns[p]) ** 2).sum() / size for i, p in pairs_of(pos)], z)
    for view in (rows, [columns[j] for j in taking_part(pos, neg, len(c))]):
        if len(view) > 1:
            for i in range(size):
                total = total + 0.5 * mu * hinge(1 - (covariance(view, i, i) + eps).sqrt()) / size
                total = total + nu * sum(covariance(view, i, j) ** 2 for j in range(size) if j != i) / size
    return total
