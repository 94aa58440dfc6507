"""Links the PTX of several units into one module (``-rdc=true``): :func:`link_parts`."""

import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.containers import FATBIN_MAGIC, read_built_ptx
from gpa_lsp.code.ptx.parse import blank_comments
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.foundation.processes.watched_command import TEMPORARY

_HEAD_BYTES = 16  # Of a fat binary: its last 8 are the size of what follows. Source: cuda-binary-utilities.
_MOST_PARTS = 4096
_VERSION = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_TARGET = re.compile(r"^\s*\.target\s+sm_(\d+)", re.MULTILINE)
_LINE_DIRECTIVE = re.compile(r"\.(?:version|target|address_size|file|loc)\b[^\n]*")
_HEAD = re.compile(
    r"(?P<linkage>(?:\.(?:extern|visible|weak|common)\s+)*)\.(?P<kind>func|entry|section|pragma|alias|[a-z]+)\b"
)
_FUNCTION_NAME = re.compile(r"\.(?:func|entry)\s*(?:\.\w+\s*)*(?:\([^)]*\)\s*)?([\w$%]+)")
_VARIABLE_NAME = re.compile(r"([\w$%]+)\s*(?:\[[^\]]*\]\s*)*(?:=|;)")
_BRACE = re.compile(r"\"[^\"\n]*+\"|[{}]")
_FILE = re.compile(r"\.file\s+(\d+)")
_LOC = re.compile(r"(\.loc\s+|\binlined_at\s+)(\d+)")
_STRING_LABEL = "$L__info_string"
_DEBUG_STRINGS = ".section"
_NOT_LINKED = ("version", "target", "address_size")


class _Piece(Struct, frozen=True, kw_only=True):
    """A declaration, definition or directive at the outermost level of a module."""

    kind: str  # ``func``, ``entry``, ``section``, ``file``, ``global`` and so on
    linkage: str  # ``extern``, ``visible``, ``weak`` or ``common``; empty where only its own unit knows it
    name: str  # of the function or variable; else empty
    text: str  # all of it
    has_body: bool = False  # of functions

    @property
    def is_definition(self) -> bool:
        """Whether it is a function with its body, or a variable's definition."""
        return bool(self.name) and self.linkage != "extern" and (self.has_body or self.kind not in {"func", "entry"})


def link_parts(content: bytes, capability: tuple[int, int]) -> str:
    """Device code of a program that was linked from several units, as one PTX text.

    Raises:
        GpaError: no unit has PTX for it.
    """
    texts = [text for part in _split_parts(content) if (text := _choose(part, capability)) is not None]
    if not any(".entry" in text for text in texts):
        raise GpaError("no unit that it was linked from has PTX for this GPU")
    return link_texts(texts)


def link_texts(texts: Sequence[str]) -> str:
    """Link PTX texts into one module; units see each other's functions and variables.

    What only one unit knows gets a name of its own where another has the same; of weak definitions the first stays.

    Raises:
        InputError: a unit is no PTX.
    """
    units = _name_apart(_number_apart([_split_pieces(blank_comments(text.rstrip("\0"))) for text in texts]))
    defined: dict[str, _Piece] = {}
    for piece in (piece for unit in units for piece in unit):
        before = defined.get(piece.name)
        if piece.is_definition and (before is None or before.linkage in {"weak", "common"}):
            defined[piece.name] = piece
    return _write(units, defined, max(texts, key=_rank))


def _split_parts(content: bytes) -> list[bytes]:
    parts: list[bytes] = []
    place = 0
    while place + _HEAD_BYTES <= len(content) and len(parts) < _MOST_PARTS:
        size = int.from_bytes(content[place + 8 : place + _HEAD_BYTES], "little")
        end = place + int.from_bytes(content[place + 6 : place + 8], "little") + size
        if content[place : place + 4] != FATBIN_MAGIC or end > len(content):
            raise InputError("a part of the program's device code is damaged")
        parts.append(content[place:end])
        place = end
    return parts


def _choose(part: bytes, capability: tuple[int, int]) -> str | None:
    """Newest PTX of a unit that runs on a GPU; None if it has none."""
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        path = Path(name) / "part.fatbin"
        path.write_bytes(part)
        fitting = [text for text in read_built_ptx(path) if _find_target(text) <= capability[0] * 10 + capability[1]]
    return max(fitting, key=_find_target, default=None)


def _find_target(text: str) -> int:
    found = _TARGET.search(text)
    return int(found[1]) if found else 0


def _rank(text: str) -> tuple[int, int, int]:
    """Language version, then target."""
    found = _VERSION.search(text)
    return (int(found[1]), int(found[2]), _find_target(text)) if found else (0, 0, 0)


