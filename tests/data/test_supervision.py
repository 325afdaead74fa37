"""Tables with several labels per image, with none, and of judged pairs: read, split, audited, sampled."""

import pytest
import torch

from lookalike import data
from lookalike.errors import UserError
from lookalike.label_sets import LabelSets
from lookalike.protocols import class_disjoint
from lookalike.samplers import ClassBalanced, build, names
from lookalike.targets import Pairs

TOYS = ["path,labels", "a.png,red|round", "b.png, red ", "c.png,", "d.png,round | red", "e.png,", "f.png,blue|"]


def test_a_column_labels_holds_several_or_none(pictures):
    toys = data.load(pictures.write("toys.csv", TOYS))
    assert [toys.label_names[i] for i in toys.labels.tolist()] == ["red|round", "red", "", "red|round", "", "blue"]
    assert toys.sets is not None
    assert toys.classes == 5  # the two unlabelled ones are different sets
    alike = Pairs.within(toys.supervision).positive.nonzero().tolist()
    assert alike == [[0, 1], [0, 3], [1, 0], [1, 3], [3, 0], [3, 1]]
    assert toys.present == toys.with_pairs == 2
    assert toys.summary() == "toys: 6 images, 2 shared labels"
    some = toys.subset([4, 1, 3]).dense()
    assert some.classes == 3
    assert Pairs.within(some.supervision).positive.nonzero().tolist() == [[1, 2], [2, 1]]


def test_one_label_each_is_the_dataset_it_always_was(pictures):
    several = data.load(pictures.write("a.csv", ["path,labels", "1.png,10", "2.png,9", "3.png,10"]))
    plain = data.load(pictures.write("b.csv", ["path,label", "1.png,10", "2.png,9", "3.png,10"]))
    assert several.sets is None
    assert torch.equal(several.labels, plain.labels)
    assert several.label_names == plain.label_names == ("9", "10")
    bar = data.load(pictures.write("c.csv", ["path,label", "1.png,a|b", "2.png,a"]))
    assert (bar.label_names, bar.sets) == (("a", "a|b"), None)  # in the column `label` it is part of the name


def test_labels_that_occur_together_stay_in_one_split(pictures):
    rows = [f"{n}.png,{label}" for n, label in enumerate(["a|b", "b|c", "c", "x|y", "y", "p", "p", "q|r", "r", "", ""])]
    toys = data.load(pictures.write("toys.csv", ["path,labels", *rows]))
    for seed in range(5):
        divided = data.class_disjoint(toys, {"train": 0.5, "test": 0.5}, seed=seed)
        for group in ([0, 1, 2], [3, 4], [5, 6], [7, 8]):
            assert len(set(divided.splits[group].tolist())) == 1
    for refuse in (lambda: data.halves(toys), lambda: data.class_folds(divided, 2)):
        with pytest.raises(UserError, match="needs one label per image"):
            refuse()


def test_queries_and_gallery_may_share_a_label_only(pictures):
    """The protocol asks whether labels meet, not whether sets do."""
    from lookalike.protocols import query_gallery

    rows = [
        "q.png,red|round,test,query",
        "r.png,blue|round,test,query",
        "g.png,red,test,gallery",
        "h.png,blue,test,gallery",
        *(f"{k}.png,x{k % 2},train," for k in range(4)),
    ]
    parts = query_gallery.parts(data.load(pictures.write("t.csv", ["path,labels,split,role", *rows])), 0.5, 0.0)
    assert len(parts.test) == 4


def test_labels_that_cannot_be_kept_apart_need_a_split(pictures):
    rows = [f"{k}.png,{'red' if k % 2 else 'blue'}|{'round' if k % 3 else 'flat'}" for k in range(40)]
    toys = data.load(pictures.write("toys.csv", ["path,labels", *rows]))
    with pytest.raises(UserError, match="no class can be held out of training: add a column"):
        class_disjoint.check_classes(toys)
    given = [f"{row},{'train' if k < 32 else 'test'}" for k, row in enumerate(rows)]
    parts = class_disjoint.parts(data.load(pictures.write("split.csv", ["path,labels,split", *given])), 0.5, 0.25)
    assert [len(part) for part in parts[:3]] == [24, 8, 8]  # images validate where labels cannot


PAIRS = ["left,right,same", "a.png,b.png,yes", "b.png,c.png,1", "a.png,d.png,no", "e.png,d.png,different"]


