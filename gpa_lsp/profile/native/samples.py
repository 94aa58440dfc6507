"""Sample rows of a native profile: first where they are (functions may be new), then, when all addresses are known, as columns."""

from itertools import pairwise

import numpy as np
from msgspec import Struct

from gpa_lsp.profile.model import StallSamples
from gpa_lsp.profile.native.elements import Element, check_text
from gpa_lsp.profile.native.layout import MAX_OFFSET, FunctionDraft, ModuleDraft

_MAX_COUNT = (1 << 53) - 1
_MAX_ADDRESS = (1 << 64) - 1


class SampleRow(Struct, frozen=True):
    """One instruction's samples before addresses are assigned."""

    element: Element  # the row, for errors
    function: FunctionDraft | None  # the function ``offset`` counts from; None when ``offset`` is the absolute address
    offset: int  # in bytes
    # reason → (all, latency); latency is None where it is not told from the others
    counts: dict[str, tuple[int, int | None]]
    is_own: bool = True  # the function is of the launch's own module

    @property
    def address(self) -> int:
        """Absolute, once functions have addresses."""
        return self.offset if self.function is None else (self.function.address or 0) + self.offset


def read_rows(
    element: Element, module: ModuleDraft | None, modules: dict[int, ModuleDraft], version: int
) -> list[SampleRow]:
    """The ``samples`` member.

    Args:
        module: the launch's; None when it is not known.

    Raises:
        InputError: a row that names no instruction, or counts more latency samples than samples; or one that has latency samples where another
            has none.
    """
    rows = [_read_row(item, module, modules, version) for item in element.read_items()]
    known = [latency is not None for row in rows for _, latency in row.counts.values()]
    if any(known) and not all(known):
        _refuse_mixture(rows)
    return rows


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
    is_split = True
    for index, row in enumerate(rows):
        for reason, (all_count, latency_count) in row.counts.items():
            all_samples[index, columns[reason]] = all_count
            latency_samples[index, columns[reason]] = latency_count or 0
            is_split &= latency_count is not None
    return StallSamples(
        addresses=np.array([row.address for row in rows], np.uint64),
        reasons=reasons,
        all_samples=all_samples,
        latency_samples=latency_samples if is_split else None,
    )


def _read_row(element: Element, module: ModuleDraft | None, modules: dict[int, ModuleDraft], version: int) -> SampleRow:
    new = () if version == 1 else ("module",)
    members = element.read_members(("function", "pc_offset", "address", "by_reason", *new), ("by_reason",))
    counts = {
        check_text(reason, count): _read_count(count, version)
        for reason, count in members["by_reason"].read_map().items()
    }
    if members.keys() >= {"address"} and not members.keys() & {"function", "pc_offset", "module"}:
        return SampleRow(element, None, members["address"].read_address(), counts)
    if not members.keys() >= {"function", "pc_offset"} or "address" in members:
        raise element.fail("needs either 'function' and 'pc_offset' or 'address'")
    offset = members["pc_offset"].read_integer(MAX_OFFSET)
    holder = _find_holder(members["module"], modules) if "module" in members else module
    if holder is None:
        raise members["function"].fail("is a function of a launch whose module is null; give the row an 'address'")
    is_own = holder is module
    return SampleRow(element, holder.find_function(members["function"], offset), offset, counts, is_own)


def _find_holder(element: Element, modules: dict[int, ModuleDraft]) -> ModuleDraft:
    module_id = element.read_integer()
    if module_id not in modules:
        raise element.fail(f"is {module_id}, which is not a module of this profile")
    return modules[module_id]


def _refuse_mixture(rows: list[SampleRow]) -> None:
    """Say which count has no latency samples, where others of the launch have some."""
    for row in rows:
        for reason, count in row.element.read_map()["by_reason"].read_map().items():
            if row.counts[reason][1] is None:
                message = "lacks the member 'latency', which other counts of this launch have; give it to all of them or to none"
                raise count.fail(message)


def _read_count(element: Element, version: int) -> tuple[int, int | None]:
    members = element.read_members(("all", "latency"), ("all", "latency") if version == 1 else ("all",))
    all_count = members["all"].read_integer(_MAX_COUNT)
    if "latency" not in members:
        return all_count, None
    latency_count = members["latency"].read_integer(_MAX_COUNT)
    if latency_count > all_count:
        raise members["latency"].fail(f"counts {latency_count} not-issued samples among {all_count} in all")
    return all_count, latency_count
