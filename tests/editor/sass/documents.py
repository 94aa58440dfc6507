"""SASS documents of kernels written as text (:mod:`tests.rows.written`): joined, blamed, gathered and shown as the server does it."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from lsprotocol import types
from msgspec.structs import replace
from pygls.workspace import PositionCodec

from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.lines.positions import Positions
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.library import SassDocument, SassView
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.model import KernelReport
from tests.editor.views import make_profile, make_snapshot
from tests.rows.written import write_kernel

URI = "gpa-sass:///kernel.00000000.nvsass"

LOOP = """
    B-:R-:W-:-:S01  MOV R0, RZ                         # k.cu:3 | selected=2
    B-:R-:W0:-:S02  S2R R3, SR_TID.X                   # k.cu:3
loop:
    B0:R-:W2:-:S04  LDG.E R2, [R4.64]                  # m.h:7 < k.cu:5 | selected=4
    B2:R-:W-:Y:S04  FFMA R0, R2, R3, R0                # k.cu:5 | long_scoreboard=80/70 selected=4
    B-:R-:W-:-:S12  ISETP.LT.AND P0, PT, R6, R8, PT    # k.cu:4 | wait=6 selected=4
    B-:R-:W-:-:S05  @P0 BRA loop                       # k.cu:4
    B-:R1:W-:-:S01  STG.E [R4.64], R0                  # k.cu:6
    B-:R-:W-:-:S05  EXIT                               # k.cu:7
"""
"""A loop that waits for its load."""

SOURCES: dict[str, str | None] = {
    "k.cu": "// k.cu\n__global__ void kernel(float *x) {\n  int i = threadIdx.x;\n  while (more)\n    sum += \tat(x, i);\n  x[i] = sum;\n}\n",
    "m.h": "\n" * 6 + "return x[i]; // größer\n",
}


def write_report(text: str, **options: Any) -> KernelReport:
    """The report of a written kernel."""
    kernel = write_kernel(text, **options)
    return gather_report([AnalysedKernel(kernel=kernel, blame=blame_kernel(kernel))]).kernels[0]


def show_report(report: KernelReport, sources: Mapping[str, str | None] = SOURCES) -> VisibleKernel:
    """The kernel as the only one that is shown."""
    return make_snapshot(make_profile(report, texts=dict(sources))).visible[0]


def write_document(text: str, sources: Mapping[str, str | None] = SOURCES, **changes: Any) -> SassDocument:
    """The document of a written kernel, with its report changed."""
    return build_document(URI, show_report(replace(write_report(text), **changes), sources))


def open_document(document: SassDocument, settings: Settings | None = None, encoding: str = "utf-16") -> SassView:
    """The document as a client has it open."""
    units = PositionCodec(types.PositionEncodingKind(encoding))
    positions = Positions(lines=document.lines, units=units)
    places = PlaceFinder(units, lambda path: None)
    return SassView(document=document, positions=positions, settings=settings or Settings(), places=places)


def find_line(document: SassDocument, words: str) -> int:
    """The first line (1-based) with some words in it."""
    return next(number for number, line in enumerate(document.lines, start=1) if words in line)


def check_document(document: SassDocument) -> None:
    """Check what holds for every document."""
    columns = document.shown.kernel.report.instructions
    assert document.lines[-1] == ""
    assert document.text.split("\n") == list(document.lines)
    assert not any(re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", line) for line in document.lines)
    assert document.text.encode()
    rows = np.arange(len(columns))
    shown = document.row_of_line[document.line_of_row - 1]
    is_folded = shown != rows
    assert (document.row_of_line[document.row_of_line >= 0] == rows[~is_folded]).all()
    assert (np.diff(document.line_of_row) >= np.where(is_folded[1:], 0, 1)).all()
    assert all(columns.texts[row].startswith("NOP") for row in rows[is_folded].tolist())
    for row in rows.tolist():
        line = document.lines[int(document.line_of_row[row]) - 1]
        assert line[document.instruction_column :].startswith(columns.texts[row])
    check_sections(document)


def check_sections(document: SassDocument) -> None:
    around: list[int] = []
    last_start = 0
    for section in document.sections:
        assert last_start < section.first_line <= section.last_line < len(document.lines)
        last_start = section.first_line
        while around and around[-1] < section.first_line:
            around.pop()
        assert not around or section.last_line <= around[-1]
        around.append(section.last_line)
        assert document.row_of_line[section.first_line - 1] == -1
        assert document.lines[section.first_line - 1].startswith((section.name, f"// {section.name}"))
        first = document.row_of_line[section.first_line : section.last_line]
        assert first[first >= 0][0] == section.first_row
        assert document.row_of_line[section.last_line - 1] >= 0
