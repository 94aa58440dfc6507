"""Questions about the code of real reports: what blame found through registers, the questions find as well; and everything can be asked."""

import random

import pytest

from gpa_lsp.diagnosis.blame.model import Dependency
from gpa_lsp.editor.sass import hover, jumps
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.operand_spans import list_values
from gpa_lsp.report.code_queries import find_defs, find_uses
from gpa_lsp.report.model import KernelReport
from tests.editor.sass.documents import URI, open_document, show_report
from tests.real_reports import REPORTS, analyse_report

pytestmark = pytest.mark.corpus


def analyse_kernels(name: str) -> list[KernelReport]:
    return [kernel for kernel in analyse_report(name).kernels if kernel.code is not None]


@pytest.mark.parametrize("name", REPORTS)
def test_blamed_registers_are_defined_where_blame_says(name: str) -> None:
    for kernel in analyse_kernels(name):
        if kernel.blame is None or kernel.code is None:
            continue
        edges = kernel.blame.edges
        columns = (edges.use_row, edges.def_row, edges.dependency, edges.resource)
        for use, source, dependency, resource in zip(*(column.tolist() for column in columns), strict=True):
            if resource >= 0 and dependency in (Dependency.READ_AFTER_WRITE, Dependency.GUARD):
                assert source in find_defs(kernel.code, use, resource).rows
                assert use in find_uses(kernel.code, source, resource).rows


@pytest.mark.parametrize("name", REPORTS)
def test_everything_can_be_asked(name: str) -> None:
    chance = random.Random(name)
    asked = 0
    for kernel in analyse_kernels(name):
        view = open_document(build_document(URI, show_report(kernel, {})))
        texts = kernel.instructions.texts
        for row in chance.sample(range(len(texts)), min(40, len(texts))):
            for value in (None, *list_values(texts[row])):
                column = view.document.instruction_column + (0 if value is None else value.start)
                place = view.positions.find_place(int(view.document.line_of_row[row]), column)
                found = hover.describe_hover(view, place)
                assert found is not None and found.contents.value
                if value is None and texts[row]:
                    name = texts[row].partition(" ")[0] if texts[row][0] != "@" else texts[row].split()[1]
                    assert f"**{name.rstrip(';').partition('.')[0]}" in found.contents.value, texts[row]
                jumps.find_definition(view, place)
                jumps.find_highlights(view, place)
                places = jumps.find_references(view, place, with_declarations=True)
                if value is not None and value.resources and value.is_read:
                    assert places, (row, texts[row])
                asked += 1
            for is_incoming in (True, False):
                steps = jumps.list_steps(view, row, is_incoming=is_incoming)
                assert all(0 <= step.ratio <= 1 for step in steps)
    assert asked
