"""The ``blame`` of a kernel as JSON values, laid out as ``report_schema.json`` says.

Edges are objects, one per blamed pair, that name instructions by their position in the kernel's ``instructions``: there can be a hundred
thousand of them, and whoever reads one has the instructions at hand.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from gpa_lsp.binary.model import name_resource
from gpa_lsp.blame.model import (
    BlameCategory,
    BlameEdges,
    Dependency,
    IssueCounts,
    KernelBlame,
    SingleDependencyCoverage,
    Unattributed,
    UnattributedCause,
    WaitCheck,
)
from gpa_lsp.report.json_problem import make_problem
from gpa_lsp.report.json_rows import Json, finite

CATEGORY_NAMES = {int(category): category.name.lower() for category in BlameCategory}
DEPENDENCY_NAMES = {int(dependency): dependency.name.lower() for dependency in Dependency}
CAUSE_NAMES = {int(cause): cause.name.lower() for cause in UnattributedCause}


def make_blame_head(blame: KernelBlame, reasons: Sequence[str]) -> Json:
    """The properties of a ``blame`` object that stand before its long arrays.

    Args:
        blame: of a kernel.
        reasons: the kernel's stall reasons.
    """
    return {
        "blamer": blame.blamer,
        "single_dependency_coverage": _make_coverage(blame.coverage),
        "unattributed": _sum_unattributed(blame.unattributed, reasons),
        "wait_check": None if blame.wait_check is None else _make_wait_check(blame.wait_check),
        "problems": [make_problem(problem) for problem in blame.problems],
        "issue_counts": _make_issue_counts(blame.issue_counts),
    }


def make_edges(edges: BlameEdges, reasons: Sequence[str]) -> Iterator[Json]:
    """``edge`` objects, in the order of the columns."""
    columns = zip(
        edges.use_row.tolist(),
        edges.def_row.tolist(),
        edges.reason.tolist(),
        edges.category.tolist(),
        edges.dependency.tolist(),
        edges.resource.tolist(),
        edges.group.tolist(),
        edges.all_samples.tolist(),
        edges.latency_samples.tolist(),
        edges.distance_cycles.tolist(),
        edges.distance_instructions.tolist(),
        strict=True,
    )
    for use, cause, reason, category, dependency, resource, group, every, latency, cycles, instructions in columns:
        yield {
            "use_row": use,
            "def_row": cause,
            "reason": reasons[reason],
            "all": shorten_number(every),
            "latency": shorten_number(latency),
            "category": CATEGORY_NAMES[category],
            "dependency": DEPENDENCY_NAMES[dependency],
            "resource": None if resource < 0 else name_resource(resource),
            "group": group,
            "distance_cycles": None if cycles < 0 else cycles,
            "distance_instructions": None if instructions < 0 else instructions,
        }


def make_unattributed_rows(unattributed: Unattributed, reasons: Sequence[str]) -> Iterator[Json]:
    """``unattributed_row`` objects, in the order of the columns."""
    columns = zip(
        unattributed.row.tolist(),
        unattributed.reason.tolist(),
        unattributed.cause.tolist(),
        unattributed.all_samples.tolist(),
        unattributed.latency_samples.tolist(),
        strict=True,
    )
    for row, reason, cause, every, latency in columns:
        yield {
            "row": row,
            "reason": reasons[reason],
            "cause": CAUSE_NAMES[cause],
            "all": shorten_number(every),
            "latency": shorten_number(latency),
        }


def shorten_number(value: float) -> float | int:
    """A number as it takes least room; whole ones need no decimal point.

    >>> shorten_number(12.0), shorten_number(0.5)
    (12, 0.5)
    """
    return int(value) if float(value).is_integer() else float(value)


def clamp_ratio(ratio: float | None) -> float | None:
    """A ratio from 0 to 1 that rounding may have carried a little beyond its ends.

    >>> clamp_ratio(1.0000000000000002), clamp_ratio(0.5), clamp_ratio(None)
    (1.0, 0.5, None)
    """
    known = finite(ratio)
    return None if known is None else min(1.0, max(0.0, known))


def _make_coverage(coverage: SingleDependencyCoverage) -> Json:
    return {
        "before": clamp_ratio(coverage.before_ratio),
        "after": clamp_ratio(coverage.after_ratio),
        "nodes": coverage.nodes,
        "group": clamp_ratio(coverage.group_ratio),
        "group_samples": coverage.group_samples,
        "explained": clamp_ratio(coverage.explained_ratio),
    }


def _sum_unattributed(unattributed: Unattributed, reasons: Sequence[str]) -> Json:
    """Reason → samples without a cause, and why most of them have none; most samples first."""
    sums: dict[int, dict[int, tuple[float, float]]] = {}
    columns = (unattributed.reason, unattributed.cause, unattributed.all_samples, unattributed.latency_samples)
    for reason, cause, every, latency in zip(*(column.tolist() for column in columns), strict=True):
        of_reason = sums.setdefault(reason, {})
        before = of_reason.get(cause, (0.0, 0.0))
        of_reason[cause] = (before[0] + every, before[1] + latency)
    rows = {
        reasons[reason]: {
            "all": shorten_number(sum(every for every, _ in causes.values())),
            "latency": shorten_number(sum(latency for _, latency in causes.values())),
            "cause": CAUSE_NAMES[max(causes, key=lambda cause: (causes[cause][0], -cause))],
        }
        for reason, causes in sums.items()
    }
    return dict(sorted(rows.items(), key=lambda row: (-float(row[1]["all"]), row[0])))


def _make_issue_counts(issues: IssueCounts) -> Json:
    return {
        "is_exact": issues.is_exact,
        "why": issues.why,
        "chi_square_per_row": finite(issues.chi_square_per_row),
        "counts": [shorten_number(count) for count in np.nan_to_num(issues.counts).tolist()],
    }


def _make_wait_check(check: WaitCheck) -> Json:
    return {
        "correlation": finite(check.correlation),
        "measured_samples": check.measured_samples,
        "predicted_samples": finite(check.predicted_samples) or 0.0,
        "rows": check.rows,
    }
