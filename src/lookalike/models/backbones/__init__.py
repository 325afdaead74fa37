"""The catalogue of backbones: ours and some of the Hugging Face Hub by name, others as `timm:NAME` and
`hf:NAME-or-folder`."""

from importlib.util import find_spec
from typing import Any

import torch

from lookalike import catalog
from lookalike.errors import check, unknown
from lookalike.models.backbones import hub
from lookalike.models.backbones.bn_inception import BNInception as BNInception
from lookalike.models.backbones.conv4 import Conv4 as Conv4
from lookalike.models.backbones.densenet import DenseNet201 as DenseNet201
from lookalike.models.backbones.efficientnet_lite import EfficientNetLite0 as EfficientNetLite0
from lookalike.models.backbones.efficientnet_lite import EfficientNetLite1 as EfficientNetLite1
from lookalike.models.backbones.efficientnet_lite import EfficientNetLite2 as EfficientNetLite2
from lookalike.models.backbones.googlenet import GoogLeNet as GoogLeNet
from lookalike.models.backbones.hf_adapter import HuggingFace
from lookalike.models.backbones.known import KNOWN, resolved
from lookalike.models.backbones.pixels import Pixels as Pixels
from lookalike.models.backbones.resnet import ResNet18 as ResNet18
from lookalike.models.backbones.resnet import ResNet50 as ResNet50
from lookalike.models.backbones.stages import Backbone
from lookalike.models.backbones.timm_adapter import Timm
from lookalike.models.backbones.weights import Published

MEMBERS: dict[str, type[Any]] = catalog.members(globals())
ADAPTERS: dict[str, type[Any]] = {"timm": Timm, "hf": HuggingFace}

__all__ = sorted(
    {"ADAPTERS", "MEMBERS", "available", "build", "licence", "names", *(kind.__name__ for kind in MEMBERS.values())}
)


def names() -> list[str]:
    """The backbones written here; those of `KNOWN`, `timm:NAME` and `hf:NAME-or-folder` can be built as well."""
    return sorted(MEMBERS)


def available(name: str) -> bool:
    """Whether `weights="pretrained"` of the backbone `name` works on this machine without a connection.

    >>> available("conv4")
    False
    """
    if name in KNOWN:
        return find_spec("transformers") is not None and hub.find(KNOWN[name].repository) is not None
    published: Published = getattr(catalog.member("backbone", MEMBERS, name), "published")  # noqa: B009
    return published.find() is not None


def licence(name: str) -> str:
    """The licence of the published weights of a backbone; empty: there are none, or nothing is known of them.

    >>> licence("efficientnet_lite0"), licence("hf:facebook/dinov2-small"), licence("conv4")
    ('Apache-2.0', 'Apache-2.0', '')
    """
    known = {fact: network.licence for key, network in KNOWN.items() for fact in (key, f"hf:{network.repository}")}
    own = {key: str(kind.published.licence) for key, kind in MEMBERS.items()}
    return {**own, **known}.get(name, "")


def build(name: str, seed: int = 0, **settings: Any) -> Backbone:
    """The backbone called `name`, its random parts from `seed`.

    >>> build("conv4", channels=1).width
    64
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # leaves the generators of GPUs alone
        kind, colon, inner = resolved(name).partition(":")
        if not colon:
            if name not in MEMBERS:
                raise unknown("backbone", name, [*MEMBERS, *KNOWN])
            own: Backbone = catalog.build("backbone", MEMBERS, name, settings)
            return own
        if kind not in ADAPTERS:
            raise unknown("source of backbones", kind, ADAPTERS)
        check(bool(inner), f"'{name}' names no network: write for example {kind}:{EXAMPLES[kind]}")
        backbone: Backbone = catalog.build("backbone", ADAPTERS, kind, {"source": inner} | settings)
    return backbone


EXAMPLES = {"timm": "convnext_atto", "hf": "facebook/dinov2-small"}
