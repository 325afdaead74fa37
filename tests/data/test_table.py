"""Tables of images."""

import csv
import subprocess
import sys

import pytest

from lookalike import data
from lookalike.data.audit.suspicious_labels import COLUMNS, write_table
from lookalike.data.formats.table import cells, guarded
from lookalike.errors import UserError


def test_all_columns_are_read(pictures):
    pictures.save("owl 1.jpg")
    file = pictures.write(
        "birds.csv",
        [
            "\ufeffLabel,path,category,split,role,group,comment",
            'owl,owl 1.jpg,night,train,,g1,"a, b"',
            "hen, sub/hen.jpg ,day,val,,g1,",
            "owl,/far/owl.jpg,,test,query,,",
            "",
            "10,x.jpg,day,,gallery,g2,",
        ],
    )
    dataset = data.table(file)
    assert list(dataset.images.paths) == ["owl 1.jpg", "sub/hen.jpg", "/far/owl.jpg", "x.jpg"]
    assert [dataset.label_names[i] for i in dataset.labels.tolist()] == ["owl", "hen", "owl", "10"]
    assert dataset.categories.tolist() == [1, 0, -1, 0]
    assert dataset.splits.tolist() == [0, 1, 2, -1]
    assert dataset.roles.tolist() == [-1, -1, 0, 1]
    assert dataset.groups.tolist() == [0, 0, -1, 1]
    assert dataset.images.open(0).decode().shape == (3, 24, 32)
    assert str(dataset.images.path(2)) == "/far/owl.jpg"


def test_tabs_and_another_root(pictures, tmp_path):
    pictures.save("a.jpg")
    file = tmp_path / "t.tsv"
    file.write_text("path\tlabel\na.jpg\t1\n")
    dataset = data.table(file, root=pictures.root)
    assert dataset.images.open(0).decode().shape == (3, 24, 32)
    assert dataset.columns() == ("labels",)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["path,lable", "a,b"], "has no column label: its first line is path, lable"),
        ([], "has no column path and no column label: its first line is empty"),
        (["path,label"], "has no rows"),
        (["path,label,Path ", "a,x,b"], "has two columns 'path'"),
        (["path,label", "a.jpg"], "line 2 has 1 cells instead of 2"),
        (["path,label", "a.jpg,x", "b.jpg,"], "line 3 has no label"),
        (["path,label", ",x"], "line 2 has no path"),
        (["path,label,split", "a,b,tset"], "line 2 has the split 'tset': use train, validation, test"),
    ],
)
def test_a_bad_table_says_where(tmp_path, lines, message):
    file = tmp_path / "t.csv"
    file.write_text("\n".join(lines))
    with pytest.raises(UserError, match=message):
        data.table(file)


def test_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    parquet.write_table(arrow.table({"path": ["a.jpg", "b.jpg"], "label": [3, 4]}), tmp_path / "t.parquet")
    assert data.table(tmp_path / "t.parquet").label_names == ("3", "4")


def test_parquet_without_pyarrow_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match="install pyarrow"):
        data.table(tmp_path / "t.parquet")


