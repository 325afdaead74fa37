"""Another model without embedding everything first: what answers meanwhile, in which order items follow, kills."""

import json
import os
import signal
from collections import Counter
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.models import Architecture, Model
from lookalike.search import Index
from lookalike.search.adding import sources
from lookalike.search.adding.encoding import Encoding
from lookalike.search.adding.generation import renew
from lookalike.search.adding.update import update
from lookalike.search.model_copy import identity_of
from lookalike.search.status import describe
from lookalike.search.stores import copying, places
from lookalike.search.upgrading import hits
from lookalike.search.upgrading.upgrade import upgrade
from tests.cli.processes import Death, Forked, arm
from tests.search.conftest import CLASSES, photo

SAMPLE, EACH = 60, 35
KILLS = int(os.environ.get("LOOKALIKE_KILLS", "4"))
PLACES = {
    "folder": "lookalike.search.stores.sqlite.filling:SqliteGenerations",
    "postgres": "lookalike.search.stores.postgres.filling:PostgresGenerations",
}
DEATHS = [  # the first ones meet every part of the work
    ("fill", 2, False),
    ("switch", 1, True),
    ("settle", 1, True),
    ("fill", 1, False),
    ("begin", 1, False),
    ("begin", 1, True),
    ("fill", 1, True),
    ("fill", 2, True),
    ("switch", 1, False),
    ("settle", 1, False),
    ("settle", 2, False),
    ("settle", 2, True),
    ("unfilled", 1, False),
    ("unfilled", 2, True),
    ("unfilled", 3, True),
    ("filled", 1, True),
    ("filled", 2, True),
    ("mapped", 1, True),
    ("mapped", 3, True),
    ("mapped_count", 1, True),
]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    root = tmp_path_factory.mktemp("data") / "many"
    for label in CLASSES:
        (root / label).mkdir(parents=True)
        for number in range(EACH):
            photo(label, number, side=20).save(root / label / f"{number:02}.png")
    return root


@pytest.fixture(scope="module")
def second():
    return Model.create(Architecture("conv4", {"channels": 3}, dim=24), seed=5)


@pytest.fixture(scope="module")
def first_index(many, model, tmp_path_factory):
    """Where the others are copied from: its photos are embedded once."""
    made = Index.create(tmp_path_factory.mktemp("first") / "index", model)
    made.add(many)
    yield made
    made.close()


@pytest.fixture(scope="module")
def real(first_index, second):
    """The vectors of the second model, by id."""
    ids = [item.id for item in first_index.store.listed()]
    paths = [item.path for item in first_index.store.listed()]
    return dict(zip(ids, second.encode(paths).numpy(), strict=True))


def copied(first_index, place):
    store = places.created(place, first_index.identity)
    copying.copy(first_index.store, store)
    return Index(store, place)


@pytest.fixture(params=PLACES)
def kind(request):
    return request.param


@pytest.fixture
def index(kind, first_index, tmp_path, request):
    place = tmp_path / "index" if kind == "folder" else request.getfixturevalue("new_address")()
    with closing(copied(first_index, place)) as made:
        yield made


class StopError(Exception):
    pass


def stopping(part, calls=1):
    """A stage that stops the work at some call of the progress of a part."""
    left = [calls]

    def progress(done, total):
        assert 0 <= done <= total
        left[0] -= 1
        if not left[0]:
            raise StopError

    return lambda name: progress if part in name else None


def part_way(index, model, calls=1):
    with pytest.raises(StopError):
        upgrade(index, model, sample=SAMPLE, stage=stopping("again", calls))


def vectors_of(store):
    return {
        item.id: (item.mapped, vector)
        for items, block in store.scan()
        for item, vector in zip(items, block, strict=True)
    }


def check_spaces(index, first_index, second, real):
    """Every vector is what its generation says it is."""
    assert index.store.check() == []
    kept = vectors_of(index.store)
    assert kept.keys() == real.keys()
    old = index.identity.fingerprint == first_index.identity.fingerprint
    assert old or index.identity.fingerprint == second.fingerprint
    expected = {id_: vector for id_, (_, vector) in vectors_of(first_index.store).items()} if old else real
    for id_, (mapped, vector) in kept.items():
        assert np.allclose(vector, expected[id_], atol=1e-5) != mapped
    assert not old or not index.store.generations.mapped_count()


