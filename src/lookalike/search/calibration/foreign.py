"""How foreign is a picture to an index? Pictures of nothing, through the same network, and the direction to them.

A network that has seen letters only puts a photo among its letters: how similar the first hits are does not tell, nor
do vectors made up in its space. What does is where the network puts other pictures. Dead leaves (overlapping shapes)
and clouds (noise whose power falls with the frequency) have statistics of photos and show nothing (Baradad, Wulff,
Wang, Isola, Torralba, NeurIPS 2021); here they are drawn, so no photo is needed. Fisher's discriminant separates the
index from them; classes that it has not seen say where to draw the line.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int64, UInt8

from lookalike.search.calibration.logistic import folds_of
from lookalike.search.items import Vectors

NUMBER, PIXELS = 128, 96
SHAPES = (10, 60)  # in a picture of leaves, from and below
RIDGE = 0.1  # of the mean variance, added to all of them
Picture = UInt8[np.ndarray, "rows columns 3"]


def pictures() -> list[Picture]:
    """Leaves and clouds, the same ones every time."""
    generator = np.random.default_rng(0)
    return [draw(generator) for draw in (leaves, clouds) for _ in range(NUMBER // 2)]


def leaves(generator: np.random.Generator) -> Picture:
    """Ellipses and rectangles of random colours upon each other, few large and many small."""
    rows, columns = np.mgrid[:PIXELS, :PIXELS] / PIXELS
    picture = np.tile(generator.random(3), (PIXELS, PIXELS, 1))
    for _ in range(int(generator.integers(*SHAPES))):
        across, down = columns - generator.uniform(-0.1, 1.1), rows - generator.uniform(-0.1, 1.1)
        size, angle = 0.04 / generator.uniform(0.02, 1) ** 0.5, generator.uniform(0, np.pi)
        narrow = generator.uniform(0.2, 1)
        along = across * np.cos(angle) + down * np.sin(angle)
        aside = (down * np.cos(angle) - across * np.sin(angle)) / narrow
        inside = np.hypot(along, aside) if generator.random() < 0.5 else np.maximum(abs(along), abs(aside))
        picture[inside < size] = generator.random(3)
    return _bytes(picture)


def clouds(generator: np.random.Generator) -> Picture:
    """Noise of three mixed colours whose amplitude falls with a random power of the frequency."""
    frequency = np.hypot(*np.meshgrid(*[np.fft.fftfreq(PIXELS)] * 2))
    frequency[0, 0] = 1 / PIXELS
    noise = np.fft.fft2(generator.standard_normal((3, PIXELS, PIXELS)))
    smooth = np.fft.ifft2(noise / frequency ** generator.uniform(0.5, 2.5)).real
    smooth /= smooth.std((1, 2), keepdims=True)
    mixed = np.einsum("ab,bij->ija", np.linalg.qr(generator.standard_normal((3, 3)))[0], smooth)
    return _bytes(mixed * generator.uniform(0.1, 1, 3) * generator.uniform(0.05, 0.35) + generator.random(3))


def _bytes(picture: Float64[np.ndarray, "rows columns 3"]) -> Picture:
    return np.asarray(255 * picture.clip(0, 1), np.uint8)


def discriminant(inside: Vectors, outside: Float32[np.ndarray, "m d"]) -> tuple[float, ...]:
    """Weights of the coordinates, and last a constant: 1 is what the inside is on average, 0 what the outside is."""
    means = [some.mean(0, dtype=np.float64) for some in (inside, outside)]
    apart = [some - mean for some, mean in zip((inside, outside), means, strict=True)]
    covariance = sum(some.T @ some / len(some) for some in apart) / 2
    covariance += (RIDGE * np.trace(covariance) / len(covariance) + 1e-12) * np.eye(len(covariance))
    weights = np.linalg.solve(covariance, means[0] - means[1])
    weights /= max(float(weights @ (means[0] - means[1])), 1e-12)
    return (*weights.tolist(), -float(weights @ means[1]))


def familiarity(vectors: Vectors, weights: Sequence[float]) -> Float64[np.ndarray, " n"]:
    return np.asarray(vectors @ np.asarray(weights[:-1]) + weights[-1], np.float64)


@dataclass(frozen=True)
class Familiar:
    """The discriminant of an index, and each query's familiarity by those without its class."""

    weights: tuple[float, ...]
    queries: Float64[np.ndarray, " n"]

    @staticmethod
    def of(vectors: Vectors, classes: Int64[np.ndarray, " n"], outside: Float32[np.ndarray, "m d"]) -> "Familiar":
        fold = folds_of(classes)
        result = np.zeros(len(vectors))
        for inside in (fold == turn for turn in np.unique(fold)):
            if not inside.all():
                result[inside] = familiarity(vectors[inside], discriminant(vectors[~inside], outside))
        return Familiar(discriminant(vectors, outside), result)
