"""The least that global accesses have to move: what stays of each level's traffic when every access is coalesced."""

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.advice.work_left import Parts, count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.records import remembered
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    SECTOR_BYTES,
    WARP_THREADS,
    count_access_bytes,
    count_per_request,
    find_address,
    mark_accesses,
    measure_excess,
)
from gpa_lsp.kernel.dataflow.divergent_branches import find_divergent_branches
from gpa_lsp.kernel.dataflow.gathered_accesses import find_special_registers, list_address_defs, mark_gathered
from gpa_lsp.kernel.dataflow.value_flow import is_decided_by_data

_SECTORS_PER_LINE = 4
_BLOCK_INDICES = ("SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z")


class TrafficFloor(Struct, frozen=True, kw_only=True):
    """Least traffic of global accesses, as parts of the present traffic."""

    sectors: float  # the least sectors of loads and stores over those they touch, 0..1
    lines: float  # the fewest lines over those they touch: passes through L1; 1 where not counted
    # unit → the part of its work that stays. A level below L1 loses no more than the excess sectors, and keeps at least the least bytes of all
    # accesses, unless caches answer them already. L1 keeps all where the number of requests is what keeps it busy.
    leaves: Mapping[str, float]
    # the same where warps touch the fewest lines: then levels below L1 lose no more than the excess lines
    leaves_by_lines: Mapping[str, float]


@remembered
def measure_floor(subject: Subject) -> TrafficFloor | None:
    """The floor of global loads and stores; None where sectors were not counted."""
    rows = subject.rows
    accesses = mark_accesses(rows, GLOBAL_SPACES, (Access.LOAD, Access.STORE, Access.COPY))
    sectors, tags = (rows.counter(name) for name in ("global_sectors", "global_tag_requests"))
    ideal = find_least_sectors(subject)
    if sectors is None or ideal is None or not accesses.any():
        return None
    touched, least = (int(np.maximum(column[accesses], 0).sum()) for column in (sectors, ideal))
    if touched <= 0:
        return None
    launches = subject.run_count
    fewest = {"dram": _count_distinct(subject, np.where(accesses, ideal, 0)), "l2": float(least)}
    moved = {
        "dram": _count_dram_bytes(subject),
        "l2": (_add(subject, "lts__t_sectors_srcunit_tex.sum") or 0.0) * SECTOR_BYTES,
    }
    # DRAM may send more than the sectors that L2 is asked for: those beside them, which L2 fetches with them.
    fetched = max(1.0, (moved["dram"] or 0.0) / moved["l2"]) if moved["l2"] else 1.0

    def leave(parts: Parts, excess_bytes: float) -> Mapping[str, float]:
        requests = count_work_left(subject, lines=parts)
        kept = {
            unit: min(1.0, max(fewest[unit] * SECTOR_BYTES, most * launches - excess_bytes * each) / (most * launches))
            for unit, most, each in (("dram", moved["dram"], fetched), ("l2", moved["l2"], 1.0))
            if most
        }
        return {**{unit: requests[unit] for unit in ("tags", "l1") if unit in requests}, **kept}

    # What lies where a loaded value says is brought together by no other order of the threads.
    ordered = accesses & ~mark_gathered(rows)
    excess = int((np.maximum(sectors, 0) - np.maximum(ideal, 0))[ordered].clip(min=0).sum())
    # Each row of a block that a warp covers has a line of its own, as long as blocks stay as wide as they are.
    as_wide, in_a_row = (
        np.where(
            ordered,
            measure_excess(sectors, ideal) if tags is None else _measure_lines(subject, tags, ideal, rows_each),
            0.0,
        )
        for rows_each in (_count_rows(subject), 1)
    )
    excess_lines = 0.0 if tags is None else float((in_a_row * np.maximum(tags, 0)).sum())
    return TrafficFloor(
        sectors=min(1.0, least / touched),
        lines=1.0 if tags is None else 1 - excess_lines / max(1, int(np.maximum(tags[accesses], 0).sum())),
        leaves=leave(as_wide, excess * SECTOR_BYTES),
        leaves_by_lines=leave(in_a_row, excess_lines * _SECTORS_PER_LINE * SECTOR_BYTES),
    )


def _count_distinct(subject: Subject, sectors: npt.NDArray[np.int64]) -> float:
    """Sectors of some accesses, given those of each row: once what blocks of different indices access at the same addresses."""
    grid = None if subject.launch is None else subject.launch.grid
    found = sectors.astype(np.float64)
    for row in np.flatnonzero(sectors > 0).tolist() if grid else ():
        indices, is_whole = find_special_registers(subject.rows, row)
        if indices and is_whole:  # otherwise its address comes from elsewhere, too
            found[row] /= prod(
                size for size, name in zip(grid or (), _BLOCK_INDICES, strict=True) if name not in indices
            )
    return float(found.sum())


