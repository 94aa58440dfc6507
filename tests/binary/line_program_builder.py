"""Line tables written opcode by opcode, so that a test shows which bytes mean what."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.binary.elf_builder import ENTRY, REL, RELA, ElfBuilder, pack_rel, pack_rela

OPERAND_COUNTS = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))
RELOCATION_64 = 2


def uleb(value: int) -> bytes:
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | (0x80 if value else 0))
        if not value:
            return bytes(found)


def sleb(value: int) -> bytes:
    found = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        if value == (-1 if low & 0x40 else 0):
            found.append(low)
            return bytes(found)
        found.append(low | 0x80)


def set_address(value: int = 0) -> bytes:
    return b"\x00\x09\x02" + struct.pack("<Q", value)


def file(number: int) -> bytes:
    return b"\x04" + uleb(number)


def line(delta: int) -> bytes:
    return b"\x03" + sleb(delta)


def advance(delta: int) -> bytes:
    return b"\x02" + uleb(delta)


def inline(context: int, name: int = 0) -> bytes:
    body = b"\x90" + uleb(context) + uleb(name)
    return b"\x00" + uleb(len(body)) + body


def special(address_delta: int, line_delta: int) -> bytes:
    return bytes((10 + (line_delta + 5) + 14 * address_delta,))


COPY = b"\x01"
END = b"\x00\x01\x01"


def unit(
    program: bytes,
    *,
    directories: Sequence[str] = ("/src",),
    files: Sequence[tuple[str, int]] = (("a.cu", 1), ("b.cuh", 1)),
    version: int = 2,
    names_base: int | None = 0,
) -> bytes:
    tables = b"".join(name.encode() + b"\0" for name in directories) + b"\0"
    tables += b"".join(name.encode() + b"\0" + uleb(folder) + b"\0\0" for name, folder in files) + b"\0"
    if names_base is not None:
        tables += struct.pack("<I", names_base)
    bundles = b"\x01" if version >= 4 else b""
    head = b"\x01" + bundles + b"\x01" + struct.pack("<bBB", -5, 14, 10) + OPERAND_COUNTS + tables
    body = struct.pack("<HI", version, len(head)) + head + program
    return struct.pack("<I", len(body)) + body


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A function of an image with lines.

    Attributes:
        size: of its section.
        value: of its symbol; not 0 in images dumped after loading.
        subs: (name, offset, size) of local functions.
    """

    size: int = 256
    value: int = 0
    subs: Sequence[tuple[str, int, int]] = field(default=())


def image_with_lines(
    section: bytes,
    functions: dict[str, Code],
    *,
    names: bytes = b"",
    operands: Sequence[tuple[int, str]] | None = None,
    addends: bool = True,
    name: str = ".debug_line",
) -> bytes:
    """A device image whose line section is given.

    Args:
        section: the line table.
        functions: the functions, each with one section.
        names: ``.debug_str``.
        operands: (offset of an address operand in the section, symbol it belongs to); None takes the occurrences of ``set_address`` in
            the order of the functions.
        addends: relocations with addends, as CUDA 13 writes them.
        name: of the line section.
    """
    builder = ElfBuilder(abi=8 if addends else 7)
    symbols: dict[str, int] = {}
    for function, code in functions.items():
        text = builder.add(f".text.{function}", bytes(code.size), flags=6, info=len(builder.symbols) + 1)
        symbols[function] = builder.add_symbol(function, text, other=ENTRY, value=code.value, size=code.size)
        for sub, start, size in code.subs:
            symbols[sub] = builder.add_symbol(sub, text, info=2, value=start, size=size)
    if operands is None:
        operands = list(zip(find_operands(section), functions, strict=False))
    target = builder.add(name, section)
    if names:
        builder.add(".debug_str", names)
    rows = [(offset, RELOCATION_64, symbols[symbol]) for offset, symbol in operands]
    if addends:
        builder.add(f".rela{name}", pack_rela([(*row, 0) for row in rows]), kind=RELA, info=target)
    else:
        builder.add(f".rel{name}", pack_rel(rows), kind=REL, info=target)
    return builder.build()


def find_operands(section: bytes) -> list[int]:
    """Offsets of what looks like address operands."""
    found, position = [], section.find(b"\x00\x09\x02")
    while position >= 0:
        found.append(position + 3)
        position = section.find(b"\x00\x09\x02", position + 11)
    return found
