"""One image per class, for losses whose positives are proxies.

Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, WACV 2024, batches of 32 × 1.

Departs from the released code as class_queue does. See also: class_queue.
"""

from lookalike.label_sets import Labels
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.class_queue import ClassQueue


@shows_settings
def OnePerClass(
    labels: Labels,
    batch_size: int = 32,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """As many classes as the batch is large, one image of each: no two images of a batch are positives.

    >>> import torch
    >>> labels = torch.tensor([0, 0, 1, 1, 2, 2])
    >>> [sorted(labels[batch].tolist()) for batch in OnePerClass(labels, batch_size=3)]
    [[0, 1, 2], [0, 1, 2]]
    """
    return ClassQueue(labels, batch_size, per_class=1, seed=seed, rank=rank, ranks=ranks)
