"""Values of a source's lines in emulated and predicted metrics."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lsprotocol.types import InlayHint

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.metrics import LineMetric, MetricKind
from gpa_lsp.editor.model import Mark, Origin
from gpa_lsp.editor.predicted.results import LaunchFact
from gpa_lsp.editor.predicted.view import PlacedPredictions
from gpa_lsp.foundation.numbers import format_number, format_percent
from gpa_lsp.kernel.names import shorten_name

if TYPE_CHECKING:
    from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact

    Access = LaunchFact[AccessLineFact]


def measure_emulation(view: "DocumentView", metric: LineMetric) -> Mapping[int, Mark]:
    """Current line → what was emulated or predicted of it, of several launches the one in which it is hottest."""
    predicted = view.predicted
    if predicted is None or not predicted.is_source:
        return {}
    measure = _list_emulated if metric.kind is MetricKind.EMULATED else _list_predicted
    found: dict[int, Mark] = {}
    for line, value in measure(predicted):
        if line not in found or value.share_ratio > found[line].share_ratio:
            found[line] = value
    return found


def _list_emulated(predicted: PlacedPredictions) -> Iterator[tuple[int, Mark]]:
    own = list(_list_own(predicted))
    totals = _sum_up((one, one.fact.requests * one.fact.cost) for _, one in own)
    for line, one in own:
        cost = one.fact.requests * one.fact.cost
        if cost > 0:
            unit = "wavefronts" if one.fact.is_shared else "sectors"
            words = f"{format_number(one.fact.cost)} {unit}/req · emulated"
            yield _make(predicted, line, one.launch, cost / totals[_key(one)], words)
    for line, branches in predicted.branches.items():
        for branch in branches:
            if not branch.fact.is_nested and branch.fact.divergent_ratio > 0:
                words = f"{format_percent(branch.fact.divergent_ratio)} diverge · emulated"
                yield _make(predicted, line, branch.launch, branch.fact.divergent_ratio, words)


def _list_predicted(predicted: PlacedPredictions) -> Iterator[tuple[int, Mark]]:
    """Accesses whose hits are predicted: what misses is what a line costs the next level."""
    own = [(line, one) for line, one in _list_own(predicted) if one.fact.l1_hit_ratio is not None]
    totals = _sum_up((one, _count_misses(one.fact)) for _, one in own)
    for line, one in own:
        hits = (("L1", one.fact.l1_hit_ratio), ("L2", one.fact.l2_hit_ratio))
        words = " · ".join(f"{level} hits {format_percent(ratio)}" for level, ratio in hits if ratio is not None)
        total = totals[_key(one)]
        ratio = _count_misses(one.fact) / total if total else 0.0
        yield _make(predicted, line, one.launch, ratio, f"{words} · predicted")


def _count_misses(access: "AccessLineFact") -> float:
    """Sectors that no cache holds, as far as that is predicted."""
    return access.sectors * (1 - (access.l1_hit_ratio or 0.0)) * (1 - (access.l2_hit_ratio or 0.0))


def _list_own(predicted: PlacedPredictions) -> "Iterator[tuple[int, Access]]":
    """Accesses by line, without those of called functions, which stand at their own lines."""
    for line, accesses in predicted.accesses.items():
        yield from ((line, one) for one in accesses if not one.fact.is_nested)


def _key(access: "Access") -> tuple[int, bool]:
    """Sectors are compared with sectors of the same launch."""
    return access.launch, access.fact.is_shared


def _sum_up(costs: "Iterator[tuple[Access, float]]") -> dict[tuple[int, bool], float]:
    totals: dict[tuple[int, bool], float] = {}
    for access, cost in costs:
        totals[_key(access)] = totals.get(_key(access), 0.0) + cost
    return totals


def _make(predicted: PlacedPredictions, line: int, launch: int, ratio: float, words: str) -> tuple[int, Mark]:
    kernel = shorten_name(predicted.find_launch(launch).name)
    return line, Mark(line=line, share_ratio=min(1.0, ratio), text=words, kernel=kernel, origin=Origin.EMULATED)


LEAST_EXCESS_RATIO = 0.25  # Of sectors or wavefronts: below, a line is as good as lines are

LEAST_DIVERGENT_RATIO = 0.1


def list_predicted_hints(view: DocumentView, first: int, last: int) -> list[InlayHint]:
    """The hints of some lines, by line; of several launches the one that is worst. Who chose to see another metric sees none of them."""
    predicted, metric = view.predicted, view.settings.metric
    if predicted is None or not predicted.is_source or not view.settings.show_inlay_hints:
        return []
    if metric.kind is MetricKind.PREDICTED:
        return _list_hits(view, first, last)
    if metric.kind not in {MetricKind.EMULATED, MetricKind.USUAL}:
        return []
    is_all = metric.kind is MetricKind.EMULATED or view.settings.shows_all_hints
    lines = sorted({*predicted.accesses, *predicted.branches})
    made = (_make_hint(view, predicted, line, is_all=is_all) for line in lines if first <= line <= last)
    return [hint for hint in made if hint is not None]


def _list_hits(view: DocumentView, first: int, last: int) -> list[InlayHint]:
    return [
        InlayHint(
            position=view.positions.find_end(line),
            label=one.text,
            tooltip=f"not measured: {format_percent(one.share_ratio)} of the sectors of {one.kernel} that miss the caches are asked for here",
        )
        for line, one in sorted(measure_emulation(view, view.settings.metric).items())
        if first <= line <= last
    ]


def _make_hint(view: DocumentView, predicted: PlacedPredictions, line: int, *, is_all: bool) -> InlayHint | None:
    parts: list[str] = []
    tips: list[str] = []
    for one in _choose_accesses(predicted.accesses.get(line, ())):
        access = one.fact
        if is_all or access.excess_ratio >= LEAST_EXCESS_RATIO:
            parts.append(f"{format_number(access.cost)} {'wavefronts' if access.is_shared else 'sectors'}/req")
            tips.append(f"{access.words} ({_name_launch(predicted, one.launch)})")
    branch = _choose_branch(predicted.branches.get(line, ()))
    if branch is not None and (is_all or branch.fact.divergent_ratio >= LEAST_DIVERGENT_RATIO):
        parts.append(f"{format_percent(branch.fact.divergent_ratio)} diverge")
        tips.append(
            f"{format_percent(branch.fact.divergent_ratio)} of its branches diverge ({_name_launch(predicted, branch.launch)})"
        )
    if not parts:
        return None
    return InlayHint(
        position=view.positions.find_end(line),
        label=f"{' · '.join(parts)} · emulated",
        tooltip=f"emulated, not measured: {'; '.join(tips)}",
    )


def _choose_accesses(accesses: "tuple[LaunchFact[AccessLineFact], ...]") -> "Iterator[LaunchFact[AccessLineFact]]":
    """The worst accesses of the line itself to global and to shared memory; what is called stands at its own line."""
    own = [one for one in accesses if not one.fact.is_nested]
    for is_shared in (False, True):
        found = [one for one in own if one.fact.is_shared is is_shared and one.fact.cost > 0]
        if found:
            yield max(found, key=lambda one: (one.fact.cost - one.fact.ideal, one.fact.cost))


def _choose_branch(branches: "tuple[LaunchFact[BranchLineFact], ...]") -> "LaunchFact[BranchLineFact] | None":
    own = [one for one in branches if not one.fact.is_nested]
    return max(own, key=lambda one: one.fact.divergent_ratio, default=None)


def _name_launch(predicted: PlacedPredictions, index: int) -> str:
    launch = predicted.find_launch(index)
    return f"{shorten_name(launch.name)}, {launch.what}"
