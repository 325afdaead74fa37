"""Networks that a model folder describes. A folder may come from anywhere, and loading it must not run code.

So its backbone may not name a path that is opened, a repository that is fetched, or an option that does either: what
reaches timm and transformers is on a list. And the network is laid out without memory first, so that a description of
terabytes is refused before anything is allocated.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lookalike import catalog
from lookalike.errors import UserError, check
from lookalike.models.architecture import Architecture
from lookalike.models.backbones import MEMBERS, weights
from lookalike.models.backbones.known import resolved
from lookalike.models.embedder import Embedder
from lookalike.values import member_settings

NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")  # no slash, no colon: not a path, not an address
LARGEST = 1 << 16  # of a number in an option
# options that change the shape of a network of timm or how it is regularised, and nothing else
TIMM_OPTIONS = (
    "attn_drop_rate class_token depth depths dims drop_path_rate drop_rate dynamic_img_pad dynamic_img_size embed_dim "
    "img_size init_values mlp_ratio no_embed_class num_heads output_stride patch_drop_rate patch_size pos_drop_rate "
    "proj_drop_rate qkv_bias reg_tokens strict_img_size window_size"
)
# vision networks of transformers that are built from their own numbers; others wrap a network that they fetch
HF_TYPES = (
    "beit bit clip_vision_model convnext convnextv2 data2vec-vision deit dinov2 dinov2_with_registers dinov3_convnext "
    "dinov3_vit efficientnet focalnet hiera ijepa levit mobilenet_v1 mobilenet_v2 mobilevit mobilevitv2 poolformer pvt "
    "pvt_v2 regnet resnet siglip2_vision_model siglip_vision_model swiftformer swin swinv2 vit vit_mae vit_msn"
)


def build(architecture: Architecture, file: Path, trusted: bool = False) -> Embedder:
    """The network of a model folder, for the weights in `file`; `trusted`: the caller vouches for the folder."""
    try:
        allowed = architecture if trusted else _allowed(architecture)
        with torch.device("meta"):
            plan = allowed.build().state_dict()
        weights.check_fit({key: tuple(value.shape) for key, value in plan.items()}, weights.shapes(file), str(file))
        return allowed.build()
    except UserError:
        raise
    except Exception as error:  # builders raise whatever a tampered description leads them to
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"the model in {file.parent} cannot be built: {reason}") from error


def _allowed(architecture: Architecture) -> Architecture:
    """The architecture as far as a folder may decide it."""
    kind, colon, name = resolved(architecture.backbone).partition(":")
    settings = architecture.settings
    if not colon:
        member = catalog.member("backbone", MEMBERS, architecture.backbone)
        return replace(architecture, settings=member_settings("settings", architecture.backbone, member, settings))
    if kind == "timm":
        _check_timm(name, settings)
        return architecture
    check(kind == "hf", f"unknown source of backbones '{kind}': a model folder may name timm and hf")
    return replace(architecture, settings=_hf_settings(settings))


def _check_timm(name: str, settings: Mapping[str, Any]) -> None:
    _refuse(NAME.fullmatch(name) is not None, f"timm:{name} is fetched from elsewhere")
    for key in settings:
        _refuse(key == "options", f"the setting {key} of a timm network is unknown")
    options = settings.get("options") or {}
    check(isinstance(options, Mapping), "the options of a timm network must be a table")
    for key, value in options.items():
        _refuse(key in TIMM_OPTIONS.split() and _is_plain(value), f"the option {key} is passed to timm")


def _hf_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    config, preprocessing = settings.get("config"), settings.get("preprocessing")
    _refuse(isinstance(config, Mapping), "without its config it is fetched from elsewhere")
    _refuse(isinstance(preprocessing, Mapping), "without its preprocessing it is fetched from elsewhere")
    _refuse(not settings.keys() - {"config", "preprocessing"}, "a setting of it is unknown")
    assert isinstance(config, Mapping)
    kind = config.get("model_type")
    _refuse(isinstance(kind, str) and kind in HF_TYPES.split(), f"networks of type {kind!r} are not on the list")
    return {"config": _hf_config(config), "preprocessing": preprocessing}


def _hf_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers and names of a config that its own type knows; the library's notes about files are dropped."""
    from lookalike.models.backbones.hf_source import config_keys

    known = config_keys(str(config["model_type"]))
    return {key: value for key, value in config.items() if key in known and _is_plain(value)}


def _is_plain(value: Any, depth: int = 2) -> bool:
    if isinstance(value, str):
        return NAME.fullmatch(value) is not None
    if isinstance(value, list | tuple):
        return depth > 0 and len(value) < 1000 and all(_is_plain(part, depth - 1) for part in value)
    if isinstance(value, Mapping):
        return depth > 0 and all(isinstance(key, str) and _is_plain(part, depth - 1) for key, part in value.items())
    return value is None or (isinstance(value, bool | int | float) and abs(value) < LARGEST)


def _refuse(holds: bool, reason: str) -> None:
    check(holds, f"the model's backbone is refused ({reason}): if the folder is yours, pass trusted=True")
