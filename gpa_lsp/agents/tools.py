"""The tools: what an agent may ask, by name and arguments, and which question of :class:`~gpa_lsp.agents.answers.Answers` each is."""

import reprlib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.visible_text import make_one_line

_MOST_QUOTED = 80
_QUOTE = reprlib.Repr()
_QUOTE.maxstring = _QUOTE.maxother = _MOST_QUOTED
_QUOTE.maxlevel = 3
_MOST_COMPLAINTS = 4


class Argument(Struct, frozen=True, kw_only=True):
    """One of a tool."""

    name: str  # in calls
    type: str  # ``string`` or ``integer``
    words: str  # what it is, for the agent
    is_required: bool = False  # a call without it is wrong
    default: int | None = None  # where it is left out; an argument whose default is None may be given as null

    def describe(self) -> dict[str, Any]:
        """Return the JSON schema."""
        if self.is_required:
            return {"type": self.type, "description": self.words}
        if self.default is None:
            return {"type": [self.type, "null"], "default": None, "description": self.words}
        return {"type": self.type, "default": self.default, "description": self.words}

    def read(self, value: object) -> str | int | None:
        """A value of a call. Numbers may be written as text: agents do.

        Raises:
            ValueError: it is of another type; says which one is wanted.
        """
        if value is None and not self.is_required and self.default is None:
            return None
        return _read_text(value) if self.type == "string" else _read_integer(value)


class Tool(Struct, frozen=True, kw_only=True):
    """A question an agent may ask."""

    name: str  # of the tool, and of the method that answers
    words: str  # what it answers, for the agent
    arguments: tuple[Argument, ...]  # of it

    def describe(self) -> dict[str, Any]:
        """Return the tool and its arguments as the protocol has them."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {argument.name: argument.describe() for argument in self.arguments},
            "additionalProperties": False,
        }
        required = [argument.name for argument in self.arguments if argument.is_required]
        if required:
            schema["required"] = required
        reading = {"readOnlyHint": True, "openWorldHint": False}
        return {"name": self.name, "description": self.words, "inputSchema": schema, "annotations": reading}


_START = Argument(name="start", type="integer", words="First row.", default=0)
_KERNEL_OR_LONGEST = Argument(name="kernel", type="string", words="Id or name; the one that took longest without it.")
_KERNEL_OR_ALL = Argument(name="kernel", type="string", words="Name; all without it.")

TOOLS = (
    Tool(
        name="list_kernels",
        words="Kernels of the measured reports here: id, time, samples, what limits each, its best suggestion. Begin with this.",
        arguments=(
            Argument(
                name="report", type="string", words="A report or folder; all below the current folder without it."
            ),
            _START,
        ),
    ),
    Tool(
        name="advise",
        words="What limits a kernel, where its stalls begin, what to change and the range of what that gains (estimated from samples).",
        arguments=(
            _KERNEL_OR_LONGEST,
            Argument(name="suggestion", type="string", words="Name of a suggestion, for its places, doubts and basis."),
            _START,
        ),
    ),
    Tool(
        name="explain_line",
        words="What a source line is stalled on and what is stalled on it, with samples and stall reasons (measured).",
        arguments=(
            Argument(name="file", type="string", words="The source file, or an end of its path.", is_required=True),
            Argument(name="line", type="integer", words="1-based, as measured.", is_required=True),
            Argument(name="kernel", type="string", words="Id or name; every kernel with the line without it."),
            _START,
        ),
    ),
    Tool(
        name="compare",
        words="Whether kernels got faster between two reports, by how much, and what changed (measured).",
        arguments=(
            Argument(name="before", type="string", words="A report.", is_required=True),
            Argument(name="after", type="string", words="A report of the changed program.", is_required=True),
            _KERNEL_OR_ALL,
            _START,
        ),
    ),
    Tool(
        name="predict",
        words=(
            "Memory accesses, faults, divergence and the predicted limit of a source's kernels with no GPU "
            "(emulated, nothing measured)."
        ),
        arguments=(
            Argument(
                name="source", type="string", words="A .cu file with NAME.launch.toml beside it.", is_required=True
            ),
            _KERNEL_OR_ALL,
            _START,
        ),
    ),
    Tool(
        name="sass",
        words="Machine instructions with samples, main stall reason and source line (measured).",
        arguments=(
            _KERNEL_OR_LONGEST,
            Argument(name="file", type="string", words="Of the line, or an end of its path."),
            Argument(name="line", type="integer", words="Only instructions of this source line."),
            _START,
        ),
    ),
)


def read_call(name: str, given: Mapping[str, Any]) -> dict[str, str | int | None]:
    """The arguments of a call as its question takes them.

    Raises:
        InputError: there is no such tool or argument, one is missing, or of another type.

    >>> read_call("explain_line", {"file": "k.cu", "line": "22"})
    {'file': 'k.cu', 'line': 22, 'kernel': None, 'start': 0}
    """
    tool = next((one for one in TOOLS if one.name == name), None)
    if tool is None:
        raise InputError(f"there is no tool {_quote(name)}; there are {', '.join(one.name for one in TOOLS)}")
    known = [argument.name for argument in tool.arguments]
    strange = next((argument for argument in given if argument not in known), None)
    if strange is not None:
        raise InputError(f"{name} has no argument {_quote(strange)}; it has {', '.join(known)}")
    missing = [argument.name for argument in tool.arguments if argument.is_required and argument.name not in given]
    if missing:
        raise InputError(f"{name} needs {', '.join(missing)}")
    return _read_arguments(tool, given)


def _read_arguments(tool: Tool, given: Mapping[str, Any]) -> dict[str, str | int | None]:
    read: dict[str, str | int | None] = {}
    wrong: list[str] = []
    for argument in tool.arguments:
        value = given.get(argument.name, argument.default)
        try:
            read[argument.name] = argument.read(value)
        except ValueError as error:
            wrong.append(f"{argument.name} is {_quote(value)}: {error}")
    if wrong:
        raise InputError(f"{tool.name}: {'; '.join(wrong[:_MOST_COMPLAINTS])}")
    return read


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("input should be a valid string")
    return value


def _read_integer(value: object) -> int:
    wanted = "input should be a valid integer"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(wanted)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{wanted}, got a number with a fractional part")
    try:
        return int(value)
    except ValueError as error:
        raise ValueError(f"{wanted}, unable to parse string as an integer") from error


def _quote(value: object) -> str:
    return make_one_line(_QUOTE.repr(value)[:_MOST_QUOTED])