def test_the_new_model_answers_while_items_are_embedded_again(index, first_index, second, real, held_out):
    index.store.documents.write("calibration", "{}")
    part_way(index, second)
    mapped = index.store.generations.mapped_count()
    assert mapped == len(real) - SAMPLE - 128  # one batch
    check_spaces(index, first_index, second, real)
    assert index.model.fingerprint == second.fingerprint
    answers = [index.search(held_out / label / "100.png", k=5) for label in CLASSES]
    assert (
        np.mean([hit.label == label for label, found in zip(CLASSES, answers, strict=True) for hit in found.hits]) > 0.9
    )
    assert {answer.verdict for answer in answers} == {"uncalibrated"}
    words = describe(index)["upgrade"]
    assert words.startswith(f"{len(real) - mapped:,} of {len(real):,} items embedded, the others mapped (")
    assert words.endswith("lookalike upgrade continues")
    with pytest.raises(UserError, match="let lookalike upgrade finish"):
        index.calibrate()
    result = upgrade(index, second, sample=SAMPLE)
    assert (result.embedded, result.gone, result.choice.sample) == (mapped, [], SAMPLE)
    assert result.choice.kind in result.choice.mapped
    check_spaces(index, first_index, second, real)
    assert index.store.generations.mapped_count() == 0
    assert "upgrade" not in describe(index)
    with pytest.raises(UserError, match="the index has the vectors of this model already"):
        upgrade(index, second)


def die(place, model, death):
    arm(death)
    with closing(Index.open(place)) as index:
        upgrade(index, Model.load(model), sample=SAMPLE)


@pytest.mark.slow
def test_every_kill_is_survived(kind, first_index, second, real, tmp_path, request):
    """LOOKALIKE_KILLS=20: at every call of the store that matters, before and after it."""
    second.save(tmp_path / "model")
    for trial, (name, call, after) in enumerate(DEATHS[:KILLS]):
        place = tmp_path / f"index {trial}" if kind == "folder" else request.getfixturevalue("new_address")()
        with closing(copied(first_index, place)) as index:
            child = Forked(die, place, tmp_path / "model", Death(PLACES[kind], name, call, after))
            assert child.wait(120) == -signal.SIGKILL, (name, call, after)
            check_spaces(index, first_index, second, real)
            upgrade(index, second, sample=SAMPLE)
            check_spaces(index, first_index, second, real)
            assert (index.identity.generation, index.store.generations.mapped_count()) == (2, 0)


def test_what_a_map_keeps_is_told_at_the_switch(index, second):
    reported, calls = [], iter(range(100))

    def stage(name):
        reported.append(name)
        return (lambda *_: stop()) if "again" in name and not next(calls) else None

    def stop():
        raise StopError

    def accepted(choice, before):
        reported.append((choice.sample, before, index.identity.fingerprint == second.fingerprint))

    parts = ["embedding a sample by the new model", "mapping the other items", "embedding mapped items again"]
    with pytest.raises(StopError):
        upgrade(index, second, sample=SAMPLE, stage=stage, accepted=accepted)
    assert reported == [*parts[:2], (SAMPLE, False, True), parts[2]]
    reported.clear()
    upgrade(index, second, sample=2 * SAMPLE, least=2, stage=stage, accepted=accepted)
    assert reported == [(SAMPLE, True, True), parts[2]]


def test_a_map_that_keeps_too_little_is_refused(index, first_index, second, real):
    index.store.documents.write("calibration", "{}")
    with pytest.raises(UserError, match=r"keeps \d+% of the new model's recall@10 on a sample of 60 items"):
        upgrade(index, second, least=1.5, sample=SAMPLE)
    check_spaces(index, first_index, second, real)
    assert index.identity.generation == 1
    assert index.store.documents.read("calibration") == "{}"
    assert renew(index, second) == []  # the sample is not embedded twice
    check_spaces(index, first_index, second, real)


