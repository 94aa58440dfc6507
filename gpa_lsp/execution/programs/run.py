"""Runs a program on our CUDA runtime, from start to end: :func:`run_program`."""

import array
import logging
import os
import selectors
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.byte_reader import FileBytes
from gpa_lsp.code.binary.elf import ELF_MAGIC, SYMBOL_DTYPE, ElfImage, read_elf
from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.execution.programs.library import (
    build_host_library,
    build_libraries,
    compile_host_blocks,
    compile_ptx_request,
    find_headers,
    find_host_library,
    find_runtime_compiler,
)
from gpa_lsp.execution.programs.loaded_code import REBUILD
from gpa_lsp.execution.programs.messages import (
    ANSWER_HEAD,
    MOST_REQUEST_BYTES,
    REQUEST_HEAD,
    CudaError,
    MalformedMessage,
    Request,
    parse_hello,
)
from gpa_lsp.execution.programs.model import (
    HostPath,
    KernelRuns,
    LaunchPath,
    LaunchShape,
    MemoryUse,
    ProgramRun,
    RecordedLaunch,
    RunSettings,
)
from gpa_lsp.execution.programs.recording import Recorder
from gpa_lsp.execution.programs.session import KernelTally, LaunchAtWork, Session
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_seconds
from gpa_lsp.foundation.processes.search_paths import find_program
from gpa_lsp.foundation.processes.watched_command import (
    TEMPORARY,
    CommandEnd,
    Ending,
    TimeLimits,
    WatchedCommand,
    describe_signal,
)
from gpa_lsp.gpu.device.products import find_product, note_choice

SOCKET_VARIABLE = "GPA_LSP_RUNTIME_SOCKET"
_PRELOAD = "LD_PRELOAD"
_LIBRARIES = "LD_LIBRARY_PATH"
_POLL_S = 0.05
_TOLD_EVERY_S = 20.0
_SEPARATORS = set(" \t:")  # Of what is preloaded
_TEMPORARY_FOLDERS = ("/tmp", "/dev/shm")  # Where that of the environment has too long a name


class Surroundings(Struct, frozen=True, kw_only=True):
    """Folder, streams and callbacks of a program run."""

    folder: Path  # it runs in
    # descriptors that become its standard input, output and error; None for no input, and ``take`` for the others
    streams: tuple[int, int, int] | None = None
    # gets what it prints, both streams together, where it has no streams of its own
    take: Callable[[bytes], object] = lambda piece: None
    tell: Callable[[str], object] = lambda sentence: None  # told what is to be known before it starts, a sentence each
    is_cancelled: Callable[[], bool] = lambda: False  # asked again and again; True ends it


def run_program(
    command: Sequence[str],
    settings: RunSettings,
    surroundings: Surroundings,
    *,
    records: Callable[[], Path] | None = None,
    others: Callable[[], Path] | None = None,
) -> ProgramRun:
    """Run a command and emulate its launches. Ctrl-C ends it and keeps what was found until then.

    Args:
        command: program and arguments; no shell parses them.
        records: called once the program has ended, gives the folder for the heaviest launch of each kernel; None to keep none.
        others: as ``records``, the folder for further launches of each kernel, to compare them; None to keep none.

    Raises:
        InputError: there is no such program or GPU; or the program cannot run on our runtime, and how to rebuild it.
        MissingToolError: there is no C compiler.
        ToolError: the runtime library could not be compiled.
        GpaError: this system has no memory files (it is no Linux).
    """
    if not hasattr(os, "memfd_create"):
        raise GpaError("programs can be run on Linux only; kernels are emulated everywhere: gpa-lsp predict SOURCE")
    product = find_product(settings.machine)
    program = examine_program(_find(command[0], surroundings.folder))
    built_ns = time.time_ns() if program.runtime is None else program.path.stat().st_mtime_ns
    headers = find_headers(program.path, program.runtime)
    computed = {name: library for name in program.needed if (library := find_host_library(name))}
    early = [f"kernels of {name} come as machine code, and are not emulated" for name in program.libraries]
    early += [library.describe() for library in computed.values()]
    early += note_choice(settings.machine)
    for sentence in early:
        surroundings.tell(sentence)
    recorder = None if records is None else Recorder(settings.record_bytes, settings.recorded_launch)
    with _make_private_folder() as private:
        libraries = [*build_libraries(headers, private, tell=surroundings.tell)]
        libraries += [
            build_host_library(library, headers, private / name, wanted=program.undefined, tell=surroundings.tell)
            for name, library in computed.items()
        ]
        libraries += [compile_host_blocks(private)] if settings.follows_memory else []
        libraries += [compile_ptx_request(private)] if _uses_runtime_compiler(program.needed) else []
        started = time.monotonic()
        deadline = time.process_time() + settings.limit_s
        watch = None if recorder is None else recorder.watch
        server = RuntimeServer(
            private, lambda: Session(settings, product, folder=private, deadline=deadline, watch=watch)
        )
        server.start()
        try:
            progress = _Progress(server, deadline, settings.limit_s, surroundings.tell)
            environment = _make_environment(libraries, server.path, program.needed)
            end = _run([str(program.path), *command[1:]], environment, surroundings, private, progress)
        finally:
            server.close()
        stacks = [describe_paths(session) for session in server.sessions]
        kernels = _sum_kernels(server.sessions, stacks, recorder, records, others)
    notes = [note for session in server.sessions for note in session.notes]
    return ProgramRun(
        end=end,
        machine=product.name,
        kernels=kernels,
        notes=tuple(dict.fromkeys([*early, *notes, *server.failures])),
        seconds=time.monotonic() - started,
        peak_bytes=max((session.peak_bytes for session in server.sessions), default=0),
        refused=tuple(dict.fromkeys(why for session in server.sessions for why in session.refused)),
        crash=_describe_crash(end, server.sessions),
        memory=_tell_memory(server.sessions, stacks, _find_doubt(end, kernels)),
        built_ns=built_ns,
    )


