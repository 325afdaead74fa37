"""An index on a real PostgreSQL: what a folder cannot show. Errors, restarts, approximate answers, replicas."""

import os
import threading
import time
from contextlib import closing, suppress
from urllib.parse import quote

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from lookalike.errors import UserError
from lookalike.search import Index, filters
from lookalike.search.items import Identity, Item
from lookalike.search.stores import StorageError, places
from lookalike.search.stores.postgres import approximate, building, schema
from lookalike.search.stores.postgres.address import addresses
from lookalike.search.stores.postgres.database import PostgresDatabase
from lookalike.search.stores.postgres.failures import FailureKind, explained, kind_of
from lookalike.search.things import ThingSearch
from tests.attacks.disks import fill_disk
from tests.attacks.servers import kill_once
from tests.fixtures.postgres_server import server
from tests.search.brute import Brute, on, same, some_items

DIM = 8


def filled(place, geometry="sphere", number=300, dim=DIM):
    draw = np.random.default_rng(3)
    store, brute = places.created(place, Identity(None, geometry, dim)), Brute(geometry)
    items, vectors = some_items(number, draw=draw), on(geometry, draw.standard_normal((number, dim)))
    store.put(items, vectors)
    brute.put(items, vectors)
    return store, brute, vectors


def raw(postgres, statement):
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        return connection.execute(statement)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("postgresql://me:secret@127.0.0.1:1/db", "the server does not answer: is it running?"),
        ("POSTGRES?index=missing", "there is no index at .* make one with lookalike index"),
        ("POSTGRES?index=Bad-Name;", "cannot be the name of an index"),
        ("POSTGRES?colour=red", "the address cannot be read"),
        ("NOBODY", "the server does not know this user"),
        ("NOWHERE", "there is no such database: make it with createdb"),
        ("POSTGRES?sslmode=nonsense", "the address cannot be read: write postgresql://user@host/database"),
        ("POSTGRES x", "the address cannot be read: write postgresql://user@host/database"),
        ("postgresql://me:s%zsecret@host/db", "the address cannot be read: write postgresql://user@host/database"),
        ("mysql://me:secret@host/db", "an index is in a folder or at an address postgresql://…, not at mysql://…"),
        ("Postgresql://me:secret@host/db", "not at Postgresql://…"),
    ],
)
def test_what_is_wrong_is_one_line_without_the_password(postgres, address, message):
    address = address.replace("POSTGRES", postgres.address)
    address = address.replace("NOBODY", postgres.address.replace("postgres@", "nobody:secret@"))
    address = address.replace("NOWHERE", postgres.address.removesuffix("postgres") + "nowhere")
    with pytest.raises(UserError, match=message) as refused:
        Index.open(address)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "password",
    [
        "se#secret",
        "12/secret",
        "se?secret",
        "12?secret",
        "a[secret",
        "a]b[secret",
        "a@secret",
        "[a]/secret",
        "a:[b]#secret",
    ],
)
def test_a_password_with_a_sign_that_ends_it_is_not_shown(password):
    for host in ("host/db", "one,two:5432/db"):
        with pytest.raises(UserError, match=r"the address cannot be read: .*user's name or password as %23") as refused:
            Index.open(f"postgresql://me:{password}@{host}")
        assert "secret" not in str(refused.value)
        (address,) = addresses(f"postgresql://me:{quote(password, safe='')}@{host}")
        assert address.shown == f"postgresql://me@{host}"
        assert conninfo_to_dict(address.url)["password"] == password


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://[::1]:5432/db",
        "postgresql://a:1,b:2/db?user=me@corp",
        "postgresql://",
        "postgresql://me@[::1],b/db",
        "postgresql:///db?host=/run",
    ],
)
def test_what_libpq_reads_is_an_address(text):
    assert [address.shown for address in addresses(text)] == [text.replace("@corp", "%40corp")]
    assert conninfo_to_dict(addresses(text)[0].url) == conninfo_to_dict(text)


def test_blanks_between_shards_are_no_part_of_them():
    assert [one.url for one in addresses("postgresql://a/x, postgresql://b/x")] == [
        "postgresql://a/x",
        "postgresql://b/x",
    ]


