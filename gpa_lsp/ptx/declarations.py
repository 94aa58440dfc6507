"""Declarations of variables and registers: ``.shared .align 4 .b8 tile[4096];`` → what it declares.

Source: PTX ISA 9.0, sections 5.4 (variables) and 11.6 (linking directives).
"""

import re

from gpa_lsp.basis.errors import InputError, UnsupportedInputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.ptx.constants import evaluate_constant
from gpa_lsp.ptx.initial_values import InitialValue, read_initial_value
from gpa_lsp.ptx.model import PtxVariable, Space
from gpa_lsp.ptx.opcodes import TYPES
from gpa_lsp.ptx.scalar_types import ScalarType

SPACES = {
    "global": Space.GLOBAL,
    "shared": Space.SHARED,
    "local": Space.LOCAL,
    "const": Space.CONST,
    "param": Space.PARAM,
    "tex": Space.GLOBAL,
}
_OPAQUE = frozenset({"texref", "samplerref", "surfref"})
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_LARGEST_BYTES = 1 << 48
_LARGEST_ALIGNMENT = 1 << 16
_WORD = re.compile(r"\s*\.(?:(align)\s+(\w+)|(attribute)\s*\((?:[^()]|\([^()]*\))*+\)|(\w+))", re.ASCII)
_NAME = re.compile(r"\s*+([A-Za-z_$%][\w$%.@]*+)\s*+(?:<\s*+(\w++)\s*+>\s*+)?((?:\[[^\[\]]*+\]\s*+)*+)", re.ASCII)
_DIMENSION = re.compile(r"\[([^\[\]]*)\]")
_MOST_DIMENSIONS = 8


@dataclass(slots=True)
class DeclarationHead:
    """The words before the names.

    Attributes:
        words: space and linkage, types left out.
        kind: of an element; None where none is given.
        elements: of a vector, 1 for none.
        alignment_bytes: None where none is given.
        is_pointer: a parameter marked ``.ptr``.
        is_texture: ``.texref`` and its like.
        end: where the names begin.
    """

    words: list[str]
    kind: ScalarType | None = None
    elements: int = 1
    alignment_bytes: int | None = None
    is_pointer: bool = False
    is_texture: bool = False
    end: int = 0


def read_head(text: str) -> DeclarationHead:
    """Read the words of a declaration.

    Raises:
        InputError: an alignment is no power of two.
    """
    head = DeclarationHead(words=[])
    while (match := _WORD.match(text, head.end)) is not None:
        head.end = match.end()
        word = match[1] or match[3] or match[4]
        if word == "align":
            if not head.is_pointer:  # behind ``.ptr`` it is that of what is pointed to
                head.alignment_bytes = _read_alignment(match[2])
        elif word == "ptr":
            head.is_pointer = True
        elif word in _OPAQUE:
            head.is_texture = True
            head.kind = ScalarType.B64
        elif word in TYPES and head.kind is None:
            head.kind = TYPES[word]
        elif word in _VECTORS:
            head.elements = _VECTORS[word]
        elif word != "attribute":
            head.words.append(word)
    return head


def _read_alignment(text: str | None) -> int:
    value = evaluate_constant(text or "")
    if isinstance(value, float) or not 1 <= value <= _LARGEST_ALIGNMENT or value & (value - 1):
        raise InputError(f"an alignment of {value}", remedy="alignments are powers of two")
    return value


def read_registers(text: str) -> tuple[ScalarType, int, list[tuple[str, int | None]]]:
    """Read ``.reg .v4 .f32 a, %r<81>`` without its semicolon.

    Returns:
        Type, elements of each (1, 2 or 4), and (name, count of a range or None).

    Raises:
        InputError: it is none.
    """
    head = read_head(text)
    if head.kind is None:
        raise UnsupportedInputError(f"registers of an unknown type: {text.strip()[:60]!r}", remedy="see PTX ISA, types")
    names: list[tuple[str, int | None]] = []
    for part in text[head.end :].split(","):
        match = _NAME.fullmatch(part)
        if match is None or match[3]:
            raise InputError(f"{part.strip()[:60]!r} is not a register", remedy="check that the PTX is complete")
        count = evaluate_constant(match[2]) if match[2] else None
        if isinstance(count, float) or (count is not None and (count < 0 or head.elements > 1)):
            raise InputError(f"{part.strip()[:60]!r} is not a range of registers", remedy="write %r<COUNT>")
        names.append((match[1], count))
    return head.kind, head.elements, names