def test_judged_pairs(pictures):
    faces = data.load(pictures.write("pairs.csv", PAIRS))
    assert [faces.images.name(row) for row in range(5)] == ["a.png", "b.png", "c.png", "d.png", "e.png"]
    pairs = Pairs.within(faces.supervision)
    assert pairs.positive.nonzero().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert pairs.negative.nonzero().tolist() == [[0, 3], [3, 0], [3, 4], [4, 3]]
    alone = data.load(pictures.write("same.csv", PAIRS[:3]))
    assert torch.equal(Pairs.within(alone.supervision).negative, torch.tensor([[0, 0, 1], [0, 0, 0], [1, 0, 0]]).bool())
    moved = faces.subset([4, 3, 1, 2]).dense()
    assert Pairs.within(moved.supervision).negative.nonzero().tolist() == [[0, 1], [1, 0]]
    split = data.pairs(pictures.write("s.csv", ["left,right,same,split", "a.png,b.png,1,train", "c.png,d.png,1,test"]))
    assert split.splits.tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["left,right,same", "a.png,b.png,maybe"], "line 2 answers 'maybe': write yes or no"),
        (["left,right,same", "a.png,,1"], "line 2 names only one image"),
        (["left,right,same", "a.png,a.png,1"], "line 2 compares 'a.png' with itself"),
        (["left,right,same", "a.png,b.png,0"], "has no pair marked as the same"),
        (["left,right,same", "a.png,b.png,0", "b.png,a.png,1"], "calls 1 pairs both the same and different"),
        (["left,right,same,split", "a.png,b.png,1,train", "b.png,c.png,1,test"], "line 3 puts an image into another"),
        (["left,right,same,split", "a.png,b.png,1,tst"], "line 2 has the split 'tst'"),
        (["path,tags", "a.png,red"], "has no column label"),
        (["path,labels", ",red"], "line 2 has no path"),
    ],
)
def test_mistakes_are_one_line(pictures, lines, message):
    with pytest.raises(UserError, match=message) as error:
        data.load(pictures.write("table.csv", lines))
    assert "\n" not in str(error.value)


def test_the_audit_knows_labels_that_two_images_share(pictures):
    for name in "abcdef":
        pictures.save(f"{name}.png")
    pictures.save("g.png", pictures.pixels())
    report = data.audit(data.load(pictures.write("toys.csv", [*TOYS, "g.png,blue"])))
    assert report.usable
    assert "3 classes have pairs" in report.verdict
    assert not any("one image" in finding.kind for finding in report.findings)


SETS = LabelSets.of([{"red", "round"}, {"red"}, {"round"}, None, {"red", "blue"}, {"blue"}, None, {"green"}])


def test_batches_of_images_that_share_labels():
    sampler = ClassBalanced(SETS, batch_size=6, per_class=2, batches=60)
    pairs = Pairs.within(SETS).positive | torch.eye(8, dtype=torch.bool)
    seen = set()
    for batch in sampler:
        for first, second in zip(batch[::2], batch[1::2], strict=True):
            assert pairs[first, second]
            assert (first == second) == (first in (3, 6, 7))  # who shares nothing comes in two views
            seen.add(first)
    assert seen == set(range(8))


def test_batches_bring_judged_pairs_together(pictures):
    faces = data.load(pictures.write("pairs.csv", PAIRS))
    judged = Pairs.within(faces.supervision)
    drawn = {tuple(batch) for batch in ClassBalanced(faces.supervision, batch_size=2, per_class=2, batches=60)}
    assert {tuple(sorted(pair)) for pair in drawn} == {(0, 1), (1, 2), (0, 3), (3, 4)}
    assert all(judged.positive[pair] or judged.negative[pair] for pair in drawn)
    half = faces.subset([0, 1, 4])  # whose differing pairs have lost a side
    assert {tuple(sorted(b)) for b in ClassBalanced(half.supervision, batch_size=2, batches=40)} == {(0, 1), (2, 2)}


def test_plain_labels_give_the_batches_they_always_gave():
    labels = torch.arange(24) // 3
    plain = list(ClassBalanced(labels, batch_size=6, per_class=2, seed=4))
    sets = list(ClassBalanced([{label} for label in labels.tolist()], batch_size=6, per_class=2, seed=4))
    assert plain == sets


@pytest.mark.parametrize("name", [name for name in names() if name != "class_balanced"])
def test_samplers_that_divide_classes_refuse_sets(name):
    from lookalike.samplers import EmbeddingBank, needs_bank

    bank = EmbeddingBank(8, 4) if needs_bank(name) else None
    with pytest.raises(UserError, match="exactly one label per image"):
        build(name, labels=SETS, categories=torch.arange(8) // 4, bank=bank)
