"""The models of one worker: that of the generation that answers, and the next one, loaded before its switch."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lookalike.models.backends import Backend
from lookalike.models.encoding import computed, evaluating
from lookalike.models.model import Model
from lookalike.search.index import Index
from lookalike.search.items import Identity, Vectors


@dataclass(frozen=True)
class LoadedModel:
    """The model of one generation, ready to compute."""

    identity: Identity
    model: Model
    backend: Backend


class LoadedModels:
    """The models of an `index`; `current` is None where it holds vectors made elsewhere, and before `load`."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.current: LoadedModel | None = None
        self._upcoming: LoadedModel | None = None
        self._loading = threading.Lock()

    def load(self) -> None:
        """Have the model of the generation that answers."""
        with self._loading:
            identity, known = self.index.identity, self.current
            if identity.fingerprint is None or (known is not None and known.identity == identity):
                return
            upcoming = self._upcoming
            if upcoming is not None and upcoming.identity == identity:
                self.current, self._upcoming = upcoming, None
            else:
                self.current = self._loaded(identity)

    def warm_up(self) -> None:
        """Let the current model compute once: the first time takes longest."""
        if self.current is not None:
            how = self.current.model.preprocessing
            embedded([(self.current, torch.zeros(1, how.channels, how.crop, how.crop))])

    def look_ahead(self) -> None:
        """Load the model of a generation that is being filled, so that its switch is no wait."""
        upcoming, known = self.index.store.generations.upcoming(), self._upcoming
        if upcoming is not None and upcoming.fingerprint and (known is None or known.identity != upcoming):
            self._upcoming = self._loaded(upcoming)

    def _loaded(self, identity: Identity) -> LoadedModel:
        assert identity.fingerprint is not None
        model = self.index.load_model(identity.fingerprint)
        return LoadedModel(identity, model, model.backend("auto"))


def embedded(jobs: Sequence[tuple[LoadedModel, Tensor]]) -> list[Vectors]:
    """Vectors for each job's inputs; jobs of different generations do not mix."""
    result: dict[int, Vectors] = {}
    for network in {id(network): network for network, _ in jobs}.values():
        places = [place for place, (own, _) in enumerate(jobs) if own is network]
        inputs = torch.cat([jobs[place][1] for place in places])
        with evaluating(network.model.embedder):
            vectors = np.asarray(computed(network.backend.run, inputs).numpy(), np.float32)
        cuts = np.cumsum([len(jobs[place][1]) for place in places])[:-1]
        result |= dict(zip(places, np.split(vectors, cuts), strict=True))
    return [result[place] for place in range(len(jobs))]
