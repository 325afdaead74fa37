"""Lightning runs the loop; the sampler, the loss and the exact figures after each epoch are ours.

pip install pytorch-lightning && python examples/lightning_module.py
"""

import pytorch_lightning as pl  # or, with the larger package: import lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from lookalike import evaluate, losses, samplers


class MetricLearning(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = torch.nn.Linear(32, 16)
        self.loss = losses.ProxyAnchor(classes=40, dim=16)  # its proxies are saved with the checkpoint
        self.batches: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.history: list[float] = []

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        return self.loss(self.network(images), labels)

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        images, labels = batch
        self.batches.append((self.network(images), labels))

    def on_validation_epoch_end(self) -> None:
        embeddings, labels = (torch.cat(parts) for parts in zip(*self.batches, strict=True))
        self.batches.clear()
        result = evaluate(embeddings, labels, metrics=["recall@1", "map@r"])
        self.log_dict(dict(result))
        self.history.append(result["recall@1"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        network = {"params": self.network.parameters(), "lr": 1e-2}
        return torch.optim.AdamW([network, *self.loss.parameter_groups(base_lr=1e-2)])


pl.seed_everything(0, verbose=False)
labels = torch.arange(1600) % 80  # 20 images of each of 80 classes
images = torch.randn(80, 32)[labels] + 1.2 * torch.randn(1600, 32)
images[:, 16:] = 2 * torch.randn(1600, 16)  # half of what a camera sees does not tell
train = labels < 40  # the other classes judge

batches = samplers.ClassBalanced(labels[train], batch_size=80, per_class=4)
learn = DataLoader(TensorDataset(images[train], labels[train]), batch_sampler=batches)
judge = DataLoader(TensorDataset(images[~train], labels[~train]), batch_size=200)

# with several devices: ClassBalanced(…, rank=…, ranks=…) shares every batch, so Lightning must not put in its own
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = pl.Trainer(max_epochs=15, accelerator="cpu", use_distributed_sampler=False, num_sanity_val_steps=1, **quiet)
module = MetricLearning()
trainer.validate(module, judge, verbose=False)
trainer.fit(module, learn, judge)
print("recall@1 on 40 unseen classes, epoch by epoch:", *(f"{value:.3f}" for value in module.history))
