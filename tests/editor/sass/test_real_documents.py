"""The documents of every kernel of the corpus."""

from functools import cache

import pytest
from pygls.workspace import PositionCodec

from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.hints import list_hints
from gpa_lsp.editor.sass.library import SassDocument, SectionKind
from gpa_lsp.editor.sass.operand_spans import list_operands
from gpa_lsp.editor.sass.outline import list_folds, list_symbols
from gpa_lsp.editor.sass.tokens import encode_tokens
from gpa_lsp.editor.snapshot import VisibleKernel
from tests.editor.sass.documents import URI, check_document, open_document
from tests.editor.views import make_profile, make_snapshot
from tests.real_reports import REPORTS, analyse_report

pytestmark = pytest.mark.corpus


@cache
def show_kernels(name: str) -> tuple[VisibleKernel, ...]:
    kernels = analyse_report(name).kernels
    texts = {file: text for kernel in kernels for file, text in kernel.embedded_sources.items()}
    return make_snapshot(make_profile(*kernels, texts=dict(texts))).visible


@pytest.mark.parametrize("name", REPORTS)
def test_documents_are_sound(name: str) -> None:
    for shown in show_kernels(name):
        document = build_document(URI, shown)
        check_document(document)
        check_answers(document)
        report = shown.kernel.report
        blocks = sum(section.kind is SectionKind.BLOCK for section in document.sections)
        assert report.code is not None and blocks == len(report.code.first_row)
        loops = sum(section.kind is SectionKind.LOOP for section in document.sections)
        assert loops == len(report.loops)


def check_answers(document: SassDocument) -> None:
    view = open_document(document)
    data = encode_tokens(document, PositionCodec())
    assert len(data) % 5 == 0 and sum(data[::5]) < len(document.lines)
    assert all(number >= 0 for number in data) and all(data[2::5])
    assert all(fold.end_line < len(document.lines) for fold in list_folds(document))
    assert list_symbols(view)
    assert all(hint.label for hint in list_hints(view, 1, len(document.lines)))


@pytest.mark.parametrize("name", REPORTS)
def test_named_registers_are_those_the_code_uses(name: str) -> None:
    for shown in show_kernels(name):
        code, texts = shown.kernel.report.code, shown.kernel.report.instructions.texts
        assert code is not None
        for row in range(0, len(texts), 7):
            named = {number for span in list_operands(texts[row]) for number in span.resources}
            assert named <= {*code.reads.of(row), *code.writes.of(row)}, texts[row]
