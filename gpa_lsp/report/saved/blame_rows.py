"""The blame of a report as JSON rows, and back into columns that add up, all of them together, to the samples of the kernel's instructions.

Edges name instructions by their position in the kernel's ``instructions``: there can be a hundred thousand of them, and whoever reads one has
the instructions at hand.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import ResourceKind, encode_resource, name_resource
from gpa_lsp.diagnosis.blame.model import (
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
from gpa_lsp.foundation.figures import sum_known
from gpa_lsp.foundation.json_records import Derived, Layout, RowsOf, StandIn
from gpa_lsp.foundation.json_values import InScope, MisfitError, NameIn, Number, Position, Spelled, Whole
from gpa_lsp.foundation.numbers import format_file_value
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.saved.instruction_rows import Columns

_REGISTERS = 256
_TOLERANCE_SAMPLES = 0.01  # Blame is shared out in fractions of a sample, which add up to whole ones but for rounding

Amount = Annotated[float, Number(0)]
Ratio = Annotated[float, Number(0, 1)]
Row = Annotated[int, Position("instructions")]
Category = Annotated[BlameCategory, Spelled({one: one.name.lower() for one in BlameCategory})]
Resource = Annotated[
    int,
    Spelled(
        {
            number: name_resource(number)
            for number in (encode_resource(kind, index) for kind in ResourceKind for index in range(_REGISTERS))
        },
        "register or predicate",
    ),
]
_Dependency = Annotated[Dependency, Spelled({one: one.name.lower() for one in Dependency})]
_Cause = Annotated[UnattributedCause, Spelled({one: one.name.lower() for one in UnattributedCause})]
Reason = Annotated[str, NameIn("reasons")]
_Int32 = Annotated[int, Whole(0, (1 << 31) - 1)]


class EdgeRow(Struct, frozen=True, kw_only=True):
    """One blamed pair."""

    use_row: Row  # the instruction that was sampled
    def_row: Row  # the instruction that is blamed; the use itself for reasons that stay with the instruction
    reason: Reason  # stall reason
    all_samples: Amount  # samples
    # of these, samples taken when the scheduler issued nothing; null in the whole kernel where the profile does not tell
    latency_samples: Amount | None
    category: Category  # what kind of cause it is
    dependency: _Dependency  # how the use depends on the def
    resource: Resource | None  # register or predicate that connects the two; null where none does
    group: _Int32  # edges with the same number are causes the use waits for together: their shares are a convention, not a measurement
    distance_cycles: _Int32 | None  # encoded cycles from def to use; null when unknown
    distance_instructions: _Int32 | None  # instructions from def to use; null when unknown


class UnattributedRow(Struct, frozen=True, kw_only=True):
    """Samples without a cause."""

    row: Row  # the instruction
    reason: Reason  # stall reason
    cause: _Cause  # why they have none
    all_samples: Amount  # samples
    # of these, samples taken when the scheduler issued nothing; null in the whole kernel where the profile does not tell
    latency_samples: Amount | None


class UnattributedSum(Struct, frozen=True, kw_only=True):
    """Samples of one reason without a cause."""

    all_samples: Amount  # samples
    latency_samples: Amount | None  # of these, samples taken when the scheduler issued nothing
    cause: _Cause  # why most of them have none


def _make_edges(edges: BlameEdges, kernel: KernelReport) -> Columns:
    resources, *distances = (
        [None if number < 0 else number for number in column.tolist()]
        for column in (edges.resource, edges.distance_cycles, edges.distance_instructions)
    )
    return {
        "use_row": edges.use_row.tolist(),
        "def_row": edges.def_row.tolist(),
        "reason": [kernel.instructions.reasons[number] for number in edges.reason.tolist()],
        "all_samples": edges.all_samples.tolist(),
        "latency_samples": _list_latency(edges),
        "category": edges.category.tolist(),
        "dependency": edges.dependency.tolist(),
        "resource": resources,
        "group": edges.group.tolist(),
        "distance_cycles": distances[0],
        "distance_instructions": distances[1],
    }


def _restore_edges(rows: Columns, scope: InScope) -> BlameEdges:
    every, latency = _restore_samples(rows, scope)
    use_row = np.array(rows["use_row"], dtype=np.int32)
    def_row = np.array(rows["def_row"], dtype=np.int32)
    reason = _number_reasons(rows, scope)
    order = np.lexsort((def_row, reason, use_row))
    resource, cycles, instructions = (
        np.array([-1 if value is None else value for value in rows[name]], dtype=np.int32)
        for name in ("resource", "distance_cycles", "distance_instructions")
    )
    return BlameEdges(
        use_row=use_row[order],
        def_row=def_row[order],
        reason=reason[order],
        category=np.array(rows["category"], dtype=np.uint8)[order],
        dependency=np.array(rows["dependency"], dtype=np.uint8)[order],
        resource=resource.astype(np.int16)[order],
        group=np.array(rows["group"], dtype=np.int32)[order],
        all_samples=every[order],
        latency_samples=None if latency is None else latency[order],
        distance_cycles=cycles[order],
        distance_instructions=instructions[order],
    )


def _make_unattributed(unattributed: Unattributed, kernel: KernelReport) -> Columns:
    return {
        "row": unattributed.row.tolist(),
        "reason": [kernel.instructions.reasons[number] for number in unattributed.reason.tolist()],
        "cause": unattributed.cause.tolist(),
        "all_samples": unattributed.all_samples.tolist(),
        "latency_samples": _list_latency(unattributed),
    }


def _restore_unattributed(rows: Columns, scope: InScope) -> Unattributed:
    every, latency = _restore_samples(rows, scope)
    return Unattributed(
        row=np.array(rows["row"], dtype=np.int32),
        reason=_number_reasons(rows, scope),
        cause=np.array(rows["cause"], dtype=np.uint8),
        all_samples=every,
        latency_samples=latency,
    )


def _list_latency(columns: BlameEdges | Unattributed) -> Sequence[Any]:
    """Latency samples of each row; None where they are unknown."""
    return [None] * len(columns) if columns.latency_samples is None else columns.latency_samples.tolist()


def _number_reasons(rows: Columns, scope: InScope) -> npt.NDArray[np.int16]:
    numbers = {reason: number for number, reason in enumerate(scope["reasons"])}
    return np.array([numbers[reason] for reason in rows["reason"]], dtype=np.int16)


def _restore_samples(rows: Columns, scope: InScope) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
    """float64[n] each: samples and, of these, those without issue; None where the kernel's are unknown, and then all are null."""
    every = np.array(rows["all_samples"], dtype=np.float64)
    is_split = scope["latency_samples"] is not None
    for number, value in enumerate(rows["latency_samples"]):
        if (value is not None) != is_split:
            message = (
                "is null, not a number" if is_split else "is known, though the kernel's not-issued samples are not"
            )
            raise MisfitError(message).within("latency", number)
    if not is_split:
        return every, None
    latency = np.array(rows["latency_samples"], dtype=np.float64)
    wrong = np.flatnonzero(latency > every + _TOLERANCE_SAMPLES)
    if len(wrong):
        raise MisfitError(f"has more not-issued samples than samples in element {wrong[0]}")
    return every, latency


