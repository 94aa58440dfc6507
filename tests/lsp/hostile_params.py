"""Params no client sends: made from the protocol's own types, and then spoilt."""

import copy
import enum
import random
import types as python_types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from lsprotocol import types

KNOWN_METHODS: Mapping[str, Any] = {
    method: request for method, (request, *_) in types.METHOD_TO_TYPES.items() if hasattr(request, "id")
}

NUMBERS = (0, 1, 4, -1, 2**31 - 1, 2**31, 2**53, 10**40, -(10**40), 1.5, -0.0, 1e308, float("nan"), float("inf"))
LINES = (0, 1, 3, 4, 5, 6, 20, 10**6, 2**31 - 1)
URIS = (
    "untitled:Untitled-1",
    "http://example.com/saxpy.cu",
    "file:///never/opened.cu",
    "file:///a%00b.cu",
    "file:///a\0b.cu",
    "file:///%ff%fe%zz%",
    "file:///\ud800",
    "file://[",
    "file://host/share/x.cu",
    "file:relative.cu",
    "file:",
    ":",
    "",
    "//",
    "\0",
    "gpa-sass:///unknown.00000000.nvsass",
    "gpa-sass:",
    "gpa-sass://[::1/x",
    "file:///" + "a/" * 50_000,
    "vscode-notebook-cell:/x#y",
)
TEXTS = ("", "saxpy", "x" * 1_000_000, "\ud800\udfff", "\0", "a\r\nb", "](command:x)", "é😀")
WORTHLESS: tuple[Any, ...] = (None, True, [], {}, [[[]]], {"": None}, [None] * 100, {"line": 1}, "x", 1.5, -1)
DATA: tuple[Any, ...] = (
    None,
    {"kind": "source"},
    {"kind": "source", "kernel": None, "file": 3, "line": "x"},
    {"kind": "source", "kernel": "saxpy", "file": "saxpy.cu", "line": 10**400},
    {"kind": "source", "kernel": ["saxpy"], "file": "saxpy.cu", "line": float("nan")},
    {"kind": "sass", "uri": "gpa-sass:///x", "row": -1},
    {"kind": "sass", "uri": 3, "row": 2**63},
    {"kind": "instruction", "kernel": {}, "row": 1.5},
    {"kind": ["source"]},
    "x" * 100_000,
    [1, 2, 3],
    {"jsonrpc": "2.0", "id": 1, "method": "shutdown"},
    {"jsonrpc": "2.0", "id": 1, "result": None},
)


def nest(depth: int) -> Any:
    """Lists in lists."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


class Maker:
    """Makes JSON of the protocol's types.

    Args:
        chance: decides everything.
        uris: of documents that are open.
        items: of the server's own call hierarchies.
    """

    def __init__(self, chance: random.Random, uris: Sequence[str], items: Sequence[Any] = ()) -> None:
        self.chance = chance
        self.uris = uris
        self.items = items

    def make_params(self, method: str) -> Any:
        """Params as the protocol has them, with strange values in them."""
        hints = typing.get_type_hints(KNOWN_METHODS[method], vars(types))
        return self.make(hints["params"], "params", 0)

    def make(self, kind: Any, name: str, depth: int) -> Any:
        """A value of a type of :mod:`lsprotocol.types`."""
        origin = typing.get_origin(kind)
        if kind is types.CallHierarchyItem and self.items and self.chance.random() < 0.7:
            return copy.deepcopy(self.chance.choice(self.items))
        if origin in (typing.Union, python_types.UnionType):
            options = [one for one in typing.get_args(kind) if one is not type(None)]
            return self.make(self.chance.choice(options), name, depth)
        if attrs.has(kind):
            return self._make_object(kind, depth)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return self.chance.choice([*(one.value for one in kind), "nothing"])
        if origin is not None and issubclass(origin, Sequence) and not issubclass(origin, tuple):
            (item,) = typing.get_args(kind)
            return [self.make(item, name, depth + 1) for _ in range(self.chance.choice((0, 1, 1, 2)))]
        return self._make_plain(kind, name)

    def _make_object(self, kind: Any, depth: int) -> dict[str, Any]:
        hints = typing.get_type_hints(kind, vars(types))
        made: dict[str, Any] = {}
        for field in attrs.fields(kind):
            is_needed = field.default is attrs.NOTHING
            if is_needed or (depth < 6 and self.chance.random() < 0.5):
                made[_name(field.name)] = self.make(hints[field.name], field.name, depth + 1)
        return made

    def _make_plain(self, kind: Any, name: str) -> Any:
        if name in ("line", "character"):
            return self.chance.choice(LINES if self.chance.random() < 0.8 else NUMBERS)
        if "uri" in name:
            return self.chance.choice(self.uris if self.chance.random() < 0.6 else URIS)
        if kind is str:
            return self.chance.choice(TEXTS)
        if kind in (int, float):
            return self.chance.choice(NUMBERS)
        if kind is bool:
            return self.chance.random() < 0.5
        return copy.deepcopy(self.chance.choice((*DATA, *WORTHLESS)))

    def spoil(self, params: Any) -> Any:
        """The same with one value somewhere replaced, or taken away."""
        places = list(_list_places(params))
        if not places or self.chance.random() < 0.1:
            return copy.deepcopy(self.chance.choice((*WORTHLESS, *DATA, nest(200))))
        holder, key = self.chance.choice(places)
        if self.chance.random() < 0.3 and isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = copy.deepcopy(self.chance.choice((*WORTHLESS, *NUMBERS, *URIS, *TEXTS, nest(300))))
        return params


def _name(field: str) -> str:
    head, *rest = field.rstrip("_").split("_")
    return head + "".join(part.capitalize() for part in rest)


def _list_places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in list(items):
        yield value, key
        yield from _list_places(member)


def list_plain_failures() -> list[Any]:
    """Params that are wrong for every method."""
    return [None, [], {}, 3, "x", True, [1, 2], {"textDocument": None}, {"textDocument": {"uri": None}, "position": 3}]


def make_arguments(maker: Maker) -> Any:
    """Arguments for a command: places that are, and things that are none."""
    chance = maker.chance
    if chance.random() < 0.1:
        return chance.choice((None, {}, "x", 3, nest(300)))
    uri = chance.choice(maker.uris if chance.random() < 0.7 else URIS)
    line = chance.choice((*LINES, *NUMBERS))
    direction = chance.choice(("incoming", "outgoing", "sideways", None, {}))
    whole = [uri, line, direction, *DATA[:2]]
    return [
        copy.deepcopy(chance.choice((*WORTHLESS, *DATA, *TEXTS))) if chance.random() < 0.15 else one
        for one in whole[: chance.randrange(5)]
    ]
