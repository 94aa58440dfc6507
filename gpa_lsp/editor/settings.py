"""The options an editor can set, each said once: :class:`Settings`; what a client says of them, where values may make no sense; and the abilities
that it names: :class:`Abilities`.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.editor.metrics import USUAL, LineMetric
from gpa_lsp.gpu.arch.sections import ARCHITECTURE_PATTERN, parse_architecture_name
from gpa_lsp.profile.collect.variables import Command, parse_command_setting

Value = TypeVar("Value")
Choice = TypeVar("Choice", bound=Enum)

_LARGEST_NUMBER = 1e15
_MOST_TEXTS = 1000
_LONGEST_TEXT = 4096


class Kind(Struct, Generic[Value], frozen=True):
    """A kind of value."""

    schema: Mapping[str, Any]  # JSON Schema of it as an editor writes it
    read: Callable[[object], Value]  # from what an editor sent; raises ValueError saying what it takes


class Option(Struct, frozen=True, kw_only=True):
    """An option as an editor sees it."""

    name: str  # below ``gpaLsp``
    field: str  # of the settings
    kind: Kind[Any]  # of its value
    default: object  # as the editor writes it
    summary: str  # what it means, Markdown for people
    is_restricted: bool  # a workspace that is not trusted must not set it: it starts programs, or widens what is read


_DECLARED: dict[str, dict[str, Any]] = {}  # what is said of an option besides its value, by the name that its field has


def option(name: str, default: object, kind: Kind[Value], summary: str, *, is_restricted: bool = False) -> Value:
    """A field of settings; for the arguments see :class:`Option`."""
    _DECLARED[name] = {"kind": kind, "default": default, "summary": summary, "is_restricted": is_restricted}
    return field(default=kind.read(default), name=name)


def list_options(settings: type[Struct]) -> dict[str, Option]:
    """The options that are declared in a struct, by name, in their order there; fields that no editor sets are not among them."""
    names = zip(settings.__struct_fields__, settings.__struct_encode_fields__, strict=True)
    return {name: Option(field=one, name=name, **_DECLARED[name]) for one, name in names if name in _DECLARED}


# Kinds of values


def _read_number(value: object) -> float:
    """A number that can be one."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER
    ):
        raise ValueError("a number")
    return float(value)


def _read_percent(value: object) -> float:
    number = _read_number(value)
    if not 0 <= number <= 100:
        raise ValueError("a number of percent between 0 and 100")
    return number / 100.0


PERCENT = Kind({"type": "number", "minimum": 0, "maximum": 100}, _read_percent)  # 0 to 100, as a ratio


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


FLAG = Kind({"type": "boolean"}, _read_flag)  # A switch


def one_of(choices: type[Choice]) -> Kind[Choice]:
    """One of the values of an enumeration."""
    names = [str(choice.value) for choice in choices]

    def read(value: object) -> Choice:
        try:
            return choices(value)
        except ValueError:
            raise ValueError("one of " + ", ".join(names)) from None

    return Kind({"enum": names}, read)


def _read_mappings(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping) or not _are_texts([part for pair in value.items() for part in pair]):
        raise ValueError('an object of "path as compiled": "folder here"')
    return tuple((str(compiled), str(here)) for compiled, here in value.items())


# Pairs of a path as compiled and a folder here, in the order they are tried
PATH_MAPPINGS = Kind({"type": "object", "additionalProperties": {"type": "string"}}, _read_mappings)


