"""The supervisor's end of a worker: started when it is needed, kept for the next job, and killed with all it started when a job must end.

A thread exchanges messages with the process; the caller looks from time to time whether the process is to be given up. A caller that may block
asks :meth:`Worker.do`; how an event loop does stands in :mod:`gpa_lsp.foundation.processes.async_worker`.
"""

import contextlib
import logging
import os
import pickle
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.processes.python_children import Answer, Beat, Job, isolate_module, pack, read_message
from gpa_lsp.foundation.processes.watched_command import TimeLimits, read_processor_time
from gpa_lsp.foundation.processes.worker import Tell, Work

logger = logging.getLogger(__name__)

_POLL_S = 0.02  # Between two questions whether a job is still wanted


class Patience(Struct, frozen=True, kw_only=True):
    """The conditions under which a process at work is given up.

    It says every ``look_s`` that it is alive. Looks are counted, not seconds: while this process is stopped, suspended or starved itself, no looks
    are made, and a worker that was stopped along with it has done nothing wrong.
    """

    look_s: float = 1.0  # pause between two looks
    # a process that for so many looks in a row says nothing, has no thread that could run and uses no CPU time is stopped or hangs. One that is ready
    # to run on a busy machine can be told from it, and is not given up.
    still_looks: int = 15
    silent_looks: int = 60  # the same on systems that do not say what a process does


class WorkerKind(Struct, frozen=True, kw_only=True):
    """A kind of worker, and its limits."""

    module: str  # what it does; see :class:`gpa_lsp.foundation.processes.worker.Work`
    title: str  # for people
    niceness: int = 5  # how much others come first
    memory_bytes: int = 8 << 30  # address space of it and of each tool it starts; 0 for no limit
    idle_s: float = 600.0  # it goes when it has had no job for so long, and its memory goes back to the system
    # one that holds more of its own after a job is replaced by a fresh one; None for any size
    most_own_bytes: int | None = None
    patience: Patience = field(default_factory=Patience)  # when it is given up
    folder: str | None = None  # it runs in; None for ours
    is_quiet: bool = False  # its output is dropped


class WorkerLostError(ToolError):
    """A process died or hangs, which may be no fault of its job: another process may do that."""


class Worker:
    """One process of a kind, one job at a time."""

    def __init__(self, kind: WorkerKind) -> None:
        self.kind = kind
        self._process: _Process | None = None

    @property
    def process_id(self) -> int | None:
        """The process's number; None where a job would have to wait for one to start."""
        process = self._process
        return process.process_id if process is not None and process.is_running else None

    def do(
        self,
        job: object,
        *,
        limit_s: float,
        is_cancelled: Callable[[], bool] | None = None,
        tell: Callable[[Any], object] | None = None,
        work: str = "",
    ) -> Any:
        """The result of a job.

        Args:
            limit_s: seconds of processor time that the process may take for it; see :meth:`TimeLimits.for_work`.
            work: what the job is, for errors, such as ``compiling k.cu``.

        Raises:
            WorkerLostError: the process died, or hangs.
            ToolError: it took too long or was cancelled.
        """
        exchange = Exchange(self, job, limit_s=limit_s, tell=tell, work=work)
        try:
            look_s = monotonic() + exchange.pause_s
            while not wait([exchange.future], exchange.pause_s if is_cancelled is None else _POLL_S).done:
                if is_cancelled is not None and is_cancelled():
                    raise exchange.fail("was cancelled")
                if monotonic() >= look_s:
                    exchange.look()
                    look_s = monotonic() + exchange.pause_s
        finally:
            exchange.give_up()
            wait([exchange.future])
        return exchange.find_result()

    def get_process(self) -> "_Process":
        """The one that waits for a job, or a new one.

        Raises:
            ToolError: it cannot be started.
        """
        if self._process is None or not self._process.is_running:
            self.end()
            self._process = _Process(self.kind)
        return self._process

    def end(self) -> None:
        """End the process and all it started."""
        process, self._process = self._process, None
        if process is not None:
            process.end()


