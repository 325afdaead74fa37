"""An index that gets another model while photos come, go and change, killed with SIGKILL at random times and continued.

After every kill each vector is of the model that answers, or mapped and said to be; at the end all are of the new one.
"""

import random
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from lookalike.errors import UserError
from lookalike.models import Architecture, Model
from lookalike.search import Index
from lookalike.search.stores import GenerationError
from lookalike.search.upgrading.upgrade import upgrade
from tests.attacks.outcomes import Outcomes, right
from tests.cli.processes import Forked
from tests.fixtures.postgres_server import server
from tests.search.conftest import CLASSES, photo

EACH, SPARE = 60, 20  # photos of a class in the index, and others that come in
SAMPLE, DIM = 60, 24  # items a map learns from; one width for both models, so that nothing but the numbers differs
KILLS = 3
PATIENCE = 600.0  # seconds for a trial, which starts four processes
Vectors = Mapping[bytes, np.ndarray]  # by the content of a file


@dataclass(frozen=True)
class Bed:
    """What all trials share: photos, two models and the vectors of both by their fingerprints."""

    folder: Path
    first: Model
    second: Model
    vectors: Mapping[str, Vectors]
    seconds: float = 0.0  # that an upgrade takes

    def start(self, place: Path | str) -> Forked:
        return Forked(_upgraded, place, self.folder / "model")

    def made(self, place: Path | str, photos: Path) -> Index:
        """An index of the first model for a copy of the photos."""
        shutil.copytree(self.folder / "photos", photos)
        index = Index.create(place, self.first)
        index.add(photos)
        return index


def upgrades_hold(outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    bed = _bed(place / "bed")

    def trial(number: int) -> None:
        shutil.rmtree(place / "trial", ignore_errors=True)
        _trial(number, bed, place / "trial" / "index", place / "trial" / "photos")

    _attempt_each(outcomes, first, count, trial)


def postgres_upgrades_hold(outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    bed = _bed(place / "bed")
    with server() as running:

        def trial(number: int) -> None:
            shutil.rmtree(place / "trial", ignore_errors=True)
            _trial(number, bed, f"{running.address}?index=u{number}", place / "trial" / "photos")

        _attempt_each(outcomes, first, count, trial)


def _attempt_each(outcomes: Outcomes, first: int, count: int, trial: Callable[[int], None]) -> None:
    for number in outcomes.numbers(first, count):
        outcomes.attempt(str(number), partial(trial, number), PATIENCE)


def _bed(folder: Path) -> Bed:
    """Photos of which no two are the same, and how long an upgrade of their index takes."""
    shutil.rmtree(folder, ignore_errors=True)
    for label in CLASSES:
        for number in range(EACH + SPARE):
            file = folder / ("photos" if number < EACH else "spare") / label / f"{number:03}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            photo(label, number, side=20).save(file)
    first, second = (Model.create(Architecture("conv4", {"channels": 3}, dim=DIM), seed=seed) for seed in (1, 5))
    second.save(folder / "model")
    files = sorted(folder.glob("*/*/*.png"))
    contents = [file.read_bytes() for file in files]
    vectors = {
        model.fingerprint: dict(zip(contents, model.encode(files).numpy(), strict=True)) for model in (first, second)
    }
    bed = Bed(folder, first, second, vectors)
    bed.made(folder / "index", folder / "copy").close()
    began = time.monotonic()
    right(bed.start(folder / "index").wait(300) == 0, "an upgrade does not end")
    return replace(bed, seconds=time.monotonic() - began)


def _upgraded(place: Path | str, model: Path) -> None:
    with closing(Index.open(place)) as index:
        try:
            upgrade(index, model, sample=SAMPLE)
        except UserError as error:
            if "the vectors of this model already" not in str(error):
                raise


def _trial(number: int, bed: Bed, place: Path | str, photos: Path) -> None:
    chance = random.Random(number)
    with closing(bed.made(place, photos)) as index:
        for _ in range(KILLS):
            running, until = bed.start(place), time.monotonic() + chance.uniform(0.0, bed.seconds)
            while time.monotonic() < until and running.poll() is None:
                _change(chance, bed, index, photos)
            running.kill()
            code = running.wait()
            right(code in (0, -signal.SIGKILL), f"the upgrade ended with {code}")
            _check_vectors(bed, index, photos)
        right(bed.start(place).wait(300) == 0, "it does not continue")
        _check_vectors(bed, index, photos)
        mapped = index.store.generations.mapped_count()
        right((index.identity.fingerprint, mapped) == (bed.second.fingerprint, 0), f"{mapped} items are still mapped")
        _check_answers(bed, index, photos)


def _change(chance: random.Random, bed: Bed, index: Index, photos: Path) -> None:
    """Search, or let a photo come, go or become another, as a second process would."""
    act, file = chance.choice(("search", "add", "remove", "replace")), chance.choice(sorted(photos.glob("*/*.png")))
    if act == "search":
        right(len(index.search(file, 5).hits) == 5, "a search finds too little")
    elif act == "remove":
        (item,) = index.store.at_paths([str(file)]).values()
        file.unlink()
        index.remove([item.id])
    else:
        other = chance.choice(sorted((bed.folder / "spare").glob("*/*.png")))
        content, target = other.read_bytes(), photos / other.parent.name / other.name if act == "add" else file
        target.write_bytes(content)
        try:
            index.add(photos)
        except GenerationError:  # the other process has switched: now by its model
            index.add(photos)


def _check_vectors(bed: Bed, index: Index, photos: Path) -> None:
    """Nothing is lost, and each vector is what the index says of it."""
    problems = index.store.check()
    right(problems == [], f"the index is damaged: {problems[:1]}")
    files, known = {str(file) for file in photos.glob("*/*.png")}, bed.vectors[index.identity.fingerprint or ""]
    found = []
    for items, vectors in index.store.scan():
        for item, vector in zip(items, vectors, strict=True):
            found.append(item.path)
            content = Path(str(item.path)).read_bytes()
            own = bool(np.allclose(vector, known[content], atol=1e-4))
            right(own or item.mapped, f"{item.id} has a vector that its model does not give")
            old = bed.vectors[bed.first.fingerprint][content]
            right(own or not np.allclose(vector, old, atol=1e-4), f"{item.id} has a vector of the old model")
    right(sorted(found) == sorted(files), f"of {len(files)} photos {len(found)} are there")


def _check_answers(bed: Bed, index: Index, photos: Path) -> None:
    """The first hits of new photos are those of the new model."""
    vectors = bed.vectors[bed.second.fingerprint]
    gallery = np.stack([vectors[file.read_bytes()] for file in photos.glob("*/*.png")])
    for label in CLASSES:
        picture = np.asarray(photo(label, 999, side=20))
        nearest = np.sort(gallery @ bed.second.encode([picture]).numpy()[0])[::-1][:5]
        hits = index.search(picture, 5).hits
        right(np.allclose([hit.similarity for hit in hits], nearest, atol=1e-4), f"{label}: the hits are others")
