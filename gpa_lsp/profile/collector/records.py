"""Records that the injected library wrote: a file for each process, which may end anywhere.

A file begins with eight bytes that name the format. Records follow: kind, length and CRC-32 (begun with the kind), then what they hold, as
``injection/rows.h`` has it. A process that was killed leaves a record half written at most; everything before it counts.
"""

import mmap
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.foundation.errors import InputError, Problem
from gpa_lsp.foundation.numbers import format_bytes, format_count_of

NAME = "gpa_lsp_collector.so"  # of the library that is injected
MAGIC = b"GPAROWS1"
_HEAD = struct.Struct("<III")
_PROCESS = struct.Struct("<IIQiI")
_CONTEXT = struct.Struct("<10I")
_FUNCTION = struct.Struct("<IIQ")
_MODULE = struct.Struct("<QQII")
_TROUBLE = struct.Struct("<Ii")
_PATH = struct.Struct("<III")
_SAMPLES = struct.Struct("<IIQQQ")
_PAIR = struct.Struct("<II")


class Record(IntEnum):
    """Kinds of record, as in ``injection/rows.h``."""

    PROCESS = 1
    TEXT = 2
    CONTEXT = 3
    REASONS = 4
    MODULE = 5
    FUNCTION = 6
    SAMPLES = 7
    LAUNCH = 8
    KERNEL = 9
    PATH = 11
    TROUBLE = 12
    END = 13


class TroubleKind(IntEnum):
    """Kinds of failure, as in ``injection/rows.h``."""

    NO_CUPTI = 1
    SUBSCRIBER = 2
    ENABLE = 3
    CONFIGURE = 4
    DRAIN = 5
    BUFFER_FULL = 6
    ROWS = 7
    ACTIVITY = 8
    PATHS = 9
    LATE = 10


class Mode(IntEnum):
    """Measurement modes of a context."""

    TIMING = 0
    SERIALIZED = 1
    CONTINUOUS = 2


FLAG_GRAPH, FLAG_SAMPLED = 1, 2

LAUNCH_ROW = np.dtype(
    [
        ("correlation", "<u4"), ("outer", "<u4"), ("context", "<u4"), ("path", "<u4"), ("flags", "<u4"), ("kernel", "<u4"),
        ("grid", "<u4", 3), ("block", "<u4", 3), ("shared_bytes", "<u4"), ("thread", "<u4"), ("time_ns", "<u8"),
    ]
)  # fmt: skip
KERNEL_ROW = np.dtype(
    [
        ("correlation", "<u4"), ("device", "<u4"), ("context", "<u4"), ("stream", "<u4"), ("kernel", "<u4"), ("registers", "<u4"),
        ("grid", "<i4", 3), ("block", "<i4", 3), ("static_bytes", "<i4"), ("dynamic_bytes", "<i4"),
        ("local_bytes", "<u4"), ("unused", "<u4"), ("start_ns", "<u8"), ("end_ns", "<u8"),
    ]
)  # fmt: skip
SAMPLE_ROW = np.dtype(
    [("function", "<u4"), ("correlation", "<u4"), ("offset", "<u4"), ("reason", "<u4"), ("samples", "<u4")]
)
_NATIVE_ROW = np.dtype([("image", "<u8"), ("offset", "<u8")])
_PYTHON_ROW = np.dtype([("file", "<u4"), ("function", "<u4"), ("line", "<u4")])


class Trouble(Struct, frozen=True, kw_only=True):
    """A failure that the library recorded."""

    kind: TroubleKind | None  # None for one that a later version writes
    number: int  # CUPTI's result, or the system's
    where: str  # the function, or the thing


class CollectedContext(Struct, frozen=True, kw_only=True):
    """A CUDA context."""

    number: int  # CUPTI's
    mode: Mode  # what was done, whatever was asked for
    capability: tuple[int, int] | None  # compute capability; None when not known
    sm_count: int  # 0 when not known
    clock_khz: int  # 0 when not known
    period_exponent: int  # 2 to its power are the cycles between two samples; 0 when not known
    device: str  # name of the GPU


class CollectedPath(Struct, frozen=True, kw_only=True):
    """A calling context, innermost frame first."""

    # image and offset of each return address; the image is empty where nobody knows
    native: tuple[tuple[str, int], ...] = ()
    python: tuple[tuple[str, str, int], ...] = ()  # file, function and line of each Python frame of the thread


