"""Values of settings as editors send them: each reader gives the value, or raises ValueError saying what it takes."""

import re
from collections.abc import Callable, Mapping, Sequence

_LARGEST_NUMBER = 1e15
_MOST_TEXTS = 1000
_LONGEST_TEXT = 4096
_ARCHITECTURE = re.compile(r"sm_(\d{1,2})(\d)[af]?")


def read_percent(value: object) -> float:
    """0 to 100, as a ratio."""
    number = read_number(value)
    if not 0.0 <= number <= 100.0:
        raise ValueError("a number of percent between 0 and 100")
    return number / 100.0


def read_number(value: object) -> float:
    """A number that can be one."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER
    ):
        raise ValueError("a number")
    return float(value)


def read_count(value: object) -> int:
    """A whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a whole number, 0 or more")
    return value


def read_flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def read_mappings(value: object) -> tuple[tuple[str, str], ...]:
    """Pairs of a path as compiled and a folder here."""
    if not isinstance(value, Mapping) or not _are_texts([part for pair in value.items() for part in pair]):
        raise ValueError('an object of "path as compiled": "folder here"')
    return tuple((str(compiled), str(here)) for compiled, here in value.items())


def read_globs(value: object) -> tuple[str, ...]:
    """Patterns of paths."""
    if not isinstance(value, list | tuple) or not _are_texts(value) or not all(value):
        raise ValueError("a list of patterns such as **/*.ncu-rep")
    return tuple(str(glob) for glob in value)


def _are_texts(values: Sequence[object]) -> bool:
    """Texts that can be paths, and no more of them than anybody writes."""
    return len(values) <= _MOST_TEXTS and all(
        isinstance(text, str) and len(text) <= _LONGEST_TEXT and "\0" not in text for text in values
    )


def make_seconds_reader(least: float, most: float) -> Callable[[object], float]:
    """A reader of seconds between two bounds."""

    def read(value: object) -> float:
        number = read_number(value)
        if not least <= number <= most:
            raise ValueError(f"a number of seconds between {least:g} and {most:g}")
        return number

    return read


def read_mebibytes(value: object) -> int:
    """A whole number of MiB, as bytes."""
    if isinstance(value, bool) or not isinstance(value, int) or not 16 <= value <= 1 << 20:
        raise ValueError("a whole number of MiB between 16 and 1048576")
    return value << 20


def read_name(value: object) -> str | None:
    """A name; None for none."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _are_texts((value,)):
        raise ValueError("a name")
    return value


def read_architecture(value: object) -> tuple[int, int] | None:
    """The compute capability of a name such as ``sm_86``; None for none."""
    if value is None:
        return None
    match = _ARCHITECTURE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("an architecture such as sm_86")
    return int(match[1]), int(match[2])
