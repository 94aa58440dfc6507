"""The options an editor can set, their defaults, and what is said about values that make no sense."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from gpa_lsp.collect.variables import Command, parse_command_setting
from gpa_lsp.lsp.option import FLAG, Option
from gpa_lsp.lsp.setting_values import (
    make_seconds_reader,
    read_count,
    read_flag,
    read_globs,
    read_mappings,
    read_percent,
)
from gpa_lsp.lsp.source_options import SOURCE_OPTIONS, HintChoice


class Severity(Enum):
    """How loud a diagnostic is, in the words of the settings."""

    INFORMATION = "information"
    HINT = "hint"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every option with its default; the editor's names are the keys of :data:`OPTIONS`.

    Attributes:
        min_share_ratio: share of a kernel's samples a line needs before it gets a hint or a diagnostic, 0 to 1; the editor gives percent, like
            the command line.
        max_diagnostics_per_file: the hottest lines of a file that get one; VS Code itself cuts at 1,000.
        show_inlay_hints: shares at line ends.
        show_diagnostics: hot lines as diagnostics.
        diagnostic_severity: of those.
        show_symbols: kernels with their times among a source's symbols.
        serves_definition: "go to definition" on a source line goes to what the line waits for.
        shows_unverified_lines: numbers also on lines of sources that were saved after they were measured and of which no copy is known.
        blamer: how causes are found.
        path_mappings: (path prefix as compiled, folder on this machine), in the order they are tried.
        profile_globs: which files are profiles, relative to each workspace folder; ``**`` stands for any folders. A pattern that starts with
            ``/`` or ``~`` is looked for outside the workspace.
        poll_seconds: time between two looks at the workspace.
        keeps_history: remember measurements.
        profile_command: what measures; None when there is none.
        build_command: what is run before it; None when nothing is.
        profiles_on_save: measure when a file is saved.
        debounce_s: time without another save before a run begins.
        profile_timeout_s: a run is ended after this time.
        compiles_sources: compile open CUDA sources to say what their code says without a profile.
        compiles_on_change: also while they are edited, not only when opened and saved.
        static_pause_s: time without another edit before that.
        shows_compiler_messages: errors and warnings of that compiler as diagnostics.
        static_architecture: compute capability to compile for; None for that of the compile command.
        static_timeout_s: the compiler is ended after this time.
        emulates: emulate the described launches of open CUDA sources, to say what their lines do to memory and where they diverge.
        emulation_s: for one launch.
        emulation_memory_bytes: likewise.
        emulation_machine: name of the GPU to predict for; None for one of the architecture that is compiled for.
        emulation_hints: at which line ends it is said.
        shows_emulation_diagnostics: costly lines and faults as diagnostics.
        exploration_s: for looking for blocks that are predicted to be faster; 0 looks for none.
    """

    min_share_ratio: float = 0.05
    max_diagnostics_per_file: int = 200
    show_inlay_hints: bool = True
    show_diagnostics: bool = True
    diagnostic_severity: Severity = Severity.INFORMATION
    show_symbols: bool = True
    serves_definition: bool = False
    shows_unverified_lines: bool = False
    blamer: str = "scoreboard"
    path_mappings: tuple[tuple[str, str], ...] = ()
    profile_globs: tuple[str, ...] = ("**/*.ncu-rep", "**/*.ncu-repz", "**/*.gpa-profile.json")
    poll_seconds: float = 1.0
    keeps_history: bool = True
    profile_command: Command | None = None
    build_command: Command | None = None
    profiles_on_save: bool = True
    debounce_s: float = 1.0
    profile_timeout_s: float = 600.0
    compiles_sources: bool = True
    compiles_on_change: bool = False
    static_pause_s: float = 0.5
    shows_compiler_messages: bool = True
    static_architecture: tuple[int, int] | None = None
    static_timeout_s: float = 60.0
    emulates: bool = True
    emulation_s: float = 5.0
    emulation_memory_bytes: int = 1 << 30
    emulation_machine: str | None = None
    emulation_hints: HintChoice = HintChoice.EXCESS
    shows_emulation_diagnostics: bool = True
    exploration_s: float = 3.0


