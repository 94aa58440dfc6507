"""Processes that stay: one that was stopped is noticed soon, one that is only slow never; what went wrong costs one job."""

import asyncio
import gc
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.processes import supervision, watched_command
from gpa_lsp.foundation.processes.async_worker import AsyncWorker
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.supervision import Patience, Silence, WorkerKind, read_activity
from tests.conftest import ROOT
from tests.lsp.loop_waiting import wait_until
from tests.patience import LIMIT_S, wait_until_so

QUICK = Patience(look_s=0.02, still_looks=15, silent_looks=60)

OBEDIENT = {"module": "tests.processes.obedient_worker", "title": "obedient process", "patience": QUICK, "niceness": 0}

MakeProcess = Callable[..., AsyncWorker]


@pytest.fixture
async def make_process(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MakeProcess]:
    """Makes processes that do what a test tells them, and ends them."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    processes: list[AsyncWorker] = []

    def make(**options: object) -> AsyncWorker:
        processes.append(
            AsyncWorker(WorkerKind(**{**OBEDIENT, **options}))  # type: ignore[arg-type]
        )
        return processes[-1]

    yield make
    for process in processes:
        await process.leave()


def find_process_id(process: AsyncWorker) -> int:
    assert process.process_id is not None
    return process.process_id


async def begin(process: AsyncWorker, *job: object, limit_s: float = LIMIT_S) -> "asyncio.Task[object]":
    """Start a job, and wait until the process is at it."""
    told: list[Step] = []
    task = asyncio.create_task(process.do(job, limit_s=limit_s, tell=told.append))
    await wait_until_so(lambda: told)
    return task


async def test_one_process_answers_one_job_after_the_other(make_process: MakeProcess) -> None:
    process = make_process()
    assert await process.do(("say", "a"), limit_s=LIMIT_S) == "a"
    assert await process.do(("say", b"b" * (3 << 20)), limit_s=LIMIT_S) == b"b" * (3 << 20)
    first = await process.do(("name", None), limit_s=LIMIT_S)
    assert "ZeroDivisionError: on purpose" in str(await process.do(("fail", "on purpose"), limit_s=LIMIT_S))
    assert await process.do(("name", None), limit_s=LIMIT_S) == first == find_process_id(process)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal")
async def test_the_job_of_a_stopped_process_is_done_by_another(make_process: MakeProcess, tmp_path: Path) -> None:
    process = make_process()
    told: list[Step] = []
    task = asyncio.create_task(process.do(("wait for", tmp_path / "signal"), limit_s=LIMIT_S, tell=told.append))
    await wait_until_so(lambda: told)
    stopped = find_process_id(process)
    os.kill(stopped, signal.SIGSTOP)
    await wait_until_so(lambda: len(told) == 2)
    with pytest.raises(ProcessLookupError):
        os.kill(stopped, 0)
    (tmp_path / "signal").touch()
    assert await asyncio.wait_for(task, LIMIT_S) is None


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal")
async def test_a_job_that_is_stopped_twice_is_given_up(make_process: MakeProcess) -> None:
    process = make_process()
    told: list[Step] = []
    task = asyncio.create_task(process.do(("wait for", "/nowhere/at all"), limit_s=LIMIT_S, tell=told.append))
    for tries in (1, 2):
        await wait_until_so(lambda tries=tries: len(told) == tries)
        os.kill(find_process_id(process), signal.SIGSTOP)
    with pytest.raises(ToolError, match="was stopped or hangs"):
        await asyncio.wait_for(task, LIMIT_S)
    assert await process.do(("say", "still here"), limit_s=LIMIT_S) == "still here"


async def test_work_that_is_cancelled_twice_leaves_no_error_behind(make_process: MakeProcess) -> None:
    process = make_process()
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    task = await begin(process, "wait for", "/nowhere/at all")
    for _ in range(2):  # the second time while it waits for the process to go
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    await wait_until(lambda: process.process_id is None)
    await asyncio.sleep(0.1)  # the thread that read the process tells the loop
    gc.collect()
    assert told == []
    assert await process.do(("say", "still here"), limit_s=LIMIT_S) == "still here"


async def test_a_process_that_only_waits_is_waited_for(make_process: MakeProcess, tmp_path: Path) -> None:
    process = make_process()
    task = await begin(process, "wait for", tmp_path / "signal")
    await asyncio.sleep(QUICK.look_s * QUICK.still_looks * 4)
    (tmp_path / "signal").touch()
    assert await asyncio.wait_for(task, LIMIT_S) is None


async def test_a_server_that_stood_still_itself_blames_nobody(make_process: MakeProcess, tmp_path: Path) -> None:
    process = make_process()
    await process.do(("say", 1), limit_s=LIMIT_S)
    task = await begin(process, "wait for", tmp_path / "signal", limit_s=0.3)  # of processor time; 3 s by the clock
    time.sleep(3.5)  # neither looks nor the limit count while nobody looks
    (tmp_path / "signal").touch()
    assert await asyncio.wait_for(task, LIMIT_S) is None


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not say what a process does")
async def test_what_a_process_does_can_be_seen(make_process: MakeProcess, tmp_path: Path) -> None:
    process = make_process()
    task = await begin(process, "work until", tmp_path / "signal")
    process_id = find_process_id(process)

    def look() -> tuple[bool, int]:
        activity = read_activity(process_id)
        assert activity is not None
        return activity

    can_run, before = look()
    assert can_run
    await wait_until(lambda: look()[1] > before)
    os.kill(process_id, signal.SIGSTOP)
    await wait_until(lambda: not look()[0])
    assert look() == look()
    os.kill(process_id, signal.SIGCONT)
    (tmp_path / "signal").touch()
    await asyncio.wait_for(task, LIMIT_S)
    assert read_activity(1 << 30) is None


@pytest.mark.parametrize(
    ("activities", "looks"),
    [
        pytest.param([(False, 7)], 4, id="stopped: the first look only says how much it had used"),
        pytest.param([(True, 7)], None, id="ready to run and never given a core"),
        pytest.param([(False, 7), (False, 8)], None, id="now and then given a core"),
        pytest.param([None], 6, id="nobody says"),
    ],
)
def test_silence(monkeypatch: pytest.MonkeyPatch, activities: list[tuple[bool, int] | None], looks: int | None) -> None:
    """The number of looks a silent process is given; None for as many as it takes."""
    seen = iter(activities * 100)
    monkeypatch.setattr(supervision, "read_activity", lambda process_id: next(seen))
    silence = Silence(Patience(still_looks=3, silent_looks=6))
    assert [silence.is_final(1, has_said=False) for _ in range(2)] == [False, False]
    assert not silence.is_final(1, has_said=True)
    finals = [silence.is_final(1, has_said=False) for _ in range(40)]
    assert (finals.index(True) + 1 if True in finals else None) == looks


async def test_how_a_process_ended_is_said(make_process: MakeProcess) -> None:
    process = make_process()
    with pytest.raises(ToolError, match="ended with status 9 before it was done"):
        await process.do(("exit", 9), limit_s=LIMIT_S)
    told: list[Step] = []
    task = asyncio.create_task(process.do(("wait for", "/nowhere/at all"), limit_s=LIMIT_S, tell=told.append))
    for tries in (1, 2):
        await wait_until_so(lambda tries=tries: len(told) == tries)
        os.kill(find_process_id(process), signal.SIGKILL)
    with pytest.raises(ToolError, match="ended by signal 9 before it was done"):
        await task
    assert await process.do(("say", 1), limit_s=LIMIT_S) == 1


async def test_a_job_that_takes_too_long_is_ended(make_process: MakeProcess) -> None:
    process = make_process()
    with pytest.raises(ToolError, match="timed out after"):
        await process.do(("wait for", "/nowhere/at all"), limit_s=0.05)


async def test_a_job_that_works_too_long_is_ended_by_processor_time(
    make_process: MakeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_command, "CLOCK_PER_PROCESSOR", 1e3)  # a busy machine may give it a hundredth of a core
    process = make_process()
    await process.do(("say", "warm"), limit_s=LIMIT_S)
    with pytest.raises(ToolError, match=r"timed out after 0\.3 s of processor time"):
        await process.do(("work until", "/nowhere/at all"), limit_s=0.3)


async def test_a_cancelled_job_ends_its_process(make_process: MakeProcess) -> None:
    process = make_process()
    task = await begin(process, "wait for", "/nowhere/at all")
    process_id = find_process_id(process)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    assert await process.do(("say", 1), limit_s=LIMIT_S) == 1


async def test_a_process_that_grew_is_replaced(make_process: MakeProcess) -> None:
    process = make_process(most_own_bytes=100 << 20)
    first = await process.do(("name", None), limit_s=LIMIT_S)
    assert await process.do(("name", None), limit_s=LIMIT_S) == first
    await process.do(("hold", 120 << 20), limit_s=LIMIT_S)
    assert await process.do(("name", None), limit_s=LIMIT_S) != first


async def test_a_process_without_work_goes_away(make_process: MakeProcess) -> None:
    process = make_process(idle_s=0.05)
    process_id = await process.do(("name", None), limit_s=LIMIT_S)
    assert isinstance(process_id, int)

    await wait_until_so(lambda: process.process_id is None)
    assert await process.do(("name", None), limit_s=LIMIT_S) != process_id
