"""``workspace/symbol``: the measured kernels, by a part of their name."""

from collections.abc import Sequence

from lsprotocol import types

from gpa_lsp.basis.numbers import format_duration_ns
from gpa_lsp.lsp.features import Method, SessionFeature
from gpa_lsp.lsp.kernel_places import find_kernel_place
from gpa_lsp.lsp.session_view import SessionView

_MOST_SYMBOLS = 200


def answer_workspace_symbol(
    session: SessionView, params: types.WorkspaceSymbolParams
) -> list[types.WorkspaceSymbol] | None:
    """The kernels whose name holds the query's characters in their order, those that hold it as it is first, then longest first."""
    query = params.query.strip().casefold()
    found = [shown for shown in session.snapshot.visible if is_subsequence(query, shown.name.casefold())]
    found.sort(key=lambda shown: query not in shown.name.casefold())
    return [
        types.WorkspaceSymbol(
            name=_name(shown.name, shown.kernel.report.duration_ns),
            kind=types.SymbolKind.Function,
            location=find_kernel_place(session, shown),
            container_name=shown.profile.path.name,
        )
        for shown in found[:_MOST_SYMBOLS]
    ]


def _name(name: str, duration_ns: float | None) -> str:
    return name if duration_ns is None else f"{name} · {format_duration_ns(duration_ns)}"


def is_subsequence(part: str, whole: str) -> bool:
    """Whether all characters of one text stand in another one, in their order.

    >>> is_subsequence("sxp", "saxpy"), is_subsequence("yx", "saxpy")
    (True, False)
    """
    rest = iter(whole)
    return all(character in rest for character in part)


FEATURE = SessionFeature(
    method=Method[
        types.WorkspaceSymbolParams, Sequence[types.SymbolInformation] | Sequence[types.WorkspaceSymbol] | None
    ](types.WORKSPACE_SYMBOL),
    answer=answer_workspace_symbol,
)
