"""Features in the place of images: whatever trains on a data set of images trains on them unchanged."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lookalike.data import Dataset
from lookalike.data.images.view import Sample, Ticket, ticket_seed
from lookalike.errors import check
from lookalike.features.extract import extract
from lookalike.features.views import CENTRE, View
from lookalike.models import Model
from lookalike.models.backends import BackendName
from lookalike.progress import Progress


class FeatureViews(torch.utils.data.Dataset[Sample]):
    """The vectors of every image, one per view. A draw takes one of the views, the same one for the same ticket.

    vectors: n × views × width.
    labels: the class of every image.
    seed: decides, with the ticket, which view a draw takes.
    shape: of the map that a vector is, channels × rows × columns; empty: it is no map.

    >>> two = FeatureViews(torch.arange(6.0).view(2, 1, 3), torch.tensor([0, 1]))
    >>> two[1]
    Sample(image=tensor([3., 4., 5.]), label=tensor(1), row=tensor(1))
    """

    def __init__(
        self,
        vectors: Float[Tensor, "n views width"],
        labels: Int64[Tensor, " n"],
        seed: int = 0,
        shape: tuple[int, ...] = (),
    ) -> None:
        check(len(vectors) == len(labels), f"{len(vectors)} vectors for {len(labels)} labels: give one each")
        self.vectors, self.labels, self.seed, self.shape = vectors, labels, seed, shape

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, ticket: Ticket | int) -> Sample:
        return Sample(*(column[0] for column in self.batch([ticket])))

    def batch(self, tickets: Sequence[Ticket | int]) -> Sample:
        """A whole batch at once, much faster than image by image; `tickets`: rows, or tickets that number the draws."""
        draws = [ticket if isinstance(ticket, Ticket) else Ticket(int(ticket)) for ticket in tickets]
        rows, count = torch.tensor([draw.row for draw in draws]), self.vectors.shape[1]
        views = torch.tensor([ticket_seed(self.seed, draw) % count for draw in draws]) if count > 1 else 0
        return Sample(self.vectors[rows, views], self.labels[rows], rows)


def feature_views(
    model: Model,
    dataset: Dataset,
    views: Sequence[View] = (),
    *,
    seed: int = 0,
    backend: BackendName = "auto",
    progress: Progress | None = None,
) -> FeatureViews:
    """The features of a model's backbone for the centre and the further `views` of every image, from the cache.

    `seed` decides which view a draw takes.
    """
    bare = model.headless()
    vectors = [extract(bare, dataset, view, backend=backend, progress=progress) for view in (CENTRE, *views)]
    return FeatureViews(torch.stack(vectors, 1), dataset.labels, seed)