class CollectedProcess(Struct):
    """Records of one process; see :class:`Record`."""

    path: Path  # the file
    process_id: int = 0  # of the system; 0 when the file ends before it is said
    api_version: int = 0  # CUPTI's
    unix_ns: int = 0  # when it began
    cupti: str = ""  # the library that was used
    is_complete: bool = False  # it ended by itself
    lost_bytes: int = 0  # at the end of the file, which are no whole record
    texts: dict[int, str] = field(default_factory=dict)
    contexts: dict[int, CollectedContext] = field(default_factory=dict)
    reasons: dict[int, dict[int, str]] = field(default_factory=dict)
    modules: dict[int, int] = field(default_factory=dict)
    # mangled name of each device function in which samples were taken, and hash of its cubin
    functions: dict[int, tuple[str, int]] = field(default_factory=dict)
    paths: dict[int, CollectedPath] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    samples: list[tuple[int, int]] = field(default_factory=list)  # place and length of each batch in the file
    launches: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(0, LAUNCH_ROW))
    kernels: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(0, KERNEL_ROW))

    def read_batches(self) -> Iterator[tuple[int, tuple[int, int, int], npt.NDArray[np.void]]]:
        """Samples, batch by batch; only one is in memory.

        A context's number; the collector's own count, what was lost in the GPU and what is of code that is not the user's; and :data:`SAMPLE_ROW`.
        """
        if not self.samples:
            return
        with _map_file(self.path) as content:
            for start, size in self.samples:
                context, count, total, dropped, foreign = _SAMPLES.unpack_from(content, start)
                held = min(count, (size - _SAMPLES.size) // SAMPLE_ROW.itemsize)
                begin = start + _SAMPLES.size
                rows = np.frombuffer(bytes(content[begin : begin + held * SAMPLE_ROW.itemsize]), SAMPLE_ROW)
                yield context, (total, dropped, foreign), rows


def read_processes(folder: Path) -> list[CollectedProcess]:
    """All processes that wrote records into a folder, in the order in which they began."""
    found = [read_process(path) for path in sorted(folder.glob("process-*.rows"))]
    return sorted(found, key=lambda process: (process.unix_ns, process.process_id))


def read_process(path: Path) -> CollectedProcess:
    """Read the file of one process.

    Raises:
        InputError: it is not such a file.
    """
    process = CollectedProcess(path=path)
    if path.stat().st_size == 0:
        return process  # killed before anything was handed over
    with _map_file(path) as content:
        if content[: len(MAGIC)] != MAGIC[: len(content)]:
            raise InputError("is not a file of collected rows", path=path, remedy="measure again")
        _Reader(process, content).read()
    return process


@contextmanager
def _map_file(path: Path) -> Iterator[mmap.mmap]:
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        yield content


class _Reader:
    """One pass over a file."""

    def __init__(self, process: CollectedProcess, content: mmap.mmap) -> None:
        self._process = process
        self._content = content
        self._launches = bytearray()
        self._kernels = bytearray()

    def read(self) -> None:
        at, end = len(MAGIC), len(self._content)
        while at + _HEAD.size <= end:
            kind, size, checksum = _HEAD.unpack_from(self._content, at)
            begin = at + _HEAD.size
            if begin + size > end or zlib.crc32(self._content[begin : begin + size], kind) != checksum:
                break
            at = begin + size
            try:
                self._take(kind, begin, size)
            except (struct.error, ValueError):
                self._process.troubles.append(Trouble(kind=None, number=kind, where="record"))
        self._process.lost_bytes = end - at
        self._process.launches = np.frombuffer(bytes(self._launches), LAUNCH_ROW)
        self._process.kernels = np.frombuffer(bytes(self._kernels), KERNEL_ROW)

    def _take(self, kind: int, begin: int, size: int) -> None:
        if kind == Record.SAMPLES:
            if size >= _SAMPLES.size:
                self._process.samples.append((begin, size))
            return
        content = self._content[begin : begin + size]
        if kind == Record.LAUNCH and size == LAUNCH_ROW.itemsize:
            self._launches += content
        elif kind == Record.KERNEL and size == KERNEL_ROW.itemsize:
            self._kernels += content
        elif kind == Record.END:
            self._process.is_complete = True
        elif (take := _TAKERS.get(kind)) is not None:
            take(self, content)

    def take_process(self, content: bytes) -> None:
        process = self._process
        process.process_id, process.api_version, process.unix_ns, _, _ = _PROCESS.unpack_from(content)
        process.cupti = _decode(content[_PROCESS.size :])

    def take_text(self, content: bytes) -> None:
        (number,) = struct.unpack_from("<I", content)
        self._process.texts[number] = _decode(content[4:])

    def take_context(self, content: bytes) -> None:
        number, _, mode, major, minor, sm_count, clock_khz, period, name, _ = _CONTEXT.unpack_from(content)
        self._process.contexts[number] = CollectedContext(
            number=number,
            mode=Mode(mode),
            capability=(major, minor) if major else None,
            sm_count=sm_count,
            clock_khz=clock_khz,
            period_exponent=period,
            device=self._process.texts.get(name, ""),
        )

    def take_reasons(self, content: bytes) -> None:
        context, count = _PAIR.unpack_from(content)
        words = np.frombuffer(content, "<u4", count * 2, _PAIR.size)
        names = [self._process.texts.get(int(number), "") for number in words[count:]]
        self._process.reasons[context] = dict(zip(words[:count].tolist(), names, strict=True))

    def take_module(self, content: bytes) -> None:
        digest, size, _, _ = _MODULE.unpack_from(content)
        self._process.modules[digest] = size

    def take_function(self, content: bytes) -> None:
        number, _, module = _FUNCTION.unpack_from(content)
        name = _decode(content[_FUNCTION.size :])
        self._process.functions[number] = (name, module)

    def take_path(self, content: bytes) -> None:
        number, native_count, python_count = _PATH.unpack_from(content)
        native = np.frombuffer(content, _NATIVE_ROW, native_count, _PATH.size)
        python = np.frombuffer(content, _PYTHON_ROW, python_count, _PATH.size + native_count * _NATIVE_ROW.itemsize)
        texts: Mapping[int, str] = self._process.texts
        self._process.paths[number] = CollectedPath(
            native=tuple((texts.get(image, ""), offset) for image, offset in native.tolist()),
            python=tuple(
                (texts.get(file, ""), texts.get(function, ""), line) for file, function, line in python.tolist()
            ),
        )

    def take_trouble(self, content: bytes) -> None:
        kind, number = _TROUBLE.unpack_from(content)
        known = TroubleKind(kind) if kind in TroubleKind._value2member_map_ else None
        where = _decode(content[_TROUBLE.size :])
        self._process.troubles.append(Trouble(kind=known, number=number, where=where))


_TAKERS: Mapping[int, Callable[[_Reader, bytes], None]] = {
    Record.PROCESS: _Reader.take_process,
    Record.TEXT: _Reader.take_text,
    Record.CONTEXT: _Reader.take_context,
    Record.REASONS: _Reader.take_reasons,
    Record.MODULE: _Reader.take_module,
    Record.FUNCTION: _Reader.take_function,
    Record.PATH: _Reader.take_path,
    Record.TROUBLE: _Reader.take_trouble,
}


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "replace")