def test_what_searches_have_found_comes_first(index, second, real):
    part_way(index, second)
    wanted = [item.id for item in index.store.generations.mapped(100)][-3:]
    hits.note(index.store, Counter({wanted[0]: 1, wanted[1]: 5, "gone": 9}))
    hits.note(index.store, Counter({wanted[2]: 3}))
    assert [item.id for item in hits.first(index.store)] == [wanted[1], wanted[2], wanted[0]]
    part_way(index, second)
    assert [item.mapped for item in index.store.items(wanted)] == [False] * 3
    assert index.store.generations.mapped_count() == len(real) - SAMPLE - 128 - 3
    hits.note(index.store, Counter({wanted[0]: 1}))
    assert hits.first(index.store) == []
    upgrade(index, second)
    assert index.store.documents.read(hits.HITS) is None


@pytest.mark.parametrize("drop", [False, True])
def test_items_without_a_picture_stay_mapped_or_go(tmp_path, many, model, second, drop):
    with closing(Index.create(tmp_path / "index", model)) as index:
        for label in CLASSES:
            (tmp_path / label).mkdir()
            for file in sorted((many / label).iterdir())[:15]:
                (tmp_path / label / file.name).write_bytes(file.read_bytes())
        index.add([*tmp_path.glob("*/*.png")])
        for file in list(tmp_path.glob("*/07.png")):
            file.unlink()
        result = upgrade(index, second, sample=SAMPLE, drop_missing=drop)
        assert len(result.gone) == 6
        assert (len(index), index.store.generations.mapped_count()) == ((84, 0) if drop else (90, 6))
        if not drop:
            assert describe(index)["upgrade"] == "done; 6 items whose pictures are gone keep a mapped vector"
            assert upgrade(index, second).gone == result.gone  # it looks for them again


def test_an_update_keeps_the_sign_with_the_vector(index, second, tmp_path):
    part_way(index, second)
    same, edited, changed = index.store.generations.mapped(3)
    other = tmp_path / "other.png"
    photo("figs", 77).save(other)
    table = tmp_path / "table.csv"
    table.write_text(f"path,label\n{same.path},{same.label}\n{edited.path},new\n{other},figs\n")
    index.store.put([replace(changed, path=str(other))], index.store.vectors([changed.id]))
    result = index.add(table)
    assert (result.added, result.changed) == (0, 3)  # of one only the root has changed
    items = index.store.items([same.id, edited.id, changed.id])
    assert [(item.label, item.mapped) for item in items] == [(same.label, True), ("new", True), ("figs", False)]


def test_photos_that_come_in_at_the_switch_are_not_kept_with_old_vectors(index, model, second, tmp_path):
    photo("figs", 77).save(tmp_path / "new.png")

    class Slow(Encoding):
        def of_ready(self, inputs):
            vectors = super().of_ready(inputs)
            upgrade(index, second, sample=SAMPLE)
            return vectors

    listing = sources.listing(tmp_path / "new.png")
    with pytest.raises(UserError, match="has since moved on to another model"):
        update(index.store, listing, lambda: Slow(model, "torch"), index.identity.generation)
    assert index.store.check() == []
    assert index.store.items([entry.item.id for entry in listing.entries]) == []
    assert index.add(tmp_path / "new.png").added == 1


def test_an_item_that_is_embedded_between_two_looks_of_an_update_is_not_mapped_again(index, second, tmp_path):
    part_way(index, second)
    last = index.store.generations.mapped(100)[-1]
    photo("figs", 77).save(tmp_path / "new.png")

    class Slow(Encoding):
        def of_ready(self, inputs):
            upgrade(index, second, sample=SAMPLE)
            return super().of_ready(inputs)

    listing = sources.listing([last.path, tmp_path / "new.png"])
    update(index.store, listing, lambda: Slow(second, "torch"), index.identity.generation)
    assert index.store.generations.mapped_count() == 0


def test_an_upgrade_after_half_a_new_generation_learns_from_a_sample_of_it(index, first_index, second, real):
    new = index.store.generations.begin(identity_of(second))
    items = index.store.generations.unfilled(2, 150)
    index.store.generations.fill(new, items, np.stack([real[item.id] for item in items]))
    assert upgrade(index, second, sample=SAMPLE).choice.sample == SAMPLE
    check_spaces(index, first_index, second, real)


