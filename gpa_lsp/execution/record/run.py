"""Recording a program from its start to its end: :func:`record_program`."""

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.record.describe import describe_launches
from gpa_lsp.execution.record.library import (
    BYTES_VARIABLE,
    FOLDER_VARIABLE,
    LAUNCH_VARIABLE,
    build_recorder,
    find_driver,
)
from gpa_lsp.execution.record.model import Recorded, RecordSettings
from gpa_lsp.execution.record.python_programs import add_to_environment, read_held_kernels
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.processes.search_paths import find_program
from gpa_lsp.foundation.processes.time_limits import TimeLimits
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, CommandEnd, WatchedCommand

_PRELOAD = "LD_PRELOAD"
_POLL_S = 0.05


class RecordedProgram(Struct, frozen=True, kw_only=True):
    """What a program did."""

    end: CommandEnd  # how it ended
    launches: tuple[Recorded, ...]  # one of each kernel, as far as they were recorded


def record_program(
    command: Sequence[str],
    into: Path,
    settings: RecordSettings,
    *,
    limit_s: float,
    streams: tuple[int, int, int] | None = None,
    take: Callable[[bytes], object] = lambda piece: None,
) -> RecordedProgram:
    """Run a program on this computer's GPU and record what it launches. Ctrl-C ends it, and what was seen until then is described.

    Args:
        command: program and arguments; no shell looks at them.
        into: folder that gets the descriptions, with code and data.
        settings: what is kept.
        limit_s: seconds it may take.
        streams: descriptors that become its standard input, output and error; None for no input, and ``take`` for the others.
        take: gets what it prints, where it has no streams of its own.

    Raises:
        InputError: there is no such program, or the folder cannot be written to.
        MissingToolError: there is no driver, or no C compiler.
        ToolError: the library could not be compiled.
        GpaError: this system is no Linux.
    """
    program = _find(command[0])
    driver = find_driver()
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        private = Path(name)
        raw = private / "raw"
        raw.mkdir()
        environment = dict(os.environ)
        environment[FOLDER_VARIABLE] = str(raw)
        environment[BYTES_VARIABLE] = str(settings.limit_bytes)
        environment[LAUNCH_VARIABLE] = str(settings.number)
        preloaded = environment.get(_PRELOAD, "")
        environment[_PRELOAD] = " ".join(filter(None, (str(build_recorder(driver, private)), preloaded)))
        add_to_environment(environment, private, raw)
        running = WatchedCommand(
            [str(program), *command[1:]],
            folder=Path.cwd(),
            environment=environment,
            limits=TimeLimits.by_clock(limit_s),
            take=take,
            streams=streams,
            temporary=private,
        )
        try:
            with suppress(KeyboardInterrupt):
                while not wait([running.future], _POLL_S).done:
                    pass
        finally:
            running.cancel()
        end = running.future.result()
        return RecordedProgram(end=end, launches=describe_launches(raw, raw, into, read_held_kernels(raw)))


def _find(word: str) -> Path:
    path = Path.cwd() / word if os.sep in word else find_program(word)
    if path is None or not path.is_file():
        raise InputError(
            "there is no such program", path=Path(word), remedy="give the program and its arguments after two dashes"
        )
    return path.absolute()
