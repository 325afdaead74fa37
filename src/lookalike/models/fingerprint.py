"""Which model is this? A digest of everything that changes an embedding: models with equal fingerprints embed alike.

Only settings that differ from their defaults enter, so a setting added later leaves the fingerprints of older models
as they were (defaults must never change). Class names, metrics, the recipe and the step counters of batch
normalisation do not enter.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from lookalike.models.architecture import Architecture
from lookalike.models.preprocess import Preprocessing
from lookalike.models.readout import Readout

DIGEST = 16  # bytes
WRITTEN = re.compile(f"[0-9a-f]{{{2 * DIGEST}}}")  # a file or a database may say anything in its place
COUNTER = "num_batches_tracked"


def fingerprint(
    architecture: Architecture | None, preprocessing: Preprocessing, geometry: str, state: Mapping[str, Tensor]
) -> str:
    """32 hexadecimal digits, the same for a model and for its copy on another machine.

    >>> fingerprint(Architecture("conv4"), Preprocessing(), "sphere", {"weight": torch.zeros(2)})
    '8e91ec943625806250c7bb3735d93383'
    """
    facts = {
        "architecture": None if architecture is None else _changed(architecture),
        "preprocessing": _changed(preprocessing),
        "geometry": geometry,
    }
    digest = blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=DIGEST)
    for key in sorted(state):
        if not key.endswith(COUNTER):
            values = state[key].detach().cpu().contiguous()
            digest.update(f"\n{key} {values.dtype} {list(values.shape)} ".encode())
            digest.update(values.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _changed(settings: Architecture | Preprocessing | Readout) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    result = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if value != default:
            result[field.name] = _changed(value) if isinstance(value, Readout) else value
    return result
