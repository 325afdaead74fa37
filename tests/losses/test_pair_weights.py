"""The pair weights dL/dS in closed form, as the papers print them, against autograd [math I.5]."""

import math

import pytest
import torch

from lookalike import losses
from lookalike.targets import Pairs
from tests.losses.loops import sides
from tests.losses.test_multi_similarity import mined

LABELS = [0, 0, 0, 1, 1, 2, 2, 2, 2]
M = len(LABELS)
POS, NEG = sides(LABELS)


def similarities(seed=0):
    rows = torch.randn(M, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    rows = rows / rows.norm(dim=1, keepdim=True)
    return (rows @ rows.T).detach()


def slopes(loss, S):
    """G = dL/dS, S_ij and S_ji being independent entries."""
    S = S.clone().requires_grad_()
    return torch.autograd.grad(loss.of_similarities(S, Pairs.within(torch.tensor(LABELS))), S)[0]


def contrastive(S, i, j, positive):
    return -1 / M if positive else float(S[i][j] > 0.5) / M


def lifted_cosine(S, i, j, positive):
    pull, push = (sum(math.exp(x) for x in xs) for xs in ([1 - S[i][k] for k in POS[i]], [S[i][k] for k in NEG[i]]))
    if math.log(pull) + math.log(push) <= 0:
        return 0.0
    return -math.exp(1 - S[i][j]) / pull if positive else math.exp(S[i][j]) / push


def lifted_star(S, i, j, positive):
    if positive:
        return -math.exp(-2 * S[i][j]) / sum(math.exp(-2 * S[i][k]) for k in POS[i]) / M
    return math.exp(50 * S[i][j]) / sum(math.exp(50 * S[i][k]) for k in NEG[i]) / M


def n_pair(S, i, j, positive):
    """Per positive p: w−_n = e^{s_n − s_p} / (1 + Σ), w+ = Σ w−; then the means over positives and anchors."""

    def share(n, p):
        return math.exp(S[i][n] - S[i][p]) / (1 + sum(math.exp(S[i][k] - S[i][p]) for k in NEG[i]))

    if positive:
        return -sum(share(n, j) for n in NEG[i]) / len(POS[i]) / M
    return sum(share(j, p) for p in POS[i]) / len(POS[i]) / M


def sigma(x):
    return 1 / (1 + math.exp(-x))


def binomial(S, i, j, positive):
    if positive:
        return -2 / len(POS[i]) * sigma(2 * (0.5 - S[i][j])) / M
    return 50 / len(NEG[i]) * sigma(50 * (S[i][j] - 0.5)) / M


def multi_similarity(S, i, j, positive, pos=None, neg=None):
    pos, neg = POS[i] if pos is None else pos[i], NEG[i] if neg is None else neg[i]
    if positive:
        if j not in pos:
            return 0.0
        return -1 / (math.exp(-2 * (0.5 - S[i][j])) + sum(math.exp(-2 * (S[i][k] - S[i][j])) for k in pos)) / M
    if j not in neg:
        return 0.0
    return 1 / (math.exp(40 * (0.5 - S[i][j])) + sum(math.exp(40 * (S[i][k] - S[i][j])) for k in neg)) / M


def bin_lifted(S, i, j, positive):
    if positive:
        share = math.exp(-2 * S[i][j]) / sum(math.exp(-2 * S[i][k]) for k in POS[i])
        return -0.5 * (sigma(2 * (0.5 - S[i][j])) + share) / M
    share = math.exp(50 * S[i][j]) / sum(math.exp(50 * S[i][k]) for k in NEG[i])
    return 0.5 * (sigma(50 * (S[i][j] - 0.5)) + share) / M


def nca(S, i, j, positive):
    everyone = sum(math.exp(S[i][k]) for k in POS[i] + NEG[i])
    mine = math.exp(S[i][j])
    if positive:
        return -(mine / sum(math.exp(S[i][k]) for k in POS[i]) - mine / everyone) / M
    return mine / everyone / M


def histogram(S, i, j, positive, nodes=65):
    """h−_p / (Δ |S+|) and h+_{p+1} / (Δ |S−|), half of it on each of the two ordered entries."""
    width = 2 / (nodes - 1)
    node = math.floor((S[i][j] + 1) / width)

    def height(at, lists):
        pairs = [(a, b) for a in range(M) for b in lists[a] if a < b]
        return sum(max(0.0, 1 - abs(S[a][b] + 1 - at * width) / width) for a, b in pairs) / len(pairs)

    count = sum(len(side) for side in (POS if positive else NEG)) / 2
    slope = -height(node, NEG) if positive else height(node + 1, POS)
    return slope / (width * count) / 2


CLOSED = {
    "contrastive": ({"similarity": "cosine"}, contrastive),
    "generalised_lifted": ({"similarity": "cosine"}, lifted_cosine),
    "lifted_star": ({}, lifted_star),
    "n_pair": ({}, n_pair),
    "binomial_deviance": ({}, binomial),
    "multi_similarity": ({"mining_margin": None}, multi_similarity),
    "bin_lifted": ({}, bin_lifted),
    "nca": ({}, nca),
    "histogram": ({}, histogram),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_form(name):
    settings, weight = CLOSED[name]
    S = similarities()
    G = slopes(losses.build(name, **settings), S)
    table = S.tolist()
    for i in range(M):
        for j in POS[i]:
            assert G[i, j].item() == pytest.approx(weight(table, i, j, True), abs=1e-12), (i, j)
        for j in NEG[i]:
            assert G[i, j].item() == pytest.approx(weight(table, i, j, False), abs=1e-12), (i, j)
    assert G.diagonal().abs().max() == 0


def test_multi_similarity_weights_of_mined_sets():
    S = similarities(seed=3)
    pos, neg = mined(S, POS, NEG, 0.1)
    assert sum(map(len, pos)) < sum(map(len, POS))
    G = slopes(losses.MultiSimilarity(), S)
    table = S.tolist()
    for i in range(M):
        for j in POS[i] + NEG[i]:
            expected = multi_similarity(table, i, j, j in POS[i], pos, neg)
            assert G[i, j].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", CLOSED)
def test_positives_attract_and_negatives_repel(name):
    G = slopes(losses.build(name, **CLOSED[name][0]), similarities(seed=1))
    pairs = Pairs.within(torch.tensor(LABELS))
    assert (G[pairs.positive] <= 0).all()
    assert (G[pairs.negative] >= 0).all()


@pytest.mark.parametrize("name", CLOSED)
def test_the_weights_are_the_whole_gradient(name):
    """∇L(e) equals ∇ Σ G_ij S_ij(e) with G held constant [math I.1]."""
    rows = torch.randn(M, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64).requires_grad_()
    settings = {"norm_weight": 0.0} if name == "n_pair" else CLOSED[name][0]
    loss = losses.build(name, **settings)
    value = loss(rows, torch.tensor(LABELS))
    places = rows if name == "n_pair" else rows / rows.norm(dim=1, keepdim=True)
    S = places @ places.T
    linear = (slopes(loss, S.detach()) * S).sum()
    torch.testing.assert_close(
        torch.autograd.grad(value, rows)[0], torch.autograd.grad(linear, rows)[0], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("seed", range(3))
def test_identities(seed):
    S, pairs = similarities(seed), Pairs.within(torch.tensor(LABELS))

    def sums(G):
        return (-G * pairs.positive).sum(1) * M, (G * pairs.negative).sum(1) * M

    pull, push = sums(slopes(losses.NCA(), S))
    torch.testing.assert_close(pull, push, rtol=1e-12, atol=1e-14)
    pull, push = sums(slopes(losses.MultiSimilarity(mining_margin=None), S))
    assert ((pull > 0) & (pull < 1) & (push > 0) & (push < 1)).all()
    pull, push = sums(slopes(losses.LiftedStar(), S))
    torch.testing.assert_close(pull, torch.ones(M, dtype=torch.float64))
    torch.testing.assert_close(push, torch.ones(M, dtype=torch.float64))
    # BinLifted: w− exceeds half of either of its parts
    G = slopes(losses.BinLifted(), S) * M
    alone = (50 * (S - 0.5)).sigmoid()
    among = (50 * S).masked_fill(~pairs.negative, -torch.inf).softmax(1)
    parts = 0.5 * torch.maximum(alone, among)
    assert (G[pairs.negative] > parts[pairs.negative]).all()


def test_proxy_anchor():
    """dL/dS+ = −(α/|Ψ+|) e^{−α(S−δ)} / (1 + Σ), dL/dS− = (α/C) e^{α(S+δ)} / (1 + Σ)."""
    S = (0.6 * torch.randn(5, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)).clamp(-1, 1)
    S.requires_grad_()
    y, classes = [0, 0, 2, 3, 2], 4
    own = torch.tensor(y)[:, None] == torch.arange(classes)
    G = torch.autograd.grad(losses.ProxyAnchor(classes=4, dim=2).of_proxies(S.T, own.T), S)[0]
    table = S.tolist()
    for k in range(classes):
        for i in range(5):
            if y[i] == k:
                total = 1 + sum(math.exp(-32 * (table[x][k] - 0.1)) for x in range(5) if y[x] == k)
                expected = -32 / 3 * math.exp(-32 * (table[i][k] - 0.1)) / total
            else:
                total = 1 + sum(math.exp(32 * (table[x][k] + 0.1)) for x in range(5) if y[x] != k)
                expected = 32 / classes * math.exp(32 * (table[i][k] + 0.1)) / total
            assert G[i, k].item() == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_contrastive_is_lipschitz():
    """[y(‖f_i − f_j‖ − β) + α]_+ is 1-Lipschitz in each f: no gradient row is longer than 1 [math I.6]."""
    rows = torch.randn(2, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
    for labels in ([0, 0], [0, 1]):
        loss = losses.Contrastive(negative_margin=9.0, normalise="none")
        gradient = torch.autograd.grad(loss(rows, torch.tensor(labels)), rows)[0]
        torch.testing.assert_close(gradient.norm(dim=1), torch.ones(2, dtype=torch.float64))
