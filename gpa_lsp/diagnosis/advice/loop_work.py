"""Work of a kernel's innermost loops: multiply-adds, the accesses that feed them, as they are and in tiles, reductions by steps."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Synchronisation
from gpa_lsp.diagnosis.analyses.decomposition.load_waits import measure_sample_scale
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import estimate_unloaded_latency, read_l2_traffic
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.records import ColumnRecord, remembered
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    SECTOR_BYTES,
    WARP_THREADS,
    count_access_bytes,
    count_innermost_turns,
    count_per_request,
    mark_accesses,
)
from gpa_lsp.kernel.dataflow.value_flow import build_flow
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import Scope

_MULTIPLY_ADDS = frozenset({"FFMA", "FFMA32I", "FFMA2", "HFMA2", "DFMA"})

# A pair of them is a multiply-add that was not fused, as in debug builds
_PRODUCTS, _SUMS = frozenset({"FMUL", "DMUL"}), frozenset({"FADD", "DADD"})

_WORD_BYTES, _LINE_BYTES = 4, 128

# Bytes from L1 to registers over bytes from L2 to L1: in published reports a naive matrix product has 8, a convolution 50
LEAST_REUSE = 4.0

_LEAST_SHARE = 0.05  # Of the kernel's multiply-adds; loops with less are not what the kernel is about


_LARGEST_TREE_STEP = 64  # Instructions of a loop that can be a step of a reduction tree
_FEWEST_STEPS = 3  # Of a reduction: with fewer there is little to save

# What a reduction does with two values
_COMBINES = frozenset(
    {"FADD", "DADD", "HADD2", "IADD", "IADD3", "VIADD", "FMUL", "DMUL", "FMNMX", "DMNMX", "IMNMX", "VIMNMX", "HMNMX2", "LOP3"}
)  # fmt: skip


class LoopWork(ColumnRecord, frozen=True, kw_only=True):
    """Work of an innermost loop, in warp instructions over all launches."""

    number: int  # of its scope; that of the routine where the code is unrolled wholly
    scope: Scope  # where
    rows: npt.NDArray[np.int64]  # int64[k], its rows
    executions: int  # of all its instructions
    multiply_adds: int  # of floating-point numbers
    shared_loads: int  # instructions
    shared_wavefronts: int  # that these take; as many as the loads where not counted
    shared_words: int  # of 4 bytes that a thread loads from shared memory by these
    global_loads: int  # instructions
    global_words: int  # of 4 bytes that a thread loads from global memory by these
    samples: int  # of its rows


@remembered
def list_loop_work(subject: Subject) -> tuple[LoopWork, ...]:
    """The innermost scopes with multiply-adds and executions, most multiply-adds first; empty where executions were not collected."""
    rows = subject.rows
    executions = subject.executed
    if not rows.has_code or not executions.any():
        return ()
    reads = np.diff(rows.reads.starts) - (rows.guard >= 0)
    # A multiply-add of fewer than two registers loads a constant.
    is_fma, *apart = (_mark(rows, names) & (reads >= 2) for names in (_MULTIPLY_ADDS, _PRODUCTS, _SUMS))
    is_shared = mark_accesses(rows, (MemorySpace.SHARED,), (Access.LOAD,))
    is_global = mark_accesses(rows, GLOBAL_SPACES, (Access.LOAD,))
    wavefronts = rows.counter("shared_wavefronts")
    passes = executions if wavefronts is None else np.where(wavefronts >= 0, wavefronts, executions)
    widths = rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    samples = rows.all_samples.sum(axis=1)
    total = int(executions[is_fma].sum()) + min(int(executions[one].sum()) for one in apart)
    found = []
    for number in find_distinct(subject.scopes.innermost[(is_fma | apart[0]) & (executions > 0)]).tolist():
        inside = subject.scopes.innermost == number
        fmas = int(executions[inside & is_fma].sum()) + min(int(executions[inside & one].sum()) for one in apart)
        if not fmas or fmas < _LEAST_SHARE * total:
            continue
        found.append(
            LoopWork(
                number=number,
                scope=subject.scopes.scopes[number],
                rows=np.flatnonzero(inside),
                executions=int(executions[inside].sum()),
                multiply_adds=fmas,
                shared_loads=int(executions[inside & is_shared].sum()),
                shared_wavefronts=int(passes[inside & is_shared].sum()),
                shared_words=int((executions * widths)[inside & is_shared].sum()) // _WORD_BYTES,
                global_loads=int(executions[inside & is_global].sum()),
                global_words=int((executions * widths)[inside & is_global].sum()) // _WORD_BYTES,
                samples=int(samples[inside].sum()),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.multiply_adds, one.number)))


def count_results(subject: Subject) -> float | None:
    """Words that a launch stores to global memory; None where executions or the stores are unknown."""
    rows = subject.rows
    stores = mark_accesses(rows, GLOBAL_SPACES, (Access.STORE,))
    widths = rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    stored = int((subject.executed * widths)[stores].sum()) * WARP_THREADS / _WORD_BYTES / subject.run_count
    return stored or None


def measure_filling(subject: Subject, rounds: float) -> float:
    """The part of the warps' time that is added by waiting some times for a tile."""
    scale = measure_sample_scale(subject)
    latency = _find_tile_latency(subject)
    if scale is None or latency is None or not subject.total_samples:
        return 0.0
    return rounds * latency / (scale * subject.total_samples)