def _sum_kernels(
    sessions: Sequence[Session],
    stacks: Sequence[dict[int, HostPath]],
    recorder: Recorder | None,
    records: Callable[[], Path] | None,
    others: Callable[[], Path] | None,
) -> tuple[KernelRuns, ...]:
    launched = [
        (tally, paths)
        for session, paths in zip(sessions, stacks, strict=True)
        for tally in session.kernels.values()
        if tally.launches
    ]
    folder, more = (None if made is None or not launched else made() for made in (records, others))
    return tuple(_sum(tally, paths, recorder, folder, more) for tally, paths in launched)


def _sum(
    tally: KernelTally, paths: Mapping[int, HostPath], recorder: Recorder | None, folder: Path | None, more: Path | None
) -> KernelRuns:
    recorded, unrecorded = None, ""
    others: tuple[RecordedLaunch, ...] = ()
    if recorder is not None and folder is not None:
        try:
            recorded, unrecorded = recorder.write(tally, folder), recorder.explain(tally)
        except OSError as error:
            unrecorded = f"it cannot be written: {error.strerror or error}"
    if recorder is not None and more is not None:
        with suppress(OSError):  # already reported for the heaviest launch
            others = recorder.write_others(tally, more)
    name = tally.facts.kernel.name
    return KernelRuns(
        mangled_name=name,
        name=demangle(name),
        launches=tally.launches,
        emulated=tally.emulated,
        skipped=tally.skipped,
        warp_instructions=tally.warp_instructions,
        seconds=tally.seconds,
        shapes=tuple(
            LaunchShape(grid=grid, block=block, shared_bytes=shared, launches=count)
            for (grid, block, shared), count in tally.shapes.most_common()
        ),
        faults=tuple(tally.faults.values()),
        unfinished=tuple(tally.unfinished),
        recorded=recorded,
        unrecorded=unrecorded,
        others=others,
        paths=tuple(
            LaunchPath(path=paths.get(number, ()), launches=count) for number, count in tally.paths.most_common()
        ),
    )


def describe_paths(session: Session) -> dict[int, HostPath]:
    """Frames of the host's call paths of launches and allocations, by number."""
    # imported here: what reads profiles is not needed before a program has ended
    from gpa_lsp.profile.collector.document import build_call_stacks

    wanted = session.ledger.list_paths().union(*(tally.paths for tally in session.kernels.values()))
    return build_call_stacks({number: session.paths[number] for number in wanted if number in session.paths})


def _find_doubt(end: CommandEnd, kernels: Sequence[KernelRuns]) -> str:
    """Reason why memory use may differ from that on a GPU, a clause; empty if there is none."""
    if any(kernel.emulated < kernel.launches for kernel in kernels):
        return "not all launches ran to their end"
    if any(kernel.faults for kernel in kernels):
        return "kernels did something wrong"
    return "" if end.status == 0 else "the program did not end well"


