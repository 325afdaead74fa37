"""Servers that are stopped, killed, overloaded, and whose index changes under them: real processes, real signals."""

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from lookalike.models import Architecture, Model
from lookalike.search import Index
from lookalike.search.adding.generation import renew
from lookalike.search.serve.app import create_app
from lookalike.search.serve.server import bound
from lookalike.search.serve.settings import Settings
from tests.cli.processes import Lookalike
from tests.search.conftest import CLASSES, photo
from tests.search.serve.client import Server, multipart
from tests.search.serve.conftest import encoded
from tests.search.serve.crashes import answering_children, one_round


def test_a_stop_answers_what_has_begun(shop):
    body, kind = multipart([("image", encoded())])
    with Server(shop) as server, socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(
            f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body[:100]
        )
        for _ in range(2):
            assert server.ready()  # what was sent before has been read by now
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        connection.sendall(body[100:])
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert server.process.wait(200) == 0
        assert "Traceback" not in server.errors


HANGING = """
import threading
from concurrent.futures import ThreadPoolExecutor
from lookalike.search.stores.sqlite.segments import SegmentView
nearest = SegmentView.nearest
def hanging(view, queries, k, allowed=None):
    if k > 70:  # in a thread that also keeps the interpreter from ending
        ThreadPoolExecutor(1).submit(threading.Event().wait).result()
    return nearest(view, queries, k, allowed)
SegmentView.nearest = hanging
"""


@pytest.mark.slow
def test_a_search_that_never_ends_is_given_up_and_holds_up_neither_others_nor_a_stop(shop):
    with Server(shop, limits={"searching": 1.0, "grace": 0.5}, before=HANGING) as server:
        for _ in range(2):
            reply = server.json("POST", "/v1/search", {"item": "table/figs0.png", "k": 100})
            assert (reply.status, reply.json["error"]["code"]) == (504, "given_up")
            assert reply.message.startswith("The answer took longer than 1 seconds and was given up.")
            assert server.json("POST", "/v1/search", {"item": "table/figs0.png", "k": 5}).status == 200
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(100)


@pytest.mark.slow
def test_a_server_in_which_searches_hang_ends_and_says_so(shop):
    with Server(shop, limits={"searching": 0.5, "grace": 0.5}, before=HANGING) as server:
        for _ in range(3):
            assert server.json("POST", "/v1/search", {"item": "table/figs0.png", "k": 100}).status == 504
        assert server.json("POST", "/v1/search", {"item": "table/figs0.png", "k": 5}).status == 200
        assert server.process.wait(100) != 0
        assert "several searches hang" in server.errors


