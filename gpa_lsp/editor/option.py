"""An option of the editor, said once: :func:`option` declares a field of the settings, and everything else about it follows from there."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from gpa_lsp.gpu.arch.sections import ARCHITECTURE_PATTERN, parse_architecture_name

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
