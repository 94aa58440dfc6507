"""What can be folded away in a SASS document: the header, functions, loops, blocks."""

from gpa_lsp.lsp.model import Fold, FoldKind
from gpa_lsp.lsp.sass.model import SassDocument, Section, SectionKind

_MOST_FOLDS = 4_900
"""VS Code takes five thousand and then leaves some out, without regard to which."""


def list_folds(document: SassDocument) -> list[Fold]:
    """The folds, by first line; where there are too many, those of the shortest blocks are left out."""
    folds = [_make_fold(section) for section in _choose_sections(document) if section.last_line > section.first_line]
    header_lines = next((index for index, line in enumerate(document.lines) if not line.startswith("//")), 0)
    if header_lines > 1:
        header = Fold(start_line=0, end_line=header_lines - 1, kind=FoldKind.COMMENT)
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


def _make_fold(section: Section) -> Fold:
    return Fold(start_line=section.first_line - 1, end_line=section.last_line - 1, kind=FoldKind.REGION)
