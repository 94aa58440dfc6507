"""The columns of SASS documents: which there are, what stands in them, and where."""

from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.editor.sass.columns import KINDS, fill_column, list_kinds
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.hot_rows import sort_rows
from gpa_lsp.editor.sass.library import SassDocument
from gpa_lsp.editor.snapshot import VisibleKernel
from tests.editor.sass.documents import LOOP, URI, check_document, open_document, show_report, write_report

COUNTED = """
    MOV R0, RZ              # k.cu:3 | selected=2 | x=64
    LDG.E R2, [R4.64]       # k.cu:5 | selected=4 | x=1280 global_sectors=5120
    LDL R3, [R1]            # k.cu:5 | wait=0 | x=1280 local_sectors=80
    LDS R7, [R6]            # k.cu:5 | wait=0 | x=1280 shared_wavefronts=40960
    FFMA R0, R2, R3, R0     # k.cu:5 | long_scoreboard=80/70 wait=10/0 selected=4 | x=1280
    EXIT                    # k.cu:7
"""


def show(text: str = LOOP, **changes: Any) -> VisibleKernel:
    return show_report(replace(write_report(text), **changes))


def write(*names: str, text: str = COUNTED) -> SassDocument:
    document = build_document(URI, show(text), names)
    check_document(document)
    return document


def read_rows(document: SassDocument) -> list[str]:
    return [document.lines[line - 1].rstrip() for line in document.line_of_row.tolist()]


def test_every_kernel_has_the_same_columns_and_one_for_each_of_its_stall_reasons() -> None:
    kinds = list_kinds(show().kernel.report)
    assert kinds[: len(KINDS)] == KINDS
    assert [kind.name for kind in kinds[len(KINDS) :]] == ["long_scoreboard", "selected", "wait"], "most samples first"
    assert len({kind.name for kind in kinds}) == len({kind.title for kind in kinds}) == len(kinds)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("samples", ["2", "4", "", "", "94", ""]),
        ("share", ["2.0 %", "4.0 %", "", "", "94 %", ""]),
        ("not-issued", ["", "", "", "", "70", ""]),
        ("reason", ["", "", "", "", "long_scoreboard", ""]),
        ("executions", ["64", "1,280", "1,280", "1,280", "1,280", ""]),
        ("sectors", ["", "5,120", "80", "", "", ""]),
        ("wavefronts", ["", "", "", "40,960", "", ""]),
        ("registers", ["5", "6", "5", "5", "3", ""]),
        ("wait", ["", "", "", "", "10 %", ""]),
        ("line", ["3", "5", "5", "5", "5", "7"]),
        ("sleeping", [""] * 6),
        ("no such column", [""] * 6),
    ],
)
def test_what_stands_in_a_column(name: str, cells: list[str]) -> None:
    assert list(fill_column(show(COUNTED), name).cells) == cells


def test_what_was_not_collected_is_left_blank() -> None:
    bare = show(LOOP, code=None)
    names = ("executions", "sectors", "wavefronts", "registers")
    assert [fill_column(bare, name).width for name in names] == [0, 0, 0, 0]
    unknown = show_report(write_report(LOOP, split="unknown"))
    assert fill_column(unknown, "not-issued").width == 0


def test_the_first_number_stands_before_the_instruction_and_all_else_behind_it() -> None:
    document = write("line", "executions", "reason", "share")
    assert document.lines[document.sections[0].first_line - 3] == (
        "// addr   executed  instruction          // line  stalled by       share  for the scheduler"
    )
    assert read_rows(document)[4] == ("/*0040*/     1,280  FFMA R0, R2, R3, R0  //    5  long_scoreboard   94 %")


def test_words_alone_leave_the_instruction_its_place() -> None:
    document = write("reason")
    assert read_rows(document)[4] == "/*0040*/  FFMA R0, R2, R3, R0  // long_scoreboard"
    assert read_rows(document)[5] == "/*0050*/  EXIT"
    assert document.reason_offset == len("// ")


def test_without_columns_there_is_only_code() -> None:
    assert read_rows(write())[:2] == ["/*0000*/  MOV R0, RZ", "/*0010*/  LDG.E R2, [R4.64]"]


def test_columns_are_shown_once_and_empty_ones_not_at_all() -> None:
    assert write("share", "sleeping", "share", "made up").lines == write("share").lines


def test_operands_are_seen_in_half_a_window() -> None:
    everything = [kind.name for kind in KINDS]
    for text in (LOOP, COUNTED):
        usual, full = build_document(URI, show(text)), build_document(URI, show(text), everything)
        assert usual.instruction_column == full.instruction_column <= 20
        assert all(len(line) <= 80 for line in usual.lines[: usual.sections[0].first_line - 3])


def test_lines_of_other_files_are_named_with_their_file() -> None:
    cells = fill_column(show(), "line").cells
    assert list(cells) == ["3", "3", "m.h:7", "5", "4", "4", "6", "7"]


def test_without_a_body_the_file_most_code_was_called_from_is_the_kernel_s() -> None:
    shown = show("LDG.E R2, [R4.64]  # m.h:7 < k.cu:5\nFADD R2, R2, R2  # m.h:8 < k.cu:5\nEXIT  # m.h:9")
    bodiless = replace(shown, kernel=replace(shown.kernel, body=None))
    assert list(fill_column(bodiless, "line").cells) == ["m.h:7", "m.h:8", "m.h:9"]


def test_long_names_of_files_are_cut_in_their_middle() -> None:
    (cell, _) = fill_column(
        show("EXIT  # a_header_with_quite_a_long_name.hpp:12345 < k.cu:3\nEXIT  # k.cu:3"), "line"
    ).cells
    assert cell.startswith("a_head") and "…" in cell and cell.endswith("e.hpp:12345") and len(cell) == 22


def test_padding_is_one_line() -> None:
    document = write("share", text="EXIT  # - | wait=3\nend:\nBRA end\nNOP\nNOP\nNOP\n")
    assert read_rows(document)[1:] == [
        "/*0010*/         BRA 0x10     // ↑ .L_0010",
        *["/*0020*/         NOP          // padding, 3 times"] * 3,
    ]
    assert [line for line in document.lines if "NOP" in line] == ["/*0020*/         NOP          // padding, 3 times"]
    assert document.find_row(int(document.line_of_row[4])) == 2


def test_nops_that_execute_are_no_padding() -> None:
    document = write("share", text="NOP\nNOP\nEXIT  # - | wait=3\nend:\nBRA end\nNOP  # - | wait=1\nNOP\nNOP")
    assert [line for line in document.lines if "times" in line] == ["/*0050*/         NOP          // padding, 2 times"]
    assert sum("NOP" in line for line in document.lines) == 4


def test_instructions_in_the_order_of_a_column() -> None:
    view = open_document(write("share"))
    assert [(row.value, row.text, row.detail) for row in sort_rows(view, "share")] == [
        ("94 %", "FFMA R0, R2, R3, R0", "line 5 · long_scoreboard"),
        ("4.0 %", "LDG.E R2, [R4.64]", "line 5"),
        ("2.0 %", "MOV R0, RZ", "line 3"),
    ]
    assert [row.text.split()[0] for row in sort_rows(view, "sectors")] == ["LDG.E", "LDL"]
    assert {row.location.uri for row in sort_rows(view, "executions")} == {URI}
    places = [row.location.range.start.line + 1 for row in sort_rows(view, "share")]
    assert places == view.document.line_of_row[[4, 1, 0]].tolist()
    assert sort_rows(view, "reason") == sort_rows(view, "made up") == []
