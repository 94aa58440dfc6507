"""The ELF reader against pyelftools on every fixture, and against lies."""

import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from gpa_lsp.code.binary.elf import measure_elf, read_elf
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from tests.binary.elf_builder import SECTION, ElfBuilder
from tests.binary.seeds import CONTAINERS, find_fixture_cubins

ELF_FILES = [*find_fixture_cubins(), CONTAINERS / "scale.o", CONTAINERS / "libscale.so"]
FIELDS = {
    "name": "sh_name",
    "flags": "sh_flags",
    "offset": "sh_offset",
    "size": "sh_size",
    "link": "sh_link",
    "info": "sh_info",
}


def test_same_as_pyelftools() -> None:
    for path in ELF_FILES:
        check_same_as_pyelftools(path)


def check_same_as_pyelftools(path: Path) -> None:
    elf = read_elf(path.read_bytes(), path=path)
    with path.open("rb") as file:
        other = ELFFile(file)
        theirs = list(other.iter_sections())
        assert list(elf.section_names) == [section.name for section in theirs], path
        for ours, field in FIELDS.items():
            assert elf.sections[ours].tolist() == [section[field] for section in theirs], path
        table = other.get_section_by_name(".symtab")
        names = elf.symbol_names()
        symbols = elf.read_symbols()
        expected = list(table.iter_symbols()) if isinstance(table, SymbolTableSection) else []
        assert [names.read(name) for name in symbols["name"].tolist()] == [symbol.name for symbol in expected], path
        assert symbols["value"].tolist() == [symbol["st_value"] for symbol in expected], path
        assert symbols["size"].tolist() == [symbol["st_size"] for symbol in expected], path
    assert measure_elf(path.read_bytes()) == path.stat().st_size, path


def test_relocations_as_pyelftools() -> None:
    for path in find_fixture_cubins():
        check_relocations(path)


def check_relocations(path: Path) -> None:
    elf = read_elf(path.read_bytes(), path=path)
    found = 0
    with path.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if not isinstance(section, RelocationSection):
                continue
            expected = [
                (entry["r_offset"], entry["r_info_type"], entry["r_info_sym"], entry.entry.get("r_addend", 0))
                for entry in section.iter_relocations()
            ]
            ours = elf.read_relocations(section["sh_info"]).tolist()
            assert all(entry in ours for entry in expected), path
            found += len(expected)
    assert found > 0, path


def test_section_count_in_the_first_section() -> None:
    builder = ElfBuilder(count_in_first_section=True)
    builder.add(".text.k", bytes(16))
    elf = read_elf(builder.build())
    assert elf.section_names == ("", ".text.k", ".symtab", ".strtab", ".shstrtab")


def test_missing_section() -> None:
    assert read_elf(ElfBuilder().build()).find_section(".debug_line") is None


@pytest.mark.parametrize(
    ("image", "complaint"),
    [
        (b"", "not an ELF file"),
        (b"PK\x03\x04", "not an ELF file"),
        (b"\x7fELF\x02\x01", "ends inside its header"),
    ],
)
def test_no_elf(image: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        read_elf(image, path=Path("a.cubin"))
    assert str(caught.value).startswith("a.cubin: offset 0x0: ")
    assert caught.value.remedy


def test_another_class_of_elf() -> None:
    image = bytearray(ElfBuilder().build())
    image[4] = 1
    with pytest.raises(UnsupportedInputError, match="64-bit"):
        read_elf(bytes(image))


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        (40, 1 << 62, "outside the file"),  # e_shoff
        (58, 63, "63 bytes long"),  # e_shentsize
        (60, 60_000, "do not fit"),  # e_shnum
        (62, 4_000, "cannot hold the section names"),  # e_shstrndx
    ],
)
def test_lying_header(field: int, value: int, complaint: str) -> None:
    image = bytearray(ElfBuilder().build())
    struct.pack_into("<Q" if field == 40 else "<H", image, field, value)
    with pytest.raises(InputError, match=complaint):
        read_elf(bytes(image))


@pytest.mark.parametrize(
    ("offset", "size"), [(1 << 63, 16), (64, 1 << 40), ((1 << 64) - 8, 16)], ids=["far", "long", "wraps around"]
)
def test_section_outside_the_file(offset: int, size: int) -> None:
    builder = ElfBuilder()
    builder.add(".text.k", bytes(16))
    image = bytearray(builder.build())
    table = struct.unpack_from("<Q", image, 40)[0]
    struct.pack_into("<QQ", image, table + SECTION.size + 24, offset, size)
    with pytest.raises(InputError, match="reaches past the end") as caught:
        read_elf(bytes(image))
    assert caught.value.place is not None
    assert "section table" in caught.value.place


def test_sections_over_each_other() -> None:
    builder = ElfBuilder()
    for number in range(50):
        builder.add(f".nv.info.{number}", bytes(2000) if number == 0 else b"", size=2000)
    image = bytearray(builder.build())
    table = struct.unpack_from("<Q", image, 40)[0]
    for number in range(50):
        struct.pack_into("<Q", image, table + SECTION.size * (number + 1) + 24, 64)
    with pytest.raises(InputError, match="share the same bytes"):
        read_elf(bytes(image))


def test_names_over_each_other() -> None:
    """A thousand names that all end at the same place: each one is a little shorter than the table."""
    builder = ElfBuilder()
    for _ in range(1000):
        builder.add("n" * 40)
    image = bytearray(builder.build())
    table = struct.unpack_from("<Q", image, 40)[0]
    long_table = bytearray(b"\0" + b"n" * 60_000 + b"\0")
    names_at = len(image)
    image += long_table
    for number in range(1, 1001):
        struct.pack_into("<I", image, table + SECTION.size * number, number)
    last = table + SECTION.size * 1003
    struct.pack_into("<QQ", image, last + 24, names_at, len(long_table))
    with pytest.raises(InputError, match="many times its own size"):
        read_elf(bytes(image))


def test_bytes_that_are_no_text() -> None:
    builder = ElfBuilder()
    builder.add(".text.k", bytes(16))
    image = builder.build().replace(b".text.k\0", b".te\xffxt\0\0")
    assert read_elf(image).section_names[1] == ".te\\xffxt"
