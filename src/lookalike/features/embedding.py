"""The images of a data set as the vectors of a model: its embeddings, or the pooled features that enter its head."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from lookalike.data import Dataset
from lookalike.models import Embedder, Model
from lookalike.models.model import Progress
from lookalike.processes import Ranks


class Images(Sequence[Tensor]):
    """The images of a data set as a sequence, each decoded when it is read."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, row: Any) -> Any:
        return self.dataset.images.open(row).decode()


class PooledFeatures(nn.Module):
    """An embedder without its head: images in, pooled features out."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = embedder

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n width"]:
        return self.embedder.features(images)


def embed(model: Model, dataset: Dataset, progress: Progress | None = None) -> Float[Tensor, "n d"]:
    """The embeddings of all images, in all processes of a run; each process computes a share of them."""
    return Ranks.current().spread(
        len(dataset), lambda rows: model.encode(Images(dataset.subset(rows)), progress=progress)
    )


def features(model: Model, dataset: Dataset, progress: Progress | None = None) -> Float[Tensor, "n width"]:
    """The pooled features of all images: the input of the model's head."""
    assert isinstance(model.embedder, Embedder)
    return embed(Model(PooledFeatures(model.embedder), model.preprocessing, geometry="none"), dataset, progress)
