"""Large pictures wait for each other, and nobody else for them."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import numpy as np
import pytest

from lookalike.search import Index
from lookalike.search.items import Item
from lookalike.search.serve.decoders import QUEUE, Decoders
from lookalike.search.serve.pictures import ALONE, Upload
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.views import Thumbnails
from tests.fixtures.png import black
from tests.search.serve.conftest import encoded

LARGE, ORDINARY = Upload(black(3000, 5000)), Upload(encoded())


def live(work):
    async def run():
        decoders = Decoders(50_000_000)
        try:
            await asyncio.wait_for(work(decoders), 60)
        finally:
            decoders.stop()

    asyncio.run(run())


def test_large_pictures_are_decoded_one_at_a_time_and_hold_up_nobody():
    running, most, go = [], [], threading.Event()

    def slow(upload):
        running.append(upload)
        most.append(len(running))
        go.wait(30)
        running.remove(upload)
        return "large"

    async def work(decoders):
        large = [asyncio.create_task(decoders.do(slow, LARGE)) for _ in range(4)]
        assert await decoders.do(lambda upload, word: (upload, word), ORDINARY, word="x") == (ORDINARY, "x")
        go.set()
        assert await asyncio.gather(*large) == ["large"] * 4
        assert most == [1, 1, 1, 1]

    live(work)


def test_large_pictures_of_the_index_wait_for_their_turn_too(tmp_path):
    """A thumbnail of each of several that were let in one by one."""
    with closing(Index.create(tmp_path / "index", dim=2)) as index, ThreadPoolExecutor(1) as threads:
        pictures = {"large": LARGE.content, "ordinary": ORDINARY.content}
        index.store.put([Item(name) for name in pictures], np.eye(2, dtype=np.float32), pictures)
        thumbnails = Thumbnails(index)
        with ALONE:
            waiting = threads.submit(thumbnails.get, "large")
            assert thumbnails.get("ordinary").startswith(b"\xff\xd8")
            time.sleep(0.2)
            assert not waiting.done()
        assert waiting.result().startswith(b"\xff\xd8")


def test_too_many_large_pictures_are_refused_at_once():
    go = threading.Event()

    async def work(decoders):
        large = [asyncio.create_task(decoders.do(lambda _: go.wait(30), LARGE)) for _ in range(QUEUE)]
        while decoders._queue < QUEUE:
            await asyncio.sleep(0.01)
        with pytest.raises(Refusal) as refused:
            await decoders.do(len, LARGE)
        assert refused.value.status == 429
        large[-1].cancel()  # the caller has lost patience
        with suppress(asyncio.CancelledError):
            await large[-1]
        again = asyncio.create_task(decoders.do(lambda _: "again", LARGE))
        go.set()
        assert await again == "again"
        assert await asyncio.gather(*large[:-1]) == [True] * (QUEUE - 1)

    live(work)


def test_a_picture_that_is_none_is_refused_before_any_work():
    async def work(decoders):
        with pytest.raises(Refusal) as refused:
            await decoders.do(pytest.fail, Upload(b"text"))
        assert refused.value.status == 415

    live(work)
