"""``gpaLsp.listMetrics``: what can be shown on lines."""

from gpa_lsp.editor.protocol.commands import Arguments, Command, JsonObject
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


COMMAND = Command(name="gpaLsp.listMetrics", run=list_metrics)
