"""Sample rows of a native profile: first where they are (functions may be new), then, when all addresses are known, as columns."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpa_lsp.profile.model import StallSamples
from gpa_lsp.profile.native.elements import Element, check_text
from gpa_lsp.profile.native.layout import MAX_OFFSET, FunctionDraft, ModuleDraft

_MAX_COUNT = (1 << 53) - 1
_MAX_ADDRESS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One instruction's samples before addresses are assigned.

    Attributes:
        element: the row, for errors.
        function: the function ``offset`` counts from; None when ``offset`` is the absolute address.
        offset: in bytes.
        counts: reason → (all, latency).
    """

    element: Element
    function: FunctionDraft | None
    offset: int
    counts: dict[str, tuple[int, int]]

    @property
    def address(self) -> int:
        """Absolute, once functions have addresses."""
        return self.offset if self.function is None else (self.function.address or 0) + self.offset


def read_rows(element: Element, module: ModuleDraft | None) -> list[SampleRow]:
    """The ``samples`` member.

    Raises:
        InputError: a row that names no instruction, or counts more latency samples than samples.
    """
    return [_read_row(item, module) for item in element.read_items()]


def build_samples(rows: list[SampleRow], extra_reasons: list[str]) -> StallSamples:
    """Columns of the rows, in ascending order of address.

    Raises:
        InputError: two rows are about one instruction.
    """
    rows = sorted(rows, key=lambda row: row.address)
    if rows and rows[-1].address > _MAX_ADDRESS:
        raise rows[-1].element.fail("lies behind the end of the address space")
    for before, row in pairwise(rows):
        if before.address == row.address:
            raise row.element.fail(f"is about the same instruction as {before.element.pointer}")
    reasons = tuple(sorted({reason for row in rows for reason in row.counts} | set(extra_reasons)))
    columns = {reason: column for column, reason in enumerate(reasons)}
    all_samples = np.zeros((len(rows), len(reasons)), np.int64)
    latency_samples = np.zeros((len(rows), len(reasons)), np.int64)
    for index, row in enumerate(rows):
        for reason, (all_count, latency_count) in row.counts.items():
            all_samples[index, columns[reason]] = all_count
            latency_samples[index, columns[reason]] = latency_count
    addresses = np.array([row.address for row in rows], np.uint64)
    return StallSamples(addresses=addresses, reasons=reasons, all_samples=all_samples, latency_samples=latency_samples)


def _read_row(element: Element, module: ModuleDraft | None) -> SampleRow:
    members = element.read_members(("function", "pc_offset", "address", "by_reason"), ("by_reason",))
    counts = {
        check_text(reason, count): _read_count(count) for reason, count in members["by_reason"].read_map().items()
    }
    if members.keys() >= {"address"} and not members.keys() & {"function", "pc_offset"}:
        return SampleRow(element, None, members["address"].read_address(), counts)
    if not members.keys() >= {"function", "pc_offset"} or "address" in members:
        raise element.fail("needs either 'function' and 'pc_offset' or 'address'")
    if module is None:
        raise members["function"].fail("is a function of a launch whose module is null; give the row an 'address'")
    offset = members["pc_offset"].read_integer(MAX_OFFSET)
    return SampleRow(element, module.find_function(members["function"], offset), offset, counts)


def _read_count(element: Element) -> tuple[int, int]:
    members = element.read_members(("all", "latency"), ("all", "latency"))
    all_count = members["all"].read_integer(_MAX_COUNT)
    latency_count = members["latency"].read_integer(_MAX_COUNT)
    if latency_count > all_count:
        raise members["latency"].fail(f"counts {latency_count} latency samples of {all_count} samples in all")
    return all_count, latency_count
