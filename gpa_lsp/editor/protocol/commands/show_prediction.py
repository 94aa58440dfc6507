"""``gpaLsp.showPrediction``: what was predicted of an open source, as a page. The lens of a launch runs this."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.editor.protocol.commands import Command, SessionActions
from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.foundation.errors import GpaError


async def show_prediction(session: SessionActions, arguments: Sequence[Any]) -> dict[str, str] | str | None:
    """Show the page of a source: arguments are the document's URI, the number of a launch from 0, and ``"page"`` for a page of HTML in any case.

    Returns:
        For clients that show pages, ``uri`` of the file and ``place``, the fragment of the launch. Others are shown a text, which is returned; those
        that asked for the page get it in a browser. None when nothing is predicted, which is said.
    """
    uri, number, kind = (*arguments, None, None, None)[:3]
    state = session.predictions.find(uri) if isinstance(uri, str) else None
    if state is None or not state.result.job.launches_text:
        from gpa_lsp.editor.predicted.actions import explain_undescribed_kernel

        session.show_message(explain_undescribed_kernel(None))
        return None
    if not session.abilities.pages and kind != "page":
        page = defuse(state.result.page or "Nothing could be emulated.")
        session.show_document(f"predictions for {state.result.job.path.name}", page)
        return page
    try:
        path = await session.predictions.write_page(state)
    except (GpaError, OSError) as error:
        session.show_message(f"the page cannot be written: {error}")
        return None
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(state.result.launches)
    place = f"#k{number}" if is_number else ""
    if not session.abilities.pages:
        session.pages.show(path, place)
    return {"uri": path.as_uri(), "place": place}


COMMAND = Command(name="gpaLsp.showPrediction", run=show_prediction)