class Exchange:
    """A job under way in a worker. ``future`` is done when it is answered, or its process is gone."""

    def __init__(
        self,
        worker: Worker,
        job: object,
        *,
        limit_s: float,
        tell: Callable[[Any], object] | None = None,
        is_per_message: bool = False,
        work: str = "",
    ) -> None:
        self._worker = worker
        self._limits = TimeLimits.for_work(limit_s)
        self._tell = tell
        self._is_per_message = is_per_message
        self._work = f" {work}" if work else ""
        self._silence = Silence(worker.kind.patience)
        self._waited_s = 0.0
        self._spent_before_s: float | None = None
        self._told = self._told_before = 0
        self._signs = self._signs_before = 0
        self._process: _Process | None = None
        self._is_given_up = False
        self._lock = threading.Lock()
        self.pause_s = min(worker.kind.patience.look_s, limit_s)
        self.future: Future[Answer] = Future()
        self.future.set_running_or_notify_cancel()
        threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def look(self) -> None:
        """Check that the process is alive; to be called every ``pause_s``.

        Raises:
            ToolError: the process is to be given up.
        """
        told, signs = self._told, self._signs
        has_told, has_said = told != self._told_before, signs != self._signs_before
        self._told_before, self._signs_before = told, signs
        self._waited_s += self.pause_s
        spent_s = None if self._process is None else self._process.read_processor_time()
        if self._spent_before_s is None or (self._is_per_message and has_told):
            self._waited_s, self._spent_before_s = self.pause_s, spent_s
        if spent_s is not None and self._spent_before_s is not None:
            spent_s -= self._spent_before_s
        if excess := self._limits.find_excess(spent_s, self._waited_s):
            raise self.fail(excess.removeprefix("it "))
        process_id = self._worker.process_id
        if process_id is not None and self._silence.is_final(process_id, has_said=has_said):
            raise WorkerLostError(self._worker.kind.title, f"was stopped or hangs, and was ended{self._work}")

    def give_up(self) -> None:
        """Kill the process, unless it has answered; the future is done soon."""
        with self._lock:
            self._is_given_up = True
            if not self.future.done() and self._process is not None:
                self._process.kill()

    def find_result(self) -> Any:
        """The result that the future holds.

        Raises:
            ToolError: there is no result.
        """
        answer = self.future.result()
        if answer.failure:
            raise self.fail(answer.failure)
        return answer.result

    def fail(self, words: str) -> ToolError:
        """The error that says so."""
        return ToolError(self._worker.kind.title, words + self._work)

    def _run(self, job: object) -> None:
        try:
            frame = pack(Job(content=pickle.dumps(job), beat_s=self._worker.kind.patience.look_s))
            while (answer := self._try(frame)) is None:
                pass  # it went, for want of work, in this very moment
            most_bytes = self._worker.kind.most_own_bytes
            if most_bytes is not None and answer.own_bytes > most_bytes:
                logger.info("the %s holds %d MiB and is replaced", self._worker.kind.title, answer.own_bytes >> 20)
                self._worker.end()
            self.future.set_result(answer)
        except BaseException as error:  # it is raised where the result is wanted
            self._worker.end()  # whatever comes late on the pipe would be taken for the next job's answer
            self.future.set_exception(error)

    def _try(self, frame: bytes) -> Answer | None:
        """The answer; None where the process went just now because it had had no job for so long."""
        process = self._start()
        try:
            process.send(frame)
            while not isinstance(message := process.receive(), Answer):
                self._signs += 1
                if not isinstance(message, Beat):
                    self._told += 1
                    if self._tell is not None:
                        self._tell(message)
        except (EOFError, OSError):
            status = process.end()
            if process.has_answered and status == 0:
                return None
            how = f"with status {status}" if status >= 0 else f"by signal {-status}"
            words = f"ended {how} before it was done{self._work}, perhaps for lack of memory"
            raise WorkerLostError(self._worker.kind.title, words) from None
        process.has_answered = True
        return message

    def _start(self) -> "_Process":
        with self._lock:
            if self._is_given_up:
                raise self.fail("was given up")
            self._process = self._worker.get_process()
            return self._process