def test_rights_and_a_missing_extension(postgres):
    for statement in ("CREATE DATABASE bare", "CREATE ROLE guest LOGIN", "REVOKE CREATE ON DATABASE bare FROM PUBLIC"):
        raw(postgres, statement)
    bare = postgres.address.removesuffix("postgres") + "bare"
    guest = bare.replace("postgres@", "guest@")
    with pytest.raises(StorageError, match=r"may not add the extension"):
        places.created(guest, Identity(None, "sphere", DIM))
    hidden = f"{bare}?options=-c%20extension_control_path%3D/nowhere"
    with pytest.raises(StorageError, match="the server has no extension 'vector': install pgvector there"):
        places.created(hidden, Identity(None, "sphere", DIM))
    store, _, vectors = filled(bare)
    with pytest.raises(StorageError, match="this user does not have the rights for that: to make an index"):
        places.created(f"{guest}?index=other", Identity(None, "sphere", DIM))
    with pytest.raises(UserError, match='may not see the index: its owner runs GRANT USAGE ON SCHEMA "lookalike"'):
        places.opened(guest)
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute("GRANT USAGE ON SCHEMA lookalike TO guest")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA lookalike TO guest")
    reader = places.opened(guest)
    assert len(reader.search(vectors[:1], 5)[0].hits) == 5
    with pytest.raises(StorageError, match="this user does not have the rights for that"):
        reader.remove(["item-000001"])
    for one in (reader, store):
        one.close()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (psycopg.errors.DiskFull("could not extend file"), "the disk of the server is full: free some space"),
        (
            psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT"),
            "is a replica and only reads: add its primary",
        ),
        (psycopg.errors.TooManyConnections("sorry"), "has no free connection"),
        (psycopg.errors.FeatureNotSupported('extension "vector" is not available'), "install pgvector there"),
        (psycopg.errors.DataCorrupted("invalid page"), "damaged: restore them from a backup"),
    ],
)
def test_troubles_of_a_server_say_what_to_do(error, message):
    assert message in str(explained(addresses("postgresql://me:secret@db/shop")[0], error))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.FeatureNotSupported("cached plan must not change result type"), FailureKind.STALE),
        (psycopg.errors.FeatureNotSupported("something else"), FailureKind.FINAL),
        (psycopg.errors.SerializationFailure("could not serialize"), FailureKind.CONFLICT),
        (psycopg.errors.AdminShutdown("terminating connection"), FailureKind.LOST),
        (psycopg.errors.ConnectionException("gone"), FailureKind.LOST),
        (psycopg.InterfaceError("the connection is closed"), FailureKind.LOST),
        (psycopg.OperationalError("server closed the connection unexpectedly"), FailureKind.LOST),
        (psycopg.OperationalError('role "nobody" does not exist'), FailureKind.FINAL),
        (psycopg.OperationalError('FATAL: pg_hba.conf rejects connection for host "[local]"'), FailureKind.FINAL),
        (psycopg.OperationalError("failed to resolve host 'db'"), FailureKind.LOST),  # names come and go, too
        (psycopg.errors.DiskFull("could not extend file"), FailureKind.FINAL),
    ],
)
def test_which_troubles_are_worth_another_try(error, kind):
    assert kind_of(error) is kind


def too_long(connection):
    connection.execute("SET statement_timeout = 50")
    connection.execute("SELECT pg_sleep(600)")


def test_a_statement_has_a_time_limit(new_address):
    store = filled(f"{new_address()}&options=-c%20statement_timeout%3D7min")[0]
    assert store.database.plain(lambda connection: connection.execute("SHOW statement_timeout").fetchone()) == ("7min",)
    with pytest.raises(StorageError, match="took longer than the time-out of statements"):
        store.database.plain(too_long)
    store.close()


