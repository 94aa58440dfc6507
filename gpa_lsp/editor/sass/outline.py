"""The outline of a SASS document: functions, the loops in them, and the blocks worth going to; and what of it can be folded away."""

from typing import NamedTuple

from lsprotocol.types import DocumentSymbol, FoldingRange, FoldingRangeKind, Range, SymbolKind

from gpa_lsp.editor.sass.library import SassDocument, SassView, Section, SectionKind

# Of the kernel's samples. A function has hundreds of blocks; nobody looks for the others by name.
_LEAST_BLOCK_RATIO = 0.01

_MOST_BLOCKS = 200
_MOST_FOLDS = 4_900  # VS Code takes five thousand and then leaves some out, without regard to which

# What is nested deeper stands beside its like: nobody writes such code by hand, and JSON of any depth breaks its readers
_DEEPEST = 12

_KINDS = {
    SectionKind.FUNCTION: SymbolKind.Function,
    SectionKind.LOOP: SymbolKind.Event,
    SectionKind.BLOCK: SymbolKind.Key,
}


class _Part(NamedTuple):
    """A section that is listed, and those in it."""

    section: Section
    children: "list[_Part]"


def list_symbols(view: SassView) -> list[DocumentSymbol]:
    """The outline, nested as the code is."""
    document = view.document
    blocks = _find_hot_blocks(document)
    outline: list[_Part] = []
    around: list[_Part] = []
    for number, section in enumerate(document.sections):
        if section.kind is SectionKind.BLOCK and number not in blocks:
            continue
        while around and around[-1].section.last_line < section.first_line:
            around.pop()
        part = _Part(section, [])
        (around[-1].children if around else outline).append(part)
        if len(around) < _DEEPEST:
            around.append(part)
    return [_make_symbol(view, part) for part in outline]


def _find_hot_blocks(document: SassDocument) -> frozenset[int]:
    """Numbers of the blocks that are listed among the document's sections."""
    import numpy as np

    report = document.shown.kernel.report
    if not report.total_samples:
        return frozenset()
    sums = np.concatenate([[0], np.cumsum(report.instructions.all_samples.sum(axis=1))])
    found: list[tuple[int, int]] = []
    for number, section in enumerate(document.sections):
        if section.kind is SectionKind.BLOCK:
            last_row = int(document.row_of_line[section.last_line - 1])
            samples = int(sums[last_row + 1] - sums[section.first_row])
            if samples >= _LEAST_BLOCK_RATIO * report.total_samples:
                found.append((-samples, number))
    return frozenset(number for _, number in sorted(found)[:_MOST_BLOCKS])


def _make_symbol(view: SassView, part: _Part) -> DocumentSymbol:
    section = part.section
    heading = view.positions.find_text(section.first_line)
    return DocumentSymbol(
        name=section.name,
        detail=section.detail or None,
        kind=_KINDS[section.kind],
        range=Range(start=heading.start, end=view.positions.find_end(section.last_line)),
        selection_range=heading,
        children=tuple(_make_symbol(view, child) for child in part.children),
    )


def list_folds(document: SassDocument) -> list[FoldingRange]:
    """The folds, by first line; where there are too many, those of the shortest blocks are left out."""
    folds = [_make_fold(section) for section in _choose_sections(document) if section.last_line > section.first_line]
    header_lines = next((index for index, line in enumerate(document.lines) if not line.startswith("//")), 0)
    if header_lines > 1:
        header = FoldingRange(start_line=0, end_line=header_lines - 1, kind=FoldingRangeKind.Comment)
        return [header, *folds]
    return folds


def _choose_sections(document: SassDocument) -> list[Section]:
    sections = list(document.sections)
    if len(sections) <= _MOST_FOLDS:
        return sections
    ranked = sorted(
        sections, key=lambda section: (section.kind is SectionKind.BLOCK, section.first_line - section.last_line)
    )
    return sorted(ranked[:_MOST_FOLDS], key=lambda section: section.first_line)


def _make_fold(section: Section) -> FoldingRange:
    return FoldingRange(start_line=section.first_line - 1, end_line=section.last_line - 1, kind=FoldingRangeKind.Region)
