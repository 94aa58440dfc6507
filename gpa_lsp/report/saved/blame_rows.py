"""The blame of a report as JSON rows, and back into columns that add up, all of them together, to the samples of the kernel's instructions.

Edges name instructions by their position in the kernel's ``instructions``: there can be a hundred thousand of them, and whoever reads one has
the instructions at hand.
"""

from collections.abc import Mapping
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
from gpa_lsp.foundation.json_records import Layout, RowsOf, StandIn
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


class UnattributedSum(Struct, frozen=True, kw_only=True):
    """Samples of one reason without a cause."""

    all_samples: Amount  # samples
    latency_samples: Amount | None  # of these, samples taken when the scheduler issued nothing
    cause: _Cause  # why most of them have none


def _make_edges(edges: BlameEdges, kernel: KernelReport) -> Columns:
    columns = _list_columns(edges, kernel)
    for name in ("resource", "distance_cycles", "distance_instructions"):
        columns[name] = [None if number < 0 else number for number in columns[name]]
    return columns


def _restore_edges(rows: Columns, scope: InScope) -> BlameEdges:
    columns = _restore_columns(rows, scope)
    for name in ("resource", "distance_cycles", "distance_instructions"):
        columns[name] = [-1 if value is None else value for value in rows[name]]
    return BlameEdges.from_columns(**columns).sort()


def _restore_unattributed(rows: Columns, scope: InScope) -> Unattributed:
    return Unattributed.from_columns(**_restore_columns(rows, scope))


def _list_columns(table: BlameEdges | Unattributed, kernel: KernelReport) -> dict[str, Any]:
    """Field → its value in each row, reasons by name."""
    columns = {name: getattr(table, name) for name in table.__struct_fields__}
    unknown = [None] * len(table)
    listed = {name: unknown if column is None else column.tolist() for name, column in columns.items()}
    return {**listed, "reason": [kernel.instructions.reasons[number] for number in table.reason.tolist()]}


def _restore_columns(rows: Columns, scope: InScope) -> dict[str, Any]:
    every, latency = _restore_samples(rows, scope)
    return {**rows, "reason": _number_reasons(rows, scope), "all_samples": every, "latency_samples": latency}


def _number_reasons(rows: Columns, scope: InScope) -> list[int]:
    numbers = {reason: number for number, reason in enumerate(scope["reasons"])}
    return [numbers[reason] for reason in rows["reason"]]


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
    sums: dict[str, dict[int, tuple[float, float | None]]] = {}
    listed = _list_columns(lost, kernel)
    columns = [listed[name] for name in ("reason", "cause", "all_samples", "latency_samples")]
    for reason, cause, every, latency in zip(*columns, strict=True):
        of_reason = sums.setdefault(reason, {})
        before = of_reason.get(cause, (0.0, 0.0))
        of_reason[cause] = (before[0] + every, sum_known([before[1], latency]))
    rows = {
        reason: UnattributedSum(
            all_samples=sum(every for every, _ in causes.values()),
            latency_samples=sum_known(latency for _, latency in causes.values()),
            cause=UnattributedCause(max(causes, key=lambda cause: (causes[cause][0], -cause))),
        )
        for reason, causes in sums.items()
    }
    return dict(sorted(rows.items(), key=lambda row: (-row[1].all_samples, row[0])))


_SAMPLES = {"all_samples": "all", "latency_samples": "latency"}
_EDGE = Layout(
    names=_SAMPLES,
    hints={
        "use_row": Row,
        "def_row": Row,
        "reason": Reason,
        "all_samples": Amount,
        "latency_samples": Amount | None,
        "category": Category,
        "dependency": _Dependency,
        "resource": Resource | None,
        "group": _Int32,
        "distance_cycles": _Int32 | None,
        "distance_instructions": _Int32 | None,
    },
)
_UNATTRIBUTED = Layout(
    names=_SAMPLES,
    hints={"row": Row, "reason": Reason, "cause": _Cause, "all_samples": Amount, "latency_samples": Amount | None},
)
_COUNTS = Annotated[
    Any,
    StandIn(
        tuple[Amount, ...],
        lambda counts, kernel: counts.tolist(),
        lambda counts, scope: np.array(counts, dtype=np.float64),
    ),
]

BLAME_LAYOUTS: Mapping[Any, Layout | StandIn] = {
    UnattributedSum: Layout(names=_SAMPLES),
    BlameEdges: StandIn(Annotated[Columns, RowsOf(BlameEdges, _EDGE)], _make_edges, _restore_edges),
    Unattributed: StandIn(
        Annotated[Columns, RowsOf(Unattributed, _UNATTRIBUTED)], _list_columns, _restore_unattributed
    ),
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
        derived={"unattributed": (Mapping[str, UnattributedSum], _sum_unattributed)},
        check=_check_blame,
    ),
}
