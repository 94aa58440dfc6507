"""Explanations of failed commands and what to do, from ``explanations.toml``."""

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.foundation.numbers import format_seconds
from gpa_lsp.foundation.processes.watched_command import Ending, name_signal
from gpa_lsp.foundation.toml_tables import read_own_table
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.profile.collect.model import CommandResult, Explanation, Phase, RunResult
from gpa_lsp.profile.collect.variables import Command

_SHELL_SIGNALS = 128  # Shells, and programs that start others, add it to the number of the signal that ended a command

_HIGHEST_SIGNAL = 64


class CatalogueEntry(Struct, frozen=True, kw_only=True):
    """An entry of the catalogue; its fields are explained at the head of the file."""

    name: str
    summary: str
    remedies: tuple[str, ...]
    printed: re.Pattern[str] | None = None
    status: int | None = None
    programs: frozenset[str] = frozenset()
    although_well: bool = False
    url: str | None = None

    def apply(self, result: CommandResult, program: str) -> Explanation | None:
        """Explanation of a result, if this entry matches."""
        if result.is_success and not self.although_well:
            return None
        if self.printed is None:
            applies = result.status == self.status and (not self.programs or program in self.programs)
            return self._explain({}, None) if applies else None
        for line in result.tail:
            if (match := self.printed.search(line)) is not None:
                return self._explain(match.groupdict(), line)
        return None

    def _explain(self, groups: Mapping[str, str | None], line: str | None) -> Explanation:
        name = groups.get("name") or groups.get("other") or ""
        summary = self.summary.replace("{name}", name)
        return Explanation(name=self.name, summary=summary, remedies=self.remedies, line=line, url=self.url)


def explain(
    result: CommandResult, *, program: str, phase: Phase = Phase.PROFILE, timeout_s: float | None = None
) -> Explanation | None:
    """Explain why a command failed, or measured nothing although it ended well.

    Args:
        result: what became of it.
        program: its program, with or without folder.
        phase: what it was run for.
        timeout_s: the time it was given.

    Returns:
        The explanation; None for a command that was cancelled, and for one that ended well and printed nothing that says otherwise.
    """
    if result.ending is Ending.CANCELLED:
        return None
    if result.ending is Ending.TIMED_OUT:
        return _explain_timeout(phase, timeout_s)
    if result.ending is Ending.LOST:
        return Explanation(
            name="lost", summary="the process that watches over the command was killed, and the command with it"
        )
    base = re.split(r"[/\\]", program)[-1].removesuffix(".exe")
    # What a compiler prints about missing libraries and the like is not about measuring.
    entries = [entry for entry in read_catalogue() if phase is Phase.PROFILE or entry.printed is None]
    found = next((found for entry in entries if (found := entry.apply(result, base)) is not None), None)
    if found is not None and result.ending is Ending.NOT_STARTED:
        return replace(found, summary=f"the command could not be started: {result.tail[-1]}", line=result.tail[-1])
    if found is not None or result.is_success:
        return found
    return _explain_signal(result) or _explain_status(result, phase)


def find_explanation(name: str) -> Explanation:
    """Explanation by name, for callers that know by other means what went wrong."""
    entry = next(entry for entry in read_catalogue() if entry.name == name)
    return Explanation(name=entry.name, summary=entry.summary, remedies=entry.remedies, url=entry.url)


def says_nothing_measured(result: CommandResult) -> bool:
    """Whether the profiler said that it measured nothing; some versions write an empty report nevertheless."""
    entry = next(entry for entry in read_catalogue() if entry.name == "nothing-measured")
    return entry.apply(result, "") is not None


def _explain_timeout(phase: Phase, timeout_s: float | None) -> Explanation:
    after = "" if timeout_s is None else f" after {format_seconds(timeout_s)}"
    remedies = ["run the command in a terminal, where it has no limit"]
    if phase is Phase.PROFILE:
        remedies.insert(0, "measure less: --kernel NAME, --launch-count 1, a smaller input; each launch is repeated")
    return Explanation(name="timed-out", summary=f"the command was ended{after}", remedies=tuple(remedies))


def _explain_signal(result: CommandResult) -> Explanation | None:
    number = result.signal
    if number is None and result.status is not None:
        shells = result.status - _SHELL_SIGNALS
        number = shells if 0 < shells <= _HIGHEST_SIGNAL else None
    if number is None:
        return None
    name = name_signal(number)
    meaning = next((one["meaning"] for one in _read_file()["signal"] if one["name"] == name), None)
    summary = f"the command was ended by {name}"
    return Explanation(name="signal", summary=f"{summary}: {meaning}" if meaning else summary)


