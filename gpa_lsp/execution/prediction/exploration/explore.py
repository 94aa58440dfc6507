"""A space of configurations, evaluated (here, on all cores or on a cluster) and ranked; those in the :class:`Journal`, a file of JSON lines, are not
evaluated again.

The first line is the subject; each further line is one configuration. Lines are appended as they are known, and a last line that was cut off by a
crash is dropped.
"""

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from msgspec import Struct

from gpa_lsp import __version__
from gpa_lsp.execution.emulator.compiled.core_functions import find_core
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration, rank
from gpa_lsp.foundation.errors import GpaError, InputError, MismatchError, MissingToolError, Problem, ToolError
from gpa_lsp.foundation.files import atomic_write, open_regular_file
from gpa_lsp.foundation.json_records import make_record, read_record
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.processes.supervision import run_parts
from gpa_lsp.foundation.prose import Sentence
from gpa_lsp.foundation.work_time import count_cores, work_time

JOURNAL_FORMAT = "gpa-lsp/exploration/1"
MAX_JOURNAL_BYTES = 1 << 30
MAX_LINE_CHARACTERS = 1 << 16

_REMEDY = "choose another file, or delete this one to start over"


class Subject(Struct, frozen=True, kw_only=True):
    """Subject of an exploration; two with the same subject can be joined."""

    kernel: str  # mangled name
    device: str  # name of the machine
    mode: str  # of the model
    threads: tuple[int, int, int]  # elements in x, y, z
    digest: str  # of the code, the launch's arguments and the model's version, in hex


def digest_texts(*texts: str) -> str:
    """Digest of the texts that decide the results of an exploration, in hex."""
    return hashlib.sha256("\0".join((__version__, *texts)).encode("utf-8", "surrogatepass")).hexdigest()


class Journal:
    """A journal that is open for appending.

    Used as a context manager.

    Args:
        path: made when it is missing, and continued when it is there.
        subject: of the exploration.

    Raises:
        InputError: the file is something else, or cannot be read or written.
        MismatchError: it is about another subject.
    """

    def __init__(self, path: Path, subject: Subject) -> None:
        self._path = path
        self.done: tuple[RankedConfiguration, ...] = ()
        """Configurations that the file held when it was opened."""
        try:
            if path.exists() and not path.is_file():
                raise InputError("is not a regular file", path=path, remedy=_REMEDY)
            size = path.stat().st_size if path.exists() else 0
            kept = self._read(subject, size) if size else 0
            if not kept:
                with atomic_write(path, encoding=None) as stream:
                    stream.write(_write_line({"format": JOURNAL_FORMAT, **make_record(subject)}))
            self._stream = path.open("r+b", buffering=0)
            if kept:
                self._stream.truncate(kept)
            self._end = self._stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise self._fail(error) from error

    def _read(self, subject: Subject, size: int) -> int:
        """Take what is there; returns the bytes of whole lines."""
        if size > MAX_JOURNAL_BYTES:
            raise InputError(f"is larger than {format_bytes(MAX_JOURNAL_BYTES)}", path=self._path, remedy=_REMEDY)
        kept = 0
        done: list[RankedConfiguration] = []
        stream, _ = open_regular_file(self._path)
        with stream:
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_CHARACTERS), b""), start=1):
                if not line.endswith(b"\n") and number > 1:
                    break  # cut off while it was written
                value = self._parse(line, number)
                if number == 1:
                    self._check_subject(value, subject)
                else:
                    remedy = f"line {number}: {_REMEDY}"
                    done.append(read_record(value, RankedConfiguration, path=self._path, remedy=remedy))
                kept += len(line)
        self.done = tuple({one.configuration: one for one in done}.values())
        return kept

    def _parse(self, line: bytes, number: int) -> Any:
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                "is not a journal of an exploration", path=self._path, place=f"line {number}", remedy=_REMEDY
            ) from error

    def _check_subject(self, value: Any, subject: Subject) -> None:
        if not isinstance(value, dict) or value.get("format") != JOURNAL_FORMAT:
            raise InputError(f"is not {JOURNAL_FORMAT}", path=self._path, place="/format", remedy=_REMEDY)
        found = read_record(value, Subject, path=self._path, remedy=f"line 1: {_REMEDY}")
        if found == subject:
            return
        names = [name for name in Subject.__struct_fields__ if getattr(found, name) != getattr(subject, name)]
        what = names[0] if names != ["digest"] else "code, arguments or model"
        raise MismatchError(f"was made for another {what}", path=self._path, place="line 1", remedy=_REMEDY)

    def add(self, found: Iterable[RankedConfiguration]) -> None:
        """Append configurations; they are on disk when this returns.

        Raises:
            InputError: it cannot be written.
        """
        lines = b"".join(_write_line(make_record(one)) for one in found)
        try:
            written = 0
            while written < len(lines):
                written += self._stream.write(lines[written:])
            os.fsync(self._stream.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._stream.truncate(self._end)  # removes half a line, which other readers could not read
            raise self._fail(error) from error
        self._end += len(lines)

    def _fail(self, error: OSError) -> InputError:
        return InputError(f"cannot be used: {error.strerror or error}", path=self._path, remedy="choose another file")

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del kind, error, traceback
        self._stream.close()


def _write_line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]  # Told (done, total)


