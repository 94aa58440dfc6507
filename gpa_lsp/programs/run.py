"""A program, from start to end, on a runtime of ours: :func:`run_program`."""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from pathlib import Path

from gpa_lsp.basis.errors import GpaError, InputError
from gpa_lsp.binary.linkage_names import demangle
from gpa_lsp.compiler.header_folders import find_cuda_headers
from gpa_lsp.device.products import find_product
from gpa_lsp.processes.search_paths import find_program
from gpa_lsp.processes.watched_command import TEMPORARY, WatchedCommand
from gpa_lsp.programs.library import CudaHeaders, build_library, read_headers
from gpa_lsp.programs.model import KernelRuns, LaunchShape, ProgramRun, RecordedLaunch, RunSettings
from gpa_lsp.programs.program_file import ProgramFile, examine_program
from gpa_lsp.programs.recording import Recorder
from gpa_lsp.programs.server import RuntimeServer
from gpa_lsp.programs.session import KernelTally, Session

SOCKET_VARIABLE = "GPA_LSP_RUNTIME_SOCKET"
_PRELOAD = "LD_PRELOAD"
_LIBRARIES = "LD_LIBRARY_PATH"
_POLL_S = 0.05


def run_program(
    command: Sequence[str],
    settings: RunSettings,
    *,
    folder: Path,
    take: Callable[[bytes], object],
    records: Path | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> ProgramRun:
    """Run a command; what it launches is emulated.

    Args:
        command: program and arguments; no shell looks at them.
        settings: how.
        folder: it runs in.
        take: gets what it prints, as it comes.
        records: the heaviest launch of each kernel is written to this folder, with its data; None to keep none.
        is_cancelled: asked again and again; True ends it.

    Raises:
        InputError: there is no such program or GPU; or the program cannot run on our runtime, and how to rebuild it.
        MissingToolError: there are no CUDA headers, or no C compiler.
        ToolError: the runtime library could not be compiled.
        GpaError: this system has no memory files (it is no Linux).
    """
    if not hasattr(os, "memfd_create"):
        raise GpaError("programs can be run on Linux only; kernels are emulated everywhere: gpa-lsp memory SOURCE")
    product = find_product(settings.machine)
    program = examine_program(_find(command[0], folder))
    headers = _find_headers(program)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        private = Path(name)
        library = build_library(headers, private)
        recorder = None if records is None else Recorder(settings.record_bytes)
        deadline = started + settings.limit_s
        watch = None if recorder is None else recorder.watch
        server = RuntimeServer(
            private, lambda: Session(settings, product, folder=private, deadline=deadline, watch=watch)
        )
        server.start()
        try:
            running = WatchedCommand(
                [str(program.path), *command[1:]],
                folder=folder,
                environment=_make_environment(library, server.path),
                limit_s=settings.limit_s,
                take=take,
            )
            try:
                while not wait([running.future], _POLL_S).done:
                    if is_cancelled is not None and is_cancelled():
                        break
            finally:
                running.cancel()
                end = running.future.result()
        finally:
            server.close()
        sessions = server.sessions
        tallies = [tally for session in sessions for tally in session.kernels.values() if tally.launches]
        kernels = tuple(_sum(tally, *_write_record(tally, recorder, records)) for tally in tallies)
    notes = [f"{name} comes as machine code, and is not emulated" for name in program.libraries]
    notes += [note for session in sessions for note in session.notes]
    return ProgramRun(
        end=end,
        machine=product.name,
        kernels=kernels,
        notes=tuple(dict.fromkeys([*notes, *server.failures])),
        seconds=time.monotonic() - started,
        peak_bytes=max((session.peak_bytes for session in sessions), default=0),
    )


def _write_record(
    tally: KernelTally, recorder: Recorder | None, folder: Path | None
) -> tuple[RecordedLaunch | None, str]:
    """What was kept of a kernel, and why nothing was."""
    if recorder is None or folder is None:
        return None, ""
    try:
        return recorder.write(tally, folder), recorder.explain(tally)
    except OSError as error:
        return None, f"it cannot be written: {error.strerror or error}"


def _sum(tally: KernelTally, recorded: RecordedLaunch | None, unrecorded: str) -> KernelRuns:
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
    )


def _find(word: str, folder: Path) -> Path:
    path = folder / word if os.sep in word else find_program(word)
    if path is None or not path.is_file():
        raise InputError("there is no such program", path=Path(word), remedy="give the program and its arguments after two dashes")
    return path.resolve()


def _find_headers(program: ProgramFile) -> CudaHeaders:
    found = [headers for folder in _list_header_folders() if (headers := read_headers(folder)) is not None]
    if not found:
        raise InputError(
            "needs CUDA's headers, and there are none",
            path=program.path,
            remedy="pip install nvidia-cuda-runtime, or install the CUDA toolkit",
        )
    if program.runtime is None:
        return found[0]
    fitting = next((one for one in found if one.soname == program.runtime), None)
    if fitting is None:
        have = ", ".join(dict.fromkeys(one.soname for one in found))
        raise InputError(
            f"was built for {program.runtime}, and the headers here are those of {have}",
            path=program.path,
            remedy="build it with the CUDA toolkit that is installed, or install the headers of its own (CUDA_PATH names their toolkit)",
        )
    return fitting


def _list_header_folders() -> list[Path]:
    toolkits = [Path(os.environ[name]) / "include" for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    return [*toolkits, *find_cuda_headers(), Path("/usr/local/cuda/include"), *sorted(Path("/usr/local").glob("cuda-*/include"))]


def _make_environment(library: Path, socket: Path) -> dict[str, str]:
    environment = dict(os.environ)
    environment[SOCKET_VARIABLE] = str(socket)
    environment[_PRELOAD] = " ".join(filter(None, (str(library), environment.get(_PRELOAD, ""))))
    environment[_LIBRARIES] = os.pathsep.join(filter(None, (str(library.parent), environment.get(_LIBRARIES, ""))))
    return environment
