"""Device images made by hand, for what no compiler at hand produces: old layouts, images dumped after loading, and lies."""

import struct
from dataclasses import dataclass, field

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")

PROGRAM_BITS, SYMBOL_TABLE, STRING_TABLE, RELA, NO_BITS, REL = 1, 2, 3, 4, 8, 9
NV_INFO, NV_CALLGRAPH = 0x70000000, 0x70000001
FUNCTION, ENTRY = 0x12, 0x10
EXECUTABLE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    name: str
    data: bytes = b""
    kind: int = PROGRAM_BITS
    flags: int = 0
    link: int = 0
    info: int = 0
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    name: str
    section: str | int = ""
    info: int = FUNCTION
    other: int = 0
    value: int = 0
    size: int = 0


@dataclass(slots=True, kw_only=True)
class ElfBuilder:
    """Sections and symbols in, bytes out. ``link`` of relocations and ``.symtab`` is filled in; section 0 and the string tables are added."""

    sections: list[Section] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    abi: int = 8
    sm: int = 90
    kind: int = 2
    machine: int = 190
    count_in_first_section: bool = False

    def add(
        self,
        name: str,
        data: bytes = b"",
        *,
        kind: int = PROGRAM_BITS,
        flags: int = 0,
        info: int = 0,
        size: int | None = None,
    ) -> int:
        """Add a section and return its index."""
        self.sections.append(Section(name=name, data=data, kind=kind, flags=flags, info=info, size=size))
        return len(self.sections)

    def add_symbol(
        self, name: str, section: str | int = "", *, info: int = FUNCTION, other: int = 0, value: int = 0, size: int = 0
    ) -> int:
        """Add a symbol and return its index."""
        self.symbols.append(Symbol(name=name, section=section, info=info, other=other, value=value, size=size))
        return len(self.symbols)

    def index_of(self, name: str) -> int:
        """Index of the first section of that name, 0 (undefined) when there is none."""
        return next((index for index, section in enumerate(self.sections, start=1) if section.name == name), 0)

    def build(self) -> bytes:
        strings = _Strings()
        table = bytearray(SYMBOL.pack(0, 0, 0, 0, 0, 0))
        for symbol in self.symbols:
            place = (
                self.index_of(symbol.section)
                if isinstance(symbol.section, str) and symbol.section
                else symbol.section or 0
            )
            table += SYMBOL.pack(strings.add(symbol.name), symbol.info, symbol.other, place, symbol.value, symbol.size)
        symbol_table = len(self.sections) + 1
        every = [
            *self.sections,
            Section(name=".symtab", kind=SYMBOL_TABLE, data=bytes(table), link=symbol_table + 1, info=1),
            Section(name=".strtab", kind=STRING_TABLE, data=bytes(strings.data)),
        ]
        names = _Strings()
        offsets = [names.add(section.name) for section in every] + [names.add(".shstrtab")]
        every.append(Section(name=".shstrtab", kind=STRING_TABLE, data=bytes(names.data)))
        body = bytearray(HEADER.size)
        count = len(every) + 1
        entries = [SECTION.pack(0, 0, 0, 0, 0, count if self.count_in_first_section else 0, 0, 0, 0, 0)]
        for section, name in zip(every, offsets, strict=True):
            link = symbol_table if section.kind in (REL, RELA) else section.link
            size = len(section.data) if section.size is None else section.size
            align = 128 if section.flags & EXECUTABLE else 1
            body += bytes(-len(body) % align)
            entry = SYMBOL.size if section.kind == SYMBOL_TABLE else 0
            entries.append(
                SECTION.pack(name, section.kind, section.flags, 0, len(body), size, link, section.info, align, entry)
            )
            body += section.data
        HEADER.pack_into(
            body,
            0,
            b"\x7fELF\x02\x01\x01" + bytes((65 if self.abi >= 8 else 51, self.abi)) + bytes(7),
            self.kind,
            self.machine,
            1,
            0,
            0,
            len(body),
            self.sm << 8 if self.abi >= 8 else self.sm | self.sm << 16,
            HEADER.size,
            56,
            0,
            SECTION.size,
            0 if self.count_in_first_section else count,
            count - 1,
        )
        return bytes(body) + b"".join(entries)


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        self.data += text.encode() + b"\0"
        return len(self.data) - len(text.encode()) - 1


def pack_rel(entries: list[tuple[int, int, int]]) -> bytes:
    """(offset, type, symbol) entries without addend."""
    return b"".join(struct.pack("<QQ", offset, symbol << 32 | kind) for offset, kind, symbol in entries)


def pack_rela(entries: list[tuple[int, int, int, int]]) -> bytes:
    """(offset, type, symbol, addend) entries."""
    return b"".join(
        struct.pack("<QQq", offset, symbol << 32 | kind, addend) for offset, kind, symbol, addend in entries
    )


def pack_attribute(attribute: int, *numbers: int) -> bytes:
    """A record of ``.nv.info`` with 32-bit numbers as payload."""
    return struct.pack(f"<BBH{len(numbers)}I", 4, attribute, 4 * len(numbers), *numbers)
