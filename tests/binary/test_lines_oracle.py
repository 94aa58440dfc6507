"""Lines, inline chains, PTX lines and calls of every instruction of the fixtures, against what nvdisasm announces for them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.binary.embedded_ptx import read_ptx_line_table
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.code.binary.model import Cubin
from tests.binary.nvdisasm_listing import ListedFunction, list_image
from tests.binary.representatives import choose_by_tables
from tests.binary.seeds import read_fixture

pytestmark = pytest.mark.oracle


def list_functions() -> Iterator[tuple[Path, Cubin, str, ListedFunction]]:
    """Each function of the chosen images with what nvdisasm says of it; an image is listed once."""
    for path in choose_by_tables():
        cubin = read_fixture(path)
        for name, listed in list_image(path).items():
            yield path, cubin, name, listed


def test_lines_and_inline_chains() -> None:
    """nvdisasm announces a chain only when its innermost line changes, so what it shows is the chain at the last such change."""
    for path in choose_by_tables():
        assert set(list_image(path)) == set(read_fixture(path).functions), path
    for path, cubin, name, listed in list_functions():
        assert listed.pc_offsets, (path, name)
        table = read_line_table(cubin, name)
        shown: tuple[tuple[str, int], ...] = ()
        numbers = table.chain_index(np.array(listed.pc_offsets)).tolist()
        for pc_offset, number, said in zip(listed.pc_offsets, numbers, listed.chains, strict=True):
            ours = tuple((frame.file, frame.line) for frame in table.chains[number])
            assert ours[0] == said[0], f"{path}: {name}+0x{pc_offset:x}"
            shown = ours if ours[:1] != shown[:1] else shown
            assert shown == said, f"{path}: {name}+0x{pc_offset:x}"


def test_ptx_lines() -> None:
    for path, cubin, name, listed in list_functions():
        table = read_ptx_line_table(cubin, name)
        numbers = table.chain_index(np.array(listed.pc_offsets)).tolist()
        ours = [(table.chains[number][0].file, table.chains[number][0].line) for number in numbers]
        assert ours == listed.ptx, (path, name)


def test_call_symbols() -> None:
    for path, cubin, name, listed in list_functions():
        function = cubin.functions[name]
        local = {sub.name for sub in function.sub_functions}
        expected = {pc: callee for pc, callee in listed.calls.items() if callee not in local}
        assert function.call_symbols == expected, (path, name)
