"""Declarations of variables and registers: ``.shared .align 4 .b8 tile[4096];`` → what it declares.

Source: PTX ISA 9.0, sections 5.4 (variables) and 11.6 (linking directives).
"""

import re
import struct
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Immediate, PtxVariable, Space
from gpa_lsp.code.ptx.operands import evaluate_constant, incomplete, read_number
from gpa_lsp.code.ptx.scalar_types import TYPES, ScalarType, align_up
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError

MOST_INITIAL_BYTES = 64 << 20
_DEEPEST_LIST = 16
_ITEM = re.compile(r"[^{},]*+")
_SYMBOL = re.compile(
    r"(?:(0[xX][0-9a-fA-F]{1,16})\s*+\(\s*+)?(?:generic\s*+\(\s*+([A-Za-z_$%][\w$%.]*+)\s*+\)|([A-Za-z_$%][\w$%.]*+))\s*+"
    r"(?:([+-])\s*+(\w++)\s*+)?(\))?",
    re.ASCII,
)


# Its bytes, as far as they are listed, and (offset in bytes, name, added bytes) of the symbols in it
InitialValue = tuple[bytes, tuple[tuple[int, str, int], ...]]


def read_initial_value(text: str, kind: ScalarType, dimensions: tuple[int, ...]) -> InitialValue:
    """Read an initialiser, which stands behind ``=``."""
    stripped = text.strip()
    if not stripped:
        raise incomplete("an initial value is missing")
    if not stripped.startswith("{"):
        return _pack([stripped], [0], kind)
    flat = _read_plain_list(stripped, kind, dimensions)
    if flat is not None:
        return flat, ()
    items, places = _flatten(stripped, dimensions or (0,))
    return _pack(items, places, kind)


def _read_plain_list(text: str, kind: ScalarType, dimensions: tuple[int, ...]) -> bytes | None:
    """The common case, fast: one level of braces around decimal integers; None when it is another."""
    if not kind.is_integer or text.count("{") != 1 or text[-1] != "}" or len(dimensions) > 1:
        return None
    words = text[1:-1].split(",")
    if max(map(len, words)) > 24:
        return None
    try:
        values = [int(word) for word in words]
    except ValueError:
        return None
    if any("_" in word or (word.strip()[0] == "0" and len(word.strip()) > 1) for word in words):
        return None
    _check_fit(len(values), dimensions)
    return _pack_integers(values, kind)


def _pack_integers(values: list[int], kind: ScalarType) -> bytes:
    size = kind.bytes
    mask = (1 << (8 * size)) - 1
    if max(values) >> 64 or min(values) < -(1 << 63):
        raise InputError("an initial value has more than 64 bits", remedy="PTX has integers of 64 bits")
    if size > 8:
        return b"".join((value & mask).to_bytes(size, "little") for value in values)
    return np.array([value & mask for value in values], dtype=np.uint64).astype(f"<u{size}").tobytes()


def _check_fit(count: int, dimensions: tuple[int, ...]) -> None:
    most = 1
    for size in dimensions or (1,):
        most *= size
    if most and count > most:
        raise incomplete(f"{count} initial values for {most} elements")


def _flatten(text: str, dimensions: tuple[int, ...]) -> tuple[list[str], list[int]]:
    """The items of nested lists and the element each one fills."""
    strides = [1] * len(dimensions)
    for level in range(len(dimensions) - 2, -1, -1):
        strides[level] = strides[level + 1] * max(dimensions[level + 1], 1)
    items: list[str] = []
    places: list[int] = []
    starts: list[int] = []  # Element at which each open list began
    element = 0
    marks = _list_marks(text)
    for number, mark in enumerate(marks):
        if mark == "{":
            starts.append(element)
            if len(starts) > min(len(dimensions), _DEEPEST_LIST):
                raise incomplete("initial values are nested deeper than the array")
        elif mark == "}":
            start = starts.pop()
            if starts:
                element = start + strides[len(starts) - 1]
        else:
            items.append(mark)
            places.append(element)
            element += strides[len(starts) - 1]
        if not starts and number + 1 < len(marks):
            raise incomplete("text follows the initial values")
    if starts:
        raise incomplete("the list of initial values does not end")
    if places:
        _check_fit(max(places) + 1, dimensions)
    return items, places


def _list_marks(text: str) -> list[str]:
    """Braces and items in the order of the text."""
    marks: list[str] = []
    place = 0
    while place < len(text):
        match = _ITEM.match(text, place)
        end = match.end() if match is not None else place
        item = text[place:end].strip()
        if item:
            marks.append(item)
        if end < len(text) and text[end] != ",":
            marks.append(text[end])
        place = end + 1
    return marks


