"""The tables of causes and advice in one kernel's chapter of the text report."""

from gpa_lsp.basis.numbers import format_count, format_percent, format_share
from gpa_lsp.blame.model import BlameCategory
from gpa_lsp.render.advice_words import BY_COUNTERS, describe_cause, show_bound, show_estimate, show_interval
from gpa_lsp.render.blame_words import NO_CAUSE, measure_causes
from gpa_lsp.render.kernel_tables import Table
from gpa_lsp.render.layout import Align, Column, Style, draw_bar, style_of_share
from gpa_lsp.render.places import PlaceNames
from gpa_lsp.report.model import KernelReport

_BAR_CELLS = 12
_RIGHT = Align.RIGHT
_NO_STALLS = (BlameCategory.ISSUED, BlameCategory.NOT_SELECTED)


def build_cause_table(kernel: KernelReport, _: PlaceNames) -> Table:
    """Samples by the kind of cause they are attributed to, and those without a cause."""
    columns = (
        Column(title="share", align=_RIGHT),
        Column(title="", drop_order=1),
        Column(title="samples", align=_RIGHT),
        Column(title="stalled on", can_shrink=True, min_chars=20),
    )
    rows = []
    causes = [] if kernel.blame is None else measure_causes(kernel, kernel.blame)
    for category, ratio in causes:
        is_stall = category not in _NO_STALLS
        rows.append(
            (
                (format_percent(ratio), style_of_share(ratio) if is_stall else Style.DIM),
                (draw_bar(ratio, _BAR_CELLS), Style.BAR if is_stall else Style.DIM),
                (format_count(ratio * kernel.total_samples), Style.PLAIN),
                (describe_cause(category), Style.PLAIN if is_stall else Style.DIM),
            )
        )
    lost = 0.0 if kernel.blame is None else float(kernel.blame.unattributed.all_samples.sum())
    if lost:
        ratio = lost / kernel.total_samples
        share = (format_percent(ratio), Style.DIM)
        bar = (draw_bar(ratio, _BAR_CELLS), Style.DIM)
        rows.append((share, bar, (format_count(lost), Style.PLAIN), (NO_CAUSE, Style.DIM)))
    return Table(title="Causes", columns=columns, rows=rows)


def build_advice_table(kernel: KernelReport, _: PlaceNames) -> Table:
    """The pieces of advice, largest estimate first."""
    columns = (
        Column(title="speedup", align=_RIGHT),
        Column(title="range"),
        Column(title="at most", align=_RIGHT),
        Column(title="of the samples", align=_RIGHT),
        Column(title="to change"),
        Column(title="advice", can_shrink=True, min_chars=20),
    )
    rows = [
        (
            (show_estimate(advice.speedup), style_of_share(1 - 1 / max(1.0, advice.speedup.estimate))),
            (show_interval(advice.speedup), Style.PLAIN),
            (show_bound(advice.speedup), Style.PLAIN),
            (
                BY_COUNTERS if advice.by_counters else format_share(advice.share) if advice.matched_samples else "",
                Style.PLAIN,
            ),
            (advice.category.value, Style.PLAIN),
            (advice.title, Style.PLAIN),
        )
        for advice in (kernel.advice.advice if kernel.advice is not None else ())
    ]
    return Table(title="Advice", columns=columns, rows=rows)