def _find_tile_latency(subject: Subject) -> float | None:
    """Latency of the slowest line of a tile, which all warps of a block wait for, in cycles; DRAM's where L2 hit rates were not collected."""
    if subject.architecture is None or subject.launch is None:
        return None
    hierarchy, traffic = subject.architecture.hierarchy, read_l2_traffic(subject)
    if traffic is None:
        return hierarchy.dram_tlb_warm_cycles.value
    lines = max(1.0, subject.launch.threads_per_block * _WORD_BYTES / _LINE_BYTES)
    found = estimate_unloaded_latency(hierarchy, 0.0, traffic, lines)
    return hierarchy.dram_tlb_warm_cycles.value if found is None else found.cycles


def measure_reuse(subject: Subject) -> float | None:
    """Bytes from L1 to registers over bytes from L2 to L1; None where one is unknown."""
    sectors = subject.read_counter("global_sectors")
    loads = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD,))
    filled = [launch.read_number("l1tex__m_xbar2l1tex_read_bytes.sum") for launch in subject.runs]
    known = [one for one in filled if one] or _derive_fills(subject)
    if sectors is None or not known or len(known) < len(filled):
        return None
    return float(sectors[loads].sum()) * SECTOR_BYTES / sum(known)


def _derive_fills(subject: Subject) -> list[float]:
    """The same where it was not counted: what L1 asked L2 for, without what stores write through; empty where that was not counted either."""
    asked = [launch.read_number("lts__t_sectors_srcunit_tex.sum") for launch in subject.runs]
    sectors = subject.read_counter("global_sectors")
    if sectors is None or None in asked:
        return []
    stores = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.STORE,))
    stored = float(sectors[stores].sum()) / subject.run_count
    return [max(1.0, one - stored) * SECTOR_BYTES for one in asked if one is not None]


class Tree(NamedTuple):
    """A reduction or a scan by steps through shared memory that barriers end."""

    rows: npt.NDArray[np.int64]  # int64[k], of its steps
    is_scan: bool  # a barrier stands between the loads of a step and its store, too, for all threads keep a result
    steps: float  # that end at a barrier
    readers: float  # warps whose threads all need the result, over all launches; 0 where one thread of a block takes it


