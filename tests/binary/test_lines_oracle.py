"""Lines, inline chains and PTX lines of every instruction of every fixture, against what nvdisasm announces for them."""

from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.binary.line_table import read_line_table
from gpa_lsp.binary.ptx_lines import read_ptx_line_table
from tests.binary.nvdisasm_listing import list_image
from tests.binary.seeds import find_fixture_cubins, name_of, read_fixture

pytestmark = pytest.mark.oracle
every_image = pytest.mark.parametrize("path", find_fixture_cubins(), ids=name_of)


@every_image
def test_lines_and_inline_chains(path: Path) -> None:
    """nvdisasm announces a chain only when its innermost line changes, so what it shows is the chain at the last such change."""
    cubin = read_fixture(path)
    listing = list_image(path)
    assert set(listing) == set(cubin.functions)
    for name, listed in listing.items():
        assert listed.pc_offsets, name
        table = read_line_table(cubin, name)
        shown: tuple[tuple[str, int], ...] = ()
        numbers = table.chain_index(np.array(listed.pc_offsets)).tolist()
        for pc_offset, number, said in zip(listed.pc_offsets, numbers, listed.chains, strict=True):
            ours = tuple((frame.file, frame.line) for frame in table.chains[number])
            assert ours[0] == said[0], f"{name}+0x{pc_offset:x}"
            shown = ours if ours[:1] != shown[:1] else shown
            assert shown == said, f"{name}+0x{pc_offset:x}"


@every_image
def test_ptx_lines(path: Path) -> None:
    cubin = read_fixture(path)
    for name, listed in list_image(path).items():
        table = read_ptx_line_table(cubin, name)
        numbers = table.chain_index(np.array(listed.pc_offsets)).tolist()
        ours = [(table.chains[number][0].file, table.chains[number][0].line) for number in numbers]
        assert ours == listed.ptx, name