def read_variables(text: str) -> list[PtxVariable]:
    """Read a declaration of variables without its semicolon, parameters included; offsets are not set yet.

    Raises:
        InputError: it is none.
    """
    head = read_head(text)
    space = next((SPACES[word] for word in head.words if word in SPACES), None)
    if "reg" in head.words:
        raise UnsupportedInputError(
            "a function takes or returns registers", remedy="compile for the ABI (PTX 3.0 and later)"
        )
    if space is None or head.kind is None:
        raise InputError(f"{' '.join(text.split())[:80]!r} declares nothing known", remedy="see PTX ISA, variables")
    found: list[PtxVariable] = []
    place = head.end
    while place < len(text):
        match = _NAME.match(text, place)
        if match is None:
            raise InputError(
                f"{text[place : place + 60].strip()!r} is not a name", remedy="check that the PTX is complete"
            )
        dimensions = _read_dimensions(match[3])
        place = match.end()
        initial = None
        if text[place : place + 1] == "=":
            end = _find_end(text, place + 1)
            if not head.is_texture:
                initial = read_initial_value(text[place + 1 : end], head.kind, _spread(dimensions, head.elements))
            place = end
        if text[place : place + 1] not in ("", ","):
            raise InputError(
                f"{text[place : place + 40]!r} after a declaration", remedy="check that the PTX is complete"
            )
        place += 1
        if match[2] is not None:
            raise UnsupportedInputError(
                f"a range of variables: {match[1][:40]}<{match[2][:20]}>", remedy="declare them one by one"
            )
        found.append(_build(head, space, match[1], dimensions, initial))
    if not found:
        raise InputError(f"{text.strip()[:60]!r} declares nothing", remedy="check that the PTX is complete")
    return found


def _spread(dimensions: tuple[int, ...], elements: int) -> tuple[int, ...]:
    return dimensions if elements == 1 else (*dimensions, elements)


def _build(
    head: DeclarationHead, space: Space, name: str, dimensions: tuple[int, ...], initial: InitialValue | None
) -> PtxVariable:
    kind = head.kind or ScalarType.B8
    count = head.elements
    for size in dimensions:
        count *= size
    if dimensions and dimensions[0] == 0 and initial is not None:
        count = len(initial.content) // kind.bytes
    if count * kind.bytes > _LARGEST_BYTES:
        raise InputError(f"{name[:80]} has {count * kind.bytes} bytes", remedy="no GPU has that much memory")
    content = initial.content if initial is not None else b""
    return PtxVariable(
        name=name,
        space=space,
        type=kind,
        count=count,
        alignment_bytes=head.alignment_bytes or kind.bytes * head.elements,
        initial=content if initial is not None and (initial.symbols or any(content)) else None,
        initial_symbols=initial.symbols if initial is not None else (),
        is_extern="extern" in head.words,
        is_texture=head.is_texture,
        is_pointer=head.is_pointer,
    )


def _read_dimensions(text: str) -> tuple[int, ...]:
    sizes = []
    for inner in _DIMENSION.findall(text):
        size = evaluate_constant(inner) if inner.strip() else 0
        if isinstance(size, float) or not 0 <= size <= _LARGEST_BYTES:
            raise InputError(f"an array of {inner.strip()[:40]} elements", remedy="check that the PTX is complete")
        sizes.append(size)
    if len(sizes) > _MOST_DIMENSIONS:
        raise InputError(f"an array of {len(sizes)} dimensions", remedy="no compiler writes one")
    return tuple(sizes)


def _find_end(text: str, start: int) -> int:
    """Where an initialiser that begins at ``start`` ends: at a comma outside braces and parentheses, or with the text."""
    depth = 0
    for match in re.finditer(r"[{}(),]", text[start:]):
        mark = match[0]
        if mark in "{(":
            depth += 1
        elif mark in "})":
            depth -= 1
        elif depth == 0:
            return start + match.start()
    return len(text)
