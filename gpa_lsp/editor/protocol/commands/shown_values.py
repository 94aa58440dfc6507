"""Commands of what hints, colours and columns show from now on."""

from gpa_lsp.editor.protocol.commands import Arguments, JsonObject
from gpa_lsp.editor.protocol.kept_choices import check_names
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session


def list_metrics(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The metrics of the kernels of the document in the arguments; of all that are shown without one."""
    from gpa_lsp.editor.metric_offers import list_offers

    chosen = session.settings.metric
    return [
        {
            "name": offer.metric.name,
            "title": offer.metric.title,
            "detail": offer.metric.detail,
            "lack": offer.lack,
            "isShown": offer.metric == chosen,
            "isKnown": offer.is_known,
        }
        for offer in list_offers(session, read_text(arguments))
    ]


def choose_metric(session: Session, arguments: Arguments) -> JsonObject | None:
    """Show the metric with the name in the arguments; the usual one without a name.

    Returns:
        What is shown now, and which kernels lack it; None where there is no such metric, and nothing was changed.
    """
    from gpa_lsp.editor.metric_offers import list_offers, offer_metric
    from gpa_lsp.editor.metrics import USUAL, find_metric

    names = check_names(arguments[:1]) or (USUAL.name,)
    uri = read_text(arguments, 1)
    metric = find_metric(names[0])
    if all(offer.metric != metric for offer in (*list_offers(session, uri), *list_offers(session, None))):
        return None
    session.choose_metric(metric)
    offer = offer_metric(session, uri, metric.name)
    return {"name": metric.name, "title": metric.title, "lack": offer.lack}


def list_columns(session: Session, arguments: Arguments) -> list[JsonObject]:
    """What can stand beside the instructions of the document in the arguments, those that are chosen first and in their order; of the longest kernel
    without one.
    """
    from gpa_lsp.editor.sass.columns import USUAL_COLUMNS, ColumnKind, describe_reason, fill_column, list_kinds

    uri = read_text(arguments)
    shown = next(iter(session.snapshot.visible), None) if uri is None else session.sass.find_kernel(uri)
    if shown is None:
        return []
    chosen = USUAL_COLUMNS if session.sass.columns is None else session.sass.columns
    kinds = {kind.name: kind for kind in list_kinds(shown.kernel.report)}
    first = [kinds.pop(name) if name in kinds else describe_reason(name) for name in chosen]

    def encode(kind: ColumnKind, *, is_shown: bool) -> JsonObject:
        is_known = fill_column(shown, kind.name).width > 0
        return {
            "name": kind.name,
            "title": kind.title,
            "detail": kind.detail if is_known else f"{kind.detail}: nothing in this profile",
            "isShown": is_shown,
            "isNumber": kind.is_number,
        }

    return [*(encode(kind, is_shown=True) for kind in first), *(encode(one, is_shown=False) for one in kinds.values())]


def choose_columns(session: Session, arguments: Arguments) -> list[str]:
    """Show the columns with the names in the arguments, in that order; the usual ones without names."""
    from gpa_lsp.editor.sass.columns import USUAL_COLUMNS

    names = arguments[0] if arguments and isinstance(arguments[0], list) else None
    session.choose_columns(None if names is None else check_names(names))
    return list(USUAL_COLUMNS if session.sass.columns is None else session.sass.columns)


async def choose_sources(session: Session, arguments: Arguments) -> str | None:
    """Whether numbers are shown in sources that may have changed since they were measured, or where sources lie: what is said in the arguments,
    ``show``, ``hide`` or ``map``, or ask.
    """
    wanted = next((argument for argument in arguments if isinstance(argument, str)), None)
    return await session.doubts.ask(wanted)


def show_all_hints(session: Session, arguments: Arguments) -> bool:
    """Whether hints stand on all lines above the threshold instead of as many as fit a screen: as the arguments say, true or false, or turned
    round.
    """
    return session.show_all_hints(next((one for one in arguments if isinstance(one, bool)), None))


COMMANDS = {
    "gpaLsp.listMetrics": list_metrics,
    "gpaLsp.chooseMetric": choose_metric,
    "gpaLsp.listColumns": list_columns,
    "gpaLsp.chooseColumns": choose_columns,
    "gpaLsp.chooseSources": choose_sources,
    "gpaLsp.showAllHints": show_all_hints,
}
