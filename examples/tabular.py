"""Rows of a table instead of images: customers, sensors, molecules. Which columns matter is learnt from who is who.

python examples/tabular.py
"""

import torch

from lookalike import evaluate, losses

torch.manual_seed(0)
who = torch.arange(600) % 60  # ten rows of each of 60 customers
habits, noise = torch.randn(60, 4)[who], 2 * torch.randn(600, 12)
table = torch.cat([habits + 0.5 * torch.randn(600, 4), noise], 1)  # four columns tell, twelve do not
seen, unseen = who < 30, who >= 30

encoder = torch.nn.Linear(16, 8)
loss = losses.SupCon(temperature=0.2)
optimiser = torch.optim.Adam(encoder.parameters(), lr=1e-2)
for _ in range(150):
    value = loss(encoder(table[seen]), who[seen])
    optimiser.zero_grad()
    value.backward()
    optimiser.step()

before = evaluate(table[unseen], who[unseen], metrics=["recall@1"])
after = evaluate(encoder(table[unseen]).detach(), who[unseen], metrics=["recall@1"])
weights = encoder.weight.detach().norm(dim=0)
print(
    f"recall@1 of customers never seen: {before['recall@1']:.3f} by raw columns, {after['recall@1']:.3f} by embeddings"
)
print(f"mean weight of the columns that tell: {weights[:4].mean():.2f}, of the others: {weights[4:].mean():.2f}")
