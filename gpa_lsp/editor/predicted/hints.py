"""The few words at the end of a line about its emulation: ``8.0 sectors/req``, ``4.0 wavefronts/req``, ``50 % diverge``, ``L1 hits 80 %``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.metrics import MetricKind
from gpa_lsp.editor.model import Hint
from gpa_lsp.editor.predicted.hover import count_cost, name_access, quote_code
from gpa_lsp.editor.predicted.metric_values import measure_emulation
from gpa_lsp.editor.predicted.results import LaunchFact
from gpa_lsp.editor.predicted.view import PlacedPredictions
from gpa_lsp.editor.settings import HintChoice
from gpa_lsp.foundation.numbers import format_number, format_percent
from gpa_lsp.kernel.names import shorten_name

if TYPE_CHECKING:
    from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact

LEAST_EXCESS_RATIO = 0.25  # Of sectors or wavefronts: below, a line is as good as lines are

LEAST_DIVERGENT_RATIO = 0.1


def list_predicted_hints(view: DocumentView, first: int, last: int) -> list[Hint]:
    """The hints of some lines, by line; of several launches the one that is worst. Who chose to see another metric sees none of them."""
    choice, predicted, metric = view.settings.emulation_hints, view.predicted, view.settings.metric
    if predicted is None or not predicted.is_source:
        return []
    if metric.kind is MetricKind.PREDICTED:
        return _list_hits(view, first, last)
    if metric.kind is MetricKind.EMULATED:
        choice = HintChoice.ALL
    elif metric.kind is not MetricKind.USUAL:
        choice = HintChoice.OFF
    if choice is HintChoice.OFF:
        return []
    lines = sorted({*predicted.accesses, *predicted.branches})
    made = (_make_hint(view, predicted, line, choice) for line in lines if first <= line <= last)
    return [hint for hint in made if hint is not None]


def _list_hits(view: DocumentView, first: int, last: int) -> list[Hint]:
    return [
        Hint(
            position=view.positions.find_end(line),
            label=one.words,
            tooltip=f"not measured: {format_percent(one.ratio)} of the sectors of {one.kernel} that miss the caches are asked for here",
        )
        for line, one in sorted(measure_emulation(view, view.settings.metric).items())
        if first <= line <= last
    ]


def _make_hint(view: DocumentView, predicted: PlacedPredictions, line: int, choice: HintChoice) -> Hint | None:
    is_all = choice is HintChoice.ALL
    parts: list[str] = []
    tips: list[str] = []
    for one in _choose_accesses(predicted.accesses.get(line, ())):
        access = one.fact
        if is_all or access.excess_ratio >= LEAST_EXCESS_RATIO:
            parts.append(f"{format_number(access.cost)} {'wavefronts' if access.is_shared else 'sectors'}/req")
            text = f"{quote_code(name_access(access))}: {count_cost(access)}, {format_number(access.ideal)} at best"
            tips.append(f"{text} ({_name_launch(predicted, one.launch)})")
    branch = _choose_branch(predicted.branches.get(line, ()))
    if branch is not None and (is_all or branch.fact.divergent_ratio >= LEAST_DIVERGENT_RATIO):
        parts.append(f"{format_percent(branch.fact.divergent_ratio)} diverge")
        tips.append(
            f"{format_percent(branch.fact.divergent_ratio)} of its branches diverge ({_name_launch(predicted, branch.launch)})"
        )
    if not parts:
        return None
    return Hint(
        position=view.positions.find_end(line),
        label=f"{' · '.join(parts)} · emulated",
        tooltip=f"emulated, not measured: {'; '.join(tips)}",
    )


def _choose_accesses(accesses: "tuple[LaunchFact[AccessLineFact], ...]") -> "Iterator[LaunchFact[AccessLineFact]]":
    """Of global and of shared memory the worst of the line itself; what is called there stands at its own line."""
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
