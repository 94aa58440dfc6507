"""Records launches when the user asks for it: runs their program in the emulator, which they have confirmed, and says what came of it."""

import json
import logging
import os
import shlex
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpa_lsp.editor.permission import Display
from gpa_lsp.editor.protocol.user_runs import Request, UserRuns
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.foundation.processes.python_children import isolate_module
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, Ending, describe_signal
from gpa_lsp.foundation.visible_text import make_one_line, shorten
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.profile.collect.explain import ask_to_record, describe_ending
from gpa_lsp.profile.collect.model import CommandResult, Measurement
from gpa_lsp.profile.collect.variables import Command, Values, expand_command, list_environment

logger = logging.getLogger(__name__)

_MOST_BYTES = 64 << 20
_MOST_NAMES = 6
_MOST_REASONS = 4
_MOST_CHARACTERS = 200
_ERROR = "gpa-lsp: error: "


class RecordedLaunches(Struct, frozen=True, kw_only=True):
    """Result of recording a program's launches."""

    descriptions: tuple[Path, ...]  # that were written
    kernels: tuple[str, ...]  # names of those that have a description now
    left_out: dict[str, tuple[str, ...]]  # names of the others by the reason why
    ending: str  # how the program ended, where it did not end well; else empty

    def describe(self) -> str:
        """Describe what was recorded, what was not and why, and how the program ended, unless it ended well.

        >>> RecordedLaunches(descriptions=(), kernels=("a", "b"), left_out={"too large": ("c",)}, ending="").describe()
        '2 kernels: a, b; not recorded: c (too large)'
        >>> RecordedLaunches(descriptions=(), kernels=(), left_out={}, ending="it timed out").describe()
        'no kernel was launched; it timed out'
        """
        parts = [f"{format_count_of(len(self.kernels), 'kernel')}: {_list_names(self.kernels)}"] if self.kernels else []
        if self.left_out:
            reasons = [f"{_list_names(names)} ({reason})" for reason, names in self.left_out.items()]
            more = len(reasons) - _MOST_REASONS
            parts.append(
                f"not recorded: {', '.join(reasons[:_MOST_REASONS])}{f', and more ({more})' if more > 0 else ''}"
            )
        if not parts:
            parts.append("no kernel was launched")
        return "; ".join([*parts, *filter(None, [self.ending])])


def read_recorded(path: Path) -> RecordedLaunches | None:
    """Read what the command wrote; None where it wrote nothing, or not all of it."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("too large")
        document = json.loads(path.read_bytes())
        described = document["described"]
        left_out: dict[str, list[str]] = defaultdict(list)
        for one in described["left_out"]:
            left_out[_shorten(one["reason"])].append(_name(one["name"]))
        return RecordedLaunches(
            descriptions=tuple(Path(name) for name in described["written"]),
            kernels=tuple(map(_name, described["kernels"])),
            left_out={reason: tuple(names) for reason, names in left_out.items()},
            ending=_describe_end(document["end"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("what was recorded cannot be read: %r", error)
        return None


def explain_failure(result: CommandResult) -> str:
    """Explain why nothing was written: the command's last error, else how it ended."""
    errors = [line for line in result.tail if line.startswith(_ERROR)]
    return _shorten(errors[-1].removeprefix(_ERROR)) if errors else describe_ending(result)


def _describe_end(end: dict[str, Any]) -> str:
    if end["ending"] != "ended":
        return f"the program {_shorten(str(end['ending']))}"
    status = end["status"] or 0
    if status < 0:
        return f"the program was ended by {describe_signal(-status)}"
    return f"the program ended with status {status}" if status else ""


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return f"{', '.join(names[:_MOST_NAMES])}{f' and {more} more' if more > 0 else ''}"


def _name(name: str) -> str:
    return make_one_line(shorten_name(name))


def _shorten(text: str) -> str:
    return shorten(make_one_line(text), _MOST_CHARACTERS)


# What is confirmed with the program: how it would be run in a shell
_SHOWN = ("gpa-lsp", "emulate", "--describe", "--")

_SLACK_S = 120.0  # For compiling the runtime library and for writing, beside the limits of building and running


class LaunchRecording(UserRuns):
    """Records launches of programs.

    Args:
        display: asks and is told.
        recorded: told which descriptions were written.
    """

    title = "Recording launches"
    word_question = ask_to_record

    def __init__(self, display: Display, *, recorded: Callable[[Sequence[Path]], object]) -> None:
        super().__init__(display)
        self._recorded = recorded

    def record_now(self, file: Path | None, command: Command | None) -> bool:
        """The user asks for it; whether there is a program that may be run, once they have confirmed it.

        Args:
            file: the source it is about, for variables; None for none.
            command: the program; None for that of the settings.
        """
        if self._is_trusted and (command or self._settings.record_command) is None:
            self._display.inform(
                "set gpaLsp.emulation.recordCommand to the program whose launches are to be recorded, for example ./app"
            )
            return False
        return self.request(Request(file=file, command=command))

    def choose_commands(self, settings: Settings, request: Request) -> tuple[Command | None, Command] | None:
        """The program as it would be run in a shell, and what builds it."""
        program = request.command or settings.record_command
        return None if program is None else (settings.record_build_command, (*_SHOWN, *program))

    async def serve(self, request: Request, settings: Settings, workspace: Path) -> None:
        """Run the program in the emulator, and say what was recorded."""
        program = request.command or settings.record_command or ()
        build = settings.record_build_command
        values = Values(workspace=workspace, file=request.file)
        environment = {**os.environ, **list_environment(values)}
        before = [] if build is None else ["--build", shlex.join(expand_command(build, values, environment))]
        words = [*before, "--", *expand_command(program, values, environment)]
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
            output = Path(name) / "run.json"
            measurement = Measurement(
                folder=workspace,
                profile=tuple(isolate_module("gpa_lsp", *_list_options(settings, output), *words).words),
                timeout_s=2 * settings.profile_timeout_s + _SLACK_S,
                environment=environment,
            )
            doing = "running the program" if build is None else "building and running the program"
            result = (await self.carry_out(measurement, doing, (*_SHOWN, *program))).command
            found = await call_in_thread(lambda: read_recorded(output))
        self._display.log(f"[the program {describe_ending(result)}]")
        if result.ending is Ending.CANCELLED:
            return
        if found is None:
            self._display.warn(f"recording failed: {explain_failure(result)}")
            return
        if found.kernels:
            self._display.inform(f"recorded launches of {found.describe()}")
        else:
            self._display.warn(f"no launch was recorded: {found.describe()}")
        self._recorded(found.descriptions)


def _list_options(settings: Settings, output: Path) -> list[str]:
    """Command line of ``gpa-lsp emulate``, without its analysis of lines: the editor emulates the recording itself."""
    words = ["emulate", "--describe", "--no-lines", "--allocations", "--format", "json", "--output", str(output)]
    machine = settings.emulation_machine
    return [*words, "--seconds", str(settings.profile_timeout_s), *([] if machine is None else ["--machine", machine])]