def _read_globs(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not _are_texts(value) or not all(value):
        raise ValueError("a list of patterns such as **/*.ncu-rep")
    return tuple(str(glob) for glob in value)


GLOBS = Kind({"type": "array", "items": {"type": "string", "minLength": 1}}, _read_globs)  # Patterns of paths


def _are_texts(values: Sequence[object]) -> bool:
    """Texts that can be paths, and no more of them than anybody writes."""
    return len(values) <= _MOST_TEXTS and all(
        isinstance(text, str) and len(text) <= _LONGEST_TEXT and "\0" not in text for text in values
    )


def _read_name(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _are_texts((value,)):
        raise ValueError("a name")
    return value


NAME = Kind({"type": ["string", "null"]}, _read_name)  # A name; None for none


def _read_architecture(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    found = parse_architecture_name(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("an architecture such as sm_86")
    return found


# The compute capability of a name such as ``sm_86``; None for none
ARCHITECTURE = Kind({"type": ["string", "null"], "pattern": f"^{ARCHITECTURE_PATTERN}$"}, _read_architecture)


class Severity(Enum):
    """Severities of diagnostics, in the words of the settings."""

    INFORMATION = "information"
    HINT = "hint"
    WARNING = "warning"
    OFF = "off"


class UnverifiedChoice(Enum):
    """Treatment of sources that may not be what was measured, in the words of the settings."""

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
        "inlayHints.enable",
        True,
        FLAG,
        "Show shares, times of launches and emulated memory traffic at the ends of lines.",
    )
    diagnostic_severity: Severity = option(
        "diagnostics.severity",
        "information",
        one_of(Severity),
        "Severity of the lines that cause stalls among the problems; `off` lists no finding, only what the compiler says.",
    )
    serves_definition: bool = option(
        "definition.enable",
        False,
        FLAG,
        "Let Go to Definition on a line of a source lead to what the line is stalled on. Off by default: the language's own server answers there, "
        "and with two answers editors ask which to take.",
    )
    unverified_lines: UnverifiedChoice = option(
        "unverifiedLines",
        "fitting",
        one_of(UnverifiedChoice),
        "Numbers in a source that was saved after it was measured, without a copy of what was measured: shown with a `?` where the measured lines "
        "fit the source (`fitting`), in `all` such sources although they may stand on wrong lines, or not at all (`none`).",
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
    compiles_sources: bool = option(
        "static.enable",
        True,
        FLAG,
        "Compile a CUDA source when it is opened and saved, and show registers, shared memory, occupancy, the compiler's messages and what the "
        "code says, without any profile. Fixes that are offered are compiled, too, to say what the compiler makes of them. Only our own compiler "
        "runs, with flags from a list, on the text and its headers; nothing of the project is run, and nothing at all in a workspace that is not "
        "trusted.",
    )
    static_architecture: tuple[int, int] | None = option(
        "static.architecture",
        None,
        ARCHITECTURE,
        "Architecture to compile for, such as `sm_86`; if empty, the newest that the source's compile command names.",
    )
    emulates: bool = option(
        "emulation.enable",
        True,
        FLAG,
        "Emulate the launches that `NAME.launch.toml` describes beside `NAME.cu`, when either is opened or saved, and show what lines do to "
        "memory, where warps diverge, what goes wrong, and predicted data volumes, without a GPU. No host code is run, and nothing at all in a "
        "workspace that is not trusted.",
    )
    emulation_machine: str | None = option(
        "emulation.machine",
        None,
        NAME,
        "GPU to predict for, such as `A100`; if empty, that of the newest report here, else one of the architecture that is compiled for.",
    )
    simulates_on_save: bool = option(
        "simulation.onSave",
        True,
        FLAG,
        "Simulate the described launches of a source when it or their description is saved, and show the stalls that a profiler would have "
        "sampled, marked as simulated, where nothing was measured. It needs `emulation.enable`; a code action on the kernel simulates at any time.",
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
        "variables of `profile.command`; no shell is involved. It runs in the workspace folder, and its kernels in the emulator. "
        "It is run only after you agreed to it, once or always in this workspace.",
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
    # no options, but chosen by commands
    metric: LineMetric = USUAL  # what is shown on lines
    shows_all_hints: bool = False  # on every line that has something to say, not only on as many as a screen bears

    # no options: the limits the program keeps to. The command line has options for those that a user may want to raise; tests, and
    # machines much slower than usual, change them by GPA_LSP_LIMITS, an object of these names.
    most_hints_on_screen: int = 12  # in any 40 lines, hottest first; 0 for no limit
    max_diagnostics_per_file: int = 200  # costliest first; VS Code itself cuts at 1,000
    poll_seconds: float = 1.0  # between two looks for changed profiles and sources
    debounce_s: float = 1.0  # without another save before measuring begins
    profile_timeout_s: float = 3600.0  # of the command that measures; it can be cancelled before
    static_timeout_s: float = 60.0  # processor time of a compiler
    emulation_s: float = 5.0  # processor time of one launch; all launches of a source together may take twice as long
    emulation_memory_bytes: int = 1 << 30  # of one launch: arrays, registers and traces together
    exploration_s: float = 3.0  # on the search for a faster block after each prediction
    simulation_s: float = 2.0  # processor time; launches that take longer are simulated with fewer and fewer saves

    @property
    def least_share_ratio(self) -> float:
        """Least share for colour and hovers; a user who wants hints on colder lines wants these there too.

        >>> Settings().least_share_ratio, Settings(min_share_ratio=0.001).least_share_ratio
        (0.005, 0.001)
        """
        return min(_LEAST_SHARE_RATIO, self.min_share_ratio)


OPTIONS = list_options(Settings)  # The editor's name of an option → what it is

_LEAST_LIKENESS = 0.8  # Of a name to that of an option, for it to be called a slip

# former options → where what they chose is now
_GONE = {
    "inlayHints.onScreen": "at most 12 hints in any 40 lines are shown; the command Show All Hints shows every one",
    "diagnostics.enable": "set `diagnostics.severity` to `off`",
    "maxDiagnosticsPerFile": "at most 200 lines of a file are listed",
    "symbols.enable": "kernels are always listed among the symbols",
    "blamer": "`gpa-lsp advise --mode paper` attributes and estimates as the paper does",
    "pollSeconds": "changed files are looked for every second",
    "profile.debounceSeconds": "measuring begins one second after the last save",
    "profile.timeoutSeconds": "a measurement ends after an hour, or when it is cancelled",
    "static.onChange": "sources are compiled when they are opened and saved",
    "static.debounceSeconds": "sources are compiled when they are opened and saved",
    "static.compilerMessages": "they are listed wherever `static.enable` compiles",
    "static.timeoutSeconds": "a compiler is ended after 60 s of processor time",
    "static.fixes": "fixes are compiled wherever `static.enable` compiles",
    "emulation.seconds": "`gpa-lsp emulate --seconds` emulates longer",
    "emulation.memoryMiB": "`gpa-lsp emulate --memory` gives a launch more",
    "emulation.inlayHints": "`inlayHints.enable` and the command Show All Hints decide",
    "emulation.diagnostics": "set `diagnostics.severity` to `off`",
    "emulation.exploreSeconds": "`gpa-lsp predict explore` searches through all it is given",
    "emulation.recordLaunch": "`gpa-lsp emulate --record-launch` chooses the launch",
    "sass.colours": "source and SASS are tied by colours wherever `sass.syncCursor` links them",
    "simulation.seconds": "`gpa-lsp predict stalls --seconds` simulates longer",
}


class HeldSettings:
    """The settings as they came to be: what the client said at the start and since.

    Attributes:
        current: what holds now.
        is_trusted: the user trusts the workspace; where not, options that start programs or widen what is read keep their defaults.
    """

    def __init__(self) -> None:
        self.current = self._said = self._first = replace(Settings(), **_read_limits())
        self.is_trusted = False
        self._shows_all_hints = False
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
        self._shows_all_hints = is_wanted
        self._apply()

    def choose_metric(self, metric: LineMetric) -> None:
        """Show another metric on lines from now on."""
        self._metric = metric
        self._apply()

    def choose_unverified(self, choice: UnverifiedChoice) -> None:
        """Take the user's answer about sources that may have changed; it counts where their settings leave it open."""
        self._chosen = choice
        self._apply()

    def _apply(self) -> None:
        current = self._said if self.is_trusted else drop_restricted(self._said)
        is_open = current.unverified_lines is UnverifiedChoice.FITTING
        current = replace(
            current, metric=self._metric, unverified_lines=self._chosen if is_open else current.unverified_lines
        )
        self.current = (
            replace(current, shows_all_hints=True, most_hints_on_screen=0) if self._shows_all_hints else current
        )


def _read_limits() -> dict[str, Any]:
    """The limits that the environment changes; none where it says something else."""
    try:
        said = json.loads(os.environ.get("GPA_LSP_LIMITS", "{}"))
    except ValueError:
        return {}
    fields = {field for field in Settings.__struct_fields__ if field not in {one.field for one in OPTIONS.values()}}
    return {name: value for name, value in said.items() if name in fields} if isinstance(said, dict) else {}


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
        if name in _GONE:
            complaints.append(f"gpaLsp.{name} is no option any more: {_GONE[name]}")
            continue
        if name not in OPTIONS:  # one of the client's, or a slip
            meant = get_close_matches(name, _list_names(), 1, _LEAST_LIKENESS)
            complaints += (f"gpaLsp.{name} is no option; is gpaLsp.{one} meant?" for one in meant)
            continue
        found = OPTIONS[name]
        try:
            changes[found.field] = found.kind.read(value)
        except ValueError as error:
            complaints.append(f"gpaLsp.{name}: {_abbreviate(value)} is not {error}; the option is unchanged")
            changes[found.field] = getattr(known or base, found.field)
    return replace(base, **changes), tuple(complaints)


def _walk_options(raw: object, prefix: str) -> Iterator[tuple[str, object]]:
    """Options among ``raw`` with their full names, also unknown ones; null means "not set", which takes back what has no other default."""
    if not isinstance(raw, Mapping):
        return
    for key, value in raw.items():
        name = f"{prefix}{key}"
        is_said = value is not None or (name in OPTIONS and OPTIONS[name].default is None)
        if any(known.startswith(f"{name}.") for known in (*OPTIONS, *_GONE)):
            yield from _walk_options(value, f"{name}.")
        elif is_said:
            yield name, value


def _list_names() -> list[str]:
    """Names of all options, and of the groups of them."""
    return sorted(
        {".".join(parts[:end]) for name in OPTIONS if (parts := name.split(".")) for end in range(1, 1 + len(parts))}
    )


def _abbreviate(value: object) -> str:
    try:
        text = str(value)
    except (RecursionError, ValueError):  # nested without end; a number of ten thousand digits
        return "this"
    return text if len(text) <= 60 else f"{text[:57]}..."


class Abilities(Struct, frozen=True, kw_only=True, rename="camel"):
    """Messages and views of our own that the client can show."""

    heat: bool = False  # ``gpaLsp/heat``
    status: bool = False  # ``gpaLsp/status``
    output: bool = False  # ``gpaLsp/output``
    links: bool = False  # hovers may end in links that run commands of ours
    # it shows def-use chains of sources itself, so their call hierarchy stays with the language's own server
    call_hierarchy_tree: bool = False
    pages: bool = False  # it shows pages of HTML itself
    typing: bool = False  # ``gpaLsp/askForText``
    questions: bool = False  # it shows a question beside the work, and not in its way
    previews: bool = False  # shows the description of an edit before applying it
    line_end_lenses: bool = False  # it draws lenses at the ends of lines, where hints stand
    is_trusted: bool = field(default=True, name="trusted")  # the user trusts the workspace


def read_abilities(initialization_options: object) -> Abilities:
    """The abilities among a client's initialization options; what makes no sense counts as absent.

    A client that says something senseless about trust is not trusted.

    >>> found = read_abilities({"client": {"heat": True, "links": "yes"}})
    >>> found.heat, found.links, found.is_trusted
    (True, False, True)
    """
    said = initialization_options.get("client") if isinstance(initialization_options, Mapping) else None
    if not isinstance(said, Mapping):
        return Abilities()
    names = zip(Abilities.__struct_encode_fields__, Abilities.__struct_fields__, strict=True)
    return Abilities(**{own: said[name] is True for name, own in names if name in said})
