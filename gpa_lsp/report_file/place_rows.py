"""The samples of a kernel by the place that launched it as JSON rows, and back into columns."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.report.model import InstructionColumns, KernelReport, PlaceSamples
from gpa_lsp.report_file.blame_rows import Reason, Row
from gpa_lsp.report_file.instruction_rows import Columns
from gpa_lsp.report_file.json_records import Layout, RowsOf, StandIn
from gpa_lsp.report_file.json_values import InScope, MisfitError, Position


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRow:
    """Samples of one place, instruction and reason.

    Attributes:
        place: whose launches, by its position in ``call_stacks``.
        row: the instruction.
        reason: stall reason.
        all_samples: samples.
    """

    place: Annotated[int, Position("call_stacks")]
    row: Row
    reason: Reason
    all_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Samples by the place of the host program that launched the kernel.

    Attributes:
        call_stacks: each place's frames, innermost first; empty where they are not known.
        rows: samples by place, instruction and reason, without zeros.
    """

    call_stacks: tuple[tuple[str, ...], ...]
    rows: Annotated[Columns, RowsOf(PlaceRow)]


def _make_places(places: Sequence[PlaceSamples], kernel: KernelReport) -> Places | None:
    if not places:
        return None
    names = kernel.instructions.reasons
    table: dict[str, list[Any]] = {"place": [], "row": [], "reason": [], "all_samples": []}
    for number, place in enumerate(places):
        rows, reasons = np.nonzero(place.all_samples)
        table["place"] += [number] * len(rows)
        table["row"] += place.rows[rows].tolist()
        table["reason"] += [names[one] for one in reasons.tolist()]
        table["all_samples"] += place.all_samples[rows, reasons].tolist()
    return Places(call_stacks=tuple(place.call_stack for place in places), rows=table)


def _restore_places(found: Places | None, scope: InScope) -> tuple[PlaceSamples, ...]:
    if found is None:
        return ()
    columns: InstructionColumns = scope["instructions"]
    numbers = {reason: number for number, reason in enumerate(columns.reasons)}
    counts, total = found.rows["all_samples"], scope["total_samples"]
    if sum(counts) > total:  # before sums overflow
        raise MisfitError(f"has more samples than the kernel's {total}").within("rows")
    owners, rows, samples = (np.array(found.rows[name], dtype=np.int64) for name in ("place", "row", "all_samples"))
    reasons = np.array([numbers[reason] for reason in found.rows["reason"]], dtype=np.int64)
    sums = np.zeros_like(columns.all_samples)
    np.add.at(sums, (rows, reasons), samples)
    _check_sums(sums, columns)
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(len(found.call_stacks) + 1))
    parts = [order[first:last] for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    return tuple(
        _restore_place(stack, rows[part], reasons[part], samples[part], len(numbers))
        for stack, part in zip(found.call_stacks, parts, strict=True)
    )


def _check_sums(sums: Any, columns: InstructionColumns) -> None:
    """An instruction has at least the samples of all places together."""
    wrong = np.argwhere(sums > columns.all_samples)
    if len(wrong):
        row, reason = wrong[0].tolist()
        more = f"{sums[row, reason]} samples of {columns.reasons[reason][:40]}"
        raise MisfitError(f"has {more} at instruction {row}, which has {columns.all_samples[row, reason]}").within(
            "rows"
        )


def _restore_place(stack: tuple[str, ...], rows: Any, reasons: Any, samples: Any, reason_count: int) -> PlaceSamples:
    sampled, at = np.unique(rows, return_inverse=True)
    sums = np.zeros((len(sampled), reason_count), dtype=np.int64)
    np.add.at(sums, (at.reshape(-1), reasons), samples)
    return PlaceSamples(call_stack=stack, rows=sampled, all_samples=sums)


PLACES = Annotated[tuple[PlaceSamples, ...], StandIn(Places | None, _make_places, _restore_places)]
"""Of a kernel; null where it was launched from one place, or nobody knows."""

PLACE_LAYOUTS: Mapping[Any, Layout | StandIn] = {
    PlaceRow: Layout(names={"all_samples": "samples"}),
    Places: Layout(scoped=("call_stacks",)),
}