def _read_severity(value: object) -> Severity:
    try:
        return Severity(value)
    except ValueError:
        raise ValueError("one of " + ", ".join(severity.value for severity in Severity)) from None


def _read_blamer(value: object) -> str:
    if value not in BLAMERS:
        raise ValueError("one of " + ", ".join(BLAMERS))
    return str(value)


BLAMERS = ("scoreboard", "paper")

_COMMAND_SCHEMA = {"type": ["string", "array", "null"], "items": {"type": "string"}}


OPTIONS: Mapping[str, Option] = {
    "minShare": Option(
        field="min_share_ratio",
        read=read_percent,
        summary="Percent of a kernel's samples a line needs for a hint or a diagnostic.",
        schema={"type": "number", "minimum": 0, "maximum": 100},
        default=5,
    ),
    "inlayHints.enable": Option(
        field="show_inlay_hints", read=read_flag, summary="Shares at line ends.", schema=FLAG, default=True
    ),
    "diagnostics.enable": Option(
        field="show_diagnostics",
        read=read_flag,
        summary="Causing lines among the problems.",
        schema=FLAG,
        default=True,
    ),
    "diagnostics.severity": Option(
        field="diagnostic_severity",
        read=_read_severity,
        summary="How loud those are.",
        schema={"enum": [severity.value for severity in Severity]},
        default="information",
    ),
    "maxDiagnosticsPerFile": Option(
        field="max_diagnostics_per_file",
        read=read_count,
        summary="How many of a file's lines are listed, the costliest first.",
        schema={"type": "integer", "minimum": 0},
        default=200,
    ),
    "symbols.enable": Option(
        field="show_symbols",
        read=read_flag,
        summary="Kernels with their times among the symbols of a source.",
        schema=FLAG,
        default=True,
    ),
    "definition.enable": Option(
        field="serves_definition",
        read=read_flag,
        summary=(
            "Go to definition on a line of a source goes to what the line waits for. Off, because the language's own server answers there "
            "and two answers make editors ask."
        ),
        schema=FLAG,
        default=False,
    ),
    "showUnverifiedLines": Option(
        field="shows_unverified_lines",
        read=read_flag,
        summary=(
            "Numbers also in a source that was saved after it was measured, when no copy of what was measured is known: they may stand on "
            "the wrong lines."
        ),
        schema=FLAG,
        default=False,
    ),
    "blamer": Option(
        field="blamer",
        read=_read_blamer,
        summary="How causes are found: `scoreboard` by what the hardware waits for, `paper` by registers only, as GPA was published.",
        schema={"enum": list(BLAMERS)},
        default="scoreboard",
    ),
    "pathMappings": Option(
        field="path_mappings",
        read=read_mappings,
        summary="Path prefix as compiled → folder here, for sources that are not found by themselves.",
        schema={"type": "object", "additionalProperties": {"type": "string"}},
        default={},
        is_restricted=True,
    ),
    "profileGlobs": Option(
        field="profile_globs",
        read=read_globs,
        summary="Which files are profiles; a pattern that starts with `/` or `~` is looked for outside the workspace.",
        schema={"type": "array", "items": {"type": "string", "minLength": 1}},
        default=["**/*.ncu-rep", "**/*.ncu-repz", "**/*.gpa-profile.json"],
        is_restricted=True,
    ),
    "pollSeconds": Option(
        field="poll_seconds",
        read=make_seconds_reader(0.05, 3600.0),
        summary="Time between two looks at the workspace.",
        schema={"type": "number", "minimum": 0.05, "maximum": 3600},
        default=1.0,
    ),
    "history.enable": Option(
        field="keeps_history",
        read=read_flag,
        summary="Remember measurements, to show what changed since the last one and since a pinned baseline.",
        schema=FLAG,
        default=True,
    ),
    "profile.command": Option(
        field="profile_command",
        read=parse_command_setting,
        summary=(
            "What measures: a command line, or a list of its arguments; no shell is involved. `${file}`, `${fileDirname}`, "
            "`${fileBasenameNoExtension}`, `${workspaceFolder}`, `${kernel}`, `${output}` and `${env:NAME}` stand for what they say; the report is "
            "expected in `${output}`, or anywhere profiles are looked for. Each command is run only after you agreed to it, once per workspace."
        ),
        schema=_COMMAND_SCHEMA,
        default=None,
        is_restricted=True,
    ),
    "profile.buildCommand": Option(
        field="build_command",
        read=parse_command_setting,
        summary="What is run before it; measuring goes on only when it succeeds.",
        schema=_COMMAND_SCHEMA,
        default=None,
        is_restricted=True,
    ),
    "profile.onSave": Option(
        field="profiles_on_save",
        read=read_flag,
        summary="Measure when a source with kernels is saved.",
        schema=FLAG,
        default=True,
        is_restricted=True,
    ),
    "profile.debounceSeconds": Option(
        field="debounce_s",
        read=make_seconds_reader(0.0, 3600.0),
        summary="Time without another save before a run begins.",
        schema={"type": "number", "minimum": 0, "maximum": 3600},
        default=1.0,
    ),
    "profile.timeoutSeconds": Option(
        field="profile_timeout_s",
        read=make_seconds_reader(1.0, 86400.0),
        summary="A run is ended after this time.",
        schema={"type": "number", "minimum": 1, "maximum": 86400},
        default=600.0,
    ),
    **SOURCE_OPTIONS,
}
"""The editor's name of an option → what it is."""


