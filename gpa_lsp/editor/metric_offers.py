"""What a person can choose to see on lines, and how many of the kernels have it."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gpa_lsp.editor.lines.metric_values import has_metric
from gpa_lsp.editor.metrics import LineMetric, MetricKind, find_metric, list_plain_metrics
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
        """Which kernels lack it, a sentence without its stop; empty where none does."""
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
