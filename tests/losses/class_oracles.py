"""Oracles of the losses with a weight per class [math A6, A13, A18, A22, A24]; see `oracles`."""

import math

import torch

from tests.losses.oracles import dots, hinge, log_one_plus, lse, mean, placed


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


# A24
def sub_center_arcface(z, y, centres, per_class, gap=0.5, scale=64.0):
    """`centres` class after class, `per_class` of each."""
    cosines = dots(z, centres, "sphere")
    terms = []
    for i, label in enumerate(y):
        logits = []
        for k in range(len(centres) // per_class):
            nearest = max(cosines[i][k * per_class : (k + 1) * per_class], key=lambda x: x.item())
            if k == label:
                theta = nearest.clamp(-1 + 1e-7, 1 - 1e-7).acos()
                nearest = (theta + gap).cos() if theta + gap <= math.pi else theta.cos() - gap * math.sin(gap)
            logits.append(scale * nearest)
        terms.append(cross_entropy(logits, label))
    return mean(terms, z)


def psi(cosine, times, lam):
    theta = cosine.acos()
    k = min(int(theta * times / math.pi), times - 1)
    return (lam * cosine + (-1) ** k * (times * theta).cos() - 2 * k) / (1 + lam)


def large_margin(z, y, weights, lengths, times=4, lam=0.0, scale=1.0, geometry="none"):
    """SphereFace and large-margin softmax; `lengths`: whether those of the weights count."""
    cosines = dots(z, weights, "sphere")
    long = [placed(v, geometry).norm() for v in z]
    wide = [placed(w, geometry).norm() if lengths else 1.0 for w in weights]
    terms = []
    for i, label in enumerate(y):
        moved = [psi(x, times, lam) if k == label else x for k, x in enumerate(cosines[i])]
        terms.append(cross_entropy([scale * long[i] * wide[k] * x for k, x in enumerate(moved)], label))
    return mean(terms, z)


def p2s_grad(z, y, weights):
    S = dots(z, weights, "sphere")
    total = 0 * z.sum()
    for i, label in enumerate(y):
        total = total + sum(0.5 * (x - float(k == label)) ** 2 for k, x in enumerate(S[i]))
    return total / len(z)


def instance(z, y, weights, scale=1.0, geometry="none"):
    S = dots(z, weights, geometry)
    return mean([cross_entropy([scale * x for x in S[i]], label) for i, label in enumerate(y)], z)


def manifold(z, y, proxies, lam=1.0, al=0.8, gap=5e-4, geometry="sphere"):
    """The walk step by step: 160 steps leave 0.8^160 of it."""
    nodes = [*z, *proxies]
    S = dots(nodes, nodes, geometry)
    count, size = len(nodes), len(z)
    near = [[(2 * hinge(S[i][j])).exp() if i != j else 0 * S[i][j] for j in range(count)] for i in range(count)]
    degree = [sum(row) for row in near]
    step = torch.stack(
        [torch.stack([near[i][j] / (degree[i] * degree[j]).sqrt() for j in range(count)]) for i in range(count)]
    )
    ranks = walk = torch.eye(count, dtype=torch.float64) * (1 - al)
    for _ in range(160):
        walk = al * step @ walk
        ranks = ranks + walk
    terms = []
    for i, label in enumerate(y):
        intrinsic = [ranks[i][size + k] for k in range(len(proxies))]
        context = [
            (ranks[i] * ranks[size + k]).sum() / (ranks[i].norm() * ranks[size + k].norm()) for k in range(len(proxies))
        ]
        for weight, f in ((1.0, intrinsic), (lam, context)):
            excess = [f[k] - f[label] + gap for k in range(len(f)) if k != label]
            terms.append(weight * log_one_plus([x for x in excess if x >= 0]) + 0 * z.sum())
    return sum(terms) / size
