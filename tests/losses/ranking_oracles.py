"""Oracles of the weighting, ranking and tuple losses [math A9 to A12, A14 to A17, A22]; see `oracles`."""

import torch

from tests.losses.oracles import (
    apart,
    distance,
    dots,
    hinge,
    listed,
    log_one_plus,
    lse,
    mean,
    mean_active,
    placed,
)


# A9
def binomial(z, c, pos, neg, al=2.0, be=50.0, lam=0.5, reduction="mean", geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        total = total + mean([log_one_plus([al * (lam - S[i][j])]) for j in pos[i]], z)
        total = total + mean([log_one_plus([be * (S[i][j] - lam)]) for j in neg[i]], z)
    return total if reduction == "sum" else total / len(z)


# A10
def mined(S, pos, neg, eps):
    """The mined sets; an anchor that lacks either side before mining has neither afterwards."""
    positives, negatives = [], []
    for i in range(len(S)):
        if not pos[i] or not neg[i]:
            positives.append([])
            negatives.append([])
            continue
        lowest, highest = min(S[i][j].item() for j in pos[i]), max(S[i][j].item() for j in neg[i])
        positives.append([j for j in pos[i] if S[i][j] < highest + eps])
        negatives.append([j for j in neg[i] if S[i][j] > lowest - eps])
    return positives, negatives


def multi_similarity(z, c, pos, neg, al=2.0, be=40.0, lam=0.5, eps=0.1, weighting=True, geometry="sphere"):
    S = dots(z, c, geometry)
    if eps is not None:
        pos, neg = mined(S, pos, neg, eps)
    total = 0 * z.sum()
    for i in range(len(z)):
        if weighting:
            total = total + log_one_plus([-al * (S[i][j] - lam) for j in pos[i]]) / al
            total = total + log_one_plus([be * (S[i][j] - lam) for j in neg[i]]) / be
        else:
            total = total + sum(S[i][j] for j in neg[i]) - sum(S[i][j] for j in pos[i])
    return total / len(z)


# A11
def bin_lifted(z, c, pos, neg, al=2.0, be=50.0, lam=0.5, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        if neg[i]:
            alone = sum(log_one_plus([be * (S[i][j] - lam)]) for j in neg[i])
            total = total + 0.5 * (alone + lse([be * S[i][j] for j in neg[i]])) / be
        if pos[i]:
            alone = sum(log_one_plus([al * (lam - S[i][j])]) for j in pos[i])
            total = total + 0.5 * (alone + lse([-al * S[i][j] for j in pos[i]])) / al
    return total / len(z)


# A12
def nca(z, c, pos, neg, temperature=1.0, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        if pos[i]:
            near = sum((S[i][j] / temperature).exp() for j in pos[i])
            total = total - (near / sum((S[i][k] / temperature).exp() for k in pos[i] + neg[i])).log()
    return total / len(z)


# A14
def quadruplet(z, c, triplets, fourths, gap=1.0, second=0.5, geometry="sphere"):
    """`fourths` are (position of the triplet in the list, l) where a third class exists."""
    d = apart(z, c, geometry)
    columns = [placed(v, geometry) for v in c]
    first = [hinge(d[a][p] - d[a][n] + gap) for a, p, n in triplets]
    other = []
    for place, fourth in fourths:
        a, p, n = triplets[place]
        other.append(hinge(d[a][p] - distance(columns[n], columns[fourth]) + second))
    return mean(first, z) + mean(other, z)


# A15
def variance(vector):
    return ((vector - vector.sum() / len(vector)) ** 2).sum() / len(vector)


def snr(z, c, pos, neg, gap=0.2, lam=0.005, geometry="sphere"):
    return snr_listed(z, c, listed(pos, neg), gap, lam, geometry)


def snr_listed(z, c, triplets, gap=0.2, lam=0.005, geometry="sphere"):
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    noise = [[variance(a - b) / max(variance(a), 1e-12 * torch.ones_like(a[0])) for b in columns] for a in rows]
    main = mean_active([hinge(noise[a][p] - noise[a][n] + gap) for a, p, n in triplets], z)
    return main + lam * mean([v.sum().abs() for v in rows], z)


# A16
def fastap_of(near, far, bins):
    """FastAP of one anchor from its squared distances."""
    width = 4 / bins
    cumulated = cumulated_near = total = 0.0
    for centre in range(bins + 1):
        h_near = sum(hinge(1 - (x - centre * width).abs() / width) for x in near)
        h_far = sum(hinge(1 - (x - centre * width).abs() / width) for x in far)
        cumulated_near = cumulated_near + h_near
        cumulated = cumulated + h_near + h_far
        if cumulated > 0:
            total = total + h_near * cumulated_near / cumulated
    return total / len(near)


def fastap(z, c, pos, neg, bins=10):
    S = dots(z, c, "sphere")
    values = []
    for i in range(len(z)):
        if pos[i]:
            near, far = ([2 - 2 * S[i][j] for j in side] for side in (pos[i], neg[i]))
            values.append(1 - fastap_of(near, far, bins))
    return mean(values, z)


# A17
def top_k_swaps(scores, positive, negative, k, gap):
    """(entering pos, leaving neg) by the case distinction over the k candidates with the largest augmented scores."""
    raised = {j: scores[j].item() + (gap if j in negative else 0.0) for j in positive + negative}
    nearest = sorted(raised, key=lambda j: -raised[j])[:k]
    outside = sorted((j for j in positive if j not in nearest), key=lambda j: -scores[j].item())
    intruders = sorted((j for j in nearest if j in negative), key=lambda j: raised[j])
    if len(positive) < min(k, len(raised)):
        return outside, intruders[: len(outside)]
    return outside[: len(intruders)], intruders


def top_k(z, c, pos, neg, k=4, gap=0.1, geometry="sphere"):
    S = dots(z, c, geometry)
    values = []
    for i in range(len(z)):
        if pos[i]:
            entering, leaving = top_k_swaps(S[i], pos[i], neg[i], k, gap)
            terms = [S[i][j] + gap for j in leaving] + [-S[i][j] for j in entering]
            values.append(sum(terms, 0 * z.sum()))
    return mean(values, z)


# A22
def supcon(z, c, pos, neg, temperature=0.1, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        if pos[i]:
            everyone = lse([S[i][k] / temperature for k in pos[i] + neg[i]])
            terms.append(-mean([S[i][p] / temperature - everyone for p in pos[i]], z))
    return mean(terms, z)


def info_nce(z, c, pos, neg, temperature=0.1, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        for p in pos[i]:
            own = (S[i][p] / temperature).exp()
            terms.append(-(own / (own + sum((S[i][n] / temperature).exp() for n in neg[i]))).log())
    return mean(terms, z)


def circle(z, c, pos, neg, gap=0.25, scale=80.0, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        if pos[i] and neg[i]:
            push = [scale * max(0.0, S[i][n].item() + gap) * (S[i][n] - gap) for n in neg[i]]
            pull = [-scale * max(0.0, 1 + gap - S[i][p].item()) * (S[i][p] - 1 + gap) for p in pos[i]]
            terms.append(log_one_plus([lse(push) + lse(pull)]))
    return mean(terms, z)


def smooth_ap(z, c, pos, neg, temperature=0.01, geometry="sphere"):
    S = dots(z, c, geometry)
    values = []
    for i in range(len(z)):
        terms = []
        for p in pos[i]:
            among = [torch.sigmoid((S[i][q] - S[i][p]) / temperature) for q in pos[i] if q != p]
            against = [torch.sigmoid((S[i][n] - S[i][p]) / temperature) for n in neg[i]]
            terms.append((1 + sum(among)) / (1 + sum(among) + sum(against)))
        if terms:
            values.append(1 - mean([x + 0 * z.sum() for x in terms], z))
    return mean(values, z)
