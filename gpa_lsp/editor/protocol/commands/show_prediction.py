"""``gpaLsp.showPrediction``: what was predicted of an open source, as a page. The lens of a launch runs this."""

from gpa_lsp.editor.predicted.results import PageJob, PageResult
from gpa_lsp.editor.protocol.commands import Arguments, Command
from gpa_lsp.editor.protocol.session import Session

_DIED = PageResult(failure="the prediction process ended; look at the log")


async def show_prediction(session: Session, arguments: Arguments) -> dict[str, str] | str | None:
    """Show the page of a source: arguments are the document's URI, the number of a launch from 0, and ``"page"`` for a page of HTML in any case.

    Returns:
        For clients that show pages, ``uri`` of the file and ``place``, the fragment of the launch. Others are shown a text, which is returned; those
        that asked for the page get it in a browser. None when nothing is predicted, which is said.
    """
    uri, number, kind = (*arguments, None, None, None)[:3]
    path = session.documents.find_local_path(uri) if isinstance(uri, str) else None
    state = None if path is None else session.documents.find_findings(path).predicted
    if state is None or not state.result.job.launches_text:
        from gpa_lsp.editor.predicted.actions import explain_undescribed_kernel

        session.client.inform(explain_undescribed_kernel(None))
        return None
    if not session.abilities.pages and kind != "page":
        page = state.result.page or "Nothing could be emulated."
        return session.client.show_document(f"predictions for {state.result.job.path.name}", page)
    base, predictions = state.result.job, session.jobs.predictions
    target = predictions.name_file(base.path, "prediction.html")
    result = await predictions.do_beside(PageJob(base=base, target=target), limit_s=2 * base.most_s) or _DIED
    if result.failure:
        session.client.inform(f"the page cannot be written: {result.failure}")
        return None
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(state.result.launches)
    return session.pages.show(target, f"#k{number}" if is_number else "")


COMMAND = Command(name="gpaLsp.showPrediction", run=show_prediction)
