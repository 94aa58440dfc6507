"""What is said about measurements: to the user who has to confirm a command, and in the log."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.foundation.numbers import format_seconds
from gpa_lsp.foundation.processes.signals import name_signal
from gpa_lsp.foundation.processes.watched_command import Ending
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.profile.collect.model import CommandResult, Phase, RunResult
from gpa_lsp.profile.collect.variables import Command

# A question with a longer command is not asked: nobody would read to the end of it, where the harm may be
LONGEST_QUESTION = 2_000


def show_command(command: Command) -> str:
    """A command as one would type it, with everything invisible made visible.

    >>> show_command(("ncu", "-o", "${output}", "./my app", "\\u202etxt"))
    "ncu -o '${output}' './my app' '\\\\u202etxt'"
    """
    return make_visible(shlex.join(command))


def ask_to_run(workspace: Path, build: Command | None, profile: Command) -> str | None:
    """The question before a command runs for the first time; None when it would be too long to be read."""
    return _ask("Measuring runs a command from your settings", workspace, build, profile)


def ask_to_record(workspace: Path, build: Command | None, program: Command) -> str | None:
    """The same before a program runs whose launches are recorded."""
    return _ask("Recording launches runs a program", workspace, build, program)


def ask_to_time(workspace: Path, gpu: str) -> str | None:
    """The same before kernels run whose launches are described, with no program around them."""
    what = f"Timing runs kernels on {make_visible(gpu)} whenever their source is saved: the launches described in *.launch.toml, in {workspace}"
    return what if len(what) <= LONGEST_QUESTION else None


def _ask(what: str, workspace: Path, *commands: Command | None) -> str | None:
    shown = " and then ".join(show_command(command) for command in commands if command is not None)
    text = f"{what} in {workspace}: {shown}"
    return text if len(text) <= LONGEST_QUESTION else None


def name_allow_command(workspace: Path, build: Command | None, profile: Command) -> str:
    """The command line that confirms the same."""
    options = ["--workspace", str(workspace)]
    if build is not None:
        options += ["--build", shlex.join(build)]
    return show_command(("gpa-lsp", "allow", *options, "--", *profile))


def describe_ending(result: CommandResult) -> str:
    """How a command ended, in a few words.

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
    """What stands in the log at the end of a measurement."""
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
