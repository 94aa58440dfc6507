"""What a variable starts with: ``= {1, 2, generic(other)+4}`` → bytes, and the addresses among them."""

import re
import struct

import numpy as np

from gpa_lsp.basis.errors import InputError, UnsupportedInputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.ptx.constants import evaluate_constant, read_number
from gpa_lsp.ptx.model import Immediate
from gpa_lsp.ptx.scalar_types import ScalarType

MOST_INITIAL_BYTES = 64 << 20
_DEEPEST_LIST = 16
_ITEM = re.compile(r"[^{},]*+")
_SYMBOL = re.compile(
    r"(?:(0[xX][0-9a-fA-F]{1,16})\s*+\(\s*+)?(?:generic\s*+\(\s*+([A-Za-z_$%][\w$%.]*+)\s*+\)|([A-Za-z_$%][\w$%.]*+))\s*+"
    r"(?:([+-])\s*+(\w++)\s*+)?(\))?",
    re.ASCII,
)


@dataclass(slots=True, kw_only=True)
class InitialValue:
    """What was read.

    Attributes:
        content: bytes, as far as they are listed.
        symbols: (offset in bytes, name, added bytes).
    """

    content: bytes
    symbols: tuple[tuple[int, str, int], ...]


def read_initial_value(text: str, kind: ScalarType, dimensions: tuple[int, ...]) -> InitialValue:
    """Read an initialiser.

    Args:
        text: what stands behind ``=``.
        kind: type of an element.
        dimensions: of the array, an empty pair of brackets as 0; none for a single element.

    Raises:
        InputError: it is none, or does not fit the variable.
    """
    stripped = text.strip()
    if not stripped:
        raise InputError("an initial value is missing", remedy="check that the PTX is complete")
    if not stripped.startswith("{"):
        return _pack([stripped], [0], kind)
    flat = _read_plain_list(stripped, kind, dimensions)
    if flat is not None:
        return InitialValue(content=flat, symbols=())
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
        raise InputError(f"{count} initial values for {most} elements", remedy="check that the PTX is complete")


def _flatten(text: str, dimensions: tuple[int, ...]) -> tuple[list[str], list[int]]:
    """The items of nested lists and the element each one fills."""
    strides = [1] * len(dimensions)
    for level in range(len(dimensions) - 2, -1, -1):
        strides[level] = strides[level + 1] * max(dimensions[level + 1], 1)
    items: list[str] = []
    places: list[int] = []
    starts: list[int] = []
    """Element at which each open list began."""
    element = 0
    marks = _list_marks(text)
    for number, mark in enumerate(marks):
        if mark == "{":
            starts.append(element)
            if len(starts) > min(len(dimensions), _DEEPEST_LIST):
                raise InputError(
                    "initial values are nested deeper than the array", remedy="check that the PTX is complete"
                )
        elif mark == "}":
            start = starts.pop()
            if starts:
                element = start + strides[len(starts) - 1]
        else:
            items.append(mark)
            places.append(element)
            element += strides[len(starts) - 1]
        if not starts and number + 1 < len(marks):
            raise InputError("text follows the initial values", remedy="check that the PTX is complete")
    if starts:
        raise InputError("the list of initial values does not end", remedy="check that the PTX is complete")
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
    return InitialValue(content=bytes(content), symbols=tuple(sorted(symbols)))


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
