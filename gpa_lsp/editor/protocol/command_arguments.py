"""Reading what clients send to commands: anything at all."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel


def read_place(arguments: Sequence[Any]) -> tuple[str, int] | None:
    """The document and the 1-based line of ``uri, line``; None when that is not what was sent.

    >>> read_place(["file:///k.cu", 4]), read_place(["file:///k.cu", "4"]), read_place([])
    (('file:///k.cu', 5), None, None)
    """
    if len(arguments) < 2 or not isinstance(arguments[0], str):
        return None
    line = arguments[1]
    if isinstance(line, bool) or not isinstance(line, int) or not 0 <= line < 1 << 31:
        return None
    return arguments[0], line + 1


def read_text(arguments: Sequence[Any], index: int = 0) -> str | None:
    """The argument at a place if it is a text, else None."""
    value = arguments[index] if len(arguments) > index else None
    return value if isinstance(value, str) else None


def choose_kernels(snapshot: Snapshot, arguments: Sequence[Any]) -> tuple[VisibleKernel, ...]:
    """The shown kernels a command is about: those with the mangled name that was sent, or all when none was."""
    wanted = read_text(arguments)
    if wanted is None:
        return snapshot.visible
    return tuple(shown for shown in snapshot.visible if shown.kernel.report.mangled_name == wanted)


def find_mangled(session: SessionView, arguments: Sequence[Any]) -> str | None:
    """The mangled name that was sent, or that of the kernel at the place (``uri, line``) that was; None for neither."""
    from gpa_lsp.editor.kernels import find_kernel_at

    place = read_place(arguments)
    if place is None:
        return read_text(arguments)
    shown = find_kernel_at(session, *place)
    return None if shown is None else shown.kernel.report.mangled_name