def _pack(items: list[str], places: list[int], kind: ScalarType) -> InitialValue:
    size = kind.bytes
    length = (max(places) + 1) * size if places else 0
    if length > MOST_INITIAL_BYTES:
        raise InputError(f"initial values of {length} bytes", remedy="no module holds that many")
    content = bytearray(length)
    symbols: list[tuple[int, str, int]] = []
    masked: list[tuple[int, str, int, int]] = []
    for item, element in zip(items, places, strict=True):
        offset = element * size
        number = read_number(item)
        match = _SYMBOL.fullmatch(item) if number is None and item[0] not in "-+~!(" else None
        if match is None or (match[1] is None) != (match[6] is None):
            value = number if number is not None else Immediate(evaluate_constant(item))
            content[offset : offset + size] = _pack_number(value, kind)
            continue
        added = _read_added(match[4], match[5])
        name = match[2] or match[3]
        if match[1] is not None:
            masked.append((offset, name, added, int(match[1], 16)))
        elif size == 8:
            symbols.append((offset, name, added))
        else:
            raise UnsupportedInputError(f"the address of {name[:80]} in {size} bytes", remedy="addresses have 64 bits")
    symbols.extend(_join_masked(masked, size))
    return bytes(content), tuple(sorted(symbols))


def _read_added(sign: str | None, text: str | None) -> int:
    if text is None:
        return 0
    number = read_number(text)
    if number is None or isinstance(number.value, float):
        raise InputError(f"{text[:40]!r} is not an offset", remedy="offsets are integers")
    return -number.value if sign == "-" else number.value


def _join_masked(masked: list[tuple[int, str, int, int]], size: int) -> list[tuple[int, str, int]]:
    """Addresses that are written byte by byte: ``0xFF(name), 0xFF00(name)`` … are one address of eight bytes."""
    found: list[tuple[int, str, int]] = []
    for offset, name, added, mask in masked:
        low = (mask & -mask).bit_length() - 1
        if mask >> low != 0xFF or low % 8 or size != 1:
            raise UnsupportedInputError(
                f"a part of the address of {name[:80]}", remedy="parts of addresses are read byte by byte"
            )
        start = offset - low // 8
        if low == 0:
            found.append((start, name, added))
        elif (start, name, added) not in found[-1:]:
            raise UnsupportedInputError(
                f"a part of the address of {name[:80]}", remedy="parts of addresses are read in their order"
            )
    return found


_FLOAT_CODES = {ScalarType.F32: "<f", ScalarType.F64: "<d", ScalarType.F16: "<e"}