def _tell_memory(sessions: Sequence[Session], stacks: Sequence[Mapping[int, HostPath]], doubt: str) -> MemoryUse:
    """Memory use of all processes; peaks are those of the process with the largest."""
    parts = [session.ledger.tell(paths, is_judged=not doubt) for session, paths in zip(sessions, stacks, strict=True)]
    most = max(parts, key=lambda one: one.peak_bytes, default=MemoryUse())
    return replace(most, sites=tuple(site for one in parts for site in one.sites), unjudged=doubt)


def _describe_crash(end: CommandEnd, sessions: Sequence[Session]) -> str:
    """Sentence about the signal that ended the program and its cause; empty if none did."""
    left = [(session, session.last_words) for session in sessions if session.last_words is not None]
    session, words = next(((one, words) for one, words in left if words.signal), left[-1] if left else (None, None))
    number = -end.status if end.status is not None and end.status < 0 else words.signal if words is not None else 0
    if not number:
        return ""
    said = f"the program was ended by {describe_signal(number)}"
    if session is not None and words is not None and words.signal == number:
        said += f": its host code accessed {session.describe_place(words.address)}"
    return said + (f"; the last function of CUDA that it called was {words.call}" if words and words.call else "")


class RuntimeServer:
    """Answers the processes of a program, until it is closed.

    Args:
        folder: private; the socket is made in it.
        open_session: makes the session of a process.

    Attributes:
        path: of the socket.
        sessions: all that there were, in order.
        failures: what went wrong between the two, a sentence each.
    """

    def __init__(self, folder: Path, open_session: Callable[[], Session]) -> None:
        self.path = folder / SOCKET_NAME
        self._open_session = open_session
        self.sessions: list[Session] = []
        self.failures: dict[str, None] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen(_MOST_PROCESSES)
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="runtime", daemon=True)

    def start(self) -> None:
        """Begin to answer, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more. A launch at work is ended."""
        self._is_closing = True
        for session in list(self.sessions):
            session.end_launches()
        self._thread.join()
        self._listener.close()
        for session in self.sessions:
            session.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._is_closing:
                for key, _ in selector.select(_TICK_S):
                    if key.fileobj is self._listener:
                        self._accept(selector)
                        continue
                    session, connection = key.data
                    if not self._answer(session, connection):
                        selector.unregister(connection)
                        connection.close()
                        session.close()
            for key in list(selector.get_map().values()):
                if key.fileobj is not self._listener:
                    key.data[1].close()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        connection, _ = self._listener.accept()
        if sum(not session.is_closed for session in self.sessions) >= _MOST_PROCESSES:
            self._refuse(connection, f"more than {_MOST_PROCESSES} processes asked for the GPU at once")
            return
        connection.settimeout(_SILENCE_S)
        try:
            session = self._open_session()
        except (OSError, ValueError) as error:
            self._refuse(connection, f"no device memory could be made ({error})")
            return
        self.sessions.append(session)
        selector.register(connection, selectors.EVENT_READ, (session, connection))

    def _refuse(self, connection: socket.socket, why: str) -> None:
        self.failures[f"{why}; a process had no GPU"] = None
        connection.close()

    def _answer(self, session: Session, connection: socket.socket) -> bool:
        """Answer one request; False if the process is gone, or violates the protocol."""
        try:
            head = _receive(connection, REQUEST_HEAD.size)
            if head is None:
                return False
            request, size = REQUEST_HEAD.unpack(head)
            if size > MOST_REQUEST_BYTES:
                raise MalformedMessage("a request of more than 1 GiB")
            payload = _receive(connection, size)
            if payload is None:
                return False
            if request == Request.HELLO:
                session.process, _ = parse_hello(payload)
                facts = session.describe_device().pack()
                connection.sendall(ANSWER_HEAD.pack(CudaError.SUCCESS, len(facts)) + facts)
                files = array.array("i", [session.file])
                connection.sendmsg([b"m"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files.tobytes())])
                return True
            error, answer = session.answer(request, payload)
            connection.sendall(ANSWER_HEAD.pack(error, len(answer)) + answer)
        except OSError:
            return False
        except GpaError as failure:
            self.failures[f"the program and the emulator did not understand each other: {failure}"] = None
            return False
        except Exception as failure:  # a defect of ours costs this process its GPU, not the person the answer
            _LOG.exception("a request of the program failed")
            self.failures[f"the emulator failed ({failure!r}); please report it"] = None
            return False
        return True


