"""The PTX in an image and the lines that point into it."""

import numpy as np
import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import read_ptx_line_table, read_ptx_text
from gpa_lsp.foundation.errors import InputError
from tests.binary.elf_builder import ElfBuilder
from tests.binary.line_program_builder import COPY, END, Code, advance, file, image_with_lines, line, set_address, unit
from tests.binary.seeds import CONTAINERS, FIXTURES, read_fixture


def test_lines_point_at_the_statement() -> None:
    cubin = read_fixture(FIXTURES / "cubins" / "sm_90" / "inline_chain_original.cubin")
    (name,) = cubin.functions
    table = read_ptx_line_table(cubin, name)
    texts = {chain[0].line: read_ptx_text(cubin, chain[0].file)[chain[0].line - 1] for chain in table.chains}
    assert any("mov.u32" in text and "%ctaid.x" in text for text in texts.values())
    assert any("ld.global" in text for text in texts.values())
    assert read_ptx_text(cubin) == read_ptx_text(cubin, ".nv_debug_ptx_txt")


def test_linked_units_have_texts_of_their_own() -> None:
    cubin = read_fixture(CONTAINERS / "two_units_linked.sm_90.cubin")
    files = {name: read_ptx_line_table(cubin, name).chains[0][0].file for name in cubin.functions}
    assert files["_Z9two_unitsPKfPfi"] != files["_ZN5units4dampEff"] == files["_Z8one_unitPfi"]
    for name, section in files.items():
        assert any(name in text for text in read_ptx_text(cubin, section))


def test_image_without_ptx() -> None:
    builder = ElfBuilder()
    builder.add(".text.k", bytes(16), info=1)
    builder.add_symbol("k", ".text.k", other=16)
    cubin = read_cubin(builder.build())
    assert read_ptx_text(cubin) == ()
    assert len(read_ptx_line_table(cubin, "k").row_offsets) == 0
    assert not cubin.has_ptx_lines


def test_file_number_0_is_the_section_without_a_number() -> None:
    section = unit(
        set_address() + file(0) + line(6) + COPY + advance(16) + END, files=[], directories=[], names_base=None
    )
    image = image_with_lines(section, {"k": Code()}, name=".nv_debug_line_sass")
    table = read_ptx_line_table(read_cubin(image), "k")
    assert [(frame.file, frame.line, frame.function) for (frame,) in table.chains] == [(".nv_debug_ptx_txt", 7, "k")]
    assert table.chain_index(np.array([0, 16])).tolist() == [0, -1]


def test_file_number_without_a_file() -> None:
    section = unit(set_address() + file(2) + COPY + advance(16) + END, files=[("x", 0)])
    image = image_with_lines(section, {"k": Code()}, name=".nv_debug_line_sass")
    with pytest.raises(InputError, match="file 2 is not in the table of 1"):
        read_ptx_line_table(read_cubin(image), "k")
