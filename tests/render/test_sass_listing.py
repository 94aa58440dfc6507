"""Listings hold every instruction, and everything that was sampled on it."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.document.control_words import describe_control
from gpa_lsp.document.layout import Style, count_cells, join_lines, read_plain
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sass_listing import render_sass
from gpa_lsp.report.model import LoopRow
from tests.render.examples import make_smooth
from tests.report_builder import build_kernel


def show(listing: str, **options: object) -> list[str]:
    kernel = build_kernel(listing, **options)  # type: ignore[arg-type]
    return join_lines(render_sass(kernel, PlaceNames())).splitlines()


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        ((0, False, 7, 7, 0), "stall 0"),
        ((15, True, 5, 0, 0b100001), "waits SB0,SB5 · sets SB5 · read sets SB0 · stall 15 · yield"),
    ],
)
def test_scheduling_bits(bits: tuple[int, bool, int, int, int], words: str) -> None:
    assert describe_control(*bits) == words


def test_every_instruction_is_listed_once() -> None:
    kernel = make_smooth()
    text = join_lines(render_sass(kernel, PlaceNames()))
    for instruction in kernel.instructions.texts:
        assert text.count(f"  {instruction or '(not disassembled)'}") == 1


def test_source_lines_are_named_when_they_change() -> None:
    lines = show("k.cu:1  A\nk.cu:1  B\nin.h:3 < k.cu:2  C\n-  D\n-  E\nk.cu:1  F")
    headings = [line.strip() for line in lines[4:] if "stall" not in line]
    assert headings == ["k.cu:1", "in.h:3  < k.cu:2", "(no source line)", "k.cu:1"]


def test_nested_loops_are_drawn() -> None:
    def loop(first: int, last: int, depth: int) -> LoopRow:
        return LoopRow(
            function="kernel", header_pc_offset=first, last_pc_offset=last, depth=depth, file=None, first_line=None,
            last_line=None, samples=0, latency_samples=0,
        )  # fmt: skip

    lines = show("-  A\n-  B  ; wait=1\n-  C  ; wait=3\n-  D", loops=[loop(16, 32, 2), loop(0, 32, 1)])
    assert [line.strip() for line in lines if "loop" in line] == [
        "loop, depth 1 · 100 % (±49)", "loop, depth 2 · 100 % (±49)",
    ]  # fmt: skip
    depths = {line.split("stall")[0].split()[-1]: line.count("│") for line in lines if "stall" in line}
    assert set(depths.values()) == {0, 1, 2}


def test_code_between_a_loops_stretches_is_not_in_it() -> None:
    loop = LoopRow(
        function="kernel", header_pc_offset=0, last_pc_offset=32, depth=1, file=None, first_line=None, last_line=None,
        samples=0, latency_samples=0,
    )  # fmt: skip
    kernel = build_kernel("-  A\n-  B  ; wait=9\n-  C", loops=[loop])
    columns = replace(kernel.instructions, loop_depths=np.array([1, 0, 1], dtype=np.uint16))
    lines = [read_plain(line) for line in render_sass(replace(kernel, instructions=columns), PlaceNames())]
    assert [line.count("│") for line in lines if "stall" in line] == [1, 0, 1]


def test_instructions_without_samples_are_dimmed() -> None:
    kernel = build_kernel("-  HOT R1  ; wait=9\n-  COLD R1  ;")
    styles = {text.strip(): style for line in render_sass(kernel, PlaceNames()) for text, style in line}
    assert styles["HOT R1"] is Style.CODE
    assert styles["COLD R1"] is Style.DIM


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_narrow_terminals(width: int) -> None:
    lines = list(render_sass(make_smooth(), PlaceNames(), width))
    rows = [read_plain(line) for line in lines if any(style is Style.CODE for _, style in line)]
    assert rows
    assert all(count_cells(row) <= width for row in rows)
    assert any("FFMA" in row for row in rows)


def test_a_kernel_without_code() -> None:
    assert show("")[-1] == "  no instructions: the profile has no code of this kernel"


def test_a_kernel_without_samples() -> None:
    assert show("k.cu:1  EXIT")[3] == "kernel  kernel · 0 samples · 1 instruction · 32 registers"