class _Process:
    """A running worker, as the system knows it."""

    def __init__(self, kind: WorkerKind) -> None:
        settings = (kind.module, str(kind.niceness), str(kind.memory_bytes), str(kind.idle_s))
        child = isolate_module("gpa_lsp.foundation.processes.worker", *settings)
        try:
            self._process = subprocess.Popen(
                child.words,
                env=child.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if kind.is_quiet else None,
                cwd=kind.folder,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(kind.title, f"cannot be started: {error.strerror or error}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._jobs, self._answers = self._process.stdin, self._process.stdout
        self.process_id = self._process.pid
        self.has_answered = False

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def send(self, frame: bytes) -> None:
        self._jobs.write(frame)
        self._jobs.flush()

    def receive(self) -> object:
        return read_message(self._answers.read)

    def read_processor_time(self) -> float | None:
        return read_processor_time(self._process) if self.is_running else None

    def kill(self) -> None:
        """Kill it and all it started."""
        if self._process.returncode is not None:
            return
        with contextlib.suppress(OSError):  # it may end by itself in this moment
            if os.name == "posix":
                os.killpg(self.process_id, signal.SIGKILL)
            else:
                self._process.kill()  # what it started ends with the pipe

    def end(self) -> int:
        """Kill it and wait for its end; its exit status."""
        self.kill()
        status = self._process.wait()
        for stream in (self._jobs, self._answers):
            with contextlib.suppress(OSError):
                stream.close()
        return status


class Silence:
    """The time for which a process has given no sign of life."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._silent_looks = 0
        self._still_looks = 0
        self._used_ticks = -1

    def is_final(self, process_id: int, *, has_said: bool) -> bool:
        """Take a look; whether it was one too many."""
        if has_said:
            self._silent_looks, self._still_looks, self._used_ticks = 0, 0, -1
            return False
        self._silent_looks += 1
        activity = read_activity(process_id)
        if activity is None:
            return self._silent_looks >= self._patience.silent_looks
        can_run, used_ticks = activity
        self._still_looks = self._still_looks + 1 if not can_run and used_ticks == self._used_ticks else 0
        self._used_ticks = used_ticks
        return self._still_looks >= self._patience.still_looks


def read_activity(process_id: int) -> tuple[bool, int] | None:
    """Whether a thread of a process runs, is ready to, or waits for a disk, and the CPU time they have used; None where the system does not say."""
    can_run, used_ticks = False, 0
    try:
        for thread in Path(f"/proc/{process_id}/task").iterdir():
            fields = (thread / "stat").read_text().rpartition(")")[2].split()
            can_run = can_run or fields[0] in "RD"
            used_ticks += int(fields[11]) + int(fields[12])
    except OSError:
        return None
    return can_run, used_ticks


_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

_NO_LIMIT_S = 1e9
_CALL = "gpa_lsp.foundation.processes.supervision"


class WorkerPool:
    """Starts workers as they are needed, and lends each to one job at a time. Any thread may ask.

    Args:
        kind: of the workers.
        most_idle: kept for further jobs.
    """

    def __init__(self, kind: WorkerKind, *, most_idle: int) -> None:
        self._kind = kind
        self._most_idle = most_idle
        self._lock = threading.Lock()
        self._idle: list[Worker] = []

    def do(self, job: object, *, limit_s: float, is_cancelled: Callable[[], bool] | None = None, work: str = "") -> Any:
        """The result of a job; see :meth:`gpa_lsp.foundation.processes.supervision.Worker.do`."""
        with self._lock:
            worker = self._idle.pop() if self._idle else Worker(self._kind)
        try:
            return worker.do(job, limit_s=limit_s, is_cancelled=is_cancelled, work=work)
        finally:
            with self._lock:
                is_kept = len(self._idle) < self._most_idle
                if is_kept:
                    self._idle.append(worker)
            if not is_kept:
                worker.end()

    def close(self) -> None:
        """End the workers that wait; others end with their job."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def forget(self) -> None:
        """Workers of the parent are not this process' own, after a fork."""
        self._lock = threading.Lock()
        self._idle = []


class PartWorkers(Generic[_Part, _Result]):
    """Processes of this machine that apply a function to the parts of a work. They start at once, before the first part is known.

    To be used in a ``with`` statement, at whose end they are ended.

    Args:
        function: it and what it holds can be pickled.
        count: how many processes at most.
        title: of one of them, for people.
        prepare: called in each before its first part, to load what that needs; it can be pickled, too.
    """

    def __init__(
        self,
        function: Callable[[_Part], _Result],
        *,
        count: int,
        title: str,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._function = function
        self._is_over = threading.Event()
        self._pool = WorkerPool(WorkerKind(module=_CALL, title=title, niceness=0, memory_bytes=0), most_idle=count)
        self._threads = ThreadPoolExecutor(count)
        for _ in range(count if prepare is not None else 0):
            self._threads.submit(self._do, _prepare, prepare)

    def run(self, parts: Sequence[_Part]) -> Iterator[_Result]:
        """The results as they are known, in any order.

        Args:
            parts: each can be pickled.

        Raises:
            ToolError: a process died.
        """
        futures: list[Future[_Result]] = [self._threads.submit(self._do, self._function, part) for part in parts]
        for future in as_completed(futures):
            yield future.result()

    def _do(self, function: Callable[[Any], Any], part: object) -> Any:
        return self._pool.do((function, part), limit_s=_NO_LIMIT_S, is_cancelled=self._is_over.is_set)

    def __enter__(self) -> "PartWorkers[_Part, _Result]":
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()  # what was begun is wanted no more, and may take long
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._pool.close()


def run_parts(
    function: Callable[[_Part], _Result], parts: Sequence[_Part], *, count: int, title: str
) -> Iterator[_Result]:
    """Apply a function to the parts of a work, at least one, in processes of this machine; see :class:`PartWorkers`.

    The processes end when the caller stops iterating.
    """
    with PartWorkers(function, count=min(count, len(parts)), title=title) as workers:
        yield from workers.run(parts)


def _prepare(prepare: Callable[[], object]) -> None:
    prepare()


def _call(job: tuple[Callable[[Any], object], object], tell: Tell) -> object:
    function, part = job
    return function(part)


WORK = Work(do=_call)  # Calls what comes with each job