def _pack_number(number: Immediate, kind: ScalarType) -> bytes:
    size = kind.bytes
    if number.bits is not None and number.width_bits == 8 * size:
        return number.bits.to_bytes(size, "little")
    code = _FLOAT_CODES.get(kind)
    if code is not None:
        try:
            return struct.pack(code, float(number.value))
        except OverflowError as error:
            raise InputError(f"the initial value {number.value} does not fit its type", remedy="correct it") from error
    if isinstance(number.value, float):
        raise InputError(f"the initial value {number.value} is not an integer", remedy="correct it")
    return (number.value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


SPACES = {
    "global": Space.GLOBAL, "shared": Space.SHARED, "local": Space.LOCAL, "const": Space.CONST, "param": Space.PARAM,
    "tex": Space.GLOBAL,
}  # fmt: skip
_OPAQUE = frozenset({"texref", "samplerref", "surfref"})
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_LARGEST_BYTES = 1 << 48
_LARGEST_ALIGNMENT = 1 << 16
_WORD = re.compile(r"\s*\.(?:(align)\s+(\w+)|(attribute)\s*\((?>(?:[^()]|\([^()]*\))*)\)|(\w+))", re.ASCII)
_NAME = re.compile(r"\s*+([A-Za-z_$%][\w$%.@]*+)\s*+(?:<\s*+(\w++)\s*+>\s*+)?((?>(?:\[[^\[\]]*+\]\s*+)*))", re.ASCII)
_DIMENSION = re.compile(r"\[([^\[\]]*)\]")
_MOST_DIMENSIONS = 8


class DeclarationHead(Struct):
    """The words before the names."""

    words: list[str]  # space and linkage, types left out
    kind: ScalarType | None = None  # of an element; None where none is given
    elements: int = 1  # of a vector, 1 for none
    alignment_bytes: int | None = None  # None where none is given
    is_pointer: bool = False  # a parameter marked ``.ptr``
    is_texture: bool = False  # ``.texref`` and its like
    end: int = 0  # where the names begin


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
    """Read ``.reg .v4 .f32 a, %r<81>`` without its semicolon: type, elements of each (1, 2 or 4), and (name, count of a range or None)."""
    head = read_head(text)
    if head.kind is None:
        raise UnsupportedInputError(f"registers of an unknown type: {text.strip()[:60]!r}", remedy="see PTX ISA, types")
    names: list[tuple[str, int | None]] = []
    for part in text[head.end :].split(","):
        match = _NAME.fullmatch(part)
        if match is None or match[3]:
            raise incomplete(f"{part.strip()[:60]!r} is not a register")
        count = evaluate_constant(match[2]) if match[2] else None
        if isinstance(count, float) or (count is not None and (count < 0 or head.elements > 1)):
            raise InputError(f"{part.strip()[:60]!r} is not a range of registers", remedy="write %r<COUNT>")
        names.append((match[1], count))
    return head.kind, head.elements, names


def read_variables(text: str) -> list[PtxVariable]:
    """Read a declaration of variables without its semicolon, parameters included; offsets are not set yet."""
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
            raise incomplete(f"{text[place : place + 60].strip()!r} is not a name")
        dimensions = _read_dimensions(match[3])
        place = match.end()
        initial = None
        if text[place : place + 1] == "=":
            end = _find_end(text, place + 1)
            if not head.is_texture:
                initial = read_initial_value(text[place + 1 : end], head.kind, _spread(dimensions, head.elements))
            place = end
        if text[place : place + 1] not in ("", ","):
            raise incomplete(f"{text[place : place + 40]!r} after a declaration")
        place += 1
        if match[2] is not None:
            raise UnsupportedInputError(
                f"a range of variables: {match[1][:40]}<{match[2][:20]}>", remedy="declare them one by one"
            )
        found.append(_build(head, space, match[1], dimensions, initial))
    if not found:
        raise incomplete(f"{text.strip()[:60]!r} declares nothing")
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
    content, symbols = initial or (b"", ())
    if dimensions and dimensions[0] == 0 and initial is not None:
        count = len(content) // kind.bytes
    if count * kind.bytes > _LARGEST_BYTES:
        raise InputError(f"{name[:80]} has {count * kind.bytes} bytes", remedy="no GPU has that much memory")
    return PtxVariable(
        name=name,
        space=space,
        type=kind,
        count=count,
        alignment_bytes=head.alignment_bytes or kind.bytes * head.elements,
        initial=content if symbols or any(content) else None,
        initial_symbols=symbols,
        is_extern="extern" in head.words,
        is_texture=head.is_texture,
        is_pointer=head.is_pointer,
    )


def _read_dimensions(text: str) -> tuple[int, ...]:
    sizes = []
    for inner in _DIMENSION.findall(text):
        size = evaluate_constant(inner) if inner.strip() else 0
        if isinstance(size, float) or not 0 <= size <= _LARGEST_BYTES:
            raise incomplete(f"an array of {inner.strip()[:40]} elements")
        sizes.append(size)
    if len(sizes) > _MOST_DIMENSIONS:
        raise InputError(f"an array of {len(sizes)} dimensions", remedy="no compiler writes one")
    return tuple(sizes)


def _find_end(text: str, start: int) -> int:
    """End of an initialiser that begins at ``start``: a comma outside braces and parentheses, or the end of the text."""
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


def lay_out(variables: Iterable[PtxVariable]) -> tuple[tuple[PtxVariable, ...], int]:
    """Give each variable its offset, aligned as declared; also returns the bytes of all."""
    placed = []
    offset = 0
    for variable in variables:
        offset = align_up(offset, variable.alignment_bytes)
        placed.append(replace(variable, offset_bytes=offset) if offset else variable)
        offset += variable.size_bytes
    return tuple(placed), offset


def lay_out_shared(variables: Sequence[PtxVariable]) -> tuple[PtxVariable, ...]:
    """Shared memory of a kernel: what has a size in order, then what is dynamic; all dynamic arrays begin at the same place.

    >>> from gpa_lsp.code.ptx.declarations import read_variables
    >>> texts = [".extern .shared .align 16 .b8 all[]", ".shared .b8 flag", ".shared .f32 tile[4]"]
    >>> [(one.name, one.offset_bytes) for one in lay_out_shared([read_variables(text)[0] for text in texts])]
    [('flag', 0), ('tile', 4), ('all', 32)]
    """
    dynamic = [variable for variable in variables if _is_dynamic(variable)]
    placed, end = lay_out(variable for variable in variables if not _is_dynamic(variable))
    start = align_up(end, max((variable.alignment_bytes for variable in dynamic), default=1))
    return (*placed, *(replace(variable, offset_bytes=start) for variable in dynamic))


def _is_dynamic(variable: PtxVariable) -> bool:
    return variable.is_extern and variable.count == 0


Signature = tuple[tuple[int, ...], tuple[int, ...]]  # Bytes of what a function returns and of what it takes

_HEAD = re.compile(
    r"\s*+(?:\.attribute\s*+\((?>(?:[^()]++|\([^()]*+\))*)\)\s*+)?(?:\(([^()]*+)\)\s*+)?([A-Za-z_$%][\w$%.@]*+)\s*+(?:\(([^()]*+)\))?"
    r"([^()]*+(?>(?:\([^()]*+\)[^()]*+)*))\Z",
    re.ASCII,
)
_THREADS = re.compile(r"\.(maxntid|reqntid|reqnctapercluster)\s+(\w+)\s*(?:,\s*(\w+)\s*)?(?:,\s*(\w+)\s*)?", re.ASCII)
_MOST_PARAMETERS = 4096
_MOST_DIMENSION = 1 << 32


class HeadDetails(Struct, frozen=True, kw_only=True):
    """Parameters and limits in a function's head; fields as in :class:`~gpa_lsp.code.ptx.model.PtxFunction`."""

    parameters: tuple[PtxVariable, ...]
    returns: tuple[PtxVariable, ...]
    max_threads: int | None
    required_threads: tuple[int, int, int] | None
    cluster: tuple[int, int, int] | None
    counts_clusters: bool


class FunctionHead(Struct, frozen=True, kw_only=True, dict=True):
    """Declaration of a function, up to its body."""

    name: str  # as written
    is_entry: bool  # a kernel
    text: str  # from behind ``.entry`` or ``.func`` to the body or semicolon
    line: int  # 1-based, where it begins

    @cached_property
    def details(self) -> HeadDetails:
        """Parameters and limits, read on first use."""
        try:
            return read_head_details(self.text)
        except InputError as error:
            error.place = error.place or f"line {self.line}"
            raise

    @property
    def signature(self) -> Signature:
        """Bytes of what it returns and takes."""
        details = self.details
        returns, parameters = (tuple(one.size_bytes for one in some) for some in (details.returns, details.parameters))
        return returns, parameters


def find_function_head(text: str, *, is_entry: bool, line: int) -> FunctionHead:
    """The head in ``text``, from behind ``.entry`` or ``.func`` to the body or semicolon; only its name is read now. ``line`` is where it begins.

    >>> head = find_function_head("(.param .b32 out) half(.param .b32 a, .param .b64 b) .maxntid 128, 2", is_entry=False, line=1)
    >>> head.name, head.signature, [one.offset_bytes for one in head.details.parameters], head.details.max_threads
    ('half', ((4,), (4, 8)), [0, 8], 256)
    """
    return FunctionHead(name=_match_head(text)[2], is_entry=is_entry, text=text, line=line)


def read_head_details(text: str) -> HeadDetails:
    """Read the parameters and limits in a head.

    >>> read_head_details("pair() .explicitcluster .reqnctapercluster 2, 2").cluster
    (2, 2, 1)
    """
    match = _match_head(text)
    threads = {kind: sizes for kind, *sizes in _THREADS.findall(match[4])}
    most = _read_threads(threads.get("maxntid"))
    return HeadDetails(
        parameters=_read_parameters(match[3]),
        returns=_read_parameters(match[1]),
        max_threads=None if most is None else most[0] * most[1] * most[2],
        required_threads=_read_threads(threads.get("reqntid")),
        cluster=_read_threads(threads.get("reqnctapercluster")),
        counts_clusters=".blocksareclusters" in match[4],
    )


def _match_head(text: str) -> re.Match[str]:
    match = _HEAD.match(text)
    if match is None:
        raise incomplete(f"{' '.join(text.split())[:80]!r} is not a function header")
    return match


def _read_parameters(text: str | None) -> tuple[PtxVariable, ...]:
    parts = (text or "").split(",", _MOST_PARAMETERS)
    if len(parts) > _MOST_PARAMETERS:
        raise InputError(f"more than {_MOST_PARAMETERS} parameters", remedy="no kernel takes that many")
    found: list[PtxVariable] = []
    for part in parts:
        if part.strip():
            found.extend(read_variables(part))
    if any(variable.space != Space.PARAM for variable in found):
        raise InputError("a parameter is not in .param", remedy="compile for the ABI (PTX 3.0 and later)")
    return lay_out(found)[0]


def _read_threads(sizes: list[str] | None) -> tuple[int, int, int] | None:
    if sizes is None:
        return None
    found = [evaluate_constant(size) if size else 1 for size in sizes]
    if any(isinstance(size, float) or not 1 <= size < _MOST_DIMENSION for size in found):
        raise InputError(f"blocks of {', '.join(sizes)} threads", remedy="give positive numbers")
    return int(found[0]), int(found[1]), int(found[2])
