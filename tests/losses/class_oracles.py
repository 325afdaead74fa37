"""Oracles of the losses with a weight per class [math A6, A13, A18, A22]; see `oracles`."""

import math

from tests.losses.oracles import dots, log_one_plus, lse, mean, placed


def cross_entropy(logits, label):
    return lse(logits) - logits[label]


# A6
def arcface(z, y, centres, gap=0.5, scale=16.0, geometry="sphere"):
    cosines = dots(z, centres, geometry)
    terms = []
    for i, label in enumerate(y):
        own = cosines[i][label].clamp(-1 + 1e-7, 1 - 1e-7)
        theta = own.acos()
        widened = (theta + gap).cos() if theta + gap <= math.pi else own - gap * math.sin(gap)
        terms.append(cross_entropy([scale * (widened if k == label else x) for k, x in enumerate(cosines[i])], label))
    return mean(terms, z)


def cosface(z, y, centres, gap=0.35, scale=64.0, geometry="sphere"):
    cosines = dots(z, centres, geometry)
    terms = []
    for i, label in enumerate(y):
        logits = [scale * (x - (gap if k == label else 0.0)) for k, x in enumerate(cosines[i])]
        terms.append(cross_entropy(logits, label))
    return mean(terms, z)


# A13
def proxy_nca(z, y, proxies, scale=3.0, geometry="sphere"):
    rows, points = ([placed(v, geometry) for v in vectors] for vectors in (z, proxies))
    terms = []
    for i, label in enumerate(y):
        apart = [scale**2 * ((rows[i] - point) ** 2).sum() for point in points]
        others = [-x for k, x in enumerate(apart) if k != label]
        terms.append(apart[label] + lse(others) if others else 0 * apart[label])
    return mean(terms, z)


def softmax(z, y, proxies, temperature, geometry="sphere"):
    """ProxyNCA++ and normalised softmax."""
    S = dots(z, proxies, geometry)
    return mean([cross_entropy([x / temperature for x in S[i]], label) for i, label in enumerate(y)], z)


def proxy_anchor(z, y, proxies, al=32.0, de=0.1, geometry="sphere"):
    S = dots(z, proxies, geometry)
    pull, push = [], []
    for k in range(len(proxies)):
        own = [i for i, label in enumerate(y) if label == k]
        if own:
            pull.append(log_one_plus([-al * (S[i][k] - de) for i in own]))
        push.append(log_one_plus([al * (S[i][k] + de) for i, label in enumerate(y) if label != k]))
    return mean(pull, z) + mean(push, z)


def soft_triple(z, y, centres, per_class, lam=8.0, ga=0.1, de=0.01, tau=0.2, geometry="sphere"):
    """`centres` class after class, `per_class` of each."""
    S = dots(z, centres, geometry)
    classes, terms = len(centres) // per_class, []
    for i, label in enumerate(y):
        logits = []
        for k in range(classes):
            own = S[i][k * per_class : (k + 1) * per_class]
            weights = [(x / ga).exp() for x in own]
            relaxed = sum(w * x for w, x in zip(weights, own, strict=True)) / sum(weights)
            logits.append(lam * (relaxed - (de if k == label else 0.0)))
        terms.append(cross_entropy(logits, label))
    return mean(terms, z) + tau * merging(centres, classes, per_class, geometry)


def merging(centres, classes, per_class, geometry):
    units = [placed(v, geometry) for v in centres]
    total = 0 * centres.sum()
    for k in range(classes):
        for first in range(per_class):
            for second in range(first + 1, per_class):
                cosine = (units[k * per_class + first] * units[k * per_class + second]).sum()
                total = total + (2 + 1e-5 - 2 * cosine).sqrt()
    return total / (classes * per_class * (per_class - 1)) if per_class > 1 else total


# A18
def hierarchical(z, y, proxies, coarse, cluster, om=0.1, al=32.0, de=0.1):
    return proxy_anchor(z, y, proxies, al, de) + om * proxy_anchor(z, [cluster[k] for k in y], coarse, al, de)