def test_a_broken_connection_is_replaced(postgres, new_address):
    store, brute, vectors = filled(new_address())
    for _ in range(3):
        raw(postgres, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lookalike'")
        assert same(store.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
        raw(postgres, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lookalike'")
        for one in (store, brute):
            one.put([Item("new")], vectors[:1])
    assert store.count() == 301
    store.close()


def test_a_forked_process_has_connections_of_its_own(new_address):
    """Two processes on one would each read the other's answers."""
    place, start = new_address(), np.ones((1, 3), np.float32)
    with closing(Index.create(place, dim=3)) as index:
        index.store.put([Item("a")], start)

        def work(name):
            for turn in range(20):
                index.store.put([Item(f"{name} {turn}")], turn * start)
                assert [item.id for item in index.store.items([f"{name} {turn}"])] == [f"{name} {turn}"]

        process = os.fork()
        if process == 0:
            status = 1
            with suppress(Exception):
                work("theirs")
                index.close()
                status = 0
            os._exit(status)
        work("ours")
        assert os.waitpid(process, 0)[1] == 0
        assert len(index) == 41


def test_a_connection_from_before_the_extension_is_not_used_again(postgres):
    """As to a replica that has not heard of it yet."""
    raw(postgres, "CREATE DATABASE early")
    early = postgres.address.removesuffix("postgres") + "early"
    with closing(PostgresDatabase(addresses(early)[0])) as database:
        database.plain(lambda connection: connection.execute("SELECT 1"))
        with psycopg.connect(early, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        vector = np.ones(2, np.float32)
        read = database.plain(lambda connection: connection.execute("SELECT %s", [vector], binary=True).fetchone()[0])
        np.testing.assert_array_equal(read, vector)


def test_two_writers_of_the_same_items_and_new_columns(new_address):
    """Collisions of ids, and of changes to the table, are repeated until they pass."""
    place = new_address()
    stores = [filled(place, number=1)[0], places.opened(place)]
    failures = []

    def write(who):
        try:
            draw = np.random.default_rng(who)
            for turn in range(15):
                items = [Item(f"i{row}", columns={f"c{turn}": who, "who": who}) for row in draw.permutation(20)]
                stores[who].put(items, on("sphere", draw.standard_normal((20, DIM))))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert stores[0].count() == 21
    assert len(stores[0].columns()) == 5 + 16 + 3
    for store in stores:
        store.close()


def test_older_tables_take_the_steps_they_lack(new_address, monkeypatch):
    place = new_address()
    store, brute, vectors = filled(place)
    store.close()
    steps = [*schema.STEPS, ("CREATE TABLE later (note text)",)]
    monkeypatch.setattr(schema, "STEPS", steps)
    again = places.opened(place)
    assert again.documents.read("format") == str(len(steps))
    again.database.plain(lambda connection: connection.execute("SELECT note FROM later"))
    assert same(again.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
    again.close()
    monkeypatch.setattr(schema, "STEPS", steps[:-1])
    with pytest.raises(UserError, match=r"has format 5, this version reads 4: update lookalike"):
        places.opened(place)


def refused(*_, **__):
    raise AssertionError("a second message to the server")


def test_one_statement_answers_and_notices_every_change(new_address, monkeypatch):
    """What a client remembers of an index is no longer true: columns, lengths, a generation, another index."""
    place = new_address()
    writer, brute, vectors = filled(place, "none")
    reader, query = places.opened(place), vectors[:1]

    def agrees(where=None, keep=lambda _: True):
        expected, right = brute.search(query[0], 5, keep), []
        for _ in range(4):  # prepared, too
            (answer,) = reader.search(query, 5, filters.parse(where))
            right += [same(answer, expected)]
            right += [hit.item.columns == brute.items[hit.id].columns for hit in answer.hits]
        return all(right)

    assert agrees()
    with monkeypatch.context() as patch:
        patch.setattr(reader.database, "read", refused)
        assert agrees()
        assert agrees({"brand": "x"}, lambda item: item.columns["brand"] == "x")
    new, far = [Item(f"new-{row}", columns={"shelf": row % 2}) for row in range(20)], 1e4 * vectors[:20]
    for one in (writer, brute):
        one.put(new, far)
    query = far[:1]
    assert agrees()
    assert agrees({"shelf": 1}, lambda item: item.columns.get("shelf") == 1)
    new, items = writer.generations.begin(Identity("other", "none", DIM)), list(writer.listed())
    ids = [item.id for item in items]
    turned = -np.stack([brute.rows[one] for one in ids])
    writer.generations.fill(new, items, turned)
    assert writer.generations.switch(2) == 0
    brute.put([brute.items[one] for one in ids], turned)
    assert agrees()
    assert reader.search(query, 1)[0].generation == 2
    writer.database.plain(lambda connection: connection.execute(f"DROP SCHEMA {writer.address.index} CASCADE"))
    writer.close()
    again, brute = places.created(place, Identity(None, "none", DIM)), Brute("none")
    others = [Item("a", columns={"shelf": "left"}), Item("b", columns={"shelf": "right"})]
    for one in (again, brute):
        one.put(others, vectors[:2])
    assert agrees()
    assert agrees({"shelf": "left"}, lambda item: item.columns["shelf"] == "left")
    for one in (again, reader):
        one.close()


def test_what_others_change_while_a_generation_is_filled(new_address):
    """Both deletions have looked for rows of the next generation before it was filled."""
    place = new_address()
    store, vectors = places.created(place, Identity(None, "sphere", DIM)), np.eye(3, DIM, dtype=np.float32)
    store.put([Item("gone"), Item("changed", label="old"), Item("same")], vectors)
    items, new = list(store.listed()), store.generations.begin(Identity("other", "sphere", DIM))
    with psycopg.connect(store.address.url, options=f"-c search_path={store.address.index},public") as other:
        other.execute("DELETE FROM items_2 WHERE id IN ('gone', 'changed')")
        store.generations.fill(new, items, vectors)
        other.execute("DELETE FROM items_1 WHERE id = 'gone'")
        other.execute("UPDATE items_1 SET key = 1000, label = 'new' WHERE id = 'changed'")
    assert store.generations.filled(new)[0] == ["same"]
    assert store.generations.switch(2) == 1
    (changed,) = store.generations.unfilled(2, 9)
    store.generations.fill(new, [changed], vectors[:1])
    assert store.generations.switch(2) == 0
    assert [(item.id, item.label) for item in store.listed()] == [("changed", "new"), ("same", None)]
    store.close()


def test_values_of_filters_are_only_values(new_address):
    store = places.created(new_address(), Identity(None, "sphere", DIM))
    texts = [
        "it's",
        "100%",
        "%s",
        "%%",
        "back\\slash",
        '"; DROP TABLE items_1; --',
        "'; DROP TABLE items_1; --",
        "ü€",
        "",
    ]
    items = [Item(str(row), columns={"text": text, "size": -row - 0.5}) for row, text in enumerate(texts)]
    vectors = on("sphere", np.random.default_rng(0).standard_normal((len(texts), DIM)))
    store.put(items, vectors)
    for row, text in enumerate(texts):
        for where in (
            {"text": text},
            {"text": [text, "no such"]},
            {"size": -row - 0.5},
            {"text": text, "size": {"<": 0}},
        ):
            assert [hit.id for hit in store.search(vectors[:1], 3, filters.parse(where))[0].hits] == [str(row)]
    assert store.search(vectors[:1], 3, filters.parse({"text": "nobody's"}))[0].hits == []
    store.close()


@pytest.mark.parametrize("geometry", ["sphere", "none"])
def test_approximate_answers_agree_with_exact_ones(new_address, geometry, monkeypatch):
    monkeypatch.setattr(approximate, "FEW", 2)  # × √2000: 89 items
    place = new_address()
    store, brute, vectors = filled(place, geometry, number=2000, dim=16)
    steps = []
    monkeypatch.setattr(building, "EVERY", 0.001)
    store.approximate(True, lambda *step: steps.append(step))
    assert steps == sorted(steps)  # nothing goes back
    assert steps[-1][0] == steps[-1][1]
    assert (200, 300) in steps  # all exact answers
    graph = store.database.read(approximate.graph_of)
    assert graph.recall >= 0.9
    assert "approximate (HNSW" in store.describe()["answers"]
    plans = store.database.read(_plan, vectors[0])
    assert "items_1_graph" in plans  # the graph answers, not a scan
    right = 0
    for query in vectors[:20]:
        exact = [one for one, _ in brute.search(query, 10)]
        hits = store.search(query[None], 10)[0].hits
        assert [hit.similarity for hit in hits] == brute.scores(query, [hit.id for hit in hits]).tolist()
        right += len({hit.id for hit in hits} & set(exact))
    assert right / 200 >= 0.9
    few = filters.parse('id<"item-000050"')  # a selective filter is exact
    keep = lambda item: item.id < "item-000050"  # noqa: E731
    assert same(store.search(vectors[:1], 10, few)[0], brute.search(vectors[0], 10, keep))
    assert len(store.search(vectors[:1], 10, filters.parse("brand=x"))[0].hits) == 10
    assert len(ThingSearch(store, "label", vectors[:1], 5).found().things) == 5
    assert same(store.search(vectors[:1], 400)[0], brute.search(vectors[0], 400))  # so many: exactly
    assert store.database.read(building._sound)
    store.approximate(False)
    assert not store.database.read(building._sound)
    assert store.describe()["answers"] == "exact"
    assert same(store.search(vectors[:1], 10)[0], brute.search(vectors[0], 10))
    store.close()


def test_every_search_has_its_width_on_whatever_connection(new_address):
    store, _, vectors = filled(new_address(), number=200)
    store.approximate(True)

    def width(connection):
        return connection.execute("SELECT current_setting('hnsw.ef_search')").fetchone()[0]

    narrow = str(store.database.read(approximate.graph_of).width)
    for k, expected in ((5, narrow), (200, "206"), (5, narrow)):
        for _ in range(2):  # alone, and in one transaction with another
            store.search(vectors[:1], k)
            assert store.database.plain(width) == expected
            store.search(vectors[:2], k)
            assert store.database.plain(width) == expected

    def undone(snapshot):
        store._memory.widen(snapshot.connection, 777)
        raise UserError("given up")

    with pytest.raises(UserError, match="given up"):
        store.database.read(undone)
    assert store.database.plain(width) == narrow  # the transaction is undone, with its setting
    store.database.plain(lambda connection: store._memory.widen(connection, 777))
    assert store.database.plain(width) == "777"
    store.close()


def test_the_graph_finds_what_half_precision_cannot_tell_apart(new_address):
    store, _, vectors = filled(new_address(), number=200, dim=16)
    alike = np.repeat(vectors[:1], 18, axis=0)
    alike[:, 0] += 2e-6 * np.random.default_rng(0).permutation(18)
    assert len(np.unique(alike.astype(np.float16), axis=0)) <= 2
    store.put([Item(f"alike-{number}") for number in range(18)], alike)
    store.approximate(True)
    query = alike[0] + np.eye(16, dtype=np.float32)[0]
    query /= np.linalg.norm(query)
    nearest = np.argsort(-(alike.astype(np.float64) @ query.astype(np.float64)))[:5]
    hits = store.search(query[None], 5)[0].hits
    assert [hit.id for hit in hits] == [f"alike-{number}" for number in nearest]
    store.close()


def test_a_search_that_finds_nothing_notices_a_change_too(new_address):
    place = new_address()
    writer = places.created(place, Identity(None, "sphere", DIM))
    reader, vectors = places.opened(place), on("sphere", np.random.default_rng(0).standard_normal((2, DIM)))
    assert reader.search(vectors[:1], 3)[0].hits == []
    writer.generations.begin(Identity("other", "sphere", DIM))
    assert writer.generations.switch(2) == 0
    assert reader.search(vectors[:1], 3)[0].generation == 2
    writer.put([Item("a", columns={"shelf": "left"})], vectors[:1])
    for shelf, hits in (("right", []), ("left", ["a"])):
        answer = reader.search(vectors[:1], 3, filters.parse({"shelf": shelf}))[0]
        assert ([hit.id for hit in answer.hits], answer.generation) == (hits, 2)
    for one in (writer, reader):
        one.close()


def _plan(snapshot, query):
    what, operator, _ = approximate.indexed(snapshot.identity)
    asked = "%s" if what == "vector" else f"%s::halfvec({snapshot.identity.dim})"
    snapshot.connection.execute("SET LOCAL enable_seqscan = off")
    statement = f"EXPLAIN SELECT key FROM items_1 ORDER BY ({what}) {operator} {asked} LIMIT 32"
    return "\n".join(row[0] for row in snapshot.connection.execute(statement, (query,)))


@pytest.mark.parametrize(
    ("geometry", "expected"),
    [
        ("sphere", ("vector::halfvec(8)", "<#>", "halfvec_ip_ops")),
        ("none", ("vector", "<->", "vector_l2_ops")),
        ("ball", ("vector::halfvec(8)", "<->", "halfvec_l2_ops")),
    ],
)
def test_a_graph_is_over_half_precision_where_no_vector_is_long(geometry, expected):
    assert approximate.indexed(Identity(None, geometry, DIM)) == expected


def test_a_closed_store_has_no_connection_left(postgres, new_address):
    clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid != pg_backend_pid()"
    before = raw(postgres, clients).fetchone()
    store = places.created(new_address(), Identity(None, "sphere", DIM))
    assert store.count() == 0
    assert raw(postgres, clients).fetchone() > before
    store.close()
    until = time.monotonic() + 20
    while raw(postgres, clients).fetchone() > before and time.monotonic() < until:
        time.sleep(0.05)
    assert raw(postgres, clients).fetchone() <= before


def test_tables_of_a_later_version_are_left_alone(new_address):
    place = new_address()
    with closing(places.created(place, Identity(None, "sphere", DIM))) as store:
        store.documents.write("format", "99")
    with pytest.raises(UserError, match=f"has format 99, this version reads {len(schema.STEPS)}: update lookalike"):
        places.opened(place)


def test_a_graph_is_built_although_nobody_watches():
    with building.Steps(None).watched(PostgresDatabase(addresses("postgresql://me@db/shop")[0]), "items_1"):
        pass
    assert list(building.Steps(None).each("abc", 1)) == ["a", "b", "c"]


def test_texts_that_no_index_of_the_server_holds_are_refused(new_address):
    store = places.created(new_address(), Identity(None, "sphere", DIM))
    for item, message in ((Item("é" * 1001), "the id 'é"), (Item("a", label="x" * 2001), "the label 'x")):
        with pytest.raises(UserError, match=f"{message}.*is longer than 2,000 bytes: shorten it"):
            store.put([item], np.zeros((1, DIM), np.float32))
    store.put([Item("é" * 1000, label="x" * 2000, columns={"text": "y" * 5000})], np.zeros((1, DIM), np.float32))
    assert store.count(filters.parse({"text": "y" * 5000})) == 1
    store.close()


def test_a_folder_needs_no_approximation(tmp_path):
    index = Index.create(tmp_path / "index", dim=DIM)
    index.approximate(False)
    with pytest.raises(UserError, match="is exact and needs no approximation"):
        index.approximate(True)
    index.close()


def test_a_commit_is_durable_whatever_the_default(new_address):
    with closing(places.created(new_address(), Identity(None, "sphere", DIM))) as store:
        show = "SELECT current_setting('synchronous_commit'), current_setting('statement_timeout')"
        assert store.database.plain(lambda connection: connection.execute(show).fetchone()) == ("on", "5min")
    place = f"{new_address()}&options=-c%20synchronous_commit%3Doff"
    with closing(places.created(place, Identity(None, "sphere", DIM))) as store:
        assert store.database.plain(lambda connection: connection.execute(show).fetchone())[0] == "on"


@pytest.mark.slow
def test_a_killed_server_loses_nothing_and_clients_recover():
    """`scripts/attack servers` kills it 20 times."""
    with server(settings=("shared_buffers=32MB", "max_connections=60")) as running:
        places.created(running.address, Identity(None, "none", 16)).close()
        for number in range(3):
            kill_once(running, number)


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_loses_nothing(postgres):
    if not fill_disk(postgres):
        pytest.skip("only root may mount a small disk, and not everywhere")


@pytest.mark.slow
def test_a_replica_answers_and_knows_what_this_process_wrote():
    with server() as primary, server(primary=primary) as replica:
        both = f"{primary.address.removesuffix('/postgres')},{replica.address.partition('@')[2]}"
        store, brute, vectors = filled(both)
        for turn in range(5):  # found at once, whether the replica has it already or not
            store.put([Item(f"new-{turn}")], vectors[:1])
            assert store.items([f"new-{turn}"])
        where = "SELECT pg_is_in_recovery()"
        read = store.database.read
        while not read(lambda snapshot: snapshot.connection.execute(where).fetchone()[0]):
            pass  # it catches up
        store.remove([f"new-{turn}" for turn in range(5)])
        assert same(store.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
        only = places.opened(replica.address)
        with pytest.raises(StorageError, match="is a replica and only reads"):
            only.remove(["item-000001"])
        primary.stop()
        assert same(only.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
        assert same(store.search(vectors[:1], 5)[0], brute.search(vectors[0], 5))
        for one in (only, store):
            one.close()
