"""Which networks are on this machine, what the others need, and what each costs here."""

import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch

from lookalike.errors import UserError, install, unknown
from lookalike.models.backbones import MEMBERS, available, build
from lookalike.models.backbones.known import KNOWN
from lookalike.models.backbones.stages import Backbone
from lookalike.models.backbones.weights import Published, advice
from lookalike.progress import Progress

TIMED = 2  # images at a time


class Row(NamedTuple):
    """A network.

    needs: what to do before it can be used; empty: it is here.
    size: of its input in pixels; `width`: of its features.
    milliseconds: for an image on this machine, by torch; None: it cannot be built yet.
    millions: of parameters, without a classifier.
    figure: published, on ImageNet.
    """

    name: str
    needs: str
    size: int
    width: int
    millions: float | None
    milliseconds: float | None
    licence: str
    figure: str


def survey(only: Sequence[str] = (), progress: Progress | None = None) -> list[Row]:
    """All networks with published weights that have a name here, or `only` some; random weights cost as much."""
    every = [*(name for name, kind in sorted(MEMBERS.items()) if kind.published.files), *KNOWN]
    for name in only:
        if name not in every:
            raise unknown("network", name, every)
    rows = []
    for name in only or every:
        rows.append(_known(name) if name in KNOWN else _own(name))
        if progress is not None:
            progress(len(rows), len(only or every))
    return rows


def _own(name: str) -> Row:
    published: Published = MEMBERS[name].published
    network = build(name)
    return _row(name, "" if available(name) else advice(published), network, published.licence, "")


def _known(name: str) -> Row:
    facts = KNOWN[name]
    if find_spec("transformers") is None:
        return Row(name, install("hf"), facts.size, facts.width, None, None, facts.licence, facts.figure)
    token = ", with HF_TOKEN: it is gated" if facts.gated else ""
    needs = "" if available(name) else f"lookalike backbones fetch {name}{token}"
    pixels = {"crop": facts.size, "resize": facts.size}
    try:
        network = build(f"hf:{facts.repository}", config=facts.shape, preprocessing=pixels)
    except UserError:  # this version of transformers does not have it
        return Row(name, "a newer transformers", facts.size, facts.width, None, None, facts.licence, facts.figure)
    return _row(name, needs, network, facts.licence, facts.figure)


def _row(name: str, needs: str, network: Any, licence: str, figure: str) -> Row:
    millions = sum(parameter.numel() for parameter in network.parameters()) / 1e6
    crop = network.preprocessing.crop
    return Row(name, needs, crop, network.width, millions, _milliseconds(network.eval(), crop), licence, figure)


@torch.no_grad()
def _milliseconds(network: Backbone, size: int) -> float:
    """The better of two rounds, after one that pays for memory."""
    images, rounds = torch.zeros(TIMED, 3, size, size), []
    for _ in range(3):
        start = time.perf_counter()
        network(images)
        rounds.append(time.perf_counter() - start)
    return 1000 * min(rounds[1:]) / TIMED
