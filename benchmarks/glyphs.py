"""How hard the glyphs are: recall@1 on unseen characters of raw pixels, and of a small network trained for a minute.

    python -m benchmarks.glyphs [--seconds 60] [--difficulty 0.6] [--json FILE]

Four convolutions, 64 dimensions, MultiSimilarity, 32 classes × 4 images, no augmentation: far from the best one can do.
The network should land well above raw pixels and below 1, or the dataset teaches nothing. Seconds are those of one
core that the training itself used, so that other tenants of the machine do not change the result.
"""

import json
import time

import torch
from torch import Tensor, nn

from benchmarks.images import raw_recall
from benchmarks.options import reader
from lookalike import data, losses

CLASSES, EACH = 32, 4


def pixels(dataset: data.Dataset) -> Tensor:
    return torch.stack([dataset.images.open(row).decode()[:1] for row in range(len(dataset))])


def network() -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in ((1, 32), (32, 64), (64, 64), (64, 64)):
        convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(256, 64))


def recall(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        vectors = torch.cat([model(part.float() / 255) for part in torch.split(images, 512)])
    model.train()
    unit = nn.functional.normalize(vectors, dim=1)
    scores = unit @ unit.T
    scores.fill_diagonal_(-9)
    return float((labels[scores.argmax(1)] == labels).float().mean())


def train(dataset: data.Dataset, seconds: float) -> tuple[nn.Module, int]:
    """The network and the number of steps it took."""
    torch.manual_seed(0)
    images, members = pixels(dataset), [(dataset.labels == label).nonzero()[:, 0] for label in range(dataset.classes)]
    model, loss = network(), losses.build("multi_similarity")
    optimiser = torch.optim.AdamW(model.parameters(), 2e-3)
    begin, steps = time.process_time(), 0
    while time.process_time() - begin < seconds:
        chosen = torch.randperm(dataset.classes)[:CLASSES].tolist()
        rows = torch.cat([members[label][torch.randperm(len(members[label]))[:EACH]] for label in chosen])
        value = loss(model(images[rows].float() / 255), dataset.labels[rows])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        steps += 1
    return model, steps


def main() -> None:
    given = reader(__doc__.splitlines()[0] if __doc__ else "", seconds=60.0, difficulty=0.6).parse_args()
    torch.set_num_threads(1)
    dataset = data.glyphs(given.difficulty)
    test = dataset.where(split="test")
    model, steps = train(dataset.where(split="train").dense(), given.seconds)
    result = {
        "difficulty": given.difficulty,
        "raw pixels": raw_recall(test),
        "untrained network": recall(network(), pixels(test), test.labels),
        "trained network": recall(model, pixels(test), test.labels),
        "seconds": given.seconds,
        "steps": steps,
    }
    for name, value in result.items():
        print(f"{name:<20}{value:>8.3f}" if isinstance(value, float) else f"{name:<20}{value:>8}")
    if given.json:
        given.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
