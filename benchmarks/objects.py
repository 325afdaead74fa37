"""The object in the picture: do boxes from the feature map, or local descriptors, find what whole pictures miss?

python -m benchmarks.objects FOLDER --clutter FOLDER… [--photos 16] [--json FILE]

Photos of unseen classes, and the same photos pasted onto clutter at a quarter of the area (`benchmarks.pasted`), by
EfficientNet-lite0 at 224 pixels; the head is whitened on the other half of the classes, as `fit` delivers it. A box is
where activation is high and differs from the border: the largest sum, above its mean, of |f| (1 − cos(f, border)) over
3 to 5 places of 7 in both directions; up to three that overlap little. A similarity is that of the best pair among the
whole picture and its three boxes, in the query alone or in both.

Local descriptors are 32 places of the 14 × 14 map in 31 whitened components of 8 bits, 1 KB with their places. The
first 100 hits are ordered by similarity + w · Σ (cos − t) over mutual matches, with or without another match that moved
alike. Saliency, t, geometry and w are chosen on a quarter of the classes, which the head was not whitened on.

Does the model look at the background? Pasted photos ask among the originals with the photo covered by one grey, and
with everything else covered.

Every figure is recall@1 without the query's own photo; intervals are over classes.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image, ImageOps

from benchmarks.pasted import Box, pasted
from lookalike.data.formats.folder import is_image, walk
from lookalike.models import Architecture, Model
from lookalike.models.preprocess import prepare, seen_part
from lookalike.models.whitening import whitening

PLACES, COMPONENTS, FIRST = 32, 31, 100
WEIGHTS = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
NEAR = 0.16  # of a side: matches that moved alike
COVER = (127, 127, 127)  # nothing, to the network: the mean of its preprocessing


class Looks(NamedTuple):
    """Pictures as the network sees them."""

    whole: np.ndarray  # pooled features
    boxes: np.ndarray  # those of three boxes each
    middle: np.ndarray  # the map of stage 5


class Network:
    def __init__(self) -> None:
        self.model = Model.create(Architecture("efficientnet_lite0", dim=None), "pretrained")
        self.how = self.model.preprocessing.sized(224, 256)

    @torch.inference_mode()
    def maps(self, pictures: Sequence[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
        """The last map and that of stage 5."""
        middle: dict[str, torch.Tensor] = {}

        def after(stage: str, features: torch.Tensor) -> torch.Tensor:
            middle[stage] = features
            return features

        inputs = prepare(pictures, self.how).contiguous(memory_format=torch.channels_last)
        last = self.model.embedder.eval().backbone(inputs, after)  # type: ignore[operator]
        return last.numpy(), middle["stage5"].half().numpy()

    def look(self, pictures: Sequence[Image.Image]) -> Looks:
        last, middle = self.maps(pictures)
        cuts = [cut for one, boxes in zip(pictures, proposed(last), strict=True) for cut in self._cut(one, boxes)]
        return Looks(last.mean((2, 3)), self.maps(cuts)[0].mean((2, 3)).reshape(len(pictures), 3, -1), middle)

    def _cut(self, picture: Image.Image, boxes: np.ndarray) -> list[Image.Image]:
        x, y, width, height = seen_part(picture.height, picture.width, self.how)
        size = np.array([picture.width, picture.height] * 2)
        corners = (np.array([x, y, x, y]) + np.array([width, height] * 2) * boxes) * size
        return [picture.crop(tuple(corner)) for corner in corners.round().astype(int).tolist()]


def saliency(maps: np.ndarray, border: bool = True) -> np.ndarray:
    """How much happens at a place, and how much it differs from the border."""
    maps = maps.astype(np.float32)
    length = np.sqrt((maps**2).sum(1))
    if not border:
        return np.asarray(length)
    edge = np.ones(maps.shape[2:], bool)
    edge[1:-1, 1:-1] = False
    around = unit(maps[:, :, edge].mean(2))
    cosine = np.einsum("nchw,nc->nhw", maps, around) / np.maximum(length, 1e-6)
    return np.asarray(length * (1 - cosine))


def proposed(maps: np.ndarray) -> np.ndarray:
    """Three boxes each: left, top, right, bottom in shares of the view."""
    values = saliency(maps)
    side = values.shape[1]
    sums = np.zeros((len(values), side + 1, side + 1))
    sums[:, 1:, 1:] = (values - values.mean((1, 2), keepdims=True)).cumsum(1).cumsum(2)
    sizes = product(range(3, 6), range(3, 6))
    places = [(x, y, x + w, y + h) for w, h in sizes for x in range(side - w + 1) for y in range(side - h + 1)]
    left, top, right, bottom = boxes = np.array(places).T
    scores = sums[:, bottom, right] - sums[:, top, right] - sums[:, bottom, left] + sums[:, top, left]
    wide = np.minimum(right[:, None], right) - np.maximum(left[:, None], left)
    high = np.minimum(bottom[:, None], bottom) - np.maximum(top[:, None], top)
    shared, area = wide.clip(0) * high.clip(0), (right - left) * (bottom - top)
    overlap = shared / (area[:, None] + area - shared)
    chosen = np.zeros((len(values), 3), int)
    for turn in range(3):
        chosen[:, turn] = scores.argmax(1)
        scores = np.where(overlap[chosen[:, turn]] > 0.4, -np.inf, scores)
    return np.asarray(boxes.T[chosen] / side)


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12), np.float32)


class Head:
    """Features as `fit` whitens them."""

    def __init__(self, features: np.ndarray, labels: np.ndarray) -> None:
        self.mean = unit(features).mean(0)
        self.matrix = whitening(torch.from_numpy(unit(features) - self.mean), torch.from_numpy(labels)).numpy()

    def __call__(self, features: np.ndarray) -> np.ndarray:
        return unit((unit(features) - self.mean) @ self.matrix)


def best_pairs(queries: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """The highest similarity of any view of a query and any view of an item; none with itself."""
    result = np.full((len(queries), len(gallery)), -9.0, np.float32)
    for one, other in product(range(queries.shape[1]), range(gallery.shape[1])):
        np.maximum(result, queries[:, one] @ gallery[:, other].T, out=result)
    np.fill_diagonal(result, -9)
    return result


class Locals(NamedTuple):
    vectors: np.ndarray
    places: np.ndarray


class Descriptors:
    """Whitened components of the places of a map."""

    def __init__(self, maps: np.ndarray) -> None:
        rows = unit(np.concatenate([each.reshape(len(each), -1).T for each in maps.astype(np.float32)]))
        self.mean = rows.mean(0)
        values, axes = np.linalg.eigh(np.cov((rows - self.mean).T.astype(np.float64)))
        values, axes = values[::-1][:COMPONENTS], axes[:, ::-1][:, :COMPONENTS]
        self.matrix = np.asarray(axes / np.sqrt(values + 0.1 * values[COMPONENTS // 2]), np.float32)

    def __call__(self, maps: np.ndarray, border: bool) -> Locals:
        side = maps.shape[2]
        strong = np.argsort(-saliency(maps, border).reshape(len(maps), -1), axis=1)[:, :PLACES]
        rows = np.take_along_axis(maps.reshape(*maps.shape[:2], -1), strong[:, None], 2).transpose(0, 2, 1)
        coded = np.round(127 * unit((unit(rows.astype(np.float32)) - self.mean) @ self.matrix)) / 127
        return Locals(coded, np.stack([strong // side, strong % side], -1) / np.float32(side))


def agreement(query: Locals, items: Locals, threshold: float, geometry: bool) -> np.ndarray:
    """Σ (cos − t) over mutual matches of one query with several items; with geometry, those that another supports."""
    cosines = query.vectors @ items.vectors.transpose(0, 2, 1)
    there, back = cosines.argmax(2), cosines.argmax(1)
    mutual = np.take_along_axis(back, there, 1) == np.arange(cosines.shape[1])
    gains = np.where(mutual, (cosines.max(2) - threshold).clip(0), 0)
    if geometry:
        moved = np.take_along_axis(items.places, there[:, :, None].repeat(2, 2), 1) - query.places
        alike = (np.abs(moved[:, :, None] - moved[:, None]) < NEAR).all(-1)
        gains = gains * ((alike * gains[:, None]).sum(2) > gains + 1e-9)
    return np.asarray(gains.sum(1))


def reordered(scores: np.ndarray, queries: Locals, items: Locals, threshold: float, geometry: bool) -> Any:
    """The first hits of every query: which, how similar, and how far their places agree."""
    few = min(FIRST, scores.shape[1] - 1)
    first = np.argpartition(-scores, few, axis=1)[:, :few]
    agreed = [
        agreement(
            Locals(queries.vectors[row], queries.places[row]),
            Locals(items.vectors[some], items.places[some]),
            threshold,
            geometry,
        )
        for row, some in enumerate(first)
    ]
    return first, np.take_along_axis(scores, first, 1), np.stack(agreed)


def right(first: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.asarray(labels[np.take_along_axis(first, scores.argmax(1)[:, None], 1)[:, 0]] == labels)


def interval(differences: np.ndarray, labels: np.ndarray) -> list[float]:
    generator = np.random.default_rng(0)
    sums = np.array([differences[labels == label].sum() for label in np.unique(labels)])
    counts = np.unique(labels, return_counts=True)[1]
    draws = generator.integers(0, len(sums), (2000, len(sums)))
    means = sums[draws].sum(1) / counts[draws].sum(1)
    return [float(differences.mean()), *np.quantile(means, [0.025, 0.975]).tolist()]


def opened(file: Path) -> Image.Image:
    return ImageOps.exif_transpose(Image.open(file)).convert("RGB")


def photos(root: Path, most: int) -> tuple[list[Path], np.ndarray, np.ndarray]:
    """Files, classes, and whether a class is one of those that the head learns from, which have half as many photos."""
    generator = np.random.default_rng(7)
    classes = sorted(path for path in root.iterdir() if path.is_dir())
    files: list[Path] = []
    labels: list[int] = []
    for rank, place in enumerate(generator.permutation(len(classes)).tolist()):
        own = sorted(classes[place] / name for name in walk(classes[place], outside=[]) if is_image(name))
        some = generator.permutation(len(own))[: most // 2 if rank < len(classes) // 2 else most].tolist()
        files += [own[number] for number in sorted(some)]
        labels += [rank] * len(some)
    return files, np.array(labels), np.array(labels) < len(classes) // 2


def covered(picture: Image.Image, box: Box) -> tuple[Image.Image, Image.Image]:
    """Without the inside of the box, and without the rest."""
    x, y, width, height = box
    outside, inside = picture.copy(), Image.new("RGB", picture.size, COVER)
    outside.paste(COVER, (x, y, x + width, y + height))
    inside.paste(picture.crop((x, y, x + width, y + height)), (x, y))
    return outside, inside


def seen(files: Sequence[Path], clutter: Sequence[Sequence[Path]]) -> tuple[Looks, Looks, np.ndarray]:
    """Originals, pasted photos, and the features of the latter's true boxes, without them, and without the rest."""
    network, parts = Network(), []
    for start in range(0, len(files), 16):
        originals = [opened(file) for file in files[start : start + 16]]
        made, inside = [], []
        for number, photo in enumerate(originals, start):
            generator = np.random.default_rng(number)
            others = [
                opened(some[int(generator.integers(len(some)))]) for some in clutter for _ in range(8 // len(clutter))
            ]
            picture, box = pasted(photo, others, generator)
            x, y, width, height = box
            made.append(picture)
            inside += [picture.crop((x, y, x + width, y + height)), *covered(picture, box)]
        three = network.maps(inside)[0].mean((2, 3)).reshape(len(made), 3, -1)
        parts.append((network.look(originals), network.look(made), three))
    looks = [Looks(*(np.concatenate([part[kind][field] for part in parts]) for field in range(3))) for kind in (0, 1)]
    return looks[0], looks[1], np.concatenate([part[2] for part in parts])


def measure(root: Path, clutter: Sequence[Sequence[Path]], most: int) -> dict[str, Any]:
    files, labels, train = photos(root, most)
    original, made, inside = seen(files, clutter)
    own, unseen = Head(original.whole[train], labels[train]), labels[~train]

    def views(looks: Looks, boxes: bool) -> np.ndarray:
        every = np.concatenate([looks.whole[:, None], looks.boxes], 1)[~train, : 4 if boxes else 1]
        return own(every.reshape(-1, every.shape[2])).reshape(*every.shape[:2], -1)

    def found(scores: np.ndarray) -> np.ndarray:
        return np.asarray(unseen[scores.argmax(1)] == unseen, float)

    result: dict[str, Any] = {"photos": len(unseen), "classes": len(np.unique(unseen))}
    true, *rest = (own(inside[~train, which])[:, None] for which in range(3))
    for name, one in zip(("object", "background"), rest, strict=True):
        result[f"on clutter: {name} covered"] = float(found(best_pairs(one, views(original, False))).mean())
    for name, query, item in (("original", original, original), ("on clutter", made, original), ("both", made, made)):
        whole = found(best_pairs(views(query, False), views(item, False)))
        result[f"{name}: whole"] = float(whole.mean())
        if query is made:
            result[f"{name}: true box"] = float(
                found(best_pairs(true, true if item is made else views(item, False))).mean()
            )
        for ways, sides in (("boxes of the query", (True, False)), ("boxes of both", (True, True))):
            boxed = found(best_pairs(views(query, sides[0]), views(item, sides[1])))
            result[f"{name}: {ways}"] = interval(boxed - whole, unseen)
    return result | _local(original, made, labels, train, own)


def _local(original: Looks, made: Looks, labels: np.ndarray, train: np.ndarray, own: Head) -> dict[str, Any]:
    taught = train & (labels % 2 == 0)
    choosing, unseen = train & ~taught, ~train
    describe = Descriptors(original.middle[taught][:200])
    vectors = Head(original.whole[taught], labels[taught])(original.whole[choosing])[:, None]
    scores, best = best_pairs(vectors, vectors), (-1.0, False, 0.0, False, 0.0)
    for border, threshold, geometry in product((False, True), (0.2, 0.4, 0.6), (False, True)):
        places = describe(original.middle[choosing], border)
        first, similar, agreed = reordered(scores, places, places, threshold, geometry)
        for weight in WEIGHTS:
            recall = float(right(first, similar + weight * agreed, labels[choosing]).mean())
            best = max(best, (recall, border, threshold, geometry, weight))
    _, border, threshold, geometry, weight = best
    result: dict[str, Any] = {"local: border, threshold, geometry, weight": best[1:]}
    for name, query, item in (("original", original, original), ("on clutter", made, original), ("both", made, made)):
        pair = [describe(looks.middle[unseen], border) for looks in (query, item)]
        every = [own(looks.whole[unseen])[:, None] for looks in (query, item)]
        first, similar, agreed = reordered(best_pairs(*every), pair[0], pair[1], threshold, geometry)
        before, after = (right(first, similar + w * agreed, labels[unseen]).astype(float) for w in (0, weight))
        result[f"{name}: local"] = interval(after - before, labels[unseen])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clutter", type=Path, nargs="+", required=True)
    parser.add_argument("--photos", type=int, default=16)
    parser.add_argument("--json", type=Path)
    told = parser.parse_args()
    clutter = [[root / name for name in sorted(walk(root, outside=[])) if is_image(name)] for root in told.clutter]
    result = measure(told.folder, clutter, told.photos)
    for name, value in result.items():
        shown = [f"{each:+.3f}" for each in value] if isinstance(value, list) else value
        print(f"{name}: {shown}")
    if told.json is not None:
        told.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
