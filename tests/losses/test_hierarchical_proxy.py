"""HierarchicalProxy: its equation as loops [math A18], the values of its paper, and what it needs to train."""

import torch

from lookalike import losses
from tests.losses.cases import LABELS, assert_same, random_rows
from tests.losses.test_proxy_anchor import proxy_anchor

DEFAULTS = {"alpha": 32.0, "delta": 0.1, "coarse_weight": 0.1, "every": 1}
TRAINING = ["optimiser.loss_lr=1e-2"]


def hierarchical_proxy(z, y, proxies, coarse, cluster, om=0.1, al=32.0, de=0.1):
    return proxy_anchor(z, y, proxies, al, de) + om * proxy_anchor(z, [cluster[k] for k in y], coarse, al, de)


class TestHierarchicalProxy:
    def test_both_levels(self):
        loss = losses.HierarchicalProxy(classes=5, dim=4, coarse=2).double()
        with torch.no_grad():
            loss.proxies.copy_(random_rows(5, seed=20))
            loss.coarse_proxies.copy_(random_rows(2, seed=21))
        loss.cluster.copy_(torch.tensor([0, 1, 1, 0, 1]))
        loss.clustered.fill_(True)
        z = random_rows(len(LABELS), seed=22)
        expected = hierarchical_proxy(z, LABELS, loss.proxies, loss.coarse_proxies, [0, 1, 1, 0, 1])
        assert_same(loss(z, torch.tensor(LABELS)), expected, [z, loss.proxies, loss.coarse_proxies])

    def test_only_the_fine_level_before_the_first_clustering(self):
        loss = losses.HierarchicalProxy(classes=5, dim=4).double()
        loss.epoch_started(0, torch.Generator().manual_seed(0))
        z = random_rows(len(LABELS), seed=22)
        value, expected = loss(z, torch.tensor(LABELS)), proxy_anchor(z, LABELS, loss.proxies)
        assert_same(value, expected, [z, loss.proxies, loss.coarse_proxies])

    def test_clusters_are_those_of_k_means_on_the_sphere_and_their_proxies_the_unit_means(self):
        loss = losses.HierarchicalProxy(classes=30, dim=4).double()
        loss.epoch_started(1, torch.Generator().manual_seed(0))
        assert loss.coarse_proxies.shape == (5, 4)  # round(√30)
        units = loss.proxies.detach() / loss.proxies.detach().norm(dim=1, keepdim=True)
        means = torch.stack([units[loss.cluster == cluster].mean(0) for cluster in range(5)])
        assert torch.equal(torch.cdist(units, means).argmin(1), loss.cluster)
        torch.testing.assert_close(loss.coarse_proxies.detach(), means / means.norm(dim=1, keepdim=True))

    def test_clusters_every_few_epochs_and_free_between(self):
        loss = losses.HierarchicalProxy(classes=9, dim=4, every=2)
        changed = []
        for epoch in range(6):
            with torch.no_grad():
                loss.coarse_proxies.fill_(7.0)
            loss.epoch_started(epoch, torch.Generator().manual_seed(epoch))
            changed.append(bool((loss.coarse_proxies != 7.0).any()))
        assert changed == [False, True, False, True, False, True]
        assert loss.coarse_proxies.requires_grad
