"""Several labels per item: a photo shows a beach and a dog. Items that share a label are alike, the more the better.

python examples/several_labels.py
"""

import torch

from lookalike import LabelSets, evaluate, losses

torch.manual_seed(0)
shows = torch.rand(800, 10) < 0.15  # items × labels; some items have none, and attract nobody
labels = LabelSets.of(shows)
items = torch.cat(
    [shows.float() @ torch.randn(10, 16) + 0.3 * torch.randn(800, 16), 2 * torch.randn(800, 16)], 1
)  # half of it says nothing
train, test = slice(0, 600), slice(600, 800)

encoder = torch.nn.Linear(32, 16)
loss = losses.SupCon(temperature=0.2)
optimiser = torch.optim.Adam(encoder.parameters(), lr=1e-2)
for _ in range(100):
    value = loss(encoder(items[train]), labels[train])
    optimiser.zero_grad()
    value.backward()
    optimiser.step()

metrics = ["recall@1", "ndcg@10"]
before = evaluate(items[test], labels[test], metrics=metrics, relevance="shared")
after = evaluate(encoder(items[test]).detach(), labels[test], metrics=metrics, relevance="shared")
for metric in metrics:
    print(f"{metric}: {before[metric]:.3f} before, {after[metric]:.3f} after")