def _split_pieces(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    place = 0
    while True:
        while place < len(text) and (text[place].isspace() or text[place] == ";"):
            place += 1
        if place == len(text):
            return pieces
        line = _LINE_DIRECTIVE.match(text, place)
        if line is not None:
            pieces.append(_Piece(kind=line[0][1:].split(None, 1)[0], linkage="", name="", text=line[0]))
            place = line.end()
            continue
        piece = _read_piece(text, place)
        pieces.append(piece)
        place += len(piece.text)


def _read_piece(text: str, place: int) -> _Piece:
    head = _HEAD.match(text, place)
    if head is None:
        raise InputError(f"{text[place : place + 40]!r} is not part of a module")
    kind = head["kind"]
    linkage = next((word for word in ("extern", "weak", "common", "visible") if word in head["linkage"]), "")
    semicolon, brace = text.find(";", place), text.find("{", place)
    has_body = kind in {"func", "entry", "section"} and brace >= 0 and not 0 <= semicolon < brace
    end = _close(text, brace) if has_body else semicolon + 1 or len(text)
    found = text[place:end]
    if kind in {"func", "entry"}:
        match = _FUNCTION_NAME.search(found)
    else:
        match = None if kind in {"section", "pragma", "alias"} else _VARIABLE_NAME.search(found)
    return _Piece(kind=kind, linkage=linkage, name=match[1] if match else "", text=found, has_body=has_body)


def _close(text: str, place: int) -> int:
    depth = 0
    for match in _BRACE.finditer(text, place):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return len(text)


def _number_apart(units: Sequence[Sequence[_Piece]]) -> list[list[_Piece]]:
    """Renumber files and string labels of line tables so that no two units share one."""
    found = []
    first = 0
    for number, unit in enumerate(units):
        numbers = [int(match[1]) for piece in unit if (match := _FILE.match(piece.text))]
        label = f"{_STRING_LABEL}_{number}_"

        def change(piece: _Piece, first: int = first, label: str = label) -> _Piece:
            text = piece.text.replace(_STRING_LABEL, label)
            if piece.kind == "file":
                text = _FILE.sub(lambda match: f".file {int(match[1]) + first}", text, count=1)
            text = _LOC.sub(lambda match: f"{match[1]}{int(match[2]) + first}", text)
            return replace(piece, text=text)

        found.append([change(piece) for piece in unit])
        first += max(numbers, default=0)
    return found


def _name_apart(units: Sequence[Sequence[_Piece]]) -> list[list[_Piece]]:
    """Rename private names of a unit that another unit has as well."""
    owners: dict[str, int] = {}
    found = []
    for number, unit in enumerate(units):
        own = [piece.name for piece in unit if piece.is_definition]
        private = {piece.name for piece in unit if piece.is_definition and not piece.linkage and piece.kind != "entry"}
        taken = {name: f"{name}__unit_{number + 1}" for name in private if owners.get(name, number) != number}
        for name in own:
            owners.setdefault(name, number)
        found.append([_rename(piece, taken) for piece in unit] if taken else list(unit))
    return found


def _rename(piece: _Piece, names: dict[str, str]) -> _Piece:
    listed = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    text = re.sub(rf"(?<![\w$%.])(?:{listed})(?![\w$])", lambda match: names[match[0]], piece.text)
    return replace(piece, text=text, name=names.get(piece.name, piece.name))


def _write(units: Iterable[Sequence[_Piece]], defined: dict[str, _Piece], newest: str) -> str:
    declared: dict[str, str] = {}
    variables: list[str] = []
    functions: list[str] = []
    strings: list[str] = []
    other: list[str] = []
    for piece in (piece for unit in units for piece in unit):
        definition = defined.get(piece.name)
        if piece.kind in _NOT_LINKED or piece.kind == "loc":
            continue
        if piece.kind in {"func", "entry"}:
            if piece is definition:
                functions.append(piece.text)
            elif not piece.has_body:
                linkage = "extern" if definition is None else definition.linkage
                text = _HEAD.sub(lambda match, linkage=linkage: _link(match, linkage), piece.text, count=1)  # type: ignore[misc]
                declared.setdefault(piece.name, text)
        elif piece.kind == "section":
            if piece.text.startswith(_DEBUG_STRINGS) and ".debug_str" in piece.text[:40]:
                strings.append(piece.text[piece.text.index("{") + 1 : -1])
        elif piece.name:
            if piece is definition or (definition is None and piece.name not in declared):
                variables.append(piece.text)
                declared.setdefault(piece.name, "")
        else:
            other.append(piece.text)
    version = _VERSION.search(newest)
    target = re.search(r"^\s*\.target[^\n]*", newest, re.MULTILINE)
    head = [version[0].strip() if version else "", target[0].strip() if target else "", ".address_size 64"]
    section = [".section .debug_str\n{" + "\n".join(strings) + "}"] if strings else []
    listed = [text for text in declared.values() if text]
    return "\n".join([*head, *listed, *variables, *functions, *other, *section]) + "\n"


def _link(match: re.Match[str], linkage: str) -> str:
    return f".{linkage} .{match['kind']}" if linkage else f".{match['kind']}"
