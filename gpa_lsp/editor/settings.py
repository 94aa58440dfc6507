"""The options an editor can set, each said once: :class:`Settings`; and what a client says of them, where values may make no sense."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame import DEFAULT_BLAMER
from gpa_lsp.editor.metrics import USUAL, LineMetric
from gpa_lsp.editor.option import (
    ARCHITECTURE,
    COUNT,
    FLAG,
    GLOBS,
    MEBIBYTES,
    NAME,
    PATH_MAPPINGS,
    PERCENT,
    Kind,
    list_options,
    one_name_of,
    one_of,
    option,
    seconds,
)
from gpa_lsp.foundation.catalogue import list_members
from gpa_lsp.profile.collect.model import PATIENCE_S
from gpa_lsp.profile.collect.variables import Command, parse_command_setting


class Severity(Enum):
    """How loud a diagnostic is, in the words of the settings."""

    INFORMATION = "information"
    HINT = "hint"
    WARNING = "warning"


class HintChoice(Enum):
    """Which lines get a hint of what was emulated, in the words of the settings."""

    EXCESS = "excess"  # Those that move more than they must, or diverge
    ALL = "all"
    OFF = "off"


class UnverifiedChoice(Enum):
    """What is shown on the lines of sources that may not be what was measured, in the words of the settings."""

    FITTING = "fitting"  # Numbers with a mark, where the measured lines fit the text
    ALL = "all"  # Numbers with a mark, whether they fit or not
    NONE = "none"


# Below this share of a kernel's samples a line has nothing to say: a coloured line or a hover there would only be noise
_LEAST_SHARE_RATIO = 0.005

_COMMAND: Kind[Command | None] = Kind(
    {"type": ["string", "array", "null"], "items": {"type": "string"}}, parse_command_setting
)


class Settings(Struct, frozen=True, kw_only=True):
    """Every option: its name in the editor, its default as the editor writes it, what values it takes, and what it means.

    The page for people, VS Code's list of settings and Neovim's help are made from here: ``python editors/write_settings.py``.
    """

    min_share_ratio: float = option(
        "minShare",
        5,
        PERCENT,
        "Percent of a kernel's samples that a line needs at least to get a hint or to stand among the problems.",
    )
    show_inlay_hints: bool = option(
        "inlayHints.enable", True, FLAG, "Show shares, and times of launches, at the ends of lines."
    )
    most_hints_on_screen: int = option(
        "inlayHints.onScreen",
        12,
        COUNT,
        "Most hints of measured lines in any 40 lines, hottest first; the three hottest lines of a kernel always have one. 0 shows all.",
    )
    show_diagnostics: bool = option(
        "diagnostics.enable", True, FLAG, "List the lines that cause stalls among the problems."
    )
    diagnostic_severity: Severity = option(
        "diagnostics.severity", "information", one_of(Severity), "Severity of these problems."
    )
    max_diagnostics_per_file: int = option(  # VS Code itself cuts at 1,000
        "maxDiagnosticsPerFile", 200, COUNT, "Most lines of a file among the problems, costliest first."
    )
    show_symbols: bool = option(
        "symbols.enable", True, FLAG, "List kernels with their times among the symbols of a source."
    )
    serves_definition: bool = option(
        "definition.enable",
        False,
        FLAG,
        "Let Go to Definition on a line of a source lead to what the line waits for. Off by default: the language's own server answers there, and "
        "with two answers editors ask which to take.",
    )
    unverified_lines: UnverifiedChoice = option(
        "unverifiedLines",
        "fitting",
        one_of(UnverifiedChoice),
        "Numbers in a source that was saved after it was measured, without a copy of what was measured: shown with a `?` where the measured lines "
        "fit the source (`fitting`), in `all` such sources although they may stand on wrong lines, or not at all (`none`).",
    )
    blamer: str = option(
        "blamer",
        DEFAULT_BLAMER,
        one_name_of(list_members("gpa_lsp.diagnosis.blame.blamers")),
        "How causes are found: by what the hardware waits for (`scoreboard`), or by registers only, as the paper on GPA does (`paper`).",
    )
    path_mappings: tuple[tuple[str, str], ...] = option(
        "pathMappings",
        {},
        PATH_MAPPINGS,
        "Path prefix as compiled → folder here (or as an editor on another machine names it), for sources that are not found without it.",
        is_restricted=True,
    )
    profile_globs: tuple[str, ...] = option(
        "profileGlobs",
        ["**/*.ncu-rep", "**/*.ncu-repz", "**/*.gpa-profile.json"],
        GLOBS,
        "Which files are profiles; a pattern that starts with `/` or `~` is looked for outside the workspace.",
        is_restricted=True,
    )
    poll_seconds: float = option(
        "pollSeconds", 1.0, seconds(0.05, 3600), "Time between two looks for changed profiles and sources."
    )
    keeps_history: bool = option(
        "history.enable",
        True,
        FLAG,
        "Remember measurements, to show what changed since the last one and since a pinned baseline.",
    )
    profile_command: Command | None = option(
        "profile.command",
        None,
        _COMMAND,
        "The command that measures: a command line, or a list of its arguments; no shell is involved. `${file}`, `${fileDirname}`, "
        "`${fileBasenameNoExtension}`, `${workspaceFolder}`, `${kernel}`, `${output}` and `${env:NAME}` stand for what they say; the report is "
        "expected in `${output}`, or anywhere profiles are looked for. A command is run only after you agreed to it, once or always in this "
        "workspace.",
        is_restricted=True,
    )
    build_command: Command | None = option(
        "profile.buildCommand",
        None,
        _COMMAND,
        "The command that runs before `profile.command`; nothing is measured unless it succeeds.",
        is_restricted=True,
    )
    profiles_on_save: bool = option(
        "profile.onSave", True, FLAG, "Measure when a source with kernels is saved.", is_restricted=True
    )
    debounce_s: float = option(
        "profile.debounceSeconds", 1.0, seconds(0, 3600), "Time without another save before measuring begins."
    )
    profile_timeout_s: float = option(
        "profile.timeoutSeconds", PATIENCE_S, seconds(1, 86400), "Measuring is ended after this time."
    )
    compiles_sources: bool = option(
        "static.enable",
        True,
        FLAG,
        "Compile a CUDA source when it is opened and saved, and show registers, shared memory, occupancy and what its code says, without any "
        "profile. Only our own compiler runs, with flags from a list, on the text and its headers; nothing of the project is run, and nothing "
        "at all in a workspace that is not trusted.",
    )
    compiles_on_change: bool = option(
        "static.onChange", False, FLAG, "Compile a CUDA source while it is edited, too, as it stands in the editor."
    )
    static_pause_s: float = option(
        "static.debounceSeconds", 0.5, seconds(0, 3600), "Time without another edit before a source is compiled."
    )
    shows_compiler_messages: bool = option(
        "static.compilerMessages", True, FLAG, "List errors and warnings of the compiler among the problems."
    )
    static_architecture: tuple[int, int] | None = option(
        "static.architecture",
        None,
        ARCHITECTURE,
        "Architecture to compile for, such as `sm_86`; if empty, the newest that the source's compile command names.",
    )
    static_timeout_s: float = option(
        "static.timeoutSeconds", 60.0, seconds(1, 3600), "The compiler is ended after this much processor time."
    )
    compiles_fixes: bool = option(
        "static.fixes",
        True,
        FLAG,
        "Compile the fixes offered at the cursor in the background, to say beforehand what the compiler makes of them. Only where "
        "`static.enable` lets sources be compiled.",
    )
    emulates: bool = option(
        "emulation.enable",
        True,
        FLAG,
        "Emulate the launches that `NAME.launch.toml` describes beside `NAME.cu`, when either is opened or saved, and show what lines do to "
        "memory, where warps diverge, what goes wrong, and predicted data volumes, without a GPU. No host code is run, and nothing at all in a "
        "workspace that is not trusted.",
    )
    emulation_s: float = option(
        "emulation.seconds",
        5.0,
        seconds(0.1, 600),
        "Processor time for emulating one launch; all launches of a source together may take twice as long. What was executed until then counts.",
    )
    emulation_memory_bytes: int = option(
        "emulation.memoryMiB", 1024, MEBIBYTES, "Memory for one launch: arrays, registers and traces together."
    )
    emulation_machine: str | None = option(
        "emulation.machine",
        None,
        NAME,
        "GPU to predict for, such as `A100`; if empty, that of the newest report here, else one of the architecture that is compiled for.",
    )
    emulation_hints: HintChoice = option(
        "emulation.inlayHints",
        "excess",
        one_of(HintChoice),
        "Show sectors, wavefronts and divergence at the ends of lines: where there are more than necessary, on all lines, or not at all.",
    )
    shows_emulation_diagnostics: bool = option(
        "emulation.diagnostics",
        True,
        FLAG,
        "List uncoalesced, conflicting, divergent and faulty lines among the problems.",
    )
    exploration_s: float = option(
        "emulation.exploreSeconds",
        3.0,
        seconds(0, 600),
        "Time spent after each prediction on searching for a block that is predicted to be faster; 0 searches for none.",
    )
    simulates_on_save: bool = option(
        "simulation.onSave",
        True,
        FLAG,
        "Simulate the described launches of a source when it or their description is saved, and show the stalls that a profiler would have "
        "sampled, marked as simulated, where nothing was measured. It needs `emulation.enable`; a code action on the kernel simulates at any time.",
    )
    simulation_s: float = option(
        "simulation.seconds",
        2.0,
        seconds(0.1, 600),
        "Processor time. Launches that take longer are simulated with fewer and fewer saves, until their description changes; a lens says so.",
    )
    times_on_save: bool = option(
        "timing.onSave",
        True,
        FLAG,
        "Time the described launches of a source on the GPU of this computer when it is saved, and compare with before the edit; where CUPTI is "
        "installed and allowed, one launch more is sampled. No program of yours runs. It asks first, once or always in this workspace, and needs "
        "`emulation.enable` and the extra `[cuda]`; where `profile.onSave` runs a command of yours, that measures instead.",
    )
    record_command: Command | None = option(
        "emulation.recordCommand",
        None,
        _COMMAND,
        "The program whose launches are recorded by **Record Launches by Running…**: a command line, or a list of its arguments, with the "
        "variables of `profile.command`; no shell is involved. It runs in the workspace folder, and its kernels in the emulator; "
        "`profile.timeoutSeconds` ends it. It is run only after you agreed to it, once or always in this workspace.",
        is_restricted=True,
    )
    record_build_command: Command | None = option(
        "emulation.recordBuildCommand",
        None,
        _COMMAND,
        'The command that builds that program before, such as `["make", "-B"]`: nvcc is made to add what running here needs, the shared runtime '
        "library, PTX and line numbers.",
        is_restricted=True,
    )
    recorded_launch: int = option(
        "emulation.recordLaunch", 0, COUNT, "Which launch of each kernel is recorded, from 1; 0 is the heaviest."
    )
    metric: LineMetric = USUAL  # what is shown on lines; no option, but chosen by a command

    @property
    def least_share_ratio(self) -> float:
        """From which share on a line gets colour or a hover; a user who wants hints on colder lines wants these there too.

        >>> Settings().least_share_ratio, Settings(min_share_ratio=0.001).least_share_ratio
        (0.005, 0.001)
        """
        return min(_LEAST_SHARE_RATIO, self.min_share_ratio)


OPTIONS = list_options(Settings)  # The editor's name of an option → what it is


class HeldSettings:
    """The settings as they came to be: what the client said at the start and since.

    Attributes:
        current: what holds now.
        is_trusted: the user trusts the workspace; where not, options that start programs or widen what is read keep their defaults.
        shows_all_hints: the user wants every hint for now.
    """

    def __init__(self) -> None:
        self.current = self._said = self._first = Settings()
        self.is_trusted = False
        self.shows_all_hints = False
        self._chosen = UnverifiedChoice.FITTING
        self._metric = USUAL

    def begin(self, initialization_options: object, *, is_trusted: bool) -> tuple[str, ...]:
        """The first thing the client says; a sentence for each value that makes no sense."""
        self.is_trusted = is_trusted
        complaints = self.take(initialization_options)
        self._first = self._said
        return complaints

    def take(self, raw: object, *, is_whole: bool = False) -> tuple[str, ...]:
        """Options the client sent.

        Args:
            raw: what stands under ``gpaLsp``.
        """
        base = self._first if is_whole else self._said
        self._said, complaints = read_settings(raw, base, known=self._said)
        self._apply()
        return complaints

    def set_trust(self, is_trusted: bool) -> None:
        """The user trusts the workspace, or does not any more."""
        self.is_trusted = is_trusted
        self._apply()

    def show_all_hints(self, is_wanted: bool) -> None:
        """Every hint for now, or no more than a screen bears."""
        self.shows_all_hints = is_wanted
        self._apply()

    def choose_metric(self, metric: LineMetric) -> None:
        """What is shown on lines from now on."""
        self._metric = metric
        self._apply()

    def choose_unverified(self, choice: UnverifiedChoice) -> None:
        """What the user answered about sources that may have changed; it counts where their settings leave it open."""
        self._chosen = choice
        self._apply()

    def _apply(self) -> None:
        current = self._said if self.is_trusted else drop_restricted(self._said)
        is_open = current.unverified_lines is UnverifiedChoice.FITTING
        current = replace(
            current, metric=self._metric, unverified_lines=self._chosen if is_open else current.unverified_lines
        )
        self.current = replace(current, most_hints_on_screen=0) if self.shows_all_hints else current


def drop_restricted(settings: Settings) -> Settings:
    """Settings with the defaults of what a workspace nobody trusts must not set."""
    defaults = Settings()
    fields = [one.field for one in OPTIONS.values() if one.is_restricted]
    return replace(settings, **{field: getattr(defaults, field) for field in fields})


def read_settings(raw: object, base: Settings, *, known: Settings | None = None) -> tuple[Settings, tuple[str, ...]]:
    """Settings as an editor sends them: nested objects, or names with dots in them.

    Args:
        raw: what stands under ``gpaLsp``; None and anything that is no object changes nothing.
        known: the values of options with a value that makes no sense; None for those of ``base``.

    >>> read_settings({"minShare": 10, "inlayHints": {"enable": False}}, Settings())[0].min_share_ratio
    0.1
    >>> read_settings({"minShare": "much"}, Settings())[1]
    ('gpaLsp.minShare: much is not a number; the option is unchanged',)
    """
    changes: dict[str, Any] = {}
    complaints: list[str] = []
    for name, value in _walk_options(raw, ""):
        found = OPTIONS[name]
        try:
            changes[found.field] = found.kind.read(value)
        except ValueError as error:
            complaints.append(f"gpaLsp.{name}: {_abbreviate(value)} is not {error}; the option is unchanged")
            changes[found.field] = getattr(known or base, found.field)
    return replace(base, **changes), tuple(complaints)


def _walk_options(raw: object, prefix: str) -> Iterator[tuple[str, object]]:
    """The options among ``raw`` with their full names; null means "not set", which takes back what has no other default."""
    if not isinstance(raw, Mapping):
        return
    for key, value in raw.items():
        name = f"{prefix}{key}"
        if name in OPTIONS and (value is not None or OPTIONS[name].default is None):
            yield name, value
        elif any(known.startswith(f"{name}.") for known in OPTIONS):
            yield from _walk_options(value, f"{name}.")


def _abbreviate(value: object) -> str:
    try:
        text = str(value)
    except (RecursionError, ValueError):  # nested without end; a number of ten thousand digits
        return "this"
    return text if len(text) <= 60 else f"{text[:57]}..."
