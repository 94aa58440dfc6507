"""The options an editor can set, their defaults, and what is said about values that make no sense."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


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
        path_mappings: (path prefix as compiled, folder on this machine), in the order they are tried.
        profile_globs: which files are profiles, relative to each workspace folder; ``**`` stands for any folders. A pattern that starts with
            ``/`` or ``~`` is looked for outside the workspace.
        poll_seconds: time between two looks at the workspace.
    """

    min_share_ratio: float = 0.05
    max_diagnostics_per_file: int = 200
    show_inlay_hints: bool = True
    show_diagnostics: bool = True
    diagnostic_severity: Severity = Severity.INFORMATION
    path_mappings: tuple[tuple[str, str], ...] = ()
    profile_globs: tuple[str, ...] = ("**/*.ncu-rep", "**/*.ncu-repz", "**/*.gpa-profile.json")
    poll_seconds: float = 1.0


def _read_percent(value: object) -> float:
    number = _read_number(value)
    if not 0.0 <= number <= 100.0:
        raise ValueError("a number of percent between 0 and 100")
    return number / 100.0


def _read_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("a number")
    return float(value)


def _read_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a whole number, 0 or more")
    return value


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _read_severity(value: object) -> Severity:
    try:
        return Severity(value)
    except ValueError:
        raise ValueError("one of " + ", ".join(severity.value for severity in Severity)) from None


def _read_mappings(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping) or not all(isinstance(part, str) for pair in value.items() for part in pair):
        raise ValueError('an object of "path as compiled": "folder here"')
    return tuple((str(compiled), str(here)) for compiled, here in value.items())


def _read_globs(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(glob, str) and glob for glob in value):
        raise ValueError("a list of patterns such as **/*.ncu-rep")
    return tuple(str(glob) for glob in value)


def _read_period(value: object) -> float:
    number = _read_number(value)
    if not 0.05 <= number <= 3600.0:
        raise ValueError("a number of seconds between 0.05 and 3600")
    return number


OPTIONS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "minShare": ("min_share_ratio", _read_percent),
    "maxDiagnosticsPerFile": ("max_diagnostics_per_file", _read_count),
    "inlayHints.enable": ("show_inlay_hints", _read_flag),
    "diagnostics.enable": ("show_diagnostics", _read_flag),
    "diagnostics.severity": ("diagnostic_severity", _read_severity),
    "pathMappings": ("path_mappings", _read_mappings),
    "profileGlobs": ("profile_globs", _read_globs),
    "pollSeconds": ("poll_seconds", _read_period),
}
"""The editor's name of an option → field of :class:`Settings` and the reader of its value, which raises ValueError saying what it takes."""


def read_settings(raw: object, base: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Settings as an editor sends them: nested objects, or names with dots in them.

    Args:
        raw: what stands under ``gpaLsp``; None and anything that is no object changes nothing.
        base: the values of options not mentioned, and of those with a value that makes no sense.

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
        field_name, read = OPTIONS[name]
        try:
            changes[field_name] = read(value)
        except ValueError as error:
            complaints.append(f"gpaLsp.{name}: {_abbreviate(value)} is not {error}; the option stays as it was")
    return replace(base, **changes), tuple(complaints)


def _walk_options(raw: object, prefix: str) -> Iterator[tuple[str, object]]:
    """The options among ``raw`` with their full names; null means "not set"."""
    if not isinstance(raw, Mapping):
        return
    for key, value in raw.items():
        name = f"{prefix}{key}"
        if name in OPTIONS and value is not None:
            yield name, value
        elif any(option.startswith(f"{name}.") for option in OPTIONS):
            yield from _walk_options(value, f"{name}.")


def _abbreviate(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