class Exploration(Struct, frozen=True, kw_only=True):
    """A space of configurations with their predictions."""

    kernel: str  # for people
    device: str  # name of the machine
    mode: str  # of the model
    ranked: tuple[RankedConfiguration, ...]  # fastest first; those without a prediction last
    current: Configuration | None = None  # that of the launch; None when the space does not hold it
    resumed: int = 0  # how many were in the journal already
    notes: tuple[Sentence, ...] = ()  # for the reader, one sentence each
    is_simulated: bool = False  # launches were simulated, not predicted from their volumes

    @property
    def how(self) -> str:
        """``simulated`` or ``predicted``."""
        return "simulated" if self.is_simulated else "predicted"

    def find(self, configuration: Configuration) -> RankedConfiguration | None:
        """Prediction of one configuration; None when it is not in the space."""
        return next((one for one in self.ranked if one.configuration == configuration), None)


Evaluate = Callable[[Configuration], RankedConfiguration]  # It and what it holds can be pickled


def evaluate_each(evaluate: Evaluate, configurations: Sequence[Configuration]) -> list[RankedConfiguration]:
    """Evaluate configurations; a failure, or a bug of ours, becomes the reason why one is not predicted."""
    found: list[RankedConfiguration] = []
    for one in configurations:
        try:
            found.append(evaluate(one))
        except GpaError as error:
            found.append(RankedConfiguration(configuration=one, why_not=str(error)))
        except Exception as error:
            logger.exception("evaluating %s failed", one)
            fault = Problem.from_fault("the evaluation", error)
            found.append(RankedConfiguration(configuration=one, why_not=str(fault)))
    return found


class Workers(Protocol):
    """Evaluates configurations."""

    def run(self, evaluate: Evaluate, configurations: Sequence[Configuration]) -> Iterator[list[RankedConfiguration]]:
        """Parts of the result as they are known, in any order."""
        ...


