"""Workers of those who may block: what ends a job, and what is left when the supervisor dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.processes import supervision
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.supervision import Worker, WorkerKind, WorkerPool, run_parts
from tests.collect.processes import MARK, find_marked, wait_until_gone
from tests.conftest import ROOT
from tests.patience import LIMIT_S, wait_until

OBEDIENT = {"module": "tests.processes.obedient_worker", "title": "obedient process", "niceness": 0}
needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc")


@pytest.fixture(autouse=True)
def import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def worker() -> Iterator[Worker]:
    one = Worker(WorkerKind(**OBEDIENT))  # type: ignore[arg-type]
    yield one
    one.end()


def test_one_process_answers_and_tells(worker: Worker) -> None:
    told: list[object] = []
    first = worker.do(("name", None), limit_s=LIMIT_S, tell=told.append)
    assert worker.do(("name", None), limit_s=LIMIT_S) == first == worker.process_id
    assert told == [Step(words="name", done=0, total=1)]


def test_a_job_ends_when_it_is_not_wanted_or_takes_too_long(worker: Worker) -> None:
    asked = count()
    with pytest.raises(ToolError, match="obedient process: was cancelled waiting"):
        worker.do(
            ("wait for", "/nowhere/at all"), limit_s=LIMIT_S, is_cancelled=lambda: next(asked) > 3, work="waiting"
        )
    assert worker.process_id is None
    with pytest.raises(ToolError, match="timed out after"):
        worker.do(("wait for", "/nowhere/at all"), limit_s=0.03)
    assert worker.do(("say", 1), limit_s=LIMIT_S) == 1


def test_a_job_that_cannot_be_sent_or_read_costs_itself_only(worker: Worker) -> None:
    with pytest.raises(Exception, match="pickle"):
        worker.do(lambda: 0, limit_s=LIMIT_S)
    with pytest.raises(ToolError, match=r"internal error \(ModuleNotFoundError"):
        worker.do(_Stranger(), limit_s=LIMIT_S)
    assert worker.do(("say", 1), limit_s=LIMIT_S) == 1


class _Stranger:
    """An object whose module is not found in the worker."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return __import__, ("no_such_module_anywhere",)

    __module__ = "builtins"


def test_a_process_that_goes_just_as_a_job_comes_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(WorkerKind(**OBEDIENT, idle_s=0.05))  # type: ignore[arg-type]
    first = worker.do(("name", None), limit_s=LIMIT_S)
    wait_until(lambda: worker.process_id is None, "it went")
    looks = count()
    monkeypatch.setattr(supervision._Process, "is_running", property(lambda process: next(looks) == 0))
    assert worker.do(("name", None), limit_s=LIMIT_S) != first
    worker.end()


def test_a_pool_lends_each_process_to_one_job_at_a_time() -> None:
    pool = WorkerPool(WorkerKind(**OBEDIENT), most_idle=1)  # type: ignore[arg-type]
    first = pool.do(("name", None), limit_s=LIMIT_S)
    assert pool.do(("name", None), limit_s=LIMIT_S) == first
    pool.close()
    assert pool.do(("name", None), limit_s=LIMIT_S) != first
    pool.close()


def name_process(part: float) -> int:
    time.sleep(part)
    return os.getpid()


@needs_proc
def test_whoever_stops_listening_ends_the_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(MARK, str(tmp_path))
    results = run_parts(name_process, [0.0, 1000.0, 1000.0], count=2, title="sleeper")
    assert next(results) in find_marked(str(tmp_path))
    results.close()  # type: ignore[attr-defined]
    assert find_marked(str(tmp_path)) == {}


SUPERVISOR = """
import sys
from gpa_lsp.foundation.processes.supervision import Worker, WorkerKind
kind = WorkerKind(module="tests.processes.obedient_worker", title="obedient process")
Worker(kind).do(("start", sys.argv[1]), limit_s=3600)
"""


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_supervisor_dies(tmp_path: Path, number: int) -> None:
    environment = {**os.environ, MARK: str(tmp_path), "PYTHONPATH": str(ROOT)}
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISOR, str(tmp_path / "begun")], env=environment)
    try:
        wait_until((tmp_path / "begun").exists, "the worker has started a tool")
        wait_until(lambda: len(find_marked(str(tmp_path))) == 3, "what said so has ended")
        supervisor.send_signal(number)
        supervisor.wait(LIMIT_S)
    finally:
        supervisor.kill()
    wait_until_gone(str(tmp_path))
