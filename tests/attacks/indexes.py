"""Indexes: histories against float64 at every scale, flipped bits over whole caches, indexes that a stranger made."""

import json
import math
import os
import random
import shutil
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from lookalike.models import Architecture, Model
from lookalike.search import Index, filters
from lookalike.search.calibration.thresholds import Calibration
from lookalike.search.feedback import labels
from lookalike.search.items import Answer, Identity, Item, Mark, Vectors
from lookalike.search.pages import search_page
from lookalike.search.pictures import thumbnail
from lookalike.search.quality import Quality
from lookalike.search.serve.settings import Settings
from lookalike.search.serve.views import Overview, item_form
from lookalike.search.serve.watcher import Watcher
from lookalike.search.status import describe
from lookalike.search.stores.copying import UPGRADE
from lookalike.search.stores.sqlite.store import FILE, SqliteStore
from lookalike.search.things import ThingSearch
from lookalike.search.upgrading import hits
from lookalike.search.upgrading.maps import MapChoice
from lookalike.search.watching.reference import Reference, reference
from lookalike.search.watching.watch import Day
from tests.attacks.outcomes import Outcomes, right
from tests.models.test_tampered import VALUES, with_value
from tests.models.test_tampered import places as ways

GEOMETRIES = ("sphere", "ball", "none")
KINDS = ("random", "clustered", "collapsed", "duplicated", "plateau", "mixed lengths", "one-hot", "few values")
DIMS = (1, 2, 5, 16, 33, 64)
POWERS = (-44, -30, -25, -21, -18, -9, -3, 0, 0, 3, 9, 13)  # of ten: how long vectors are
LONGEST = 9e14  # longer ones are refused
TOGETHER = 100  # trials that damage copies of the same cache
ODD = [np.full(4, value, np.float32).tobytes() for value in (np.nan, np.inf, 3e38, 1e-45)]  # as vectors
HOSTILE = (
    *ODD,
    ODD[0][:4],
    None,
    "",
    "../../own",
    "/",
    "own\0",
    "[" * 5000,
    '{"sure": [1e999]}',
    b"",
    b"\xff\xfe",
    bytes(64),
    -1,
    0,
    7,
    2**63 - 1,
    -(2**63),
    1e308,
    float("inf"),
    "sphere",
    "ball",
    "ab" * 16,
    "x" * 100_000,
)
BESIDE = ("-wal", "-shm", "-journal")  # what SQLite looks for beside a file
ENDLESS = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) SELECT n FROM more"
PROGRAMS = (
    f"CREATE VIEW later AS {ENDLESS}",
    f"CREATE TRIGGER t AFTER INSERT ON items BEGIN {ENDLESS}; END",
    f"CREATE TRIGGER log_no_more BEFORE INSERT ON log BEGIN {ENDLESS}; END",
    "CREATE VIRTUAL TABLE more USING fts5(content)",
    "CREATE TABLE more AS SELECT 1 AS key",
    "CREATE TABLE more (key INTEGER CHECK (length(hex(zeroblob(key))) > 0))",
    "ALTER TABLE items ADD COLUMN c9 AS (hex(zeroblob(key)))",
    "CREATE INDEX more ON items (hex(zeroblob(key)))",
    "CREATE INDEX more ON items (key) WHERE hex(zeroblob(key)) > 0",
)