def _check_blame(blame: KernelBlame, scope: InScope) -> None:
    """Per instruction and reason, what is blamed and what is not add up to what was sampled: all samples and latency samples."""
    columns = scope["instructions"]
    if len(blame.issue_counts.counts) != len(columns):
        message = f"has {len(blame.issue_counts.counts)} numbers for {len(columns)} instructions"
        raise MisfitError(message).within("counts", "issue_counts")
    for word, name in (("", "all_samples"), ("not-issued ", "latency_samples")):
        sampled, blamed, lost = (getattr(one, name) for one in (columns, blame.edges, blame.unattributed))
        if sampled is None:
            continue  # unknown in all three, as they were read
        sums = np.zeros(sampled.shape)
        np.add.at(sums, (blame.edges.use_row, blame.edges.reason), blamed)
        np.add.at(sums, (blame.unattributed.row, blame.unattributed.reason), lost)
        wrong = np.argwhere(np.abs(sums - sampled) > _TOLERANCE_SAMPLES + 1e-9 * sampled)
        if len(wrong):
            row, reason = wrong[0].tolist()
            place = f"instruction {row} has {format_file_value(sums[row, reason])} {word}samples of {columns.reasons[reason][:40]}"
            raise MisfitError(f"{place} in edges and unattributed, not the {sampled[row, reason]} that were taken")


def _sum_unattributed(blame: KernelBlame, kernel: KernelReport) -> Mapping[str, UnattributedSum]:
    """Reason → samples without a cause, and why most of them have none; most samples first."""
    lost = blame.unattributed
    sums: dict[int, dict[int, tuple[float, float | None]]] = {}
    columns = [column.tolist() for column in (lost.reason, lost.cause, lost.all_samples)]
    for reason, cause, every, latency in zip(*columns, _list_latency(lost), strict=True):
        of_reason = sums.setdefault(reason, {})
        before = of_reason.get(cause, (0.0, 0.0))
        of_reason[cause] = (before[0] + every, sum_known([before[1], latency]))
    rows = {
        kernel.instructions.reasons[reason]: UnattributedSum(
            all_samples=sum(every for every, _ in causes.values()),
            latency_samples=sum_known(latency for _, latency in causes.values()),
            cause=UnattributedCause(max(causes, key=lambda cause: (causes[cause][0], -cause))),
        )
        for reason, causes in sums.items()
    }
    return dict(sorted(rows.items(), key=lambda row: (-row[1].all_samples, row[0])))


_SAMPLES = {"all_samples": "all", "latency_samples": "latency"}
_COUNTS = Annotated[
    Any,
    StandIn(
        tuple[Amount, ...],
        lambda counts, kernel: counts.tolist(),
        lambda counts, scope: np.array(counts, dtype=np.float64),
    ),
]

BLAME_LAYOUTS: Mapping[Any, Layout | StandIn] = {
    EdgeRow: Layout(names=_SAMPLES),
    UnattributedRow: Layout(names=_SAMPLES),
    UnattributedSum: Layout(names=_SAMPLES),
    BlameEdges: StandIn(Annotated[Columns, RowsOf(EdgeRow)], _make_edges, _restore_edges),
    Unattributed: StandIn(Annotated[Columns, RowsOf(UnattributedRow)], _make_unattributed, _restore_unattributed),
    IssueCounts: Layout(hints={"counts": _COUNTS}),
    SingleDependencyCoverage: Layout(
        names={
            "before_ratio": "before",
            "after_ratio": "after",
            "group_ratio": "group",
            "explained_ratio": "explained",
        },
        hints=dict.fromkeys(("before_ratio", "after_ratio", "group_ratio", "explained_ratio"), Ratio | None),
    ),
    WaitCheck: Layout(hints={"predicted_samples": Amount}),
    KernelBlame: Layout(
        names={"coverage": "single_dependency_coverage", "unattributed": "unattributed_rows"},
        derived={"unattributed": Derived(hint=Mapping[str, UnattributedSum], make=_sum_unattributed)},
        check=_check_blame,
    ),
}
