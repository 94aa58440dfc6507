"""The offer to simulate a kernel's launch."""

from collections.abc import Iterator

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.sources.host_launches import find_host_launches
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.model import Action, ActionKind, CommandCall
from gpa_lsp.editor.predicted.actions import list_kernel_heads
from gpa_lsp.kernel.names import shorten_name


def list_simulation_actions(view: DocumentView, first: int, last: int) -> Iterator[Action]:
    """For each kernel that some lines (1-based) belong to and whose launch is described, or said by host code beside it, a way to simulate it."""
    predicted = view.predicted
    if predicted is None or not predicted.is_source:
        return
    result = predicted.result
    for head in list_kernel_heads(view):
        if not (first <= head.end and last >= head.line):
            continue
        is_described = bool(result.job.launches_text) and head.mangled_name not in result.undescribed
        if not is_described and find_bare_name(head.mangled_name) not in view.once(_list_launched):
            continue
        title = f"Simulate {'the described launches' if is_described else 'a launch'} of {shorten_name(head.name)}"
        command = CommandCall(title=title, command="gpaLsp.simulate", arguments=(view.uri, head.mangled_name))
        yield Action(title=title, kind=ActionKind.REWRITE, command=command)


def _list_launched(view: DocumentView) -> frozenset[str]:
    """Plain names of the kernels whose grid and block host code in this document says."""
    launches = find_host_launches(view.local_path, view.text)
    return frozenset(one.kernel for one in launches if one.grid is not None and one.block is not None)
