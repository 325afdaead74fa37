"""Networks of the Hugging Face Hub that have a short name here: what is known of them before anything is fetched.

`figure` is published, on ImageNet, by the authors, in the source it names; where none is certain, there is none. No
figure tells which network is best for other images: `fit` measures that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class KnownNetwork:
    """A network by its repository.

    licence: of the weights.
    size: of its input, in pixels.
    width: of its features.
    shape: what tells its architecture from the defaults of its type, so that its cost is measured before its weights
        are here.
    figure: published, with its source.
    gated: whether its page asks for agreement before it can be fetched.
    """

    repository: str
    licence: str
    size: int
    width: int
    shape: Mapping[str, Any] = field(default_factory=dict)
    figure: str = ""
    gated: bool = False


_SMALL = {"hidden_size": 384, "num_attention_heads": 6}

KNOWN: dict[str, KnownNetwork] = {
    "dinov2_small": KnownNetwork(
        "facebook/dinov2-small",
        "Apache-2.0",
        224,
        384,
        {"model_type": "dinov2", **_SMALL},
        "k-NN 79.0%, linear 81.1% (README of facebookresearch/dinov2)",
    ),
    "dinov2_base": KnownNetwork(
        "facebook/dinov2-base",
        "Apache-2.0",
        224,
        768,
        {"model_type": "dinov2"},
        "k-NN 82.1%, linear 84.5% (README of facebookresearch/dinov2)",
    ),
    "dinov3_small": KnownNetwork(
        "facebook/dinov3-vits16-pretrain-lvd1689m",
        "DINOv3 License",
        224,
        384,
        {"model_type": "dinov3_vit", **_SMALL, "intermediate_size": 1536, "num_register_tokens": 4},
        gated=True,
    ),
    "siglip2_base": KnownNetwork(
        "google/siglip2-base-patch16-224",
        "Apache-2.0",
        224,
        768,
        {"model_type": "siglip_vision_model"},
        "zero-shot 78.2% (Tschannen et al., SigLIP 2, 2025)",
    ),
    "clip_b16": KnownNetwork(
        "openai/clip-vit-base-patch16",
        "not stated (code: MIT)",
        224,
        768,
        {"model_type": "clip_vision_model", "patch_size": 16},
        "zero-shot 68.6% (Radford et al., ICML 2021)",
    ),
    "tinyclip": KnownNetwork(
        "wkcn/TinyCLIP-ViT-8M-16-Text-3M-YFCC15M",
        "MIT",
        224,
        256,
        {
            "model_type": "clip_vision_model",
            "patch_size": 16,
            "hidden_size": 256,
            "intermediate_size": 1024,
            "num_hidden_layers": 10,
            "num_attention_heads": 4,
        },
        "zero-shot 41.1% (Wu et al., TinyCLIP, ICCV 2023)",
    ),
    "convnext_tiny": KnownNetwork(
        "facebook/convnext-tiny-224",
        "Apache-2.0",
        224,
        768,
        {"model_type": "convnext"},
        "top-1 82.1% (Liu et al., A ConvNet for the 2020s, CVPR 2022)",
    ),
}


def resolved(name: str) -> str:
    """The name of a backbone as its source has it.

    >>> resolved("dinov2_small"), resolved("conv4")
    ('hf:facebook/dinov2-small', 'conv4')
    """
    return f"hf:{KNOWN[name].repository}" if name in KNOWN else name