def _explain_status(result: CommandResult, phase: Phase) -> Explanation:
    what = "building failed" if phase is Phase.BUILD else "the command failed"
    return Explanation(name="status", summary=f"{what} with status {result.status}; its output says more")


@cache
def _read_file() -> dict[str, Any]:
    return read_own_table(Path(__file__).with_name("explanations.toml"))


@cache
def read_catalogue() -> tuple[CatalogueEntry, ...]:
    """All entries, in the order they are tried."""
    entries = _read_file()["explanation"]
    return msgspec.convert(entries, tuple[CatalogueEntry, ...], dec_hook=lambda kind, pattern: re.compile(pattern))


# A question with a longer command is not asked: it would not be read to its end, where the harm may be
LONGEST_QUESTION = 2_000


def show_command(command: Command) -> str:
    """Command as one would type it, with invisible characters made visible.

    >>> show_command(("ncu", "-o", "${output}", "./my app", "\\u202etxt"))
    "ncu -o '${output}' './my app' '\\\\u202etxt'"
    """
    return make_visible(shlex.join(command))


def ask_to_run(workspace: Path, build: Command | None, profile: Command) -> str | None:
    """Question before a command runs for the first time; None if it would be too long to be read."""
    return _ask("Measuring runs a command from your settings", workspace, build, profile)


def ask_to_record(workspace: Path, build: Command | None, program: Command) -> str | None:
    """Question before a program runs whose launches are recorded."""
    return _ask("Recording launches runs a program", workspace, build, program)


def ask_to_time(workspace: Path, gpu: str) -> str | None:
    """Question before kernels of described launches run, without a program around them."""
    what = f"Timing runs kernels on {make_visible(gpu)} whenever their source is saved: the launches described in *.launch.toml, in {workspace}"
    return what if len(what) <= LONGEST_QUESTION else None


def _ask(what: str, workspace: Path, *commands: Command | None) -> str | None:
    shown = " and then ".join(show_command(command) for command in commands if command is not None)
    text = f"{what} in {workspace}: {shown}"
    return text if len(text) <= LONGEST_QUESTION else None


def name_allow_command(workspace: Path, build: Command | None, profile: Command) -> str:
    """Command line that gives the same confirmation."""
    options = ["--workspace", str(workspace)]
    if build is not None:
        options += ["--build", shlex.join(build)]
    return show_command(("gpa-lsp", "serve", "allow", *options, "--", *profile))


def describe_ending(result: CommandResult) -> str:
    """A few words on how a command ended.

    >>> describe_ending(CommandResult(ending=Ending.ENDED, status=None, signal=9, duration_s=3.21, tail=()))
    'ended by SIGKILL after 3.21 s'
    """
    after = f"after {format_seconds(result.duration_s)}"
    if result.ending is not Ending.ENDED:
        return f"{result.ending.value} {after}" if result.duration_s else result.ending.value
    if result.signal is not None:
        return f"ended by {name_signal(result.signal)} {after}"
    return f"ended with status {result.status} {after}"


def describe_result(result: RunResult) -> str:
    """One sentence for the user.

    >>> well = CommandResult(ending=Ending.ENDED, status=0, signal=None, duration_s=12.0, tail=())
    >>> describe_result(RunResult(phase=Phase.PROFILE, command=well, explanation=None, report=None, duration_s=12.34))
    'measured in 12.3 s'
    """
    if result.is_cancelled:
        return "measuring was cancelled"
    if result.explanation is None:
        return f"measured in {format_seconds(result.duration_s)}" if result.is_success else "measuring failed"
    remedies = result.explanation.remedies
    advice = f"; {remedies[0]}" if remedies else ""
    return f"measuring failed: {result.explanation.summary}{advice}"


def list_log_lines(result: RunResult) -> Iterator[str]:
    """Lines for the log at the end of a measurement."""
    name = "build command" if result.phase is Phase.BUILD else "profile command"
    yield f"[{name} {describe_ending(result.command)}]"
    if result.explanation is not None:
        yield f"[{result.explanation.summary}]"
        for remedy in result.explanation.remedies:
            yield f"  - {remedy}"
        if result.explanation.url is not None:
            yield f"  see {result.explanation.url}"
    if result.command.left_running:
        processes = ", ".join(str(process_id) for process_id in result.command.left_running)
        yield f"[could not be ended (another user's, or stuck in the kernel): {processes}]"
    if result.report is not None:
        yield f"[the report is {result.report}]"
