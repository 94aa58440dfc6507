"""A report from a path, and the lines of a notebook's cells that it is about: :func:`mark_cells`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from gpa_lsp.code.sources.cuda_functions import find_kernels
from gpa_lsp.code.sources.trees import read_tree
from gpa_lsp.document.advice_words import label_suggestion
from gpa_lsp.document.check_view import build_check, describe_finding
from gpa_lsp.document.findings import DEFAULT_MIN_SHARE_RATIO, Finding, find_findings
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.prose import percent, say
from gpa_lsp.gpu.device.roofs_file import KeptRoofs
from gpa_lsp.kernel.names import find_plain_name, list_named
from gpa_lsp.notebook.cells import Cell, CellText, list_functions
from gpa_lsp.report.kernel_lines import LineCauses, find_causes, find_remedies
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pipeline import analyse
from gpa_lsp.report.saved import is_saved_report
from gpa_lsp.report.saved.store import read_report

_CELL_FILE = re.compile(r"/ipykernel_\d+/\d+\.py\Z|<ipython-input-[^/]*>\Z")  # What IPython calls the files of cells

_HOTTEST = 3  # Lines of a kernel that are marked however small their share is


class LineMark(Struct, frozen=True, kw_only=True):
    """Mark on one line of a cell."""

    line: int  # 1-based, of the cell as it was written
    suffered_ratio: float  # of its kernel's samples, those taken here; 0 where nothing was measured
    caused_ratio: float  # of its kernel's samples, those blamed on the line; 0 where nothing was measured
    words: tuple[str, ...]  # sentences, the most important first


class MarkedCell(Struct, frozen=True, kw_only=True):
    """A cell with marks."""

    cell: Cell  # as it was run
    marks: tuple[LineMark, ...]  # ascending by line; a line has one for each kernel that says something of it
    doubt: str = ""  # why the lines may be others; empty when they are those that were compiled


class _Match(Struct, frozen=True, kw_only=True):
    """Place of a report's file in the notebook: its line n is line n + ``shift`` of the cell."""

    cell: Cell
    shift: int
    doubt: str


def mark_cells(report: Report, texts: Sequence[CellText]) -> tuple[MarkedCell, ...]:
    """The cells that a report is about, with what it says of their lines."""
    found = find_findings(report, 0.0)
    marks: dict[int, list[LineMark]] = {}
    matches: dict[int, _Match] = {}
    for kernel in report.kernels:
        findings = [one for one in found if one.kernel is kernel and one.place is not None]
        for file in sorted({row.file for row in kernel.lines if row.file is not None}):
            match = _match_file(kernel, file, texts)
            if match is not None:
                matches.setdefault(match.cell.number, match)
                marks.setdefault(match.cell.number, []).extend(_mark_file(kernel, file, match.shift, findings))
    return tuple(
        MarkedCell(
            cell=matches[number].cell,
            marks=tuple(sorted(marks[number], key=lambda mark: mark.line)),
            doubt=matches[number].doubt,
        )
        for number in sorted(marks)
        if marks[number]
    )


def _match_file(kernel: KernelReport, file: str, texts: Iterable[CellText]) -> _Match | None:
    """The profile's own copy of a file decides where there is one; then the file's name; last, for strings, the kernel it defines."""
    embedded = kernel.embedded_sources.get(file)
    if embedded is not None:
        return next((match for text in texts if (match := _match_text(embedded, text))), None)
    name = PurePosixPath(file.replace("\\", "/")).name
    for text in texts:
        if name in text.file_names:
            return _Match(cell=text.cell, shift=text.lines_before, doubt="")
    lines = [row.line for row in kernel.lines if row.file == file and row.line]
    for text in texts:
        if _may_be_compiled(text, file) and _defines(text, kernel, lines):
            doubt = "the report holds no copy of what was compiled: the cell was found by the kernel's name"
            return _Match(cell=text.cell, shift=text.lines_before, doubt=doubt)
    return None


def _may_be_compiled(text: CellText, file: str) -> bool:
    """A string is compiled as a file of CUDA C++, a cell as one that is called like a cell: Triton keeps code under the name of the cell in which it
    first saw a function, which other lines of the cell, or another run of the notebook, change.
    """
    if text.is_string:
        return file.endswith(".cu")
    return _CELL_FILE.search(file.replace("\\", "/")) is not None