@pytest.mark.long
def test_a_million_rows_fit(tmp_path):
    """In a process of its own, for its peak memory; seconds are left to the benchmark."""
    file = tmp_path / "million.csv"
    with file.open("w") as lines:
        lines.write("path,label,category,split\n")
        for row in range(1_000_000):
            lines.write(f"images/{row % 5000:05d}/photo_{row:08d}.jpg,class {row // 10},category {row % 12},train\n")
    # on Linux a process that was forked counts the peak of its parent, too, in ru_maxrss
    peak = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
    if sys.platform.startswith("linux"):
        peak = "next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))"
    program = (
        "import resource; from lookalike import data; dataset = data.table('million.csv');"
        "assert len(dataset) == 1_000_000 and dataset.classes == 100_000;"
        "assert len(dataset.subset(dataset.labels < 50)) == 500;"
        f"print({peak})"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    unit = 1024 if sys.platform != "darwin" else 1
    assert int(run.stdout) * unit < 1_000_000_000


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-x", "@a", "'=1", "''-x", "\tx", "hen", "'hen", "a=b", ""])
def test_cells_that_a_spreadsheet_would_run_are_read_as_they_were(tmp_path, cell):
    file = tmp_path / "table.csv"
    with file.open("w", newline="") as lines:
        csv.writer(lines).writerows([["path"], [guarded(cell)]])
    assert list(cells(file)) == [["path"], [cell]]
    assert not guarded(cell).startswith(("=", "+", "-", "@", "\t", "\r"))


def test_a_table_of_suspicious_labels_holds_no_formulas(tmp_path):
    write_table([dict.fromkeys(COLUMNS, "=1+1")], tmp_path / "table.csv")
    assert list(cells(tmp_path / "table.csv")) == [list(COLUMNS), ["=1+1"] * len(COLUMNS)]
    assert "'=1+1" in (tmp_path / "table.csv").read_text()


CLASSIFIED = [
    "path,label,second,chance,similarity,verdict",
    "a.jpg,owl,hen,0.97,0.9,sure",
    "b.jpg,hen,owl,0.60,0.8,maybe",
    "c.jpg,,,0.10,0.3,unknown",
    "d.jpg,hen,owl,0.60,0.8,checked",
]


def test_guesses_of_classify_are_not_learnt(pictures):
    birds = data.load(pictures.write("birds.csv", CLASSIFIED))
    assert list(birds.images.paths) == ["a.jpg", "d.jpg"]
    assert [(problem.path, problem.kind) for problem in birds.problems] == [
        ("a.jpg", "labels given by classify"),
        ("b.jpg", "guessed labels"),
        ("c.jpg", "photos without a label"),
    ]
    kinds = {finding.kind: finding.count for finding in data.audit(birds).findings}
    assert (kinds["guessed labels"], kinds["photos without a label"]) == (1, 1)
    with pytest.raises(UserError, match="only guesses of lookalike classify"):
        data.load(pictures.write("guesses.csv", [CLASSIFIED[0], *CLASSIFIED[2:4]]))


def test_sure_labels_of_an_index_that_promises_little_are_not_learnt(pictures):
    """With few classes `sure` may mean 60%: too little to learn from."""
    rows = [
        "a.jpg,owl,hen,0.90,0.9,sure",
        "b.jpg,owl,hen,0.8999,0.9,sure",
        "c.jpg,hen,owl,0.61,0.9,sure",
        "d.jpg,hen,owl,,0.9,sure",
        "e.jpg,hen,owl,0.61,0.9,checked",
    ]
    birds = data.load(pictures.write("birds.csv", [CLASSIFIED[0], *rows]))
    assert list(birds.images.paths) == ["a.jpg", "d.jpg", "e.jpg"]  # earlier versions wrote no chances
    (finding,) = [one for one in data.audit(birds).findings if one.kind == "sure labels less likely than 90%"]
    assert (finding.count, [row["path"] for row in finding.items]) == (2, ["b.jpg", "c.jpg"])
    assert "check them" in finding.meaning
    with pytest.raises(UserError, match=r"line 2 has the chance '0,95': write a number from 0 to 1"):
        data.load(pictures.write("odd.csv", [CLASSIFIED[0], 'a.jpg,owl,hen,"0,95",0.9,sure']))


def test_a_verdict_tells_what_was_found_and_what_a_person_confirmed(pictures):
    words = ("sure", "checked", "found", "joined", "known", "likely", "")
    lines = ["path,label,verdict", *(f"{letter}.jpg,owl,{word}" for letter, word in zip("abcdefg", words, strict=True))]
    birds = data.load(pictures.write("birds.csv", lines))
    assert birds.of_origin("found").tolist() == [word in ("found", "joined") for word in words]
    assert birds.of_origin("confirmed").tolist() == [word == "checked" for word in words]
    assert birds.subset([2]).of_origin("found").tolist() == [True]
    assert data.load(pictures.write("plain.csv", [*lines[:2], lines[5]])).origins is None


def test_images_of_which_is_only_known_what_they_are_not(pictures):
    lines = ["path,label,not_label", "a.jpg,owl,", "b.jpg,owl,", "c.jpg,hen,", "d.jpg,,hen|owl", "e.jpg,,cat"]
    birds = data.load(pictures.write("birds.csv", lines))
    assert birds.undecided().tolist() == [False, False, False, True, True]
    assert (birds.present, birds.with_pairs) == (2, 1)
    assert [birds.label_names[number] for number in birds.drawn_with.tolist()[:4]] == ["owl", "owl", "hen", "owl"]
    own = int(birds.labels[3])
    different = birds.judged_pairs.opposes(birds.judged_pairs)[own]
    assert [birds.label_names[number] for number in different.nonzero().flatten().tolist()] == ["hen", "owl"]
    few = birds.subset([0, 3]).dense()
    assert few.judged_pairs.opposes(few.judged_pairs).sum() == 2  # the pair that is left, both ways
