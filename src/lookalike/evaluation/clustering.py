"""How well k-means clusters match classes: NMI, AMI and pairwise F1 [math F.5, F.6a, F.14].

NMI = 2 I(Ω; Y) / (H(Ω) + H(Y)); the printed equation has the 2 in the denominator [math ERR-32]. F1 counts pairs of
items that share a cluster and a class, as the released code and Oh Song et al. do [math ERR-33].
"""

import numpy as np

from lookalike.evaluation.engine.ranks import Values
from lookalike.evaluation.inputs import Codes


def contingency(clusters: Codes, classes: Codes) -> tuple[Codes, Codes, Codes, Codes, Codes]:
    """Non-empty cells: their size, cluster and class; and the sizes of clusters and classes (empty ones dropped)."""
    _, left = np.unique(clusters, return_inverse=True)
    _, right = np.unique(classes, return_inverse=True)
    cells, sizes = np.unique(left * (right.max() + 1) + right, return_counts=True)
    width = int(right.max()) + 1
    return sizes, cells // width, cells % width, np.bincount(left), np.bincount(right)


def entropy(sizes: Codes) -> float:
    share = sizes / sizes.sum()
    return float(-(share * np.log(share)).sum())


def mutual_information(clusters: Codes, classes: Codes) -> float:
    sizes, left, right, of_left, of_right = contingency(clusters, classes)
    total = sizes.sum()
    ratio = np.log(sizes) + np.log(total) - np.log(of_left[left]) - np.log(of_right[right])
    return max(0.0, float((sizes / total * ratio).sum()))


def nmi(clusters: Codes, classes: Codes) -> float:
    """Normalised mutual information; 1 if both have a single group, 0 if only one of them has.

    >>> round(nmi(np.array([0, 0, 1, 1]), np.array([5, 5, 7, 7])), 9)
    1.0
    """
    *_, of_left, of_right = contingency(clusters, classes)
    first, second = entropy(of_left), entropy(of_right)
    if len(of_left) == 1 or len(of_right) == 1:
        return float(len(of_left) == len(of_right))
    return min(1.0, 2 * mutual_information(clusters, classes) / (first + second))


def f1(clusters: Codes, classes: Codes) -> float:
    """Pairwise F: precision and recall of "same cluster" as a guess of "same class".

    >>> f1(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))
    0.4
    """
    sizes, _, _, of_left, of_right = contingency(clusters, classes)
    both, guessed, true = (float((part * (part - 1) // 2).sum()) for part in (sizes, of_left, of_right))
    # 2PR/(P + R) with P = both/guessed and R = both/true; without any pair on either side both partitions are all
    # singletons and agree
    return 2 * both / (guessed + true) if guessed + true else 1.0


def ami(clusters: Codes, classes: Codes) -> float:
    """Mutual information adjusted for chance (Vinh et al. 2010), arithmetic normalisation as in scikit-learn."""
    *_, of_left, of_right = contingency(clusters, classes)
    if len(of_left) == len(of_right) == 1 or len(of_left) == len(of_right) == of_left.sum():
        return 1.0
    chance = expected_information(of_left, of_right)
    top = mutual_information(clusters, classes) - chance
    bottom = (entropy(of_left) + entropy(of_right)) / 2 - chance
    tiny = np.finfo(np.float64).eps
    return float(top / (min(bottom, -tiny) if bottom < 0 else max(bottom, tiny)))


def expected_information(of_left: Codes, of_right: Codes) -> float:
    """E[I] of two random partitions with these group sizes; groups of one size are counted together."""
    total = int(of_left.sum())
    log_factorial = np.r_[0.0, np.cumsum(np.log(np.arange(1, total + 1)))]
    left, left_number = np.unique(of_left, return_counts=True)
    right, right_number = np.unique(of_right, return_counts=True)
    answer = 0.0
    for a, many in zip(left.tolist(), left_number.tolist(), strict=True):
        for b, others in zip(right.tolist(), right_number.tolist(), strict=True):
            answer += many * others * _expected_cell(a, b, total, log_factorial)
    return answer


def _expected_cell(a: int, b: int, total: int, log_factorial: Values) -> float:
    """Σ over the hypergeometric sizes n of a cell: P(n) · n/N · log(N n / (a b))."""
    n = np.arange(max(1, a + b - total), min(a, b) + 1)
    log_chance = (
        log_factorial[a]
        + log_factorial[b]
        + log_factorial[total - a]
        + log_factorial[total - b]
        - log_factorial[total]
        - log_factorial[n]
        - log_factorial[a - n]
        - log_factorial[b - n]
        - log_factorial[total - a - b + n]
    )
    return float((np.exp(log_chance) * n / total * (np.log(total) + np.log(n) - np.log(a) - np.log(b))).sum())
