"""What the innermost loops of a kernel execute: multiply-adds and the accesses that feed them."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.records import ColumnRecord, remembered
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, WARP_THREADS, count_access_bytes, mark_accesses
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import Scope

_MULTIPLY_ADDS = frozenset({"FFMA", "FFMA32I", "FFMA2", "HFMA2", "DFMA"})

# A pair of them is a multiply-add that was not fused, as in debug builds
_PRODUCTS, _SUMS = frozenset({"FMUL", "DMUL"}), frozenset({"FADD", "DADD"})

_WORD_BYTES = 4

_LEAST_SHARE = 0.05  # Of the kernel's multiply-adds; loops with less are not what the kernel is about


class LoopWork(ColumnRecord, frozen=True, kw_only=True):
    """What an innermost loop executes, in warp instructions over all launches."""

    number: int  # of its scope; that of the routine where the code is unrolled wholly
    scope: Scope  # where
    rows: npt.NDArray[np.int64]  # int64[k], its rows
    executions: int  # of all its instructions
    multiply_adds: int  # of floating-point numbers
    shared_loads: int  # instructions
    shared_wavefronts: int  # that these take; as many as the loads where not counted
    shared_words: int  # of 4 bytes that a thread loads from shared memory by these
    global_loads: int  # instructions
    samples: int  # of its rows


@remembered
def list_loop_work(subject: Subject) -> tuple[LoopWork, ...]:
    """The innermost scopes with multiply-adds and executions, most multiply-adds first; empty where executions were not collected."""
    rows = subject.rows
    executions = np.maximum(rows.executions, 0)
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
                samples=int(samples[inside].sum()),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.multiply_adds, one.number)))


def count_results(subject: Subject) -> float | None:
    """Words that a launch stores to global memory; None where executions or the stores are unknown."""
    rows = subject.rows
    stores = mark_accesses(rows, GLOBAL_SPACES, (Access.STORE,))
    widths = rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    launches = max(1, sum(launch.failure is None for launch in subject.kernel.launches))
    stored = int((np.maximum(rows.executions, 0) * widths)[stores].sum()) * WARP_THREADS / _WORD_BYTES / launches
    return stored or None


def mark_multiply_adds(rows: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n]: floating-point multiply-adds, and the products and sums that stand for them in debug builds."""
    return _mark(rows, _MULTIPLY_ADDS | _PRODUCTS | _SUMS)


def mark_products(rows: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n]: the multiply-adds and products among :func:`mark_multiply_adds`."""
    return _mark(rows, _MULTIPLY_ADDS | _PRODUCTS)


def _mark(rows: KernelRows, names: frozenset[str]) -> npt.NDArray[np.bool_]:
    every = (rows.mnemonic(row).split(".")[0] in names for row in range(len(rows)))
    return np.fromiter(every, dtype=np.bool_, count=len(rows))
