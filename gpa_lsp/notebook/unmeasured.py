"""Analysis of a cell without a GPU: CUDA C++ in its strings, compiled; and with a described launch, emulated."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpa_lsp.diagnosis.analyses.static.model import describe_resources
from gpa_lsp.document.document_page import render_document_page
from gpa_lsp.document.prediction_view import build_prediction, build_prediction_page
from gpa_lsp.document.static_view import describe_static
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.static_source import SourceStatics, examine_source
from gpa_lsp.foundation.prose import say
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.notebook.cells import CellText
from gpa_lsp.notebook.marks import LineMark, MarkedCell
from gpa_lsp.notebook.output import Shown


def examine_strings(texts: Sequence[CellText], launches: Path | None) -> Iterator[Shown]:
    """One output for each string of a cell that holds kernels: its code alone, or a description of launches emulated. Nothing runs on a GPU.

    Raises:
        GpaError: no compiler is installed, or the description cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix="gpa-lsp-cell-") as folder:
        for text in texts:
            path = Path(folder, f"In_{text.cell.number}.cu")
            path.write_text(text.text, encoding="utf-8")
            yield _examine(path, text) if launches is None else _predict(path, text, launches)


def _examine(path: Path, text: CellText) -> Shown:
    statics = examine_source(path)
    notes = [
        say("{kernel}: {resources} (static: nothing was measured)", kernel=name, resources=resources)
        for name, resources in _list_kernels(statics)
    ]
    return Shown(notes=tuple(notes), cells=_mark(statics, text), text=_list_elsewhere(statics))


def _predict(path: Path, text: CellText, launches: Path) -> Shown:
    prediction = predict_code(path, launches=LaunchChoice(path=launches))
    problems = tuple(str(problem) for problem in prediction.problems)
    lead = "emulated and predicted from the described launches: nothing was measured"
    return Shown(
        notes=(*((lead,) if prediction.kernels else ("nothing is predicted",)), *problems),
        cells=_mark(prediction.statics, text),
        text=write_plain(build_prediction(prediction, path.parent)),
        page=render_document_page(*build_prediction_page(prediction, path.parent)) if prediction.kernels else "",
    )


def _list_kernels(statics: SourceStatics) -> Iterator[tuple[str, str]]:
    for kernel in statics.kernels:
        yield shorten_name(demangle(kernel.statics.mangled_name)), str(describe_resources(kernel.statics))


def _mark(statics: SourceStatics, text: CellText) -> tuple[MarkedCell, ...]:
    """Findings and the compiler's messages at the lines of the cell."""
    said: dict[int, list[str]] = {}
    for kernel in statics.kernels:
        for finding in kernel.findings:
            if finding.file == str(statics.path) and finding.line:
                said.setdefault(finding.line, []).append(str(describe_static(finding)))
    for message in statics.unit.messages:
        if message.line and message.path in (None, statics.path):
            said.setdefault(message.line, []).append(f"{message.severity.value}: {message.text}")
    marks = tuple(
        LineMark(line=line + text.lines_before, suffered_ratio=0.0, caused_ratio=0.0, words=tuple(said[line]))
        for line in sorted(said)
    )
    return (MarkedCell(cell=text.cell, marks=marks),) if marks else ()


def _list_elsewhere(statics: SourceStatics) -> str:
    """The compiler's messages that belong to no line of the cell."""
    rest = [one for one in statics.unit.messages if not one.line or one.path not in (None, statics.path)]
    return "\n".join(f"{one.severity.value}: {one.text}" for one in rest)