@remembered
def find_least_sectors(subject: Subject) -> npt.NDArray[np.int64] | None:
    """int64[n]: sectors that accesses touch when neighbouring threads access neighbouring elements; None where they were not counted.

    The ideal, but where data decide which threads go on: those lie anywhere in their warp, and of the l lanes of a sector one at least goes on in
    1 − (1 − p)^l of them, p the part of the warp's lanes.
    """
    sectors, ideal = (subject.rows.counter(name) for name in ("global_sectors", "global_sectors_ideal"))
    if sectors is None or ideal is None:
        return None
    branches = find_divergent_branches(subject.rows)
    parted = {row for one in branches if is_decided_by_data(subject.rows, one.row) for row in one.rows.tolist()}
    inside = subject.rows.mark(parted)
    widths = np.maximum(1, subject.rows.spread_by_mnemonic(count_access_bytes, unknown=1))
    _, threads = count_per_request(subject.rows)
    lanes = np.maximum(1.0, SECTOR_BYTES / widths)
    touched = WARP_THREADS / lanes * (1 - (1 - np.minimum(1.0, threads / WARP_THREADS)) ** lanes)
    return np.where(
        inside & (ideal > 0), np.minimum(sectors, np.maximum(ideal, touched * subject.executed)), ideal
    ).astype(np.int64)


def measure_excess_lines(subject: Subject) -> Parts | None:
    """float64[n]: the part of the lines an access touches that it need not when warps read along a row, 1 where unknown; None where not counted."""
    tags, ideal = subject.rows.counter("global_tag_requests"), find_least_sectors(subject)
    if tags is None or ideal is None:
        return None
    return np.where((tags > 0) & (subject.rows.executions > 0), _measure_lines(subject, tags, ideal, 1), 1.0)


def _measure_lines(
    subject: Subject, tags: npt.NDArray[np.int64], ideal: npt.NDArray[np.int64], rows_each: int
) -> Parts:
    """float64[n]: the part of the lines an access touches that it need not: one for each execution and row, or for four sectors."""
    counted, executed = np.maximum(tags, 0), subject.executed
    fewest = np.maximum(executed * rows_each, np.maximum(ideal, 0) / _SECTORS_PER_LINE)
    return np.where(counted > 0, 1 - np.minimum(fewest, counted) / np.maximum(1, counted), 0.0)


def _count_rows(subject: Subject) -> int:
    """Rows of a block that a warp covers."""
    launch = subject.launch
    if launch is None or launch.threads[1] * launch.threads[2] == 1:
        return 1
    return max(1, min(WARP_THREADS, launch.threads_per_block) // launch.threads[0])


def measure_local_traffic(subject: Subject, accesses: npt.NDArray[np.bool_]) -> Mapping[str, float] | None:
    """Unit → the part of its work that stays without some accesses to local memory; None where sectors were not counted.

    Approximation: L1 answers them as often as accesses to global memory. Of DRAM's traffic the least bytes of global accesses stay, those around
    one address once, or what they ask L2 for where that is less.
    """
    names = ("local_sectors", "global_sectors", "global_sectors_ideal")
    sectors, whole, ideal = map(subject.read_counter, names)
    if sectors is None or whole is None or ideal is None:
        return None
    launches = subject.run_count
    local = int(sectors[accesses].sum()) / launches
    every = (int(whole.sum()) + int(sectors.sum())) / launches
    least_bytes = _count_sectors_once(subject, ideal) / launches * SECTOR_BYTES
    executed = subject.executed
    requests = mark_accesses(subject.rows, (*GLOBAL_SPACES, MemorySpace.LOCAL, MemorySpace.SHARED), tuple(Access))
    leaves = {"l1": 1 - int(executed[accesses].sum()) / max(1, int(executed[requests].sum()))}
    through_l2 = _add(subject, "lts__t_sectors_srcunit_tex.sum") or _add(subject, "lts__t_sectors.sum")
    if not through_l2 or not every:
        return leaves
    gone = local * min(1.0, through_l2 / every)
    leaves["l2"] = max(0.0, 1 - gone / through_l2)
    dram = _count_dram_bytes(subject)
    if dram:
        asked_bytes = max(0.0, through_l2 - gone) * SECTOR_BYTES
        leaves["dram"] = min(1.0, max(min(least_bytes, asked_bytes), dram - gone * SECTOR_BYTES) / dram)
    return leaves


def _count_sectors_once(subject: Subject, sectors: npt.NDArray[np.int64]) -> int:
    """Sectors of global accesses; of those around one address, made by the same text, whose offsets are constant, the most of one of them."""
    most: dict[tuple[int, str, tuple[str, ...], Access | None], int] = {}
    for row in np.flatnonzero(sectors > 0).tolist():
        instructions = subject.rows.function_of(row).instructions
        found = None if instructions is None else find_address(instructions.texts[subject.rows.index_of(row)])
        place = (found[0], list_address_defs(subject.rows, row)) if found else (str(row), ())
        key = (int(subject.rows.function_index[row]), *place, subject.rows.opcode(row).access)
        most[key] = max(most.get(key, 0), int(sectors[row]))
    return sum(most.values())


def _count_dram_bytes(subject: Subject) -> float | None:
    """Bytes that the longest launch moves between DRAM and L2; None when not collected."""
    return subject.metric("dram__bytes.sum") or _add(subject, "dram__bytes_read.sum", "dram__bytes_write.sum")


def _add(subject: Subject, *names: str) -> float | None:
    """Counters of the longest launch together; None where one is missing."""
    found = [subject.kernel.metric(name) for name in names]
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None