def drop_restricted(settings: Settings) -> Settings:
    """Settings with the defaults of what a workspace nobody trusts must not set."""
    defaults = Settings()
    fields = [option.field for option in OPTIONS.values() if option.is_restricted]
    return replace(settings, **{field: getattr(defaults, field) for field in fields})


def read_settings(raw: object, base: Settings, *, known: Settings | None = None) -> tuple[Settings, tuple[str, ...]]:
    """Settings as an editor sends them: nested objects, or names with dots in them.

    Args:
        raw: what stands under ``gpaLsp``; None and anything that is no object changes nothing.
        base: the values of options not mentioned.
        known: the values of options with a value that makes no sense; None for those of ``base``.

    Returns:
        The settings, and a sentence for every value that was not taken. Names that are not ours are passed over: the extension of an
        editor keeps options of its own under the same heading.

    >>> read_settings({"minShare": 10, "inlayHints": {"enable": False}}, Settings())[0].min_share_ratio
    0.1
    >>> read_settings({"minShare": "much"}, Settings())[1]
    ('gpaLsp.minShare: much is not a number; the option stays as it was',)
    """
    changes: dict[str, Any] = {}
    complaints: list[str] = []
    for name, value in _walk_options(raw, ""):
        option = OPTIONS[name]
        try:
            changes[option.field] = option.read(value)
        except ValueError as error:
            complaints.append(f"gpaLsp.{name}: {_abbreviate(value)} is not {error}; the option stays as it was")
            changes[option.field] = getattr(known or base, option.field)
    return replace(base, **changes), tuple(complaints)


def _walk_options(raw: object, prefix: str) -> Iterator[tuple[str, object]]:
    """The options among ``raw`` with their full names; null means "not set", which takes back what has no other default."""
    if not isinstance(raw, Mapping):
        return
    for key, value in raw.items():
        name = f"{prefix}{key}"
        if name in OPTIONS and (value is not None or OPTIONS[name].default is None):
            yield name, value
        elif any(option.startswith(f"{name}.") for option in OPTIONS):
            yield from _walk_options(value, f"{name}.")


def _abbreviate(value: object) -> str:
    try:
        text = str(value)
    except (RecursionError, ValueError):  # nested without end; a number of ten thousand digits
        return "this"
    return text if len(text) <= 60 else f"{text[:57]}..."