def test_small_packets_are_not_held_back(tmp_path):
    """asyncio sets TCP_NODELAY only on sockets that say they are TCP; without it every answer waits 40 ms."""
    with bound(Settings(tmp_path, port=0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_a_taken_port_is_said(server, shop, tmp_path):
    Lookalike(tmp_path)("serve", shop, "--port", server.port).refused("--port")


@pytest.mark.slow
def test_what_others_add_is_found(shop, tmp_path):
    for number in range(3):
        photo("figs", 300 + number).save(tmp_path / f"{number}.png")
    with Server(shop) as server:
        assert server("GET", "/v1/index").json["items"] == 36
        index = Index.open(shop)
        index.add([tmp_path / f"{number}.png" for number in range(3)])
        hit = server.search(("image", encoded("figs", 301, "PNG")), ("k", "1")).json
        assert hit["hits"][0]["item"]["path"] == "1.png"
        assert hit["items"] == 39
        index.store.remove([hit["hits"][0]["item"]["id"]])
        assert server.search(("image", encoded("figs", 301, "PNG"))).json["items"] == 38


@pytest.mark.slow
def test_a_new_generation_is_taken_over_without_a_failed_request(shop):
    """Another model, of another width: searches and additions go on, and the new vectors answer afterwards."""
    statuses, stop = [], threading.Event()

    def ask(server, number):
        while not stop.is_set():
            picture = ("image", encoded(CLASSES[number], 50))
            replies = [
                server.search(picture, ("k", "3")),
                server.form("/v1/items", picture, ("id", f"new {number}")),
                server.json("POST", "/v1/search", {"item": "table/figs0.png"}),
            ]
            statuses.extend((reply.status, reply.body[:300]) for reply in replies)

    with Server(shop) as server:
        threads = [threading.Thread(target=ask, args=(server, number)) for number in range(3)]
        for thread in threads:
            thread.start()
        server.wait_for(lambda: len(statuses) > 10, "answers")
        index = Index.open(shop)
        renew(index, Model.create(Architecture("conv4", {"channels": 3}, dim=24), seed=5))
        before = len(statuses)
        server.wait_for(lambda: len(statuses) > before + 20, "answers of the new generation")
        stop.set()
        for thread in threads:
            thread.join()
        assert {status for status, _ in statuses} == {200, 201}, [body for status, body in statuses if status > 299][:1]
        hits = server.search(("image", encoded("figs", 77)), ("k", "5")).json["hits"]
        expected = Index.open(shop).search(encoded("figs", 77), 5).hits
        assert [hit["similarity"] for hit in hits] == pytest.approx([hit.similarity for hit in expected], abs=1e-5)
    assert index.identity.generation == 2
    assert index.store.check() == []


@pytest.mark.slow
def test_too_much_at_once_is_refused_quickly(shop):
    with Server(shop, limits={"waiting": 1}) as server:
        replies = []

        def ask():
            for _ in range(10):
                replies.append(server.search(("image", encoded())))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refused = [reply for reply in replies if reply.status == 429]
        assert {reply.status for reply in replies} == {200, 429}
        assert all(int(reply.headers["retry-after"]) >= 1 and reply.message for reply in refused)
        assert server.search(("image", encoded())).status == 200


@pytest.mark.slow
def test_two_workers_count_together_and_ctrl_c_stops_both(shop):
    with Server(shop, ("--workers", "2")) as server:
        server.wait_for(lambda: len(answering_children(server)) == 2, "workers")
        for _ in range(12):
            assert server.search(("image", encoded())).status == 200
        text = server("GET", "/v1/metrics").body.decode()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(200) == 0
        assert "Traceback" not in server.errors
    counts = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}
    searches = [value for name, value in counts.items() if 'route="/v1/search"' in name and "requests" in name]
    assert sum(searches) == 12
    assert counts["lookalike_workers"] == 2
    assert counts["lookalike_items"] == 36
    assert counts['lookalike_stage_seconds_bucket{stage="network",le="+Inf"}'] > 0


@pytest.mark.long
def test_kill_under_load_loses_nothing(template, tmp_path):
    """`python -m benchmarks.serve --kills 20` does the same twenty times."""
    place = shutil.copytree(template, tmp_path / "shop.index")
    with Server(place, ("--workers", "2")) as server:
        for number, whole in enumerate((False, True, False)):
            acknowledged, lost = one_round(server, number, whole)
            assert acknowledged > 3
            assert lost == 0


@pytest.mark.slow
def test_without_arguments_the_demo_is_served(template, tmp_path):
    """The index of a demo in the folder is found; the page of `make demo` names the command."""
    shutil.copytree(template, tmp_path / "demo" / "unseen.index")
    words = [sys.executable, "-c", "from lookalike.cli import main; main()", "serve", "--port", "0"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert "serving demo/unseen.index at http://127.0.0.1:" in process.stderr.readline()
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


@pytest.fixture
def hopeless(shop):
    """An index that can be opened, and never be ready."""
    shutil.rmtree(shop / "model", ignore_errors=True)
    index = Index.open(shop)
    with index.store.database.writing() as connection:
        connection.execute("DELETE FROM models")
    index.close()
    return shop


def test_a_server_that_can_never_be_ready_ends_and_says_why(hopeless, tmp_path):
    Lookalike(tmp_path)("serve", hopeless, "--port", 0).refused("its model")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_says_why_it_can_never_be_ready(hopeless, workers):
    words, failures = [], []

    async def live():
        app = create_app(Settings(hopeless, workers=workers), None, lambda: words.append("ready"), failures.append).app
        async with app.router.lifespan_context(app):
            for _ in range(12_000):
                if failures:
                    break
                await asyncio.sleep(0.01)

    asyncio.run(live())
    assert words == []
    assert "its model" in str(failures.pop())


@pytest.mark.long
def test_workers_that_can_never_be_ready_are_given_up(hopeless, tmp_path):
    gave_up = Lookalike(tmp_path)("serve", hopeless, "--port", 0, "--workers", 2)
    assert gave_up.code == 2, gave_up.error
    assert gave_up.error.count("is started again") == 2
    assert "3 workers in a row ended before they were ready" in gave_up.error.splitlines()[-1]
    assert "its model" in gave_up.error.splitlines()[-1]
    assert "Traceback" not in gave_up.error