_FORBIDDEN = frozenset({35, 40})  # CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, and the same on a virtual GPU
# CUPTI_ERROR_NOT_SUPPORTED, VIRTUALIZED_DEVICE_NOT_SUPPORTED, OLD_PROFILER_API_INITIALIZED, LEGACY_PROFILER_NOT_SUPPORTED
_UNSUPPORTED = frozenset({27, 33, 36, 38})
_ALREADY_SUBSCRIBED = 39  # CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
_NOT_FOUND = "libcupti.so"


def is_forbidden(processes: Iterable[CollectedProcess]) -> bool:
    """Whether the driver denied sampling."""
    troubles = (trouble for process in processes for trouble in process.troubles)
    return any(
        trouble.kind in (TroubleKind.ENABLE, TroubleKind.CONFIGURE) and trouble.number in _FORBIDDEN
        for trouble in troubles
    )


def is_buffer_full(processes: Iterable[CollectedProcess]) -> bool:
    """Whether samples were lost because a buffer of the GPU ran full."""
    return any(trouble.kind is TroubleKind.BUFFER_FULL for process in processes for trouble in process.troubles)


def describe_troubles(processes: Sequence[CollectedProcess]) -> list[Problem]:
    """Each kind of failure once, however many processes had it; and premature ends."""
    troubles = dict.fromkeys(trouble for process in processes for trouble in process.troubles)
    found = [_describe(trouble) for trouble in troubles]
    return list(dict.fromkeys([*found, *_describe_ends(processes)]))