def evaluate_space(
    configurations: Sequence[Configuration],
    evaluate: Evaluate,
    workers: Workers,
    *,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> tuple[tuple[RankedConfiguration, ...], int]:
    """Evaluate configurations that are not in the journal yet, and rank all.

    Args:
        configurations: the space.
        evaluate: evaluates one configuration.
        workers: processes that evaluate.
        journal: takes each part as it is known, so that an interruption loses only what is under way; None keeps nothing.
        progress: called with each part.

    Returns:
        The space, ranked, and how many of it were in the journal.

    Raises:
        GpaError: see ``workers`` and ``journal``; the parts evaluated until then are in the journal.
    """
    wanted = set(configurations)
    known = [one for one in (journal.done if journal is not None else ()) if one.configuration in wanted]
    done = {one.configuration for one in known}
    left = [one for one in configurations if one not in done]
    found = list(known)
    if left:
        find_core()  # compiled before processes begin, all of which would
    if progress is not None:
        progress(len(found), len(configurations))
    for part in workers.run(evaluate, left):
        found.extend(part)
        if journal is not None:
            journal.add(part)
        if progress is not None:
            progress(len(found), len(configurations))
    return rank(found), len(known)


_CHUNKS_PER_WORKER = 8
_LARGEST_CHUNK = 64
_CONNECT_TIMEOUT_S = 10
_HERE_S = 1.5  # Most spaces are done before another process would have started


class LocalWorkers:
    """Workers in processes of this machine.

    Args:
        count: how many; None for as many as this process may use cores.
        here_s: seconds for which configurations are evaluated in this process before others are started; 0 for none.
    """

    def __init__(self, count: int | None = None, *, here_s: float = _HERE_S) -> None:
        self._count = count or count_cores()
        self._here_s = here_s

    def run(self, evaluate: Evaluate, configurations: Sequence[Configuration]) -> Iterator[list[RankedConfiguration]]:
        """See :class:`Workers`.

        Raises:
            ToolError: a process died.
        """
        end_s = work_time() + self._here_s
        done = 0
        while done < len(configurations) and (self._count == 1 or work_time() < end_s):
            yield evaluate_each(evaluate, [configurations[done]])
            done += 1
        left = configurations[done:]
        if not left:
            return
        chunks = split(left, self._count)
        yield from run_parts(partial(evaluate_each, evaluate), chunks, count=self._count, title="exploration process")


class DaskWorkers:
    """Workers on a Dask cluster.

    Args:
        address: of its scheduler, e.g. ``tcp://127.0.0.1:8786``. Its workers need this package, in the same version.

    Raises:
        MissingToolError: distributed is not installed here.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._distributed = _load_distributed()

    def run(self, evaluate: Evaluate, configurations: Sequence[Configuration]) -> Iterator[list[RankedConfiguration]]:
        """See :class:`Workers`.

        Raises:
            InputError: no scheduler answers there, or it has no workers.
            ToolError: the cluster gave up on a part.
        """
        with self._connect() as client:
            cores = sum(client.ncores().values())
            if not cores:
                message = "the scheduler has no workers"
                raise InputError(message, place=self._address, remedy="start some with dask worker")
            shared = client.scatter(evaluate, broadcast=True)
            chunks = split(configurations, cores)
            futures = client.map(evaluate_each, [shared] * len(chunks), chunks, pure=False)
            try:
                for future in self._distributed.as_completed(futures, loop=client.loop):
                    yield self._take(future)
            finally:
                client.cancel(futures)

    def _connect(self) -> Any:
        try:
            return self._distributed.Client(self._address, timeout=_CONNECT_TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            message = f"no Dask scheduler answers: {error}"
            remedy = "give the address that dask scheduler prints, such as tcp://127.0.0.1:8786"
            raise InputError(message, place=self._address, remedy=remedy) from error

    def _take(self, future: Any) -> list[RankedConfiguration]:
        try:
            found: list[RankedConfiguration] = future.result()
        except Exception as error:  # any failure over there, a version that differs above all
            hint = f"{type(error).__name__}: {error}; do its workers have the same version of gpa-lsp?"
            raise ToolError("Dask cluster", hint) from error
        return found


def _load_distributed() -> Any:
    try:
        import distributed  # an optional dependency, and slow to import
    except ImportError as error:
        install = "install gpa-lsp[dask]"
        raise MissingToolError("distributed", needed_for="exploring on a Dask cluster", install=install) from error
    return distributed


def split(configurations: Sequence[Configuration], workers: int) -> list[tuple[Configuration, ...]]:
    """Chunks of about equal size: several per worker, because they take different times.

    >>> from gpa_lsp.execution.prediction.exploration.model import Configuration
    >>> [len(chunk) for chunk in split([Configuration(block=(1, 1, 1))] * 20, 1)]
    [3, 3, 3, 3, 3, 3, 2]
    """
    size = min(_LARGEST_CHUNK, -(-len(configurations) // (_CHUNKS_PER_WORKER * workers)))
    return [tuple(configurations[start : start + size]) for start in range(0, len(configurations), max(1, size))]