@remembered
def find_trees(subject: Subject) -> tuple[Tree, ...]:
    """The reductions and scans of a kernel: loops of few instructions, and unrolled steps, one by one."""
    rows = subject.rows
    loads, stores = (mark_accesses(rows, (MemorySpace.SHARED,), (kind,)) for kind in (Access.LOAD, Access.STORE))
    executed = subject.executed
    by_scope: dict[int, list[int]] = {}
    for row in np.flatnonzero(mark_block_barriers(rows)).tolist():
        by_scope.setdefault(int(subject.scopes.innermost[row]), []).append(row)
    found = []
    for scope, ends in by_scope.items():
        is_loop = subject.scopes.loop_of(ends[0]) == scope
        parts = [subject.scopes.rows_of(scope)] if is_loop else [np.arange(*one) + 1 for one in pairwise(ends)]
        is_nested = is_loop and any(subject.scopes.loop_of(row) != scope for row in parts[0].tolist())
        if is_nested or not executed[ends].any():
            continue
        is_step = [
            len(one) <= _LARGEST_TREE_STEP and _is_reduction(subject, one[stores[one]].tolist(), loads) for one in parts
        ]
        is_read = [len(one) <= _LARGEST_TREE_STEP and bool(loads[one].any() and not stores[one].any()) for one in parts]
        turns = count_innermost_turns(subject.rows, ends[0]) * len(ends) if is_loop else 1.0
        kinds = zip(is_step, is_read, parts, strict=True)
        for is_tree, run in groupby(kinds, key=lambda one: one[0] or one[1]):
            steps = list(run)
            writes = [number for number, (is_write, _, _) in enumerate(steps) if is_write]
            if not is_tree or not writes or turns * len(writes) < _FEWEST_STEPS - (not is_loop):
                continue
            # Of a scan, a part that loads is before each that stores.
            is_scan = len(ends) > 1 if is_loop else writes[-1] >= 2 * len(writes) - 2 > 0
            own = steps[0 if is_scan else writes[0] : writes[-1] + 1]
            inside = np.concatenate([part for _, _, part in own])
            warps = float(executed[inside[np.isin(inside, ends)]].max()) / max(1.0, turns)
            is_needed = is_scan or _is_read_by_all(rows, loads, inside, warps)
            found.append(Tree(inside, is_scan, turns * len(writes), warps if is_needed else 0.0))
    return tuple(found)


def _is_read_by_all(
    rows: KernelRows, loads: npt.NDArray[np.bool_], inside: npt.NDArray[np.int64], warps: float
) -> bool:
    """Whether as many warps as execute a tree load from shared memory behind it, most of their threads."""
    later = loads & (np.arange(len(rows)) > inside.max()) & (rows.function_index == rows.function_index[inside[0]])
    _, threads = count_per_request(rows)
    return bool((later & (threads > WARP_THREADS / 2) & (rows.executions >= warps)).any())


def _is_reduction(subject: Subject, stores: Sequence[int], loads: npt.NDArray[np.bool_]) -> bool:
    """Whether what is stored to shared memory is what was loaded from it, combined with one other value."""
    return bool(stores) and all(_is_combined(subject, row, loads) for row in stores)


def _is_combined(subject: Subject, store: int, loads: npt.NDArray[np.bool_]) -> bool:
    flow = build_flow(subject.rows, int(subject.rows.function_index[store]))
    if flow is None:
        return False
    return any(
        flow.mnemonic(one).split(".")[0] in _COMBINES
        and any(loads[flow.first_row + other] for other in flow.find_defs(one))
        for one in flow.find_defs(store - flow.first_row)
    )


def mark_block_barriers(rows: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n]: barriers of blocks or of parts of them."""
    return rows.mark_by_opcode(lambda one: one.synchronises is Synchronisation.BLOCK)


def mark_multiply_adds(rows: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n]: floating-point multiply-adds, and the products and sums that stand for them in debug builds."""
    return _mark(rows, _MULTIPLY_ADDS | _PRODUCTS | _SUMS)


def mark_products(rows: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n]: the multiply-adds and products among :func:`mark_multiply_adds`."""
    return _mark(rows, _MULTIPLY_ADDS | _PRODUCTS)


def _mark(rows: KernelRows, names: frozenset[str]) -> npt.NDArray[np.bool_]:
    every = (rows.mnemonic(row).split(".")[0] in names for row in range(len(rows)))
    return np.fromiter(every, dtype=np.bool_, count=len(rows))
