"""Same person or not: a threshold chosen on some people, checked on others, neither of whom trained the network.

python examples/verification.py
"""

import torch

from lookalike import Pairs, losses

torch.manual_seed(0)
FALSE_ACCEPTS = 0.01  # of 100 strangers, one may pass
people = torch.arange(1500) % 150
faces = torch.randn(150, 48)[people] + 0.8 * torch.randn(1500, 48)  # stands for your own images
train, calibration, test = people < 60, (people >= 60) & (people < 105), people >= 105

network = torch.nn.Sequential(torch.nn.Linear(48, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32))
loss = losses.SubCenterArcFace(classes=60, dim=32, centres=2, scale=16.0)
optimiser = torch.optim.Adam([*network.parameters(), *loss.parameters()], lr=3e-3)
for _ in range(150):
    value = loss(network(faces[train]), people[train])
    optimiser.zero_grad()
    value.backward()
    optimiser.step()


def similarities(chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of all pairs of one person, and of all pairs of strangers."""
    with torch.no_grad():
        unit = torch.nn.functional.normalize(network(faces[chosen]))
    pairs = Pairs.within(people[chosen])
    return (unit @ unit.T)[pairs.positive], (unit @ unit.T)[pairs.negative]


_, strangers = similarities(calibration)
threshold = strangers.sort().values[int((1 - FALSE_ACCEPTS) * len(strangers))]
same, strangers = similarities(test)
accepted, false = (same > threshold).double().mean(), (strangers > threshold).double().mean()
print(f"threshold {threshold:.3f}: accepts {accepted:.1%} of genuine pairs, {false:.2%} of strangers (aim: 1%)")
