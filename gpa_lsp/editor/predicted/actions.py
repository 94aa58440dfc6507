"""Code actions of predictions: try another block, or describe a launch."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from lsprotocol.types import CodeAction, CodeActionKind, Command, Position, Range, TextEdit, WorkspaceEdit
from msgspec import Struct

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.lines.positions import Positions
from gpa_lsp.editor.predicted.results import PredictedTrial
from gpa_lsp.kernel.names import shorten_name

_LONGEST_HEAD = 20


def list_trial_actions(view: DocumentView, first: int, last: int) -> Iterator[CodeAction]:
    """The blocks worth a try of the kernels that some lines (1-based) belong to; of the launches there in a description."""
    predicted = view.predicted
    if predicted is None:
        return
    for line, trial in predicted.trials:
        if predicted.is_source:
            begin, end = line, _find_kernel_end(view, line)
        else:
            begin = min(predicted.find_launch(trial.launch).described_line or line, line)
            end = line
        if first <= end and last >= begin:
            yield _offer_trial(view, line, trial, is_source=predicted.is_source)


def _find_kernel_end(view: DocumentView, line: int) -> int:
    """The line before the next kernel's definition."""
    later = [at for lines in view.finder.definitions.values() for at in lines if at > line]
    return min(later, default=len(view.positions.lines) + 1) - 1


def _find_head_end(view: DocumentView, line: int) -> int:
    """The line on which a kernel's body begins."""
    head = view.positions.lines[line - 1 : line - 1 + _LONGEST_HEAD]
    return next((line + after for after, text in enumerate(head) if "{" in text), line)


def _offer_trial(view: DocumentView, line: int, trial: PredictedTrial, *, is_source: bool) -> CodeAction:
    predicted = view.predicted
    assert predicted is not None
    if is_source:
        span = Positions(lines=(trial.old,), units=view.positions.units).find_span(1, trial.start, trial.end)
        start = Position(line=trial.line - 1, character=span.start.character)
        end = Position(line=trial.line - 1, character=span.end.character)
        span, uri = Range(start=start, end=end), name_beside(view.uri, predicted.result.job.launches_path)
    else:
        span, uri = view.positions.find_span(line, trial.start, trial.end), view.uri
    return CodeAction(
        title=f"{trial.words[0].upper()}{trial.words[1:]}",
        kind=CodeActionKind.RefactorRewrite,
        edit=WorkspaceEdit(changes={uri: (TextEdit(range=span, new_text=trial.new),)}),
    )


def name_beside(uri: str, path: Path) -> str:
    """The URI of a file in the folder in which the client knows a document: it may have come there by a link, and one file must not get two buffers.

    >>> name_beside("file:///link/k.cu", Path("/real/k.launch.toml")), name_beside("untitled:Untitled-1", Path("/real/k.launch.toml"))
    ('file:///link/k.launch.toml', 'file:///real/k.launch.toml')
    """
    return f"{uri.rpartition('/')[0]}/{quote(path.name)}" if uri.startswith("file:") else path.as_uri()


def explain_undescribed_kernel(name: str | None) -> str:
    """The sentence for a kernel, or where None is named for a source, without a launch description, with the code action that begins one."""
    from gpa_lsp.execution.launches.read_launches import word_undescribed  # brings numpy

    return word_undescribed((name,) if name else (), f"use the code action “{_write_title(name or '…')}” on the kernel")


def _write_title(name: str) -> str:
    return f"Describe a launch of {name}"


def list_description_actions(view: DocumentView, first: int, last: int) -> Iterator[CodeAction]:
    """List actions that begin a launch description, for kernels whose head is among some lines and that have none."""
    predicted = view.predicted
    if predicted is None or not predicted.is_source:
        return
    result = predicted.result
    for head in list_kernel_heads(view):
        is_wanted = not result.job.launches_text or head.mangled_name in result.undescribed
        if is_wanted and first <= head.end and last >= head.line:
            title = _write_title(shorten_name(head.name))
            command = Command(title=title, command="gpaLsp.describeLaunch", arguments=(view.uri, head.mangled_name))
            yield CodeAction(title=title, kind=CodeActionKind.RefactorRewrite, command=command)


class KernelHead(Struct, frozen=True, kw_only=True):
    """Head of a kernel's definition."""

    mangled_name: str  # its name in the code
    name: str  # readable
    line: int  # of its definition, 1-based
    end: int  # line on which its body begins


def list_kernel_heads(view: DocumentView) -> Iterator[KernelHead]:
    """The kernels of a source that were compiled or measured."""
    static = () if view.statics is None else view.statics.anchors
    known = {anchor.kernel.mangled_name: (anchor.line, anchor.kernel.name) for anchor in static}
    for measured in view.anchors:
        known[measured.shown.kernel.report.mangled_name] = (measured.line, measured.shown.name)
    for mangled, (line, name) in known.items():
        yield KernelHead(mangled_name=mangled, name=name, line=line, end=_find_head_end(view, line))
