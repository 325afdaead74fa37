"""What an index was told it keeps: through kill -9, damage to its cache, another writer, a full disk."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search.items import Identity, Item
from lookalike.search.stores.sqlite.store import FILE, SqliteStore
from lookalike.search.things import ThingSearch
from tests.attacks.disks import small_disk
from tests.cli.processes import Forked
from tests.search.brute import Brute, on, same, same_things, some_items

DIM = 8
KILLS = int(os.environ.get("LOOKALIKE_KILLS", "10"))


def write(place, seed, log):
    """Change an index for ever, and say so after each change."""
    store, draw = SqliteStore(place), np.random.default_rng(seed)
    with log.open("w") as lines:
        say = partial(print, file=lines, flush=True)
        for turn in count():
            width = store.identity.dim
            if turn % 4 == 3:
                store.remove([f"{seed}-{turn - 1}-{row}" for row in range(10)])
                say("removed", turn - 1)
            else:
                vectors = draw.standard_normal((20, width)).astype(np.float32)
                items = [Item(f"{seed}-{turn}-{row}", columns={"sku": f"{turn}-{row % 6}"}) for row in range(20)]
                store.put(items, vectors)
                say("added", turn)
            if turn % 5 == 0:
                store.search(draw.standard_normal((1, width)).astype(np.float32), 3)
            if turn % 7 == 6:
                store.documents.write("calibration", str(turn))
                say("calibrated", turn)
            if turn % 16 == 15:
                store.compact()
                say("compacted", turn)
            if turn % 11 == 10:
                new = store.generations.begin(Identity("g", "none", 8))
                while items := store.generations.unfilled(new.generation, 100):
                    vectors = draw.standard_normal((len(items), 8)).astype(np.float32)
                    store.generations.fill(new, items, vectors)
                assert store.generations.switch(new.generation) == 0
                say("switched", new.generation)


@pytest.fixture
def store(tmp_path):
    made = SqliteStore.create(tmp_path / "index", Identity("f", "none", DIM))
    yield made
    made.close()


def killed(place, seed, lines, delay):
    """A writer that is killed some time after some lines; what it had acknowledged."""
    log = place.parent / f"acknowledged by {seed}"
    log.touch()
    writer = Forked(write, place, seed, log)
    while len(log.read_text().splitlines()) < lines:
        assert writer.poll() is None
        time.sleep(0.002)
    time.sleep(delay)  # also inside a commit
    writer.kill()
    assert writer.wait() == -signal.SIGKILL
    return [tuple(line.split()) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.slow
def test_every_acknowledged_change_survives_kill_9(store):
    """Adds, removals, new generations, compaction and calibration; LOOKALIKE_KILLS=50 repeats it 50 times."""
    draw = np.random.default_rng(0)
    for seed in range(KILLS):
        acknowledged = killed(store.folder, seed, int(draw.integers(1, 40)), float(draw.uniform(0, 0.05)))
        again = SqliteStore(store.folder)
        ids = {item.id for item in again.listed()}
        for what, number in acknowledged:
            rows = [f"{seed}-{number}-{row}" in ids for row in range(20)]
            removed = ("removed", number) in acknowledged
            assert what != "added" or all(rows[10:])
            assert what != "added" or removed or all(rows[:10]) or int(number) % 4 == 2  # its removal was under way
            assert what != "removed" or not any(rows[:10])
            assert what != "switched" or again.identity.generation >= int(number)
            assert what != "calibrated" or int(again.documents.read("calibration")) >= int(number)
        brute = Brute("none")
        for items, vectors in again.scan():
            brute.put(items, vectors)
        query = draw.standard_normal((1, DIM)).astype(np.float32)
        assert same(again.search(query, 7)[0], brute.search(query[0], 7))
        assert same_things(ThingSearch(again, "sku", query, 7, 2).found(), brute.things(query, 7, "sku", 2))
        assert again.check() == []
        again.close()


def filled(store, number=200):
    draw = np.random.default_rng(1)
    items, vectors = some_items(number, draw=draw), on("none", draw.standard_normal((number, DIM)))
    store.put(items, vectors)
    brute = Brute("none")
    brute.put(items, vectors)
    return brute, vectors


@pytest.mark.parametrize(
    "name", ["items.npy", "vectors.npy", "keys.npy", "offsets.npy", "segment.json", "segments.json"]
)
@pytest.mark.parametrize("harm", ["flip", "truncate", "delete", "pipe"])
def test_a_damaged_cache_heals_itself(store, name, harm):
    brute, vectors = filled(store)
    store.search(vectors[:1], 3)
    (file,) = list((store.folder / "cache").rglob(name))
    content = bytearray(file.read_bytes())
    if harm == "delete":
        file.unlink()
    elif harm == "pipe":
        file.unlink()
        os.mkfifo(file)
    elif harm == "truncate":
        file.write_bytes(content[: len(content) // 2])
    else:
        content[-9] ^= 0x40
        file.write_bytes(content)
    again = SqliteStore(store.folder)
    assert same(again.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
    again.close()


def test_a_cache_of_another_history_is_not_used(store, tmp_path):
    """A backup that is put back has the same number of changes, but not the same changes."""
    filled(store, 50)
    copy = tmp_path / "copy.sqlite"
    store.backup(copy)
    draw = np.random.default_rng(5)
    store.put(some_items(10, start=900), draw.standard_normal((10, DIM)).astype(np.float32))
    store.search(np.zeros((1, DIM), np.float32), 3)
    store.close()
    for file in store.folder.glob(f"{FILE}*"):
        file.unlink()
    copy.rename(store.folder / FILE)
    again = SqliteStore(store.folder)
    vectors = draw.standard_normal((10, DIM)).astype(np.float32)
    again.put(some_items(10, start=500), vectors)
    brute = Brute("none")
    for items, rows in again.scan():
        brute.put(items, rows)
    assert same(again.search(vectors[:1], 60)[0], brute.search(vectors[0], 60))
    again.close()


def test_a_damaged_truth_is_named(store):
    filled(store)
    store.close()
    file = store.folder / FILE
    sound = file.read_bytes()
    file.write_bytes(b"no longer a database" + sound[20:])
    with pytest.raises(UserError, match=r"index\.sqlite.*damaged: restore it from a backup"):
        SqliteStore(store.folder)
    file.write_bytes(sound)
    raw = sqlite3.connect(file)
    raw.execute("DELETE FROM generations")
    raw.commit()
    raw.close()
    again = SqliteStore(store.folder)
    with pytest.raises(UserError, match=r"index\.sqlite.*damaged: restore it from a backup.*no generation answers"):
        again.search(np.ones((1, DIM), np.float32), 1)
    again.close()
    file.write_bytes(b"")  # to SQLite that is an empty database
    with pytest.raises(UserError, match=r"index\.sqlite.*not an index, or damaged: restore it from a backup"):
        SqliteStore(store.folder)


@contextmanager
def without_rights(folder):
    """As someone who may read a folder and not write to it; root becomes nobody for that."""
    root = os.geteuid() == 0
    folder.chmod(0o755 if root else 0o500)
    if root:
        os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)
        folder.chmod(0o700)


def test_a_read_only_folder_answers_and_refuses_changes():
    with tempfile.TemporaryDirectory() as above:  # nobody may not enter pytest's own folders
        Path(above).chmod(0o755)
        store = SqliteStore.create(Path(above) / "index", Identity("f", "none", DIM))
        brute, vectors = filled(store)
        store.search(vectors[:1], 5)  # whatever is loaded late is loaded now
        store.close()
        with without_rights(store.folder):
            with pytest.raises(PermissionError):
                (store.folder / "new").touch()
            again = SqliteStore(store.folder)
            assert same(again.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
            with pytest.raises(UserError, match="cannot be written"):
                again.remove(["item-000001"])
            again.close()


@contextmanager
def readable_index():
    """An index in a folder that nobody else may write to, and that everybody may read."""
    with tempfile.TemporaryDirectory() as above:  # nobody may not enter pytest's own folders
        Path(above).chmod(0o755)
        store = SqliteStore.create(Path(above) / "index", Identity("f", "none", DIM))
        try:
            brute, vectors = filled(store)
            store.search(vectors[:1], 5)  # whatever is loaded late is loaded now
            yield store, brute, vectors
        finally:
            store.close()


def test_a_reader_without_rights_sees_what_is_in_the_log():
    """The writer is at work, so that what it has acknowledged is in its log alone."""
    with readable_index() as (store, brute, vectors), without_rights(store.folder):
        again = SqliteStore(store.folder)
        assert again.count() == 200
        assert same(again.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
        with pytest.raises(UserError, match="cannot be written"):
            again.remove(["item-000001"])
        again.close()


def test_a_reader_without_rights_sees_what_comes_later():
    """It has opened an index that nobody writes to; then somebody does."""
    with readable_index() as (store, _, vectors):
        store.close()
        with without_rights(store.folder):
            again = SqliteStore(store.folder)
            assert again.count() == 200
        for start in (500, 600):
            store.put(some_items(50, start=start), vectors[:50])
            for close in (False, True):
                store.close() if close else None
                with without_rights(store.folder):
                    assert again.count() == start - 250 - (start == 600) * 50
                    assert len(again.search(vectors[:1], 1000)[0].hits) == again.count()
        again.close()


@pytest.mark.parametrize("linked", [False, True])
def test_a_log_that_cannot_be_read_is_no_empty_log(linked):
    """Copied without its index of the log, onto a disk that is not written to; maybe with a link to it elsewhere."""
    with readable_index() as (store, _, _), tempfile.TemporaryDirectory() as above:
        place, links = Path(above) / "index", Path(above) / "links"
        for folder in (place, links):
            folder.mkdir()
        for name in (FILE, f"{FILE}-wal"):
            shutil.copy(store.folder / name, place / name)
        (links / FILE).symlink_to(place / FILE)
        Path(above).chmod(0o755)
        with without_rights(place), pytest.raises(UserError, match=r"index\.sqlite-wal.* holds changes"):
            SqliteStore(links if linked else place)


def test_a_full_disk_is_one_line_and_loses_nothing(store):
    brute, vectors = filled(store)
    connection = store.database.connection()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(UserError, match="the disk is full: free some space"):
        store.put(some_items(5000, start=10_000), np.zeros((5000, DIM), np.float32))
    connection.execute("PRAGMA max_page_count = 1000000")
    assert store.count() == 200
    assert same(store.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))


def test_on_a_disk_that_is_full_nothing_is_lost_and_no_backup_is_blamed(tmp_path):
    with small_disk(tmp_path) as place:
        if place is None:
            pytest.skip("only root makes small disks")
        (place / "ballast").write_bytes(bytes(3 << 20))
        with closing(SqliteStore.create(place / "index", Identity(None, "sphere", 512))) as store:
            written, many = 0, np.ones((100, 512), np.float32)
            with pytest.raises(UserError, match="the disk is full: free some space"):  # noqa: PT012
                while written < 10_000:
                    store.put([Item(str(written + row)) for row in range(100)], many)
                    written += 100
            assert (store.count(), len(store.search(many[:1], 5)[0].hits)) == (written, 5)
            store.backup(tmp_path / "copy.sqlite")
            for refused in (
                lambda: store.compact(),
                lambda: store.backup(place / "copy.sqlite"),
                lambda: SqliteStore.restore(store.folder, tmp_path / "copy.sqlite"),
            ):
                with pytest.raises(UserError, match="the disk is full: free some space"):
                    refused()
            (place / "ballast").unlink()
            store.put([Item("later")], many[:1])
            assert (store.count(), store.check()) == (written + 1, [])


def test_readers_do_not_wait_for_a_writer(store):
    brute, vectors = filled(store)
    other = SqliteStore(store.folder)
    with store.database.writing():
        assert same(other.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
    other.close()


def test_a_second_writer_is_told(store):
    filled(store)
    other = SqliteStore(store.folder)
    other.database.connection().execute("PRAGMA busy_timeout = 50")
    with store.database.writing(), pytest.raises(UserError, match="another process is writing to it"):
        other.remove(["item-000001"])
    other.close()


def test_a_change_is_on_the_disk_before_it_is_acknowledged(store):
    """What kill -9 cannot show: every commit flushes the log to the disk."""
    connection = store.database.connection()
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_traced_commit_flushes_the_log(store, tmp_path):
    code = f"""
        import numpy as np
        from pathlib import Path
        from lookalike.search.items import Item
        from lookalike.search.stores.sqlite.store import SqliteStore
        store = SqliteStore(Path({str(store.folder)!r}))
        for turn in range(5):
            store.put([Item(f"item {{turn}}")], np.ones((1, {DIM}), np.float32))
            print("acknowledged", flush=True)
    """
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync,write", "-o", str(trace), sys.executable, "-c"]
    subprocess.run([*command, textwrap.dedent(code)], check=True, stdout=subprocess.PIPE)
    flushed = 0
    for line in trace.read_text(errors="replace").splitlines():
        flushed += "sync(" in line and "index.sqlite-wal" in line
        if "acknowledged" in line:
            assert flushed > 0, "acknowledged without a flush since the one before"
            flushed = 0


def test_facts_and_models_are_kept(store):
    store.documents.write("calibration", json.dumps({"sure": 0.9}))
    store.documents.keep_model("f", {"model.json": b"{}"})
    again = SqliteStore(store.folder)
    assert json.loads(again.documents.read("calibration")) == {"sure": 0.9}
    assert again.documents.model("f") == {"model.json": b"{}"}
    again.documents.write("calibration", None)
    assert store.documents.read("calibration") is None
    again.close()


def test_the_backup_is_a_whole_index(store, tmp_path):
    brute, vectors = filled(store)
    (tmp_path / "copy").mkdir()
    store.backup(tmp_path / "copy" / FILE)
    copy = SqliteStore(tmp_path / "copy")
    assert same(copy.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
    copy.close()


def test_check_names_what_is_wrong(store):
    filled(store)
    assert store.check() == []
    raw = sqlite3.connect(store.folder / FILE)
    raw.execute("DELETE FROM vectors_1 WHERE key = 7")
    raw.commit()
    raw.close()
    assert store.check() == ["1 item has no vector"]


def test_one_thread_closes_the_connections_of_all(store):
    filled(store)
    worker = threading.Thread(target=store.count)
    worker.start()
    worker.join()
    store.close()
    assert store.count() == 200  # opened again where it is needed


def test_threads_that_have_ended_leave_no_open_files(store):
    filled(store, 5)
    for _ in range(20):
        worker = threading.Thread(target=store.count)
        worker.start()
        worker.join()
    names = [os.path.realpath(link) for link in Path("/proc/self/fd").glob("*")]
    assert names.count(str(store.folder.resolve() / FILE)) < 5


def forked(work):
    """Begin a piece of work in a forked process; what waits for its result, or for why it has none."""
    own, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            said = str(work())
        except UserError as error:
            said = str(error)
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)

    def result():
        os.waitpid(process, 0)
        with os.fdopen(own) as pipe:
            return pipe.read()

    return result


def test_a_forked_process_loses_nothing(store):
    """SQLite believes there that it has the locks of its parent, and would write into a log that is gone."""
    filled(store, 5)
    ours, theirs = os.pipe()

    def late():
        os.read(ours, 1)
        store.put([Item("late")], np.ones((1, DIM), np.float32))
        return store.count()

    result = forked(late)
    store.close()
    other = SqliteStore(store.folder)
    other.put([Item("other")], np.ones((1, DIM), np.float32))
    os.write(theirs, b".")
    assert result() == "7"
    assert other.count() == 7
    other.close()
    for end in (ours, theirs):
        os.close(end)


def test_what_a_thread_has_open_is_not_used_in_a_fork(store):
    filled(store, 5)
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(store.count).result() == 5
        assert "this one was forked from have it open" in forked(lambda: SqliteStore(store.folder))()
        assert store.count() == 5


@pytest.mark.parametrize("time", [-1, float("nan"), float("inf"), 1e300, 10**30, "now"])
def test_an_item_was_added_at_some_time(store, time):
    with pytest.raises(UserError, match="must be in seconds since 1970"):
        store.put([Item("a", added=time)], np.ones((1, DIM), np.float32))
    assert store.count() == 0


def test_of_several_that_make_an_index_one_does(tmp_path):
    """One more was stopped while it did."""
    place = tmp_path / "new"
    place.mkdir()
    (place / f".{FILE}.7-0000.partial").write_bytes(b"half")

    def made(_):
        try:
            SqliteStore.create(place, Identity(None, "sphere", 3)).close()
            return "made"
        except UserError as error:
            return str(error)

    with ThreadPoolExecutor(4) as threads:
        said = sorted(threads.map(made, range(4)))
    assert said.count("made") == 1
    assert all("give a new folder" in each for each in said if each != "made")
    with closing(SqliteStore(place)) as store:
        assert store.check() == []


def test_space_of_what_was_removed_is_given_back(store):
    filled(store, 2000)
    store.remove([item.id for item in store.listed()][:1900])
    store.close()  # the log is in the file then
    before = (store.folder / FILE).stat().st_size
    store.compact()
    assert store.check() == []
    store.close()
    assert (store.folder / FILE).stat().st_size < before / 2


def test_a_backup_that_cannot_be_written_names_its_file(store, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(UserError, match=r"taken"):
        store.backup(tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "taken"]


def test_an_index_of_a_later_version_is_left_alone(store):
    store.documents.write("format", "99")
    with pytest.raises(UserError, match=r"has format 99, this version reads .*: update lookalike"):
        SqliteStore(store.folder)