class _Progress:
    """Reports the progress of long launches, and when the time limit will end the program first.

    Args:
        end: of the run, by this process' processor time.
        limit_s: seconds of processor time that the program may take.
    """

    def __init__(self, server: RuntimeServer, end: float, limit_s: float, tell: Callable[[str], object]) -> None:
        self._server = server
        self._tell = tell
        self._end = end
        self.limit_s = limit_s
        self._told = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Emulating has taken all the time there is."""
        return time.process_time() >= self._end

    def look(self) -> None:
        """Report, if it is time to."""
        now = time.monotonic()
        if now - self._told < _TOLD_EVERY_S:
            return
        for session in list(self._server.sessions):
            launch = session.describe_work()
            if launch is not None and now - launch.started >= _TOLD_EVERY_S / 2:
                self._told = now
                self._tell(self._describe(launch, now))

    def _describe(self, launch: LaunchAtWork, now: float) -> str:
        took_s = now - launch.started
        done = f"{format_count(launch.finished)} of {format_count_of(launch.blocks, 'block')}"
        said = f"launch {format_count(launch.number)} of {demangle(launch.kernel)} has done {done} in {format_seconds(round(took_s))}"
        if not launch.finished:
            return said
        left_s = took_s / launch.finished * (launch.blocks - launch.finished)
        said += f", about {format_seconds(round(left_s))} to go"
        if time.process_time() + left_s > self._end:
            said += f"; the program is ended before that, after {format_seconds(self.limit_s)} of processor time: --seconds gives it longer"
        return said


def _run(
    words: Sequence[str], environment: dict[str, str], surroundings: Surroundings, private: Path, progress: _Progress
) -> CommandEnd:
    running = WatchedCommand(
        words,
        folder=surroundings.folder,
        environment=environment,
        limits=TimeLimits.for_work(progress.limit_s),
        take=surroundings.take,
        streams=surroundings.streams,
        temporary=private,
    )
    try:
        with suppress(KeyboardInterrupt):
            while not wait([running.future], _POLL_S).done and not (surroundings.is_cancelled() or progress.is_over):
                progress.look()
    finally:
        running.cancel()
    end = running.future.result()
    return replace(end, ending=Ending.TIMED_OUT) if progress.is_over and end.ending is Ending.CANCELLED else end


@contextmanager
def _make_private_folder() -> Iterator[Path]:
    """A folder that only we may enter, with a name short enough for a socket in it."""
    wanted = [tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR", ""), *_TEMPORARY_FOLDERS]
    name_bytes = len(f"/{TEMPORARY}12345678/{SOCKET_NAME}")
    fitting = [
        one
        for one in wanted
        if one and len(os.fsencode(one)) + name_bytes < MOST_PATH_BYTES and not set(one) & _SEPARATORS
    ]
    for parent in fitting:
        try:
            made = tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=parent, ignore_cleanup_errors=True)
        except OSError:
            continue
        with made as name:
            yield Path(name)
        return
    raise GpaError(f"no folder for temporary files can be written to: {', '.join(filter(None, wanted))}")


def _find(word: str, folder: Path) -> Path:
    path = folder / word if os.sep in word else find_program(word)
    if path is None or not path.is_file():
        raise InputError(
            "there is no such program", path=Path(word), remedy="give the program and its arguments after two dashes"
        )
    if not os.access(path, os.X_OK):
        remedy = "give a built program, or a CUDA C++ source (.cu) to compile and run"
        raise InputError("is not a program", path=Path(word), remedy=remedy)
    return path.absolute()


def _make_environment(libraries: Sequence[Path], socket: Path, needed: Sequence[str]) -> dict[str, str]:
    environment = dict(os.environ)
    compiler = find_runtime_compiler() if _uses_runtime_compiler(needed) else None
    environment[SOCKET_VARIABLE] = str(socket)
    environment[_PRELOAD] = " ".join(filter(None, (*map(str, libraries), environment.get(_PRELOAD, ""))))
    folders = (
        str(libraries[0].parent),
        environment.get(_LIBRARIES, ""),
        "" if compiler is None else str(compiler.parent),
    )
    environment[_LIBRARIES] = os.pathsep.join(filter(None, folders))
    return environment


def _uses_runtime_compiler(needed: Sequence[str]) -> bool:
    return any(name.startswith(_RUNTIME_COMPILER) for name in needed)


_LOG = logging.getLogger(__name__)
SOCKET_NAME = "runtime"
MOST_PATH_BYTES = 100  # Of a socket, with some to spare; Linux takes 107
_MOST_PROCESSES = 64
_TICK_S = 0.2
_SILENCE_S = 20.0  # In the middle of a request; then the process is taken for dead
_PIECE_BYTES = 1 << 20


def _receive(connection: socket.socket, size: int) -> bytes | None:
    """Read exactly *size* bytes; None if the process is gone before."""
    pieces = []
    while size > 0:
        piece = connection.recv(min(size, _PIECE_BYTES))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


_RUNTIME = "libcudart.so."
_RUNTIME_COMPILER = "libnvrtc.so."  # which packages put where no loader looks
_DEVICE_CODE = (".nv_fatbin", ".nvFatBinSegment", "__nv_relfatbin")
_DYNAMIC = 6  # ``sh_type`` of ``.dynamic``
_NEEDED = 1  # ``d_tag`` of a library that is asked for
_DYNAMIC_DTYPE = np.dtype([("tag", "<i8"), ("value", "<u8")])
_LIBRARIES_OF_CUDA = {
    "libcublasLt": "cuBLAS",
    "libcudnn": "cuDNN",
    "libcusparse": "cuSPARSE",
    "libcusolver": "cuSOLVER",
    "libnccl": "NCCL",
    "libtorch_cuda": "PyTorch",
}


class ProgramFile(Struct, frozen=True, kw_only=True):
    """Libraries and symbols that a program needs."""

    path: Path
    runtime: str | None  # the runtime library it is linked with, such as ``libcudart.so.13``; None if with none
    libraries: tuple[str, ...] = ()  # NVIDIA's libraries of machine code it uses, whose kernels cannot run here
    needed: tuple[str, ...] = ()  # file names of all libraries it is linked with
    undefined: tuple[str, ...] = ()  # symbols it expects of them


def examine_program(path: Path) -> ProgramFile:
    """Read what a program needs.

    Raises:
        InputError: it cannot be read; or it was built in a way that cannot run here, and how to build it.
    """
    with FileBytes(path) as data:
        if data[:4] != ELF_MAGIC:
            return ProgramFile(path=path, runtime=None)
        elf = read_elf(data, path=path)
        needed = _list_needed(elf)
        undefined = _list_undefined(elf)
    runtime = next((name for name in needed if name.startswith(_RUNTIME)), None)
    if runtime is None and any(name in elf.section_names for name in _DEVICE_CODE):
        raise InputError(
            "brings NVIDIA's runtime library with it (nvcc's default), so no other can take its place",
            path=path,
            remedy=REBUILD,
        )
    stems = (name.partition(".so")[0] for name in needed)
    libraries = dict.fromkeys(_LIBRARIES_OF_CUDA[stem] for stem in stems if stem in _LIBRARIES_OF_CUDA)
    return ProgramFile(
        path=path, runtime=runtime, libraries=tuple(libraries), needed=tuple(needed), undefined=undefined
    )


def _list_undefined(elf: ElfImage) -> tuple[str, ...]:
    """Undefined dynamic symbols."""
    index = elf.find_section(".dynsym")
    if index is None:
        return ()
    content = elf.section_bytes(index)
    symbols = np.frombuffer(content, SYMBOL_DTYPE, count=len(content) // SYMBOL_DTYPE.itemsize)
    strings = elf.read_strings(int(elf.sections[index]["link"]))
    return tuple(strings.read(offset) for offset in symbols["name"][symbols["section"] == 0].tolist() if offset)


def _list_needed(elf: ElfImage) -> list[str]:
    """Names of the shared libraries that a program is linked with."""
    found = []
    for index in np.flatnonzero(elf.sections["type"] == _DYNAMIC):
        content = elf.section_bytes(int(index))
        rows = np.frombuffer(content, _DYNAMIC_DTYPE, count=len(content) // _DYNAMIC_DTYPE.itemsize)
        strings = elf.read_strings(int(elf.sections[index]["link"]))
        found += [strings.read(offset) for offset in rows["value"][rows["tag"] == _NEEDED].tolist()]
    return found
