"""Records launches when the user asks for it: runs their program in the emulator, which they have confirmed, and says what came of it."""

import asyncio
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

from gpa_lsp.editor.permission import Permission, find_workspace
from gpa_lsp.editor.progress import WorkProgress
from gpa_lsp.editor.protocol.measure_on_save import LEAVE_LIMIT_S
from gpa_lsp.editor.protocol.measuring_client import MeasuringClient
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.foundation.processes.python_children import isolate_module
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, Ending, describe_signal
from gpa_lsp.foundation.visible_text import make_one_line, shorten
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.profile.collect.allowance import Allowance
from gpa_lsp.profile.collect.command_run import CommandRun
from gpa_lsp.profile.collect.explain import ask_to_record, describe_ending, show_command
from gpa_lsp.profile.collect.model import CommandResult
from gpa_lsp.profile.collect.variables import Command, CommandError, Values, expand_command, list_environment

_LOG = logging.getLogger(__name__)

_MOST_BYTES = 64 << 20
_MOST_NAMES = 6
_MOST_REASONS = 4
_MOST_CHARACTERS = 200
_ERROR = "gpa-lsp: error: "


class RecordedLaunches(Struct, frozen=True, kw_only=True):
    """What a program left."""

    descriptions: tuple[Path, ...]  # that were written
    kernels: tuple[str, ...]  # names of those that have a description now
    left_out: dict[str, tuple[str, ...]]  # names of the others by the reason why
    ending: str  # how the program ended, where it did not end well; else empty

    def describe(self) -> str:
        """What was recorded, what was not and why, and how the program ended, unless it ended well.

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
        _LOG.warning("what was recorded cannot be read: %r", error)
        return None


def explain_failure(result: CommandResult) -> str:
    """Why nothing was written: what the command said last, else how it ended."""
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


logger = logging.getLogger(__name__)

# What is confirmed with the program: how it would be run in a shell
_SHOWN = ("gpa-lsp", "emulate", "--describe", "--")

_SLACK_S = 120.0  # For compiling the runtime library and for writing, beside the limits of building and running


class _Job(Struct, frozen=True, kw_only=True):
    """A program to run, all variables filled in."""

    folder: Path
    program: Command
    build: Command | None
    environment: dict[str, str]


class LaunchRecording:
    """One recording at a time; a newer one ends that before.

    Args:
        audience: asks and is told.
        recorded: told which descriptions were written.
        allowance: what the user has confirmed before; None for the user's own file.
    """

    def __init__(
        self,
        audience: MeasuringClient,
        *,
        recorded: Callable[[Sequence[Path]], object],
        allowance: Allowance | None = None,
    ) -> None:
        self._audience = audience
        self._recorded = recorded
        self._permission = Permission(audience, allowance, ask_to_record)
        self._settings = Settings()
        self._roots: tuple[Path, ...] = ()
        self._is_trusted = False
        self._work: asyncio.Task[None] | None = None
        self._run: CommandRun | None = None

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them; where they are not trusted (any more) nothing runs (on)."""
        self._settings, self._roots, self._is_trusted = settings, tuple(roots), is_trusted
        if not is_trusted:
            self.cancel()

    @property
    def is_recording(self) -> bool:
        """A program runs, or waits for an answer."""
        return self._work is not None and not self._work.done()

    def record_now(self, file: Path | None, command: Command | None) -> bool:
        """The user asks for it; whether there is a program that may be run, once they have confirmed it.

        Args:
            file: the source it is about, for variables; None for none.
            command: the program; None for that of the settings.
        """
        chosen = command or self._settings.record_command
        if not self._is_trusted:
            self._audience.warn("nothing is run in a workspace that is not trusted")
            return False
        if chosen is None:
            self._audience.inform(
                "set gpaLsp.emulation.recordCommand to the program whose launches are to be recorded, for example ./app"
            )
            return False
        self.cancel()
        self._work = asyncio.get_running_loop().create_task(self._work_on(self._work, file, chosen))
        return True

    def cancel(self) -> None:
        """End what goes on, if anything. Returns at once; its processes are gone within a tenth of a second."""
        if self._run is not None:
            self._run.cancel()
        elif self._work is not None:
            self._work.cancel()

    async def leave(self) -> None:
        """End everything, and wait until it has ended, but never long."""
        self._is_trusted = False
        self.cancel()
        if self._work is not None and not self._work.done():
            await asyncio.wait({self._work}, timeout=LEAVE_LIMIT_S)

    async def _work_on(self, before: "asyncio.Task[None] | None", file: Path | None, command: Command) -> None:
        if before is not None and not before.done():
            await asyncio.wait({before})
        try:
            await self._record(file, command)
        except Exception as error:
            logger.exception("recording failed")
            self._audience.warn(f"recording failed: {error}")

    async def _record(self, file: Path | None, command: Command) -> None:
        settings, workspace = self._settings, find_workspace(self._roots, file)
        if workspace is None:
            self._audience.warn("nothing is recorded without a workspace folder, where the program would run")
            return
        build = settings.record_build_command
        if not await self._permission.is_given(workspace, build, (*_SHOWN, *command), is_explicit=True):
            return
        try:
            job = _prepare(workspace, file, command, build)
        except CommandError as error:
            self._audience.warn(f"the command cannot be run: {error}")
            return
        self._permission.use()
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
            output = Path(name) / "run.json"
            result = await self._emulate(job, settings, output)
            found = await call_in_thread(lambda: read_recorded(output))
        self._tell(result, found)

    async def _emulate(self, job: _Job, settings: Settings, output: Path) -> CommandResult:
        words = "running the program" if job.build is None else "building and running the program"
        progress = WorkProgress(lambda: self._audience.start_progress("Recording launches", self.cancel), words)

        def take_lines(lines: Sequence[str]) -> None:
            self._audience.log("\n".join(lines))

        self._audience.log(f"> {show_command((*_SHOWN, *job.program))}")
        text = "failed"
        try:
            self._run = CommandRun(
                isolate_module("gpa_lsp", *_list_words(job, settings, output)).words,
                folder=job.folder,
                timeout_s=2 * settings.profile_timeout_s + _SLACK_S,
                take_lines=take_lines,
                environment=job.environment,
            )
            result = await self._run.wait()
            text = describe_ending(result)
            return result
        finally:
            self._run = None
            progress.end(text)

    def _tell(self, result: CommandResult, found: RecordedLaunches | None) -> None:
        self._audience.log(f"[the program {describe_ending(result)}]")
        if result.ending is Ending.CANCELLED:
            return
        if found is None:
            self._audience.warn(f"recording failed: {explain_failure(result)}")
            return
        if found.kernels:
            self._audience.inform(f"recorded launches of {found.describe()}")
        else:
            self._audience.warn(f"no launch was recorded: {found.describe()}")
        self._recorded(found.descriptions)


def _prepare(workspace: Path, file: Path | None, command: Command, build: Command | None) -> _Job:
    """Fill in the variables.

    Raises:
        CommandError: that cannot be done.
    """
    values = Values(workspace=workspace, file=file)
    environment = {**os.environ, **list_environment(values)}
    return _Job(
        folder=workspace,
        program=expand_command(command, values, environment),
        build=None if build is None else expand_command(build, values, environment),
        environment=environment,
    )


def _list_words(job: _Job, settings: Settings, output: Path) -> list[str]:
    """The arguments of ``gpa-lsp``. Lines are not looked at: the editor emulates what was recorded by itself."""
    words = ["emulate", "--describe", "--no-lines", "--format", "json", "--output", str(output)]
    words += ["--seconds", str(settings.profile_timeout_s)]
    if settings.emulation_machine is not None:
        words += ["--machine", settings.emulation_machine]
    if job.build is not None:
        words += ["--build", shlex.join(job.build)]
    return [*words, "--", *job.program]
