"""Oracles of the losses of [math A24]; see `oracles`."""

import math

from tests.losses.oracles import apart, dots, hinge, log_one_plus, mean, pairs_of


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