def test_an_upgrade_overtaken_by_another_stops(index, second):
    third = Model.create(Architecture("conv4", {"channels": 3}, dim=24), seed=7)

    def overtaken(part):
        if "again" in part:
            renew(index, third)

    with pytest.raises(UserError, match="has since moved on to another model"):
        upgrade(index, second, sample=SAMPLE, stage=overtaken)
    assert (index.identity.fingerprint, index.store.generations.mapped_count()) == (third.fingerprint, 0)
    assert index.store.check() == []


def test_a_copy_is_upgraded_further(index, second, tmp_path):
    part_way(index, second)
    with closing(copied(index, tmp_path / "copy")) as copy:
        assert copy.store.generations.mapped_count() == index.store.generations.mapped_count() > 0
        assert describe(copy)["upgrade"] == describe(index)["upgrade"]
        upgrade(copy, second)
        assert copying.digest(copy.store) != copying.digest(index.store)
        upgrade(index, second)
        assert copying.digest(copy.store) == copying.digest(index.store)


def test_a_third_model_on_the_way(index, second):
    part_way(index, second)
    third = Model.create(Architecture("conv4", {"channels": 3}, dim=8), seed=7)
    assert renew(index, third) == []
    assert (index.identity.dim, index.store.generations.mapped_count()) == (8, 0)
    assert "upgrade" not in describe(index)


def test_forgetting_leaves_no_name_of_a_hit(tmp_path, first_index, second):
    with closing(copied(first_index, tmp_path / "index")) as index:
        part_way(index, second)
        id_ = index.store.generations.mapped(1)[0].id
        hits.note(index.store, Counter({id_: 1}))
        assert json.loads(index.store.documents.read(hits.HITS)) == {id_: 1}
        index.forget([id_])
        assert not any(id_.encode() in file.read_bytes() for file in (tmp_path / "index").glob("index.sqlite*"))
        hits.note(index.store, Counter({id_: 1}))
        assert index.store.documents.read(hits.HITS) is None


CHOICE = {"kind": "ridge", "sample": 60, "old": 0.5, "new": 0.8, "mapped": {"ridge": 0.7}}
NO_CHOICES = (
    "[]",
    "{",
    "3",
    "null",
    "[" * 100_000,
    *(
        json.dumps(CHOICE | change)
        for change in (
            {"kind": "evil"},
            {"kind": ["ridge"]},
            {"kind": "orthogonal"},
            {"mapped": {}},
            {"mapped": {"ridge": "x"}},
            {"mapped": [0.7]},
            {"sample": 1e999},
            {"sample": "60"},
            {"old": 10**400},
            {"new": float("nan")},
            {"more": 1},
        )
    ),
)
NO_HITS = ("[]", "{", "3", '{"a": 1e999}', '{"a": "x"}', '{"a": [1]}', '{"\\ud800": 1, "a\\u0000b": 1}', "[" * 100_000)


@pytest.mark.parametrize("at", ["folder", "postgres"])
def test_what_an_index_says_of_its_upgrade_may_come_from_anywhere(at, request, tmp_path, first_index, second):
    target = tmp_path / "index" if at == "folder" else request.getfixturevalue("new_address")()
    with closing(copied(first_index, target)) as index:
        part_way(index, second)
        for text in NO_CHOICES:
            index.store.documents.write(copying.UPGRADE, text)
            for work in (lambda: upgrade(index, second), lambda: describe(index)):
                with pytest.raises(UserError, match="upgrade record is damaged"):
                    work()
        item = index.store.generations.mapped(1)[0].id
        for text in NO_HITS:
            index.store.documents.write(hits.HITS, text)
            assert hits.first(index.store) == []
            hits.note(index.store, Counter({item: 1}))
            assert [found.id for found in hits.first(index.store)] == [item]
        index.store.documents.write(hits.HITS, json.dumps({item: int("9" * 4000)}))
        hits.note(index.store, Counter({item: 1}))
        assert [found.id for found in hits.first(index.store)] == [item]


def test_an_index_without_a_model_has_nothing_to_map_from(tmp_path, second):
    with closing(Index.create(tmp_path / "index", dim=3)) as index, pytest.raises(UserError, match="has no model"):
        upgrade(index, second)