class Chance(random.Random):
    """The random choices of one trial, and its arrays."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.draw = np.random.default_rng(number)

    def vectors(self, kind: str, count: int, dim: int, scale: float) -> Vectors:
        """Ordinary ones, and such that hide among their neighbours."""
        draw = self.draw
        rows = draw.standard_normal((count, dim))
        if kind == "clustered":
            rows = rows[draw.integers(0, 1 + (count - 1) // 20, count)] + 0.01 * rows
        elif kind == "collapsed":
            rows = 12 + 10.0 ** draw.integers(-8, 0) * rows
        elif kind == "duplicated":
            rows = rows[draw.integers(0, min(3, count), count)]
        elif kind == "plateau":
            rows[draw.random(count) < 0.9] = rows[0]
        elif kind == "mixed lengths":
            rows *= 10.0 ** draw.uniform(-25, 10, (count, 1))
        elif kind == "one-hot":
            rows = np.eye(dim)[draw.integers(0, dim, count)]
        elif kind == "few values":
            rows = draw.integers(-3, 4, (count, 1)) * np.ones(dim)
        return np.clip(scale * rows, -LONGEST, LONGEST).astype(np.float32)


class Truth:
    """What an index must answer, the slow way, and the items whose vectors are mapped."""

    def __init__(self, geometry: str) -> None:
        self.geometry = geometry
        self.rows: dict[str, tuple[np.ndarray, str | None]] = {}
        self.mapped: set[str] = set()

    def put(self, items: list[Item], vectors: Vectors) -> None:
        self.remove([item.id for item in items if item.id in self.rows])
        self.rows |= {item.id: (row, item.label) for item, row in zip(items, vectors, strict=True)}

    def remove(self, ids: list[str]) -> None:
        for name in ids:
            del self.rows[name]
            self.mapped.discard(name)

    def switch(self, vectors: Mapping[str, np.ndarray], mapped: set[str]) -> None:
        """Another generation answers."""
        self.rows = {name: (vectors[name], label) for name, (_, label) in self.rows.items()}
        self.mapped = mapped & self.rows.keys()

    def settle(self, vectors: Mapping[str, np.ndarray]) -> None:
        """Some vectors are not mapped any more."""
        self.rows |= {name: (row, self.rows[name][1]) for name, row in vectors.items()}
        self.mapped -= vectors.keys()

    def check_kept(self, store: SqliteStore) -> None:
        found = [item.id for item in store.generations.mapped(len(self.rows) + 1)]
        right(found == sorted(self.mapped), "other items are mapped than should be")
        right(store.generations.mapped_count() == len(found), "the mapped items are counted wrong")

    def check(self, answer: Answer, query: np.ndarray, k: int, label: str | None = None) -> None:
        found = [(hit.id, hit.similarity) for hit in answer.hits]
        self.compare(found, answer.certified, query, k, label)

    def compare(
        self,
        found: list[tuple[str, float]],
        certified: bool,
        query: np.ndarray,
        k: int,
        label: str | None = None,
        things: bool = False,
    ) -> None:
        """Ids, order and scores are those of float64, to the bit; `things`: of the best photo of each class."""
        every, exact = np.stack([row for row, _ in self.rows.values()]).astype(np.float64), query.astype(np.float64)
        scores = (every * exact).sum(1) if self.geometry == "sphere" else -np.square(every - exact).sum(1) / 2
        pairs = zip((-scores).tolist(), self.rows.items(), strict=True)
        ranked = sorted((score, name, own) for score, (name, (_, own)) in pairs if label in (None, own))
        if things:
            best: dict[str | None, tuple[float, str, str | None]] = {}
            for each in ranked:
                best.setdefault(each[2], each)
            ranked = list(best.values())
        expected = [(name, -score) for score, name, _ in ranked[:k]]
        if found != expected:
            right(False, f"{'certified' if certified else 'completed'}: {found[:3]} is not {expected[:3]}")


def histories_hold(outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    outcomes.attempt_each(first, count, lambda number: history_trial(number, place / "history"))


def history_trial(number: int, place: Path) -> None:
    """Items are added, replaced, removed, mapped to another model, the index is opened again and asked in between."""
    chance = Chance(number)
    shutil.rmtree(place, ignore_errors=True)
    geometry, kind, dim = chance.choice(GEOMETRIES), chance.choice(KINDS), chance.choice(DIMS)
    size, scale = chance.choice((5, 40, 200, 700, 3000)), 10.0 ** chance.choice((*POWERS, chance.uniform(-30, 14)))
    truth = Truth(geometry)
    SqliteStore.create(place, Identity(None, geometry, dim)).close()  # type: ignore[arg-type]
    for step in range(1, chance.randint(2, 7)):
        with closing(SqliteStore(place)) as store:
            for what in chance.choices(("add", "add", "replace", "rescale", "remove", "remove most", "upgrade"), k=2):
                if what.startswith("remove"):
                    share = 0.95 if what == "remove most" else 0.3
                    ids = chance.sample(list(truth.rows), int(share * len(truth.rows)))
                    store.remove(ids)
                    truth.remove(ids)
                elif what == "upgrade":
                    dim = chance.choice(DIMS)
                    upgraded(chance, store, truth, dim, partial(chance.vectors, kind, dim=dim, scale=scale))
                else:
                    scale *= 10.0 ** chance.uniform(-15, 15) if what == "rescale" else 1.0
                    start = 0 if what == "replace" else len(truth.rows)
                    names = start + chance.draw.permutation(max(1, size // step))
                    items = [Item(f"item {name:05d}", label=f"class {name % 5}") for name in names]
                    vectors = chance.vectors(kind, len(items), dim, scale)
                    store.put(items, vectors)
                    truth.put(items, vectors)
                truth.check_kept(store)
                ask(chance, store, truth, chance.vectors(kind, chance.choice((1, 2, 9)), dim, scale))


def upgraded(chance: Chance, store: SqliteStore, truth: Truth, dim: int, vectors_of: Callable[[int], Vectors]) -> None:
    """Another generation, whose vectors are mapped in part, answers; half of those are settled, some at a time."""
    names = sorted(truth.rows)
    rows = dict(zip(names, vectors_of(len(names)) if names else (), strict=True))
    new = store.generations.begin(replace(store.identity, dim=dim))
    real = set(chance.sample(names, chance.randint(0, len(names))))
    for some, mapped in ((sorted(real), False), (sorted(rows.keys() - real), True)):
        for part in parts(some):
            vectors = np.stack([rows[name] for name in (*part, part[0])])
            store.generations.fill(new, [*store.items(part), Item("gone")], vectors, mapped)
    right(store.generations.filled(new)[0] == sorted(real), "mapped items are taken for embedded ones")
    right(store.generations.switch(new.generation) == 0, "items have no vector after all were filled")
    truth.switch(rows, rows.keys() - real)
    for part in parts(chance.sample(sorted(truth.mapped), len(truth.mapped) // 2)):
        settled = dict(zip(part, vectors_of(len(part)), strict=True))
        vectors = np.stack([*settled.values(), settled[part[0]]])
        store.generations.settle(new.generation, [*part, "gone"], vectors)
        truth.settle(settled)


def parts(names: list[str]) -> list[list[str]]:
    return [names[start : start + 300] for start in range(0, len(names), 300)]


def ask(chance: Chance, store: SqliteStore, truth: Truth, queries: Vectors) -> None:
    """As they are, or far shorter or longer than what is in the index; with a condition, for things."""
    if not truth.rows:
        right(not store.search(queries[:1], 3)[0].hits, "hits in an empty index")
        return
    if chance.random() < 0.3:
        factor = 10.0 ** chance.uniform(-20, 20)
        queries = np.clip(factor * queries.astype(np.float64), -LONGEST, LONGEST).astype(np.float32)
    queries = np.concatenate([queries, truth.rows[chance.choice(list(truth.rows))][0][None]])
    k, label = chance.choice((1, 3, 10, 50, 400)), chance.choice((None, None, "class 1"))
    where = filters.parse(None if label is None else f"label={label}")
    if chance.random() < 0.2:
        for query in queries:
            found = ThingSearch(store, "label", query[None], k, where=where).found()
            best = [(thing.photos[0].id, thing.score) for thing in found.things]
            truth.compare(best, found.certified, query, k, label, things=True)
        return
    for query, answer in zip(queries, store.search(queries, k, where), strict=True):
        truth.check(answer, query, k, label)


def caches_hold(outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    outcomes.attempt_each(first, count, lambda number: cache_trial(number, place / "caches"))


@lru_cache(maxsize=1)
def cached(number: int, place: Path) -> tuple[Truth, Vectors]:
    """An index of a few segments with removed items, and whole copies of its cache."""
    chance = Chance(number)
    shutil.rmtree(place, ignore_errors=True)
    geometry, dim = chance.choice(GEOMETRIES), chance.choice((1, 8, 33))
    truth = Truth(geometry)
    with closing(SqliteStore.create(place / "index", Identity(None, geometry, dim))) as store:  # type: ignore[arg-type]
        for size in chance.choice(((60,), (300, 40), (100, 30, 5))):
            items = [Item(f"item {len(truth.rows) + row:05d}") for row in range(size)]
            vectors = chance.vectors("random", size, dim, 1.0)
            store.put(items, vectors)
            truth.put(items, vectors)
            store.search(vectors[:1], 1)  # a segment of its own
        ids = chance.sample(list(truth.rows), 4)
        store.remove(ids)
        truth.remove(ids)
        queries = chance.vectors("random", 3, dim, 1.0)
        store.search(queries, 5)
    shutil.copytree(place / "index" / "cache", place / "whole")
    return truth, queries


def cache_trial(number: int, place: Path) -> None:
    """One to three flipped bits in one file, or a file that is cut off: the answer is right."""
    truth, queries = cached(number // TOGETHER, place)
    chance, cache = random.Random(number), place / "index" / "cache"
    shutil.rmtree(cache)
    shutil.copytree(place / "whole", cache)
    file = chance.choice(sorted(file for file in cache.rglob("*") if file.is_file() and file.stat().st_size))
    content = bytearray(file.read_bytes())
    for _ in range(chance.choice((1, 1, 1, 3))):
        content[chance.randrange(chance.choice((len(content), min(len(content), 200))))] ^= 1 << chance.randrange(8)
    file.write_bytes(content if chance.random() < 0.9 else content[: chance.randrange(len(content))])
    with closing(SqliteStore(place / "index")) as store:
        for query, answer in zip(queries, store.search(queries, 5), strict=True):
            truth.check(answer, query, 5)


def strangers_hold(outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    outcomes.attempt_each(first, count, lambda number: stranger_trial(number, place / "strangers"))


@lru_cache(maxsize=1)
def received(place: Path) -> Path:
    """An index with a model, pictures, columns and marks, in the middle of an upgrade, and the next."""
    model = Model.create(Architecture("conv4", {"channels": 1, "width": 32}, dim=4), seed=1)
    calibration = Calibration(0.95, 0.9, 0.5, 0.97, (0.9, 1.0), 0.5, 6, 20, 30, 1, "2026-01-01", "index")
    with closing(Index.create(place / "template", model)) as index:
        chance, names = Chance(0), [f"item {row}" for row in range(30)]
        items = [
            Item(name, f"{row}.jpg", f"class {row % 3}", {"price": row}, "/photos", mapped=row % 2 == 0)
            for row, name in enumerate(names)
        ]
        pictures = {"item 3": b"\xff\xd8\xff\xe0picture"}
        index.store.put(items, chance.vectors("random", 30, 4, 1.0), pictures)
        for name, text in (
            ("calibration", json.dumps(calibration.as_json())),
            ("quality", json.dumps(Quality(flip=True).as_json())),
            (UPGRADE, json.dumps(asdict(MapChoice("ridge", 60, 0.5, 0.8, {"ridge": 0.7, "orthogonal": 0.6})))),
            ("reference", json.dumps(ordinary(chance).as_json())),
            ("watch 1", json.dumps([asdict(Day("2026-01-01"))])),
            (hits.HITS, json.dumps({"item 2": 3})),
        ):
            index.store.documents.write(name, text)
        new = index.store.generations.begin(replace(index.identity, fingerprint="ab" * 16, dim=3))
        index.store.generations.fill(new, items[:9], chance.vectors("random", 9, 3, 1.0), mapped=True)
        index.store.marks.add(Mark("query", "class 1", "item 3", True), b"\xff\xd8\xff\xe0query")
        index.ready()
        _ = index.model
    used(place / "template")
    return place / "template"


def ordinary(chance: Chance) -> Reference:
    """What ordinary queries look like in such an index."""
    vectors = chance.vectors("random", 60, 4, 1.0)
    found = reference(vectors, vectors, [0.9] * 60, [f"class {row % 20}" for row in range(60)])
    assert found is not None
    return found


def stranger_trial(number: int, place: Path) -> None:
    """A cell, a bit or a file of the index is another: it answers or refuses, and touches nothing beside its folder."""
    chance, index, own = random.Random(number), place / "index", place / "own"
    for folder in (index, own):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(received(place), index)
    own.mkdir()
    (own / "note.txt").write_text("mine")
    chance.choice((tampered, tampered, misquoted, flipped, led_astray, led_astray, programmed))(chance, index, own)
    try:
        used(index)
    finally:
        beside = {path.relative_to(place).as_posix(): path.read_bytes() for path in own.rglob("*") if path.is_file()}
        right(beside == {"own/note.txt": b"mine"}, f"files beside the index: {sorted(beside)}")


def tampered(chance: random.Random, index: Path, _: Path) -> None:
    """Some cells of one table hold something else, as far as the table lets them."""
    with closing(sqlite3.connect(index / FILE)) as connection, connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice(tables)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        one = f"WHERE {columns[0]} = (SELECT {columns[0]} FROM {table} LIMIT 1 OFFSET {chance.randrange(rows + 1)})"
        statement = f"UPDATE OR IGNORE {table} SET {chance.choice(columns)} = ? {chance.choice((one, one, ''))}"
        with suppress(sqlite3.IntegrityError):  # a key is a whole number, whoever writes it
            connection.execute(statement, (chance.choice(HOSTILE),))


def misquoted(chance: random.Random, index: Path, _: Path) -> None:
    """One value of a document is another."""
    with closing(sqlite3.connect(index / FILE)) as connection, connection:
        known = "SELECT name, value FROM facts WHERE substr(value, 1, 1) IN ('{', '[')"
        name, text = chance.choice(connection.execute(known).fetchall())
        content = json.loads(text)
        where, value = chance.choice(list(ways(content))), chance.choice((*VALUES, math.nan, math.inf, "\ud800", "\0"))
        changed = json.dumps(with_value(content, where, value))
        connection.execute("UPDATE facts SET value = ? WHERE name = ?", (changed, name))


def flipped(chance: random.Random, index: Path, _: Path) -> None:
    content = bytearray((index / FILE).read_bytes())
    for _bit in range(chance.choice((1, 1, 10, 200))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    (index / FILE).write_bytes(content)


def programmed(chance: random.Random, index: Path, _: Path) -> None:
    with closing(sqlite3.connect(index / FILE)) as connection, connection:
        connection.execute(chance.choice(PROGRAMS))


def journal_that_names(file: Path) -> bytes:
    """What SQLite leaves of a change of several databases; it deletes the file that is named as the list of them."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), str(file).encode()
    head = (magic + struct.pack(">IIIII", 0, 0, 1, 512, 4096)).ljust(512, b"\0")
    return head + struct.pack(">I", 1) + name + struct.pack(">II", len(name), sum(name)) + magic


