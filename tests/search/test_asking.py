"""Several questions at once: each gets its own answer, or its own refusal."""

import numpy as np
import pytest

from lookalike.search import Index
from lookalike.search.asking import Question
from lookalike.search.filters import parse
from lookalike.search.items import Answer, Item
from lookalike.search.stores import GenerationError, UnknownItemError
from tests.search.conftest import photo

FIGS = "figs/0.png"


@pytest.fixture(scope="module")
def index(tmp_path_factory, model, photos):
    index = Index.create(tmp_path_factory.mktemp("asking") / "index", model)
    index.add(photos)
    yield index
    index.close()


def ids(answer):
    return [hit.id for hit in answer.hits]


def test_each_gets_its_own(index):
    names = {item.path.rsplit("photos/", 1)[1]: item.id for item in index.store.listed()}
    figs, bread, apple = names[FIGS], names["bread/0.png"], names["apple/0.png"]
    vector = index.store.vectors([apple])[0]
    questions = [
        Question([figs], k=3),
        Question(["nothing"]),
        Question([figs], k=5, where=parse("label=apple")),
        Question([figs], where=parse("colour=red")),
        Question([vector], k=1, generation=1),
        Question([vector], generation=7),
        Question([bread], [names["figs/1.png"]], k=4),
        Question([figs], k=2, group="label"),
        Question([vector], k=1, leave_out=[apple]),
        Question([figs], k=0),
        Question([vector[:3]]),
    ]
    answers = index.answers(questions)
    assert [hit.label for hit in answers[0].hits] == ["figs"] * 3
    assert (type(answers[1]), answers[1].id) == (UnknownItemError, "nothing")
    assert {hit.label for hit in answers[2].hits} == {"apple"}
    assert "unknown column 'colour'" in str(answers[3])
    assert ids(answers[4]) == [apple]
    assert isinstance(answers[5], GenerationError)
    assert len(answers[6].hits) == 4
    assert len({hit.label for hit in answers[7].hits}) == 2
    assert ids(answers[8]) != [apple]
    assert "k must be a" in str(answers[9])
    assert "1 vectors of 3 dimensions, expected 1 of 16" in str(answers[10])
    for question, answer in zip(questions, answers, strict=True):
        if isinstance(answer, Answer):
            assert not set(question.excluded) & set(ids(answer))
            (alone,) = index.answers([question])
            assert ids(alone) == ids(answer)


def test_a_search_is_a_question(index):
    figs, bread = (item.id for item in index.store.listed() if item.path.endswith((FIGS, "bread/0.png")))
    picture = photo("figs", 77)
    vector = index.vectors_of([picture])[0]
    for question, answer in (
        (Question([figs], k=4), index.search(figs, 4)),
        (Question([vector], [bread], k=4), index.search(picture, 4, unlike=[bread])),
        (Question([vector, figs], group="label"), index.search(picture, like=[figs], group="label")),
    ):
        assert index.answers([question]) == [answer]


def test_an_empty_index_and_one_without_a_model(tmp_path, model):
    empty = Index.create(tmp_path / "empty.index", model)
    (answer,) = empty.answers([Question([np.eye(16, dtype=np.float32)[0]], generation=1)])
    assert (answer.hits, answer.label, answer.meaning) == ([], None, "")
    bare = Index.create(tmp_path / "bare.index", dim=4)
    bare.store.put([Item("a"), Item("b", label="x")], np.eye(4, dtype=np.float32)[:2])
    (answer,) = bare.answers([Question(["a"])])
    assert (ids(answer), answer.label) == (["b"], "x")


def test_a_calibrated_index_gives_its_verdict_and_what_it_means(tmp_path, model, photos, held_out):
    index = Index.create(tmp_path / "index", model)
    index.add(photos)
    index.calibrate(held_out, precision=0.8)
    first = next(index.store.listed()).id
    answer = index.search(first, 3)
    assert answer.verdict != "uncalibrated"
    assert answer.meaning == index.calibration.meaning(answer.verdict, answer.chance)
    assert answer.label == "apple"
    others = [item.id for item in index.store.listed()]
    assert index.search(first, 3, like=others[1:2]).verdict != "uncalibrated"
    part = index.search(photo("apple", 77), 3, box=(5, 5, 20, 20))  # it may look strange though its hits are right
    assert (part.label, part.verdict, part.match) == (part.hits[0].label, "uncalibrated", None)
    assert "measured for whole photos" in part.meaning
    against = index.search(first, 3, unlike=others[-1:])  # nobody has measured that
    assert (against.label, against.verdict, against.chance) == ("apple", "uncalibrated", None)
    assert "this search also says what is not" in against.meaning
    index.close()


def test_a_search_that_meets_a_new_generation_is_embedded_by_its_model(tmp_path, model, photos):
    """The index moves on to another model between embedding and searching."""
    index = Index.create(tmp_path / "index", model)
    index.add(photos)
    asked, whole = [], index.answers

    def moved(questions):
        asked.append(questions)
        return [GenerationError()] if len(asked) == 1 else whole(questions)

    index.answers = moved
    assert len(index.search(photo("figs", 77), 3).hits) == 3
    assert len(asked) == 2
    index.close()
