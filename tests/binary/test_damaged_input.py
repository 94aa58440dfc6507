"""Damaged images and containers: cut at any byte, bit-flipped, with lying sizes, counts, links and offsets."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpa_lsp.code.binary.containers import FATBIN_MAGIC, find_cubins
from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.elf import HEADER_BYTES, read_elf
from gpa_lsp.code.binary.embedded_ptx import read_ptx_line_table, read_ptx_text
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.foundation.errors import GpaError
from tests.binary.seeds import CONTAINERS, SMALL_SEEDS
from tests.damage import check_bounded, damage

IMAGE_TABLES = (".symtab", ".strtab", ".shstrtab", ".nv.info", ".nv.callgraph", ".rel")
LINE_TABLES = (
    ".debug_line",
    ".debug_str",
    ".nv_debug_line_sass",
    ".rel.debug",
    ".rela.debug",
    ".rel.nv",
    ".rela.nv",
    ".symtab",
)


def find_spots(image: bytes, prefixes: tuple[str, ...]) -> list[range]:
    """The places of the ELF header, the section table and the sections of these names."""
    elf = read_elf(image)
    table = int.from_bytes(image[40:48], "little")
    spots = [range(HEADER_BYTES), range(table, table + elf.sections.nbytes)]
    for name, section in zip(elf.section_names, elf.sections, strict=True):
        start = int(section["offset"])
        if name.startswith(prefixes) and section["type"] != 8:
            spots.append(range(start, start + int(section["size"])))
    return spots


def damaged_images(prefixes: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    def of(path: Path) -> st.SearchStrategy[bytes]:
        image = path.read_bytes()
        return damage(image, find_spots(image, prefixes))

    return st.sampled_from(SMALL_SEEDS).flatmap(of)


def read_all_tables(image: bytes) -> None:
    """Read everything there is; what a function refuses does not keep the others from being read."""
    cubin = read_cubin(image)
    read_ptx_text(cubin)
    for name in cubin.functions:
        for read in (read_line_table, read_ptx_line_table):
            try:
                read(cubin, name)
            except GpaError as error:
                assert str(error)


@given(damaged_images(IMAGE_TABLES))
def test_damaged_images(image: bytes) -> None:
    check_bounded(len(image), lambda: read_cubin(image))


@given(damaged_images(LINE_TABLES))
def test_damaged_line_tables(image: bytes) -> None:
    check_bounded(len(image), lambda: read_all_tables(image))


def damaged_container(path: Path) -> st.SearchStrategy[bytes]:
    data = path.read_bytes()
    first = data.index(FATBIN_MAGIC)
    return damage(data, [range(HEADER_BYTES), range(first, first + 16 + 80)])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.sampled_from([CONTAINERS / "scale.fatbin", CONTAINERS / "scale.o"]).flatmap(damaged_container))
def test_damaged_containers(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPA_LSP_CUOBJDUMP", str(tmp_path / "missing"))
    path = tmp_path / "damaged"
    path.write_bytes(data)
    check_bounded(len(data), lambda: find_cubins(path))


STRIPPED = 1  # Bytes that an image may lack: CuPy leaves the last one out


@pytest.mark.parametrize("seed", [SMALL_SEEDS[0], SMALL_SEEDS[2]], ids=["linked", "relocatable"])
def test_cut_at_every_byte(seed: Path) -> None:
    """An image ends with its section table or program headers, so none that is cut is taken for whole; and the message says where."""
    image = seed.read_bytes()
    for length in range(len(image) - STRIPPED):
        with pytest.raises(GpaError) as caught:
            read_cubin(image[:length], path=seed)
        assert str(caught.value).startswith(f"{seed}: ")


def test_cubins_of_cupy_lack_their_last_byte() -> None:
    """CuPy takes it for the end of a text. Only program headers end there, which nothing reads."""
    image = SMALL_SEEDS[0].read_bytes()
    assert list(read_cubin(image[:-STRIPPED]).functions) == list(read_cubin(image).functions)


def test_some_damage_is_survived() -> None:
    """The property tests would prove nothing if every damaged image were refused at its header."""
    image = bytearray(SMALL_SEEDS[0].read_bytes())
    for spot in find_spots(bytes(image), (".text.",))[2:]:
        image[spot.start] ^= 0xFF
    assert check_bounded(len(image), lambda: read_all_tables(bytes(image)))