def _match_text(embedded: str, text: CellText) -> _Match | None:
    """A library may put lines before a string and behind it; a cell is compiled as it is."""
    wanted = text.text.rstrip()
    if text.is_string:
        start = embedded.find(wanted)
        is_there = start == 0 or (start > 0 and embedded[start - 1] == "\n")
        shift = text.lines_before - embedded.count("\n", 0, max(start, 0))
        return _Match(cell=text.cell, shift=shift, doubt="") if is_there else None
    if embedded.rstrip() == wanted:
        return _Match(cell=text.cell, shift=text.lines_before, doubt="")
    is_measured_here = text.cell.python is not None and embedded.rstrip() == text.cell.python.rstrip()
    return _Match(cell=text.cell, shift=0, doubt="") if is_measured_here else None


def _defines(text: CellText, kernel: KernelReport, lines: Sequence[int]) -> bool:
    name = find_plain_name(kernel.name)
    if text.is_string:
        tree = read_tree("cell.cu", text.text)
        return (
            tree is not None and max(lines, default=0) <= text.text.count("\n") + 1 and bool(find_kernels(tree, name))
        )
    return any(
        function == name and any(first <= line <= last for line in lines)
        for function, first, last in list_functions(text)
    )


def _mark_file(kernel: KernelReport, file: str, shift: int, findings: Sequence[Finding]) -> Iterator[LineMark]:
    """Lines above the share that every view uses, and the hottest ones whatever theirs is; by what they suffer and by what they cause."""
    causes, remedies = find_causes(kernel), find_remedies(kernel)
    advice = () if kernel.advice is None else kernel.advice.advice
    hot = {
        one.place.line: one
        for number, one in enumerate(findings)
        if one.place is not None
        and one.place.file == file
        and (number < _HOTTEST or one.share.ratio >= DEFAULT_MIN_SHARE_RATIO)
    }
    caused = {
        line: one
        for (place_file, line), one in causes.items()
        if place_file == file and one.caused_samples >= DEFAULT_MIN_SHARE_RATIO * max(kernel.total_samples, 1)
    }
    for line in sorted({*hot, *caused} - {0}):
        words = [describe_finding(hot[line])] if line in hot else []
        ratio = caused[line].caused_samples / kernel.total_samples if line in caused else 0.0
        if line in caused and (stalled := _name_stalled(caused[line], (file, line), shift)):
            words.append(say("causes {share} of the samples: {lines}", share=percent(ratio), lines=stalled))
        words += [label_suggestion(advice[number]) for number in remedies.get((file, line), ())[:1]]
        suffered = hot[line].share.ratio if line in hot else 0.0
        yield LineMark(line=line + shift, suffered_ratio=suffered, caused_ratio=ratio, words=tuple(words))


def _name_stalled(causes: LineCauses, place: tuple[str, int], shift: int) -> str:
    """Other lines of the file that are stalled on this one; empty where there is none."""
    file, line = place
    others = {pair.place.line for pair in causes.waiters if pair.place is not None and pair.place.file == file}
    lines = sorted(others - {0, line})
    if not lines:
        return ""
    shown = ", ".join(str(one + shift) for one in lines[:_HOTTEST])
    return f"line {shown} is stalled on it" if len(lines) == 1 else f"lines {shown} are stalled on it"


def read_report_file(path: Path, kernel: str | None) -> Report:
    """A profile, analysed, or a saved report, as the command line reads it; only kernels whose name contains *kernel*, where it is given.

    Raises:
        InputError: there is no such file, or a saved report cannot be read.
    """
    if not path.exists():
        raise InputError("there is no such file", path=path, remedy="give a report or a profile")
    if not (path.is_file() and is_saved_report(path)):
        return analyse([path], kernel_filter=kernel, roofs=KeptRoofs())
    report = read_report(path)
    kernels = report.kernels
    if kernel is not None:
        kernels = tuple(list_named(kernel, kernels, lambda one: (one.mangled_name, one.name)))
    return Report(problems=report.problems, kernels=kernels)


def list_findings(report: Report) -> str:
    """List the findings as text where no page is drawn, as ``gpa-lsp check`` does."""
    places = PlaceNames(folder=Path.cwd())
    return write_plain(build_check(report, find_findings(report), places, DEFAULT_MIN_SHARE_RATIO))
