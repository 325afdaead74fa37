"""A stage: one thread, batches of what has come in, each job its own result."""

import asyncio
import threading

import pytest

from lookalike.search.serve.stages import LOST, SlowError, Stage


def test_what_waits_is_worked_on_together():
    begun, free, batches = threading.Event(), threading.Event(), []

    def work(jobs):
        begun.set()
        free.wait()
        batches.append(list(jobs))
        return [10 * job for job in jobs]

    async def ask(stage):
        tasks = [asyncio.create_task(stage.do(0))]
        while not begun.is_set():
            await asyncio.sleep(0.001)
        tasks += [asyncio.create_task(stage.do(number)) for number in range(1, 6)]
        while stage.waiting.qsize() < 5:
            await asyncio.sleep(0.001)
        free.set()
        return await asyncio.gather(*tasks)

    stage = Stage("tens", work, 3)
    assert asyncio.run(asyncio.wait_for(ask(stage), 20)) == [0, 10, 20, 30, 40, 50]
    assert batches == [[0], [1, 2, 3], [4, 5]]
    stage.stop()
    assert "tens" not in [thread.name for thread in threading.enumerate()]


def test_an_exception_is_that_of_its_job():
    def work(jobs):
        if "all" in jobs:
            raise RuntimeError("the whole batch")
        return [ValueError(job) if job == "bad" else job for job in jobs]

    async def ask(stage):
        return [(await asyncio.gather(stage.do(job), return_exceptions=True))[0] for job in ("good", "bad", "all")]

    stage = Stage("mixed", work, 5)
    good, bad, whole = asyncio.run(asyncio.wait_for(ask(stage), 20))
    stage.stop()
    assert good == "good"
    assert isinstance(bad, ValueError)
    assert str(whole) == "the whole batch"


def test_a_stop_comes_after_what_waits_and_leaves_out_who_has_gone():
    done, begin = [], threading.Event()

    def work(jobs):
        begin.wait()
        done.extend(jobs)
        return jobs

    stage = Stage("slow", work, 1)

    async def ask():
        tasks = [asyncio.create_task(stage.do(number)) for number in range(4)]
        while stage.waiting.qsize() < 3:
            await asyncio.sleep(0.001)
        tasks[2].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[2]
        begin.set()
        stage.stop()
        return [task for number, task in enumerate(tasks) if number != 2]

    async def wait():
        return await asyncio.gather(*await ask())

    assert asyncio.run(asyncio.wait_for(wait(), 20)) == [0, 1, 3]
    assert done == [0, 1, 3]


def test_a_batch_that_takes_too_long_is_given_up_and_another_thread_goes_on():
    free, done = threading.Event(), []

    def work(jobs):
        if "slow" in jobs:
            free.wait(60)
        done.extend(jobs)
        return jobs

    async def ask(stage, job):
        return (await asyncio.gather(stage.do(job), return_exceptions=True))[0]

    async def together():
        first = asyncio.create_task(ask(stage, "slow"))
        await asyncio.sleep(0.1)
        behind = asyncio.create_task(ask(stage, "behind"))
        return [await first, await behind, await ask(stage, "next"), await ask(stage, "slow"), await ask(stage, "last")]

    stage = Stage("limited", work, 1, limit=0.3)
    first, behind, next_, second, last = asyncio.run(asyncio.wait_for(together(), 60))
    assert isinstance(first, SlowError)
    assert isinstance(behind, TimeoutError)  # nobody had looked at it
    assert isinstance(second, SlowError)
    assert (next_, last, stage.hangs) == ("next", "last", False)
    free.set()
    while sum(thread.name == "limited" for thread in threading.enumerate()) > 1:
        pass  # those left behind end with their batch
    assert stage.stop()
    assert sorted(done) == ["last", "next", "slow", "slow"]


def test_threads_that_hang_are_counted_and_hold_up_no_stop():
    free = threading.Event()

    async def ask():
        return [await asyncio.gather(stage.do(number), return_exceptions=True) for number in range(LOST + 2)]

    stage = Stage("hanging", lambda jobs: free.wait(60) and jobs, 1, limit=0.05)
    assert not stage.hangs
    given_up = asyncio.run(asyncio.wait_for(ask(), 60))
    assert [type(each) for (each,) in given_up] == [SlowError] * (LOST + 1) + [TimeoutError]
    assert stage.hangs
    assert not stage.stop()
    free.set()
