"""``gpaLsp.chooseMetric``: what hints, colours and lenses show from now on."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
from gpa_lsp.editor.protocol.kept_choices import check_names
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session


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


COMMAND = Command(name="gpaLsp.chooseMetric", run=choose_metric)
