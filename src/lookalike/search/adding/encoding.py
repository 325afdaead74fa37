"""A model that embeds for an index: what computes it is chosen once, not once for every batch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.models import Model
from lookalike.models.backends import Backend, BackendName
from lookalike.models.preprocess import prepare
from lookalike.search.items import Vectors

Inputs = Float[Tensor, "1 c h w"]  # of one picture, cut to what the network sees: a large photo takes 50 times as much
Ready = Callable[[Any], Inputs]
Encode = Callable[[Sequence[Any]], Vectors]


@dataclass
class Encoding:
    """`model`, which stays as it is, computed by the backend called `name`: the same one gives the same bits."""

    model: Model
    name: BackendName = "auto"

    @cached_property
    def backend(self) -> Backend:
        return self.model.backend(self.name)

    @cached_property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    def named(self) -> "Encoding":
        """The same for another process, which opens the backend itself: all must compute by one and the same."""
        return Encoding(self.model, self.backend.name)  # type: ignore[arg-type]

    def __call__(self, images: Sequence[Any]) -> Vectors:
        """The vectors of pictures."""
        return np.asarray(self.model.encode(images, backend=self.backend).numpy(), np.float32)

    def ready(self, picture: Any) -> Inputs:
        """A picture, ready for the network."""
        return prepare([picture], self.model.preprocessing)

    def of_ready(self, inputs: Iterable[Inputs]) -> Vectors:
        """The vectors of pictures that are ready, which are asked for as the network needs them."""
        rest, size = iter(inputs), self.model.batch_size()
        first = list(islice(rest, size))
        if not first:
            return np.empty((0, getattr(self.model.embedder, "dim", 0)), np.float32)

        def batches() -> Iterator[Tensor]:
            batch = first
            while batch:
                yield torch.cat(batch)
                batch = list(islice(rest, size))

        return np.asarray(self.model.encode_inputs(batches(), backend=self.backend).numpy(), np.float32)
