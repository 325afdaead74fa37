"""The model card: the README in the folder of a model."""

import json
import re
from collections.abc import Mapping
from typing import Any

from lookalike.models.backbones import MEMBERS, licence

SHOWN = 12  # classes named in the card
ON_THE_HUB = {
    "Apache-2.0": "apache-2.0",
    "MIT": "mit",
}  # how the hub writes licences; it has names for no others of ours


def model_card(description: Mapping[str, Any], parameters: int) -> str:
    """A short README in Markdown, from the content of model.json."""
    parts = [_front_matter(description), _opening(description, parameters), _input(description["preprocessing"])]
    if description["metrics"]:
        parts.append(_metrics(description["metrics"]))
    if description["classes"]:
        parts.append(_classes(description["classes"]))
    parts += [_licence(description), _use()]
    return "\n\n".join(parts) + "\n"


def _front_matter(description: Mapping[str, Any]) -> str:
    """What the Hugging Face Hub reads: licence, tags and figures, as YAML; JSON is YAML too."""
    facts: dict[str, Any] = {
        **_terms(licence(_backbone(description))),
        "library_name": "lookalike",
        "pipeline_tag": "image-feature-extraction",
        "tags": ["lookalike", "metric-learning", "image-retrieval"],
    }
    if description["metrics"]:
        metrics = [{"type": name, "value": value} for name, value in description["metrics"].items()]
        task = {"type": "image-retrieval", "name": "Retrieval of classes never seen in training"}
        dataset = {"type": "photos", "name": "photos of the user"}
        results = [{"task": task, "dataset": dataset, "metrics": metrics}]
        facts["model-index"] = [{"name": _backbone(description) or "embedding model", "results": results}]
    return "---\n" + "\n".join(f"{name}: {json.dumps(value)}" for name, value in facts.items()) + "\n---"


def _terms(known: str) -> dict[str, str]:
    """The licence of the weights; nothing where whoever publishes the model has to choose one.

    >>> _terms("MIT"), _terms("DINOv3 License"), _terms("")
    ({'license': 'mit'}, {'license': 'other', 'license_name': 'dinov3-license'}, {})
    """
    if known in ON_THE_HUB:
        return {"license": ON_THE_HUB[known]}
    name = re.sub(r"[^a-z0-9.]+", "-", known.lower()).strip("-")
    return {"license": "other", "license_name": name} if name else {}


def _backbone(description: Mapping[str, Any]) -> str:
    architecture = description["architecture"]
    return str(architecture["backbone"]) if architecture else ""


def _licence(description: Mapping[str, Any]) -> str:
    name = _backbone(description)
    if name in MEMBERS and not MEMBERS[name].published.files:
        return (
            f"## Licence\n\nNo weights are published for {name}: this model was trained from random ones. Before you "
            "publish it, choose a licence and write it into the first lines of this file, such as `license: mit`."
        )
    known = licence(name) or "not known to lookalike"
    return (
        f"## Licence\n\nPublished weights of {name or 'this network'}: {known}. Where training started from them, "
        "their terms bind this model too."
    )


def _opening(description: Mapping[str, Any], parameters: int) -> str:
    architecture = description["architecture"]
    name = architecture["backbone"] if architecture else "a custom network"
    pooling = f", {architecture['pooling']} pooling" if architecture else ""
    kind = architecture["readout"]["kind"] if architecture else "head"
    source = {"head": "", "features": " from the centred features", "both": " from head and centred features"}[kind]
    compared = {
        "sphere": "unit vectors: compare by dot product",
        "ball": "vectors in the unit ball",
        "none": "raw vectors",
    }
    return (
        f"# Embedding model: {name}\n\n"
        f"{parameters / 1e6:.2f} million parameters{pooling}; embeddings of {description['dim']} dimensions{source}, "
        f"{compared[description['geometry']]}.\nTrained with lookalike; images that look alike get similar vectors."
    )


def _input(how: Mapping[str, Any]) -> str:
    sides = "both sides" if how["warp"] else "shorter side"
    size = f"{sides} to {how['resize']} pixels ({how['interpolation']}), " if how["resize"] else ""
    return (
        f"## Input\n\n{size}centre crop {how['crop']} × {how['crop']}, {how['order']}, pixels 0 … 255, "
        f"(x − mean) / std with mean {_numbers(how['mean'])} and std {_numbers(how['std'])}."
    )


def _numbers(values: Any) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"


def _metrics(metrics: Mapping[str, float]) -> str:
    rows = "\n".join(f"| {name} | {value:.4f} |" for name, value in metrics.items())
    return f"## Measured on classes never seen in training\n\n| metric | value |\n|---|---|\n{rows}"


def _classes(classes: Any) -> str:
    names = ", ".join(str(name) for name in classes[:SHOWN])
    return f"## Trained on {len(classes)} classes\n\n{names}{', …' if len(classes) > SHOWN else ''}"


def _use() -> str:
    return (
        "## Use\n\n```python\nfrom lookalike.models import Model\n\n"
        'model = Model.load("this/folder")\nembeddings = model.encode(["a.jpg", "b.jpg"])\n```'
    )
