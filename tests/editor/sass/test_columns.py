"""The columns of SASS documents: which there are, what stands in them, and where."""

from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.editor.sass.columns import KINDS, fill_column, list_kinds
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.snapshot import VisibleKernel
from tests.editor.sass.documents import LOOP, URI, show_report, write_report

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


def test_operands_are_seen_in_half_a_window() -> None:
    everything = [kind.name for kind in KINDS]
    for text in (LOOP, COUNTED):
        usual, full = build_document(URI, show(text)), build_document(URI, show(text), everything)
        assert usual.instruction_column == full.instruction_column <= 20
        assert all(len(line) <= 80 for line in usual.lines[: usual.sections[0].first_line - 3])


def test_without_a_body_the_file_most_code_was_called_from_is_the_kernel_s() -> None:
    shown = show("LDG.E R2, [R4.64]  # m.h:7 < k.cu:5\nFADD R2, R2, R2  # m.h:8 < k.cu:5\nEXIT  # m.h:9")
    bodiless = replace(shown, kernel=replace(shown.kernel, body=None))
    assert list(fill_column(bodiless, "line").cells) == ["m.h:7", "m.h:8", "m.h:9"]
