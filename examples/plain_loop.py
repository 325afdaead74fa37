"""A loop of your own: DataLoader, our sampler, miner and loss; measured on classes that were not trained on.

python examples/plain_loop.py
"""

import torch
from torch.utils.data import DataLoader, TensorDataset

from lookalike import evaluate, losses, miners, samplers

torch.manual_seed(0)
labels = torch.arange(1600) % 80  # 20 images of each of 80 classes
images = torch.randn(80, 32)[labels] + 1.5 * torch.randn(1600, 32)
images[:, 16:] = 2 * torch.randn(1600, 16)  # half of what a camera sees does not tell
train = labels < 40

dataset = TensorDataset(images[train], labels[train])
loader = DataLoader(dataset, batch_sampler=samplers.ClassBalanced(labels[train], batch_size=80, per_class=4))
network = torch.nn.Linear(32, 16)
miner, loss = miners.DistanceWeighted(), losses.Margin()
groups = [{"params": network.parameters(), "lr": 1e-2}, *loss.parameter_groups(base_lr=1e-2)]
optimiser = torch.optim.Adam(groups)
for _ in range(15):
    for batch, classes in loader:
        embeddings = network(batch)
        value = loss(embeddings, miner(embeddings.detach(), classes))
        optimiser.zero_grad()
        value.backward()
        optimiser.step()

unseen = images[~train], labels[~train]
before = evaluate(*unseen, metrics=["recall@1"])
after = evaluate(network(unseen[0]).detach(), unseen[1], metrics=["recall@1"])
print(f"recall@1 on 40 unseen classes: {before['recall@1']:.3f} as they are, {after['recall@1']:.3f} embedded")
