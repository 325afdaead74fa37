"""No classes at all: people were shown three items and said which two go together.

python examples/judged_triplets.py
"""

import torch

from lookalike import Triplets, losses

torch.manual_seed(0)
items = torch.randn(500, 24)
taste = items[:, :3]  # what people look at, unknown to us


def ask(count: int) -> torch.Tensor:
    """Rows of (anchor, the one that goes with it, the other one)."""
    anchor, one, other = torch.randint(len(items), (3, count))
    nearer = (taste[anchor] - taste[one]).norm(dim=1) < (taste[anchor] - taste[other]).norm(dim=1)
    return torch.stack([anchor, torch.where(nearer, one, other), torch.where(nearer, other, one)], 1)


def agreement(vectors: torch.Tensor, triplets: torch.Tensor) -> float:
    anchor, near, far = vectors[triplets].unbind(1)
    return ((anchor - near).norm(dim=1) < (anchor - far).norm(dim=1)).float().mean().item()


judged, fresh = ask(2000), ask(2000)
encoder = torch.nn.Linear(24, 4, bias=False)
loss = losses.Triplet(margin=0.5, normalise="none")
optimiser = torch.optim.Adam(encoder.parameters(), lr=1e-2)
for _ in range(200):
    value = loss(encoder(items), Triplets.listed(judged, rows=len(items)))
    optimiser.zero_grad()
    value.backward()
    optimiser.step()

before, after = agreement(items, fresh), agreement(encoder(items).detach(), fresh)
print(f"agrees with people on {before:.0%} of new questions before, {after:.0%} after")
