"""The ``blame`` of a kernel from JSON values, each checked before it is believed, and all of them together against the kernel's samples."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.binary.model import ResourceKind, encode_resource, name_resource
from gpa_lsp.blame.model import (
    BlameEdges,
    IssueCounts,
    KernelBlame,
    SingleDependencyCoverage,
    Unattributed,
    WaitCheck,
)
from gpa_lsp.report.json_arrays import read_amounts, read_counts, read_names
from gpa_lsp.report.json_blame import CATEGORY_NAMES, CAUSE_NAMES, DEPENDENCY_NAMES
from gpa_lsp.report.json_cursor import JsonCursor
from gpa_lsp.report.json_problem import read_problem
from gpa_lsp.report.model import InstructionColumns

_MAX_INT32 = (1 << 31) - 1
_DTYPES = {
    **dict.fromkeys(("use_row", "def_row", "group", "distance_cycles", "distance_instructions"), np.int32),
    **dict.fromkeys(("reason", "resource"), np.int16),
    **dict.fromkeys(("category", "dependency"), np.uint8),
}
_REGISTERS = 256

_TOLERANCE_SAMPLES = 0.01
"""Blame is shared out in fractions of a sample, which add up to whole ones but for rounding."""


_CATEGORIES = {name: number for number, name in CATEGORY_NAMES.items()}
_DEPENDENCIES = {name: number for number, name in DEPENDENCY_NAMES.items()}
_CAUSES = {name: number for number, name in CAUSE_NAMES.items()}


@cache
def _number_resources() -> Mapping[str, int]:
    """The numbers of resources, by name."""
    numbers = [encode_resource(kind, index) for kind in ResourceKind for index in range(_REGISTERS)]
    return {name_resource(number): number for number in numbers}


def read_blame(at: JsonCursor, columns: InstructionColumns) -> KernelBlame:
    """A ``blame`` object.

    Args:
        at: the object.
        columns: the kernel's instructions: edges name them, and must add up to their samples.

    Raises:
        InputError: it is not one.
    """
    edges = _read_edges(at.at("edges"), columns)
    unattributed = _read_unattributed(at.at("unattributed_rows"), columns)
    _check_sums(at, columns, edges, unattributed)
    return KernelBlame(
        blamer=at.at("blamer").text(),
        edges=edges,
        unattributed=unattributed,
        issue_counts=_read_issue_counts(at.at("issue_counts"), len(columns)),
        coverage=_read_coverage(at.at("single_dependency_coverage")),
        wait_check=at.at("wait_check").maybe(_read_wait_check),
        problems=tuple(read_problem(problem) for problem in at.at("problems").items()),
    )


def read_resource(at: JsonCursor) -> int:
    """The number of a resource from the name a listing uses.

    Raises:
        InputError: there is none of this name.
    """
    number = _number_resources().get(at.text())
    if number is None:
        at.fail(f"is {at.text()[:40]!r}, no register or predicate")
    return number


def read_category(at: JsonCursor) -> int:
    """The number of a blame category from its name.

    Raises:
        InputError: there is none of this name.
    """
    return at.names(_CATEGORIES)


def _read_edges(at: JsonCursor, columns: InstructionColumns) -> BlameEdges:
    last = len(columns) - 1
    reasons = {reason: number for number, reason in enumerate(columns.reasons)}
    every, latency = _read_samples(at)
    table = {
        "use_row": read_counts(at, "use_row", last),
        "def_row": read_counts(at, "def_row", last),
        "reason": read_names(at, "reason", reasons),
        "category": read_names(at, "category", _CATEGORIES),
        "dependency": read_names(at, "dependency", _DEPENDENCIES),
        "resource": read_names(at, "resource", _number_resources(), read=read_resource, is_optional=True),
        "group": read_counts(at, "group", _MAX_INT32),
        "distance_cycles": read_counts(at, "distance_cycles", _MAX_INT32, is_optional=True),
        "distance_instructions": read_counts(at, "distance_instructions", _MAX_INT32, is_optional=True),
    }
    order = np.lexsort((table["def_row"], table["reason"], table["use_row"]))
    return BlameEdges(
        **{name: column[order].astype(_DTYPES[name]) for name, column in table.items()},
        all_samples=every[order],
        latency_samples=latency[order],
    )


def _read_unattributed(at: JsonCursor, columns: InstructionColumns) -> Unattributed:
    reasons = {reason: number for number, reason in enumerate(columns.reasons)}
    every, latency = _read_samples(at)
    return Unattributed(
        row=read_counts(at, "row", len(columns) - 1).astype(np.int32),
        reason=read_names(at, "reason", reasons).astype(np.int16),
        cause=read_names(at, "cause", _CAUSES).astype(np.uint8),
        all_samples=every,
        latency_samples=latency,
    )


def _read_samples(at: JsonCursor) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """float64[n] each: samples and, of these, those without issue."""
    every, latency = read_amounts(at, "all"), read_amounts(at, "latency")
    if (latency > every + _TOLERANCE_SAMPLES).any():
        wrong = int(np.flatnonzero(latency > every + _TOLERANCE_SAMPLES)[0])
        at.fail(f"has more latency samples than samples in element {wrong}")
    return every, latency


def _check_sums(at: JsonCursor, columns: InstructionColumns, edges: BlameEdges, unattributed: Unattributed) -> None:
    """Per instruction and reason, what is blamed and what is not add up to what was sampled: all samples and latency samples."""
    for word, sampled, blamed, lost in (
        ("", columns.all_samples, edges.all_samples, unattributed.all_samples),
        ("latency ", columns.latency_samples, edges.latency_samples, unattributed.latency_samples),
    ):
        sums = np.zeros(sampled.shape)
        np.add.at(sums, (edges.use_row, edges.reason), blamed)
        np.add.at(sums, (unattributed.row, unattributed.reason), lost)
        wrong = np.argwhere(np.abs(sums - sampled) > _TOLERANCE_SAMPLES + 1e-9 * sampled)
        if len(wrong):
            row, reason = wrong[0].tolist()
            place = f"instruction {row} has {sums[row, reason]:g} {word}samples of {columns.reasons[reason][:40]}"
            at.fail(f"{place} in edges and unattributed, not the {sampled[row, reason]} that were taken")


def _read_issue_counts(at: JsonCursor, row_count: int) -> IssueCounts:
    listed = [count.positive() for count in at.at("counts").items()]
    if len(listed) != row_count:
        at.at("counts").fail(f"has {len(listed)} numbers for {row_count} instructions")
    return IssueCounts(
        counts=np.array(listed, dtype=np.float64),
        is_exact=at.at("is_exact").flag(),
        why=at.at("why").text(),
        chi_square_per_row=at.at("chi_square_per_row").maybe(JsonCursor.number),
    )


def _read_coverage(at: JsonCursor) -> SingleDependencyCoverage:
    return SingleDependencyCoverage(
        before_ratio=at.at("before").maybe(JsonCursor.ratio),
        after_ratio=at.at("after").maybe(JsonCursor.ratio),
        nodes=at.at("nodes").count(),
        group_ratio=at.at("group").maybe(JsonCursor.ratio),
        group_samples=at.at("group_samples").count(),
        explained_ratio=at.at("explained").maybe(JsonCursor.ratio),
    )


def _read_wait_check(at: JsonCursor) -> WaitCheck:
    return WaitCheck(
        correlation=at.at("correlation").maybe(JsonCursor.number),
        measured_samples=at.at("measured_samples").count(),
        predicted_samples=at.at("predicted_samples").positive(),
        rows=at.at("rows").count(),
    )