def led_astray(chance: random.Random, index: Path, own: Path) -> None:
    """A link to something of the reader's, a pipe or a device in the place of a file or a folder, or a journal."""
    known = sorted(path for path in index.rglob("*") if path.name != FILE)
    place = chance.choice([*known, *(index / f"{FILE}{part}" for part in BESIDE)])
    shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    kind = chance.choice(("folder", "note", "pipe", "device", "loop", "journal"))
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "journal":
        place.write_bytes(journal_that_names((own / "note.txt").resolve()))
    else:
        place.symlink_to({"folder": own, "note": own / "note.txt", "device": Path("/dev/zero"), "loop": place}[kind])


def used(place: Path) -> None:
    """What a reader would do with an index, and a writer."""
    with closing(Index.open(place)) as index:
        for query in ("item 3", np.eye(1, 4, dtype=np.float32)[0]):
            search_page(index, [("query", [None], index.search(query, 5, where="price<20", group="label"))])
        index.search(np.arange(2352, dtype=np.uint8).reshape(28, 28, 3), 5)
        watched(index)
        describe(index)
        index.store.check()
        hits.note(index.store, Counter(["item 4"]))
        right(all(item.mapped for item in hits.first(index.store)), "an item that is not mapped is embedded again")
        mapped = index.store.generations.mapped(3)
        index.store.generations.settle(
            index.identity.generation, [item.id for item in mapped], index.store.vectors([item.id for item in mapped])
        )
        upcoming = index.store.generations.upcoming()
        if upcoming is not None:
            index.store.generations.filled(upcoming)
            right(index.store.generations.switch(upcoming.generation) > 0, "a generation without all vectors answers")
        for items, _ in index.store.scan():
            [(thumbnail(index.store, item), item_form(item).model_dump_json()) for item in items]
        Overview(index, Settings(place)).form()
        labels(index.store, place / "pictures")
        _ = index.model
        index.store.put([Item("new", label="class 1", columns={"price": 3})], np.eye(1, 4, dtype=np.float32))
        right(index.search("new", 1).hits[0].id != "new", "an item finds itself")
        index.store.marks.remove(index.store.marks.add(Mark("other", None, "new", False)))
        index.remove(["new"])


def watched(index: Index) -> None:
    """What a server looks at beside an answer, and tells of it."""
    watcher = Watcher(index, 0, 2, keeps=True)
    watcher.answered("query", np.eye(1, 4, dtype=np.float32), index.search("item 3", 1))
    watcher.keep()
    watcher.form().model_dump_json()
    watcher.text()
