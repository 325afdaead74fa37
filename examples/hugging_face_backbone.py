"""A vision transformer of Hugging Face under our pooling and head: `hf:NAME`, wherever a backbone is named.

pip install lookalike[hf] && python examples/hugging_face_backbone.py
"""

import torch
from torch.nn.functional import interpolate

from lookalike import evaluate, losses, models, samplers
from lookalike.models.preprocess import scale

torch.manual_seed(0)
labels = torch.arange(480) % 40  # 12 photos of each of 40 flags, in any light
flags, light = torch.rand(40, 3, 4, 4)[labels], 0.4 + 0.6 * torch.rand(480, 1, 1, 1)
photos = (255 * interpolate(flags * light, size=32)).byte()
train = labels < 20

# a DINOv2 that fits into seconds. The real one: Architecture("hf:facebook/dinov2-small", pooling="cls") and
# weights="pretrained"; its config and preprocessing are fetched with it
config = {"model_type": "dinov2", "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_ratio": 2}
settings = {
    "config": config | {"image_size": 32, "patch_size": 8},
    "preprocessing": {"crop": 32, "resize": 32, "mean": (127.5,) * 3, "std": (127.5,) * 3},
}
model = models.Model.create(models.Architecture("hf:tiny-dinov2", settings, dim=32, pooling="cls"), weights=None)
network = model.embedder
before = evaluate(model.encode(photos[~train]), labels[~train], metrics=["recall@1"])

loss = losses.MultiSimilarity()
optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
batches = samplers.ClassBalanced(labels[train], batch_size=60, per_class=6)
network.train()
for _ in range(25):
    for batch in batches:
        value = loss(network(scale(photos[train][batch], model.preprocessing)), labels[train][batch])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()

after = evaluate(model.encode(photos[~train]), labels[~train], metrics=["recall@1"])
print(f"recall@1 on 20 unseen flags: {before['recall@1']:.3f} untrained, {after['recall@1']:.3f} trained")
