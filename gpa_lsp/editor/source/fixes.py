"""Rewrites that answer the advice at some lines of a document, as edits of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.model import Range, TextEdit
from gpa_lsp.editor.snapshot import VisibleKernel

if TYPE_CHECKING:  # needs numpy and tree-sitter, which the answer to initialize must not wait for
    from gpa_lsp.diagnosis.advice.model import Speedup
    from gpa_lsp.diagnosis.rewrites.model import Rewrite
    from gpa_lsp.report.rewrite_contexts import Question

_MOST_FIXES = 12


class Fix(Struct, frozen=True, kw_only=True):
    """A rewrite and the advice it answers."""

    shown: VisibleKernel  # the kernel
    rewrite: "Rewrite"  # what to change
    speedup: "Speedup"  # what the advice is estimated to gain at this place
    edits: tuple[TextEdit, ...]  # for the document as the client has it
    lines: tuple[int, ...] = ()  # 1-based, where the code is that the advice is about, the place itself first


def find_fixes(view: DocumentView, first: int, last: int) -> tuple[Fix, ...]:
    """The fixes at some lines, best advice first; one that answers several pieces of advice, or several kernels', comes once.

    Args:
        first: 1-based.
        last: 1-based, inclusive.
    """
    found: dict[object, Fix] = {}
    for fix in sorted(_list_fixes(view, first, last), key=lambda fix: -fix.speedup.estimate):
        found.setdefault(fix.rewrite.edits, fix)
        if len(found) == _MOST_FIXES:
            break
    return tuple(found.values())


def _list_fixes(view: DocumentView, first: int, last: int) -> Iterator[Fix]:
    from gpa_lsp.diagnosis.rewrites.find import find_rewrites
    from gpa_lsp.report.rewrite_contexts import list_questions

    for shown in view.snapshot.by_file.get(view.local_path, ()):
        anchors = [anchor.line for anchor in view.anchors if anchor.shown is shown]
        for question in list_questions(shown.kernel.report):
            lines = _find_lines(view, shown, question, anchors)
            if not any(first <= line <= last for line in lines):
                continue
            speedup = (question.region or question.advice).speedup
            others = {line for line in lines[len(anchors) + 1 :] if not first <= line <= last}
            for rewrite in find_rewrites(view.local_path, view.text, lines, question.context):
                if rewrite.edits[0].start.line not in others:
                    yield Fix(
                        shown=shown,
                        rewrite=rewrite,
                        speedup=speedup,
                        edits=_place_edits(view, rewrite),
                        lines=tuple(lines[len(anchors) :]),
                    )


def _find_lines(view: DocumentView, shown: VisibleKernel, question: "Question", anchors: list[int]) -> list[int]:
    """Where a question's lines are now: where the kernel begins, the place itself, then the lines of its causes.

    What changes a line of causes is offered there and not on each of the others; what changes the loop or the kernel is offered on all.
    """
    lines = list(anchors)
    for place in question.lines:
        file = shown.profile.files.get(place.file)
        line = view.finder.find(file, place.line) if file is not None and file.local_path == view.local_path else None
        if line is not None:
            lines.append(line)
    return lines


def _place_edits(view: DocumentView, rewrite: "Rewrite") -> tuple[TextEdit, ...]:
    positions = view.positions
    return tuple(
        TextEdit(
            range=Range(
                start=positions.find_place(edit.start.line, edit.start.column),
                end=positions.find_place(edit.end.line, edit.end.column),
            ),
            new_text=edit.text,
        )
        for edit in rewrite.edits
    )
