"""Broken files of every kind: images, model folders, the files of a finished run. An answer or one line, never more."""

import io
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from typer.testing import CliRunner

from lookalike import data
from lookalike.cli import app
from lookalike.errors import EXIT_CODE, UserError
from lookalike.models import Architecture, Model, Preprocessing, Readout
from tests.attacks.outcomes import Outcomes, SilentError, WrongError, right
from tests.cli.photos import folder
from tests.cli.processes import Lookalike
from tests.fixtures.png import png
from tests.models.test_tampered import DRAWINGS, TEXTS, mutants

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "TGA", "ICO")
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
SHORT = (
    "--no-audit",
    "--set",
    "train.steps=4",
    "--set",
    "train.validate_every=2",
    "--set",
    "sampler.batch_size=8",
    "--set",
    "sampler.per_class=2",
    "--set",
    "train.deliver=trained",
)


def damaged(content: bytes, chance: random.Random) -> Iterator[bytes]:
    """Cut off, emptied, overwritten, doubled, with flipped bits."""
    yield from (b"", content[:1], content[: len(content) // 3], content[:-1], content * 2, bytes(len(content)))
    yield from (POSTSCRIPT, b"\xff\xd8\xff\xe0" + bytes(50), chance.randbytes(200))
    for _ in range(8):
        flipped = bytearray(content)
        for _ in range(chance.choice((1, 1, 5, 40))):
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        yield bytes(flipped)


def encoded(form: str, size: tuple[int, int] = (24, 20)) -> bytes:
    file = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(noise).save(file, form)
    return file.getvalue()


def special(root: Path) -> Iterator[Path]:
    """Files that are none."""
    makers: dict[str, Callable[[Path], object]] = {
        "pipe.jpg": os.mkfifo,
        "folder.jpg": os.mkdir,
        "zero.jpg": lambda path: path.symlink_to("/dev/zero"),
        "random.png": lambda path: path.symlink_to("/dev/urandom"),
        "loop.jpg": lambda path: path.symlink_to(path.name),
        "nowhere.jpg": lambda path: path.symlink_to("nowhere"),
        "sparse.jpg": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 1 << 40),
        "closed.jpg": lambda path: os.close(os.open(path, os.O_CREAT, 0)),
        os.fsdecode(b"caf\xe9.jpg"): lambda path: path.write_bytes(encoded("JPEG")),
        "new\nline.jpg": lambda path: path.write_bytes(encoded("JPEG")),
        "strip.png": lambda path: path.write_bytes(encoded("PNG", (30_000, 1))),
        "one.png": lambda path: path.write_bytes(encoded("PNG", (1, 1))),
        "bomb.png": lambda path: path.write_bytes(png(60_000, 60_000)),
    }
    for name, make in makers.items():
        make(root / name)
        yield root / name


def files_hold(outcomes: Outcomes, first: int, _: int, place: Path) -> None:
    """Each broken file alone through the model, and in a folder through scan, audit and cache."""
    model = Model.create(
        Architecture("conv4", {"channels": 1, "width": 4}, dim=3),
        preprocessing=Preprocessing(16, 20, mean=(1.0,), std=(2.0,), order="L"),
    )
    chance, root = random.Random(first), folder(place / "zoo", classes=2, each=2)
    zoo = []
    for form in FORMATS:
        for number, content in enumerate(damaged(encoded(form), chance)):
            zoo.append(
                root / "class 00" / f"{form.lower()} {number}.{random.Random(number).choice(('jpg', 'png', 'gif'))}"
            )
            zoo[-1].write_bytes(content)
    zoo += special(root / "class 00")
    for path in zoo:
        outcomes.attempt(f"encode {path.name!r}", lambda path=path: finite(model.encode([path])), 30)
        outcomes.attempt(f"audit {path.name!r}", lambda path=path: alone(path, place / "alone"), 30)
    outcomes.attempt("audit of all", lambda: data.audit(data.load(root)), 120)
    outcomes.attempt("cache of all", lambda: data.decoded(data.load(root), 16), 120)
    for name in ("t.csv", "t.tsv", "t.parquet", "t.npz", "t.npy"):
        for content in damaged(
            b"path,label\nzoo/a.jpg,x\nzoo/b.jpg,y\n" if name[-3:] in "csv tsv" else arrays(), chance
        ):
            (place / name).write_bytes(content)
            outcomes.attempt(f"read {name}", lambda name=name: command("audit", place / name), 60)
            outcomes.attempt(f"evaluate {name}", lambda name=name: command("evaluate", place / name), 60)


def arrays() -> bytes:
    file = io.BytesIO()
    np.savez(file, embeddings=np.random.default_rng(0).standard_normal((8, 3)), labels=np.arange(8) // 2)
    return file.getvalue()


def alone(path: Path, root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    for kind in ("a", "b"):
        (root / kind).mkdir(parents=True)
        (root / kind / "good.png").write_bytes(encoded("PNG"))
    (root / "a" / path.name).symlink_to(path)
    data.audit(data.load(root))
    data.decoded(data.load(root), 16)


def finite(vectors: torch.Tensor) -> None:
    if not vectors.isfinite().all():
        raise SilentError("embeddings that are not numbers")


def command(*words: object) -> None:
    """A verb of the command line: it prints its answer, or one line and exit code 2."""
    ended = CliRunner().invoke(app, [str(word) for word in words])
    if ended.exit_code == 0 or (words[0] == "audit" and isinstance(ended.exception, SystemExit)):
        return  # an audit ends with code 1 where the data cannot be used
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception  # main() prints a UserError as one line
    raise UserError(ended.output.strip().splitlines()[-1] if ended.output.strip() else "refused")


def models_hold(outcomes: Outcomes, first: int, _: int, place: Path) -> None:
    """Every field of model.json with every wrong value, damaged texts, flipped bits of the weights."""
    how = Preprocessing(16, 20, mean=(1.0,), std=(2.0,), order="L")
    conv4 = Model.create(Architecture("conv4", {"channels": 1, "width": 4}, dim=3, pooling="gem"), preprocessing=how)
    both = conv4.with_readout(Readout("both", components=2), torch.zeros(4), torch.eye(2, 4))
    for name, model in (("conv4", conv4), ("both", both)):
        model.save(place / name)
        file = place / name / "model.json"
        values = json.loads(file.read_text())
        values.pop("fingerprint")
        for number, mutant in enumerate(mutants(values)):
            file.write_text(json.dumps(mutant))
            outcomes.attempt(
                f"{name} field {number}", lambda name=name: finite(Model.load(place / name).encode(DRAWINGS))
            )
        for text, content in TEXTS.items():
            file.write_bytes(content)
            outcomes.attempt(f"{name} {text}", lambda name=name: finite(Model.load(place / name).encode(DRAWINGS)))
        model.save(place / name)
        weights_hold(outcomes, place / name, model.encode(DRAWINGS), random.Random(first))


def weights_hold(outcomes: Outcomes, folder: Path, expected: torch.Tensor, chance: random.Random) -> None:
    file = folder / "weights.safetensors"
    whole = file.read_bytes()

    def loaded() -> None:
        right(torch.equal(Model.load(folder).encode(DRAWINGS), expected), "other weights went unnoticed")

    for number in range(10):
        for content in damaged(whole, chance):
            file.write_bytes(content)
            outcomes.attempt(f"{folder.name} weights {number}", loaded)
    file.write_bytes(whole)


def runs_hold(outcomes: Outcomes, first: int, _: int, place: Path) -> None:
    """Every file of a stopped and of a finished run, damaged: resumed, reported and compared, or refused."""
    photos, program, chance = folder(place / "photos"), Lookalike(place), random.Random(first)
    ended = program("fit", photos, "--out", place / "finished", *SHORT)
    right(ended.code == 0, ended.error)
    weights = (place / "finished" / "model" / "weights.safetensors").read_bytes()
    from tests.fit.test_killed import Death

    program(
        "fit", photos, "--out", place / "stopped", *SHORT, death=Death("lookalike.training.loop:Loop", "advance", 3)
    )
    for kind, verbs in (("finished", ("report", "compare")), ("stopped", ("resume",))):
        files = sorted(path.relative_to(place / kind) for path in (place / kind).rglob("*") if path.is_file())
        for name in files:
            if name.suffix in (".svg", ".html") or "figures" in name.parts or name.name == ".lock":
                continue
            for number, content in enumerate(damaged((place / kind / name).read_bytes() or b"x", chance)):
                if kind == "stopped" and number % 3 and name.name != "state.safetensors":
                    continue  # a process each
                shutil.rmtree(place / "broken", ignore_errors=True)
                shutil.copytree(place / kind, place / "broken")
                (place / "broken" / name).write_bytes(content)
                for verb in verbs:
                    if not list(outcomes.numbers(0, 1)):
                        return
                    outcomes.attempt(
                        f"{verb} {name} {number}", lambda verb=verb: used(verb, place, program, weights), 300
                    )


def used(verb: str, place: Path, program: Lookalike, weights: bytes) -> None:
    if verb == "report":
        return command("report", place / "broken")
    if verb == "compare":
        return command("compare", place / "finished", place / "broken", "--out", place / "page")
    ended = program("fit", place / "photos", "--out", place / "broken", *SHORT, "--resume")
    if ended.code == EXIT_CODE:
        raise UserError(ended.error.strip().splitlines()[-1])
    if ended.code != 0:
        raise RuntimeError(f"exit code {ended.code}: {ended.error[-400:]}")
    if (place / "broken" / "model" / "weights.safetensors").read_bytes() != weights:
        raise WrongError("other weights than those of an uninterrupted run")
    return None
