"""A network of timm under our pooling and head: `timm:NAME`, here and wherever else a backbone is named.

pip install lookalike[timm] && python examples/timm_backbone.py
"""

import torch
from torch.nn.functional import interpolate

from lookalike import evaluate, losses, models, samplers
from lookalike.models.preprocess import scale

torch.manual_seed(0)
labels = torch.arange(480) % 40  # 12 photos of each of 40 flags, in any light
flags, light = torch.rand(40, 3, 4, 4)[labels], 0.2 + 0.8 * torch.rand(480, 3, 1, 1)
photos = interpolate(flags * light, size=32) + 0.15 * torch.randn(480, 3, 32, 32)
photos = (255 * photos.clamp(0, 1)).byte()
train = labels < 20

# a network so small that timm calls it a test; weights="pretrained" lets timm fetch what it has for a real one
architecture = models.Architecture("timm:test_resnet", dim=32)
model = models.Model.create(architecture, weights=None)
model.preprocessing = model.preprocessing.sized(32, 32)
network = model.embedder
print(f"{architecture.backbone}: {network.backbone.width} features, stages {', '.join(network.backbone.stages)}")
before = evaluate(model.encode(photos[~train]), labels[~train], metrics=["recall@1"])

loss = losses.MultiSimilarity()
optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
batches = samplers.ClassBalanced(labels[train], batch_size=60, per_class=6)
network.train()
for _ in range(10):
    for batch in batches:
        value = loss(network(scale(photos[train][batch], model.preprocessing)), labels[train][batch])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()

after = evaluate(model.encode(photos[~train]), labels[~train], metrics=["recall@1"])
print(f"recall@1 on 20 unseen flags: {before['recall@1']:.3f} untrained, {after['recall@1']:.3f} trained")
