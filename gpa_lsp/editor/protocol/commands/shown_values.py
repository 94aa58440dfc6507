"""Commands of what hints, colours and columns show from now on."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gpa_lsp.editor.lines.metric_values import has_metric
from gpa_lsp.editor.metrics import USUAL, LineMetric, MetricKind, find_metric, list_plain_metrics
from gpa_lsp.editor.protocol.commands import Arguments, JsonObject
from gpa_lsp.editor.protocol.kept_choices import check_names
from gpa_lsp.editor.protocol.plain_json import read_text
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.numbers import format_count_of

_MOST_REASONS = 24
_MOST_NAMED = 3


class MetricOffer(Struct, frozen=True, kw_only=True):
    """A metric that can be chosen."""

    metric: LineMetric  # which
    lacking: tuple[str, ...]  # the kernels that lack it, longest first
    kernel_count: int  # all that were asked

    @property
    def is_known(self) -> bool:
        """Some kernel has it."""
        return len(self.lacking) < self.kernel_count

    @property
    def lack(self) -> str:
        """Kernels that lack it, in a sentence without its stop; empty where none does."""
        from gpa_lsp.execution.launches.read_launches import word_undescribed  # brings numpy

        reason = word_undescribed().lower() if self.metric.is_from_emulation else "not in their profiles"
        if not self.is_known:
            return reason if self.metric.is_from_emulation else "no profile here has it"
        if not self.lacking:
            return ""
        others = len(self.lacking) - _MOST_NAMED
        named = ", ".join(self.lacking[:_MOST_NAMED]) + (f" and {others} more" if others > 0 else "")
        return f"{format_count_of(len(self.lacking), 'kernel')} of {self.kernel_count} without it ({named}): {reason}"


def list_offers(session: SessionView, uri: str | None) -> list[MetricOffer]:
    """Every metric there is: the plain ones, then the stall reasons of most samples.

    Args:
        uri: of the document that is meant; None, and one without kernels, for everything that is shown.
    """
    kernels = _find_kernels(session, uri)
    names = dict.fromkeys(metric.name for metric in list_plain_metrics())
    names.update(dict.fromkeys(_list_reasons(kernels)))
    names.setdefault(session.settings.metric.name)
    return [_offer(session, uri, kernels, find_metric(name)) for name in names]


def offer_metric(session: SessionView, uri: str | None, name: str) -> MetricOffer:
    """One of them."""
    return _offer(session, uri, _find_kernels(session, uri), find_metric(name))


def _find_kernels(session: SessionView, uri: str | None) -> Sequence[VisibleKernel]:
    shown = None if uri is None else session.sass.find_kernel(uri)
    if shown is not None:
        return (shown,)
    view = None if uri is None else session.view(uri)
    in_document = () if view is None else session.snapshot.by_file.get(view.local_path, ())
    return in_document or session.snapshot.visible


def _offer(session: SessionView, uri: str | None, kernels: Sequence[VisibleKernel], metric: LineMetric) -> MetricOffer:
    if metric.kind is MetricKind.USUAL:
        return MetricOffer(metric=metric, lacking=(), kernel_count=len(kernels))
    if metric.is_from_emulation:
        emulated = _find_emulated(session, uri)
        lacking = tuple(shown.name for shown in kernels if shown.kernel.report.mangled_name not in emulated)
        return MetricOffer(metric=metric, lacking=lacking, kernel_count=len(lacking) + len(emulated))
    lacking = tuple(shown.name for shown in kernels if not has_metric(shown.kernel, metric))
    return MetricOffer(metric=metric, lacking=lacking, kernel_count=len(kernels))


def _find_emulated(session: SessionView, uri: str | None) -> frozenset[str]:
    """Kernels of which launches were emulated, as far as their sources are open."""
    view = None if uri is None else session.view(uri)
    launches = () if view is None or view.predicted is None else view.predicted.result.launches
    return frozenset(launch.mangled_name for launch in launches)


def _list_reasons(kernels: Sequence[VisibleKernel]) -> Iterator[str]:
    sums: dict[str, int] = {}
    for shown in kernels:
        for reason, count in shown.kernel.report.by_reason.items():
            sums[reason] = sums.get(reason, 0) + count.all_samples
    ranked = sorted((reason for reason in sums if sums[reason]), key=lambda reason: (-sums[reason], reason))
    yield from ranked[:_MOST_REASONS]


def list_metrics(session: Session, arguments: Arguments) -> list[JsonObject]:
    """The metrics of the kernels of the document in the arguments; of all that are shown without one."""
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
    names = check_names(arguments[:1]) or (USUAL.name,)
    uri = read_text(arguments, 1)
    metric = find_metric(names[0])
    if all(offer.metric != metric for offer in (*list_offers(session, uri), *list_offers(session, None))):
        return None
    session.choose_metric(metric)
    offer = offer_metric(session, uri, metric.name)
    return {"name": metric.name, "title": metric.title, "lack": offer.lack}


def list_columns(session: Session, arguments: Arguments) -> list[JsonObject]:
    """List the columns for the instructions of the document in the arguments, the chosen ones first and in their order; those of the
    longest kernel without a document.
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
