"""Rewrites that answer the advice at some lines of a document, as edits of it."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from lsprotocol.types import Range, TextEdit
from msgspec import Struct

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.snapshot import MeasuredKernel, VisibleKernel

if TYPE_CHECKING:  # needs numpy and tree-sitter, which the answer to initialize must not wait for
    from gpa_lsp.diagnosis.advice.model import Speedup
    from gpa_lsp.diagnosis.rewrites.model import Rewrite
    from gpa_lsp.report.fixes.jobs import Question
    from gpa_lsp.report.fixes.results import FixVerdict
    from gpa_lsp.report.fixes.try_advice import TriedFix

_MOST_FIXES = 12
_MOST_KERNELS = 4  # Kernels of a document whose advice is tried before anybody asks, those of most time
_MOST_PROMISED = 6  # Edits tried before anybody asks


class Fix(Struct, frozen=True, kw_only=True):
    """A rewrite and the advice it answers."""

    shown: VisibleKernel  # the kernel
    rewrite: "Rewrite"  # what to change
    question: "Question"  # the place of the advice
    edits: tuple[TextEdit, ...]  # for the document as the client has it
    lines: tuple[int, ...] = ()  # 1-based, where the code is that the advice is about, the place itself first

    @property
    def speedup(self) -> "Speedup":
        """Estimated speedup of the advice at this place."""
        return (self.question.region or self.question.advice).speedup


class OfferedFix(Struct, frozen=True, kw_only=True):
    """A fix as it was offered."""

    key: str  # by which the client names it
    uri: str  # of the document
    text: str  # of the document then
    fix: Fix  # itself
    verdict: "FixVerdict"  # what is known of it by now


class FixVerifier(Protocol):
    """Tries fixes in the background."""

    @property
    def may_leave_edits(self) -> bool:
        """The client asks for the edits of a fix when it is looked at, so that they can come with what is said of them."""
        ...

    def offer(self, view: DocumentView, fixes: Sequence[Fix]) -> tuple[OfferedFix, ...]:
        """Fixes that somebody is about to see: they are tried from now on, and those before them no more."""
        ...

    def find(self, key: str) -> OfferedFix | None:
        """One that was offered; None for one that is forgotten."""
        ...

    async def wait(self, key: str) -> OfferedFix | None:
        """The same when something is known of it, or after a moment."""
        ...


def find_fixes(view: DocumentView, first: int, last: int) -> tuple[Fix, ...]:
    """The fixes at some lines, best advice first; one that answers several pieces of advice, or several kernels', comes once.

    Args:
        first: 1-based.
        last: 1-based, inclusive.
    """
    found: dict[object, Fix] = {}
    kernels = view.snapshot.by_file.get(view.local_path, ())
    fixes = [fix for shown in kernels for fix in _list_fixes_of(view, shown, first, last)]
    for fix in sorted(fixes, key=lambda fix: -fix.speedup.estimate):
        found.setdefault(fix.rewrite.edits, fix)
        if len(found) == _MOST_FIXES:
            break
    return tuple(found.values())


def list_promised(view: DocumentView) -> tuple[Fix, ...]:
    """The edits that the best advice of a document asks for, wherever they are: those of its first kernels."""
    kernels = view.snapshot.by_file.get(view.local_path, ())[:_MOST_KERNELS]
    return tuple(islice((fix for shown in kernels for fix in _list_remedies(view, shown)), _MOST_PROMISED))


def list_tried(
    view: DocumentView, kernel: str, find_verdicts: "Callable[[DocumentView, Sequence[Fix]], Sequence[FixVerdict]]"
) -> "list[tuple[MeasuredKernel, list[TriedFix]]]":
    """The kernels of a mangled name, with what became of the edits that their advice asks for.

    Args:
        find_verdicts: what is known of fixes of a document by now.
    """
    from gpa_lsp.report.fixes.try_advice import TriedFix

    found = []
    for shown in view.snapshot.by_file.get(view.local_path, ()):
        if shown.kernel.report.mangled_name == kernel:
            fixes = list(_list_remedies(view, shown))
            verdicts = find_verdicts(view, fixes)
            tried = [TriedFix(question=fix.question, verdict=one) for fix, one in zip(fixes, verdicts, strict=True)]
            found.append((shown.kernel, tried))
    return found


def _list_remedies(view: DocumentView, shown: VisibleKernel) -> Iterator[Fix]:
    """The edits that a kernel's advice asks for. None in a document that is not what was measured: an edit of another text is another edit."""
    if _is_measured(view, shown):
        fixes = _list_fixes_of(view, shown, 1, len(view.positions.lines))
        yield from (fix for fix in fixes if fix.rewrite.is_remedy)


def _is_measured(view: DocumentView, shown: VisibleKernel) -> bool:
    files = [one for one in shown.profile.files.values() if one.local_path == view.local_path]
    return all(one.is_verified and not view.finder.is_edited(one) for one in files)


def _list_fixes_of(view: DocumentView, shown: VisibleKernel, first: int, last: int) -> Iterator[Fix]:
    from gpa_lsp.diagnosis.rewrites.find import find_rewrites
    from gpa_lsp.report.fixes.jobs import list_questions

    anchors = [anchor.line for anchor in view.anchors if anchor.shown is shown]
    for question in list_questions(shown.kernel.untried or shown.kernel.report):
        lines = _find_lines(view, shown, question, anchors)
        if not any(first <= line <= last for line in lines):
            continue
        others = {line for line in lines[len(anchors) + 1 :] if not first <= line <= last}
        for rewrite in find_rewrites(view.local_path, view.text, lines, question.context):
            if rewrite.edits[0].start.line not in others:
                yield Fix(
                    shown=shown,
                    rewrite=rewrite,
                    question=question,
                    edits=_place_edits(view, rewrite),
                    lines=tuple(lines[len(anchors) :]),
                )


def _find_lines(view: DocumentView, shown: VisibleKernel, question: "Question", anchors: list[int]) -> list[int]:
    """Current lines of a question: where the kernel begins, the place itself, then the lines of its causes.

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
