"""Embeddings with their labels as .npz files: what `embed` writes, `evaluate` reads, and every run keeps of its test
images (test.npz).

Where some images are queries and others are searched, the gallery has arrays of its own; rows count queries first.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.data import Dataset
from lookalike.errors import UserError, check, unknown
from lookalike.features.shards import Shards, is_shards
from lookalike.files import read_arrays, whole_file
from lookalike.label_sets import LabelSets

Arrays = dict[str, np.ndarray]


def columns(embeddings: Float[Tensor, "n d"], dataset: Dataset) -> Arrays:
    """A dataset as vectors, in the form that `lookalike evaluate` reads."""
    names = np.array(dataset.label_names)[dataset.labels.numpy()]
    arrays: Arrays = {"paths": np.array([dataset.images.name(row) for row in range(len(dataset))])}
    if dataset.categories is not None:
        arrays["categories"] = np.array([*dataset.category_names, ""])[dataset.categories.numpy()]
    vectors = embeddings.numpy()
    sets = _sets(dataset)
    if dataset.roles is None:
        return arrays | {"embeddings": vectors, "labels": names} | sets
    query = dataset.roles.numpy() == 0
    if sets:
        sets |= {"label_sets": sets["label_sets"][query], "gallery_label_sets": sets["label_sets"][~query]}
    arrays = {name: column[query] for name, column in arrays.items()} | {"gallery_paths": arrays["paths"][~query]}
    arrays |= {"embeddings": vectors[query], "labels": names[query]}
    return arrays | {"gallery_embeddings": vectors[~query], "gallery_labels": names[~query]} | sets


SETS = ("label_sets", "gallery_label_sets", "label_set_names", "opposed")


def _sets(dataset: Dataset) -> Arrays:
    """Where images have several labels, or none: their numbers, padded with −1, and what the numbers mean."""
    sets = dataset.supervision
    if not isinstance(sets, LabelSets):
        return {}
    arrays = {"label_sets": sets.numbers.numpy(), "label_set_names": np.array(list(map(str, sets.names)), np.str_)}
    return arrays if sets.opposed is None else arrays | {"opposed": sets.opposed.numpy()}


def label_sets(arrays: Arrays) -> tuple[LabelSets | None, LabelSets | None]:
    """The labels of queries and gallery, where an image has several or none."""
    if "label_sets" not in arrays:
        return None, None
    names = tuple(arrays["label_set_names"].tolist())
    opposed = torch.from_numpy(arrays["opposed"]) if "opposed" in arrays else None
    queries, gallery = (
        LabelSets(torch.from_numpy(arrays[name]), names, opposed) if name in arrays else None for name in SETS[:2]
    )
    return queries, gallery


def save_embeddings(path: Path, embeddings: Float[Tensor, "n d"], dataset: Dataset) -> None:
    save_arrays(path, columns(embeddings, dataset))


def save_arrays(path: Path, arrays: Arrays, **facts: str) -> None:
    """Write such a file; `facts` are texts about all rows, such as the fingerprint of the model."""
    with whole_file(path) as file:
        np.savez(file, **arrays, **facts)  # type: ignore[arg-type]


def read_embeddings(path: Path, known: Collection[str] | None = None) -> Arrays:
    """The arrays of such a file; `embeddings` and `labels` are always among them. With `known`, others are refused.

    The shards of many workers (`features.embed_shards`) are read as one file.
    """
    try:
        arrays = _of_shards(Shards.open(path)) if is_shards(path) else read_arrays(path)
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"there is no file '{path}'") from None
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' cannot be read as .npz ({error}): write it with numpy.savez") from None
    for name in arrays:
        if known is not None and name not in known:
            raise unknown("array", name, known)
    for name in ("embeddings", "labels"):
        check(name in arrays, f"'{path}' has no array '{name}': it holds {', '.join(arrays) or 'none'}")
    both = ("gallery_embeddings" in arrays) == ("gallery_labels" in arrays)
    check(both, f"'{path}' needs both gallery_embeddings and gallery_labels, or neither")
    return arrays


def _of_shards(shards: Shards) -> Arrays:
    joined = shards.joined()
    arrays: Arrays = {name: joined[name] for name in ("embeddings", "labels", "categories", "paths") if name in joined}
    if "roles" not in joined:
        return arrays
    query = joined["roles"] == "query"
    gallery = {f"gallery_{name}": column[~query] for name, column in arrays.items() if name != "categories"}
    return {name: column[query] for name, column in arrays.items()} | gallery


def load_embeddings(path: Path, dataset: Dataset) -> Float[Tensor, "n d"]:
    """What `save_embeddings` wrote, one row per image of the dataset, in its order."""
    arrays = read_embeddings(path)
    vectors = torch.from_numpy(arrays["embeddings"])
    if dataset.roles is None:
        return vectors
    check("gallery_embeddings" in arrays, f"'{path}' has no gallery: delete its folder and continue with --resume")
    joined = torch.empty(len(dataset), vectors.shape[1])
    joined[dataset.roles == 0] = vectors
    joined[dataset.roles != 0] = torch.from_numpy(arrays["gallery_embeddings"])
    return joined
