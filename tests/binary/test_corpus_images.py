"""Every device image of every real report: it opens, and each function with a line table decodes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.binary.cubin import CUDA_MACHINE, read_cubin
from gpa_lsp.code.binary.elf import ELF_64_LITTLE_ENDIAN, HEADER_BYTES, measure_elf, read_elf
from gpa_lsp.code.binary.embedded_ptx import read_ptx_line_table, read_ptx_text
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.code.binary.model import Cubin
from tests.conftest import find_corpus

pytestmark = pytest.mark.corpus
CORPUS = find_corpus()
REPORTS = sorted((CORPUS / "ncu").glob("*.ncu-rep")) if CORPUS is not None else []
every_report = pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.stem)
IMAGES = 17
FUNCTIONS = 93
FUNCTIONS_WITH_LINES = 55


def find_images(report: Path) -> Iterator[Cubin]:
    """The images in a report, found by their first bytes and without any knowledge of the report's format; each one once."""
    data = report.read_bytes()
    seen: set[str] = set()
    position = data.find(ELF_64_LITTLE_ENDIAN)
    while position >= 0:
        if int.from_bytes(data[position + 18 : position + 20], "little") == CUDA_MACHINE:
            tail = data[position:]
            cubin = read_cubin(tail[: measure_elf(tail)], path=report)
            if cubin.sha256 not in seen:
                seen.add(cubin.sha256)
                yield cubin
        position = data.find(ELF_64_LITTLE_ENDIAN, position + HEADER_BYTES)


@every_report
def test_every_image_opens(report: Path) -> None:
    cubins = list(find_images(report))
    assert cubins
    for cubin in cubins:
        assert cubin.sm in (70, 80, 86, 90, 120)
        assert any(function.is_entry for function in cubin.functions.values())
        for function in cubin.functions.values():
            assert function.registers is not None
            assert function.barriers is not None
            assert all(offset < function.size_bytes for offset in function.call_symbols)


@every_report
def test_every_line_table_decodes(report: Path) -> None:
    for cubin in find_images(report):
        texts: dict[str, tuple[str, ...]] = {}
        for name, function in cubin.functions.items():
            every = np.arange(0, function.size_bytes, 16)
            table = read_line_table(cubin, name)
            assert cubin.has_lines or not table.chains
            if table.chains:
                assert (table.chain_index(every) >= 0).all()
                assert all(frame.line > 0 and frame.file for chain in table.chains for frame in chain)
            ptx = read_ptx_line_table(cubin, name)
            for (frame,) in ptx.chains:
                if frame.file not in texts:
                    texts[frame.file] = read_ptx_text(cubin, frame.file)
                assert 0 < frame.line <= len(texts[frame.file])
        assert bool(texts) == cubin.has_ptx_lines


def test_nothing_is_missing() -> None:
    if not REPORTS:
        pytest.skip("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    cubins = [cubin for report in REPORTS for cubin in find_images(report)]
    assert len(cubins) == IMAGES
    assert sum(len(cubin.functions) for cubin in cubins) == FUNCTIONS
    with_lines = [name for cubin in cubins for name in cubin.functions if read_line_table(cubin, name).chains]
    assert len(with_lines) == FUNCTIONS_WITH_LINES


def test_images_dumped_after_loading() -> None:
    """Addresses of such images are absolute: the table is only complete when they were subtracted."""
    dumped = [report for report in REPORTS if "absolute" in report.name]
    if not dumped:
        pytest.skip("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    for cubin in find_images(dumped[0]):
        symbols = read_elf(cubin.image).read_symbols()
        for name, function in cubin.functions.items():
            assert function.symbol_index is not None
            assert int(symbols[function.symbol_index]["value"]) > 1 << 32
            assert read_line_table(cubin, name).row_offsets[0] == 0