def _describe_ends(processes: Sequence[CollectedProcess]) -> Iterator[Problem]:
    for process in processes:
        if process.lost_bytes:
            message = f"process {process.process_id} was ended in the middle of a record; {format_bytes(process.lost_bytes)} are left out"
            yield Problem.note(message)
        elif not process.is_complete and not any(
            one.kind in (TroubleKind.SUBSCRIBER, TroubleKind.NO_CUPTI) for one in process.troubles
        ):
            message = f"process {process.process_id} did not end by itself; its last tenth of a second may be missing"
            yield Problem.note(message)


def _describe(trouble: Trouble) -> Problem:
    number = trouble.number
    if trouble.kind in (TroubleKind.NO_CUPTI, TroubleKind.SUBSCRIBER):
        return _describe_start(trouble)
    if trouble.kind in (TroubleKind.ENABLE, TroubleKind.CONFIGURE):
        return _describe_refusal(trouble)
    if trouble.kind is TroubleKind.BUFFER_FULL:
        message = "the GPU's buffer for samples ran full; sampling began again, and the samples in between are lost"
        return Problem.warning(
            message, "take fewer samples (--sampling-interval), or measure a shorter part of the program"
        )
    if trouble.kind is TroubleKind.ROWS:
        message = (
            "what is written of a run was as large as it may become, or the disk was full; what came later is missing"
        )
        return Problem.warning(message, "measure a shorter part of the program, or make room in the cache folder")
    if trouble.kind is TroubleKind.PATHS:
        return Problem.warning(
            "launches come from more places than are told apart; of some the calling context is not known"
        )
    if trouble.kind is TroubleKind.DRAIN and trouble.where == "contexts":
        return Problem.warning(
            f"of more than {number} contexts at once the first are sampled; launches in the others were timed"
        )
    if trouble.kind is TroubleKind.ACTIVITY and trouble.where == "dropped":
        return Problem.warning(f"CUPTI dropped the times of {format_count_of(number, 'kernel')}")
    return Problem.warning(
        f"{trouble.where or 'the collector'} failed (error {number}); some samples or times are missing"
    )


def _describe_start(trouble: Trouble) -> Problem:
    number = trouble.number
    if trouble.kind is TroubleKind.NO_CUPTI:
        what = "no CUPTI was found" if trouble.where == _NOT_FOUND else f"CUPTI, or the driver, lacks {trouble.where}"
        return Problem.error(
            f"nothing was measured: {what}", "pip install 'gpa-lsp[cupti]' of the release of CUDA that the program uses"
        )
    if number != _ALREADY_SUBSCRIBED:
        message = f"nothing was measured: CUPTI did not start (its error {number})"
        return Problem.error(message, "name a CUPTI that is no newer than the driver in GPA_LSP_CUPTI")
    message = f"nothing was measured: another profiler is at work in the program (CUPTI's error {number}), and CUPTI serves one"
    return Problem.error(message, "switch it off: torch.profiler, Proton, Nsight Systems")


def _describe_refusal(trouble: Trouble) -> Problem:
    if trouble.number in _FORBIDDEN:
        message = (
            "the driver lets only administrators read the GPU's performance counters: kernels were timed, not sampled"
        )
        return Problem.warning(
            message, "gpa-lsp profile says how it is allowed; timing, emulation and simulation need no permission"
        )
    if trouble.number in _UNSUPPORTED:
        message = f"CUPTI cannot sample here (error {trouble.number}): kernels were timed, not sampled"
        return Problem.warning(
            message, "MPS, MIG, WSL, virtual GPUs and programs that use an older profiling interface are not supported"
        )
    message = f"{trouble.where} failed with CUPTI's error {trouble.number}: kernels were timed, not sampled"
    return Problem.warning(message, "end other profilers on this GPU, or name another CUPTI in GPA_LSP_CUPTI")
