"""Code that was compiled for a debugger."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.advice.blamed_stalls import build_regions, find_edges, sum_by_reason
from gpa_lsp.diagnosis.advice.loop_work import mark_block_barriers
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import DEBUG_BUILD, Category
from gpa_lsp.diagnosis.advice.naming import name_code
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.mix import ARITHMETIC, CLASSES, WorkClass, classify_rows
from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, list_of, percent, say
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    WIDEST_ACCESS_BYTES,
    count_access_bytes,
    count_innermost_turns,
    mark_accesses,
)

_DEBUG = Code(text="-G")
_COPIES = 4  # What nvcc makes of the body of a loop that ends at run time

_FUSED = (("FMUL", "FADD"), ("DMUL", "DADD"), ("HMUL2", "HADD2"))  # Products, and the sums that a multiply-add takes in

# What the source asks for, which an optimizing compiler leaves: moves, variables in local memory, addresses, loop counters and jumps hardly remain.
_ASKED_FOR = (
    *ARITHMETIC,
    WorkClass.CONVERSION,
    WorkClass.GLOBAL,
    WorkClass.SHARED,
    WorkClass.ATOMIC,
    WorkClass.TEXTURE,
    WorkClass.EXCHANGE,
    WorkClass.BARRIER,
)


def match(subject: Subject) -> Found:
    """A kernel compiled with -G keeps every variable in memory or moves it about, and schedules nothing.

    Matched: the samples of all instructions but floating-point arithmetic, accesses to memory other than local, exchanges and barriers. What waits
    for these stays; of waits for loads in a loop without stores and barriers the quarter that is left when four iterations are in flight. Of the
    sums of a line as many go as it has products: they become multiply-adds. Without samples as much of the warps' time goes as of the instructions.
    Approximation: integer arithmetic of the source's own goes, too, with its divisions, and accesses are as many and as narrow as they were.
    """
    rows = subject.rows
    what, is_whole = say("{debug}", debug=_DEBUG), find_limiter(subject).kind is LimiterKind.BUILD
    gone = ~np.isin(classify_rows(subject), [CLASSES.index(one) for one in _ASKED_FOR])
    gone |= _mark_integer_divisions(subject)
    if not is_whole:
        debug = frozenset() if subject.kernel.cubin is None else subject.kernel.cubin.debug_functions
        callees = [one.name for one in subject.kernel.functions if one.name in debug and one.total_samples]
        if not callees:
            return say("the code was compiled with optimization")
        names = list_of(name_code(demangle(name)) for name in callees)
        what = say("{debug} for {names}, which the kernel calls", debug=_DEBUG, names=names)
        gone &= np.array([rows.function_of(row).name in callees for row in range(len(rows))], dtype=np.bool_)
    removed = np.where(gone, 1.0, _count_fused(subject) if is_whole else 0.0)
    parts = np.maximum(removed, _count_overlapped(subject)) if is_whole else removed
    edges = find_edges(subject, parts > 0)
    causes = subject.edges.def_row[edges]
    weights = np.where(subject.edges.is_moved[edges] | (removed[causes] > 0), parts[causes], 0.0)
    return EliminationMatch(
        regions=() if is_whole else build_regions(subject, edges, weights),
        states=_measure_states(subject, gone, edges, weights) if is_whole else {},
        work=count_work_left(subject, executions=removed),
        least=count_work_left(subject, executions=np.maximum(removed, _count_merged(subject))),
        hint=say(
            "Compile with {lines} in place of {what}, and measure again.", lines=Code(text="-lineinfo"), what=what
        ),
        caveats=(say("Other suggestions are about unoptimized code."),) if is_whole else (),
        reasons=(
            say("the image holds the debugger's map of registers, which only {debug} writes", debug=_DEBUG),
            say(
                "{part} of the instructions are what the source asks for; hardly any of the others would remain",
                part=percent(1 - _measure_part(subject, gone)),
            ),
        ),
    )


def _measure_states(
    subject: Subject, gone: npt.NDArray[np.bool_], edges: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]
) -> dict[str, float]:
    """Stall reason → the part of the warps' time that goes."""
    total = subject.total_samples
    if not total:
        return {"wait": _measure_part(subject, gone)}
    return {reason: samples / total for reason, samples in sum_by_reason(subject, edges, weights).items()}


def _count_overlapped(subject: Subject) -> npt.NDArray[np.float64]:
    """float64[n]: the part of the waits for a load that goes because the compiler unrolls the loop around it."""
    rows, found = subject.rows, np.zeros(len(subject.rows))
    loads = mark_accesses(rows, (*GLOBAL_SPACES, MemorySpace.SHARED), (Access.LOAD,))
    parts = mark_accesses(rows, (*GLOBAL_SPACES, MemorySpace.SHARED), (Access.STORE, Access.ATOMIC, Access.REDUCTION))
    parts |= mark_block_barriers(rows)
    for row in np.flatnonzero(loads).tolist():
        if (loop := subject.scopes.loop_of(row)) >= 0 and not parts[subject.scopes.rows_of(loop)].any():
            found[row] = 1 - 1 / min(_COPIES, count_innermost_turns(rows, row))
    return found


def _mark_integer_divisions(subject: Subject) -> npt.NDArray[np.bool_]:
    """bool[n]: reciprocals and conversions on lines that convert an integer upwards (``I2F.RP``), as only divisions of integers do."""
    rows, lines = subject.rows, subject.rows.own_lines
    names = [rows.mnemonic(row).split(".") for row in range(len(rows))]
    begun = np.array([one[0] == "I2F" and "RP" in one for one in names], dtype=np.bool_)
    parts = np.array([one[0] in ("I2F", "F2I", "MUFU") for one in names], dtype=np.bool_)
    return parts & np.isin(lines, lines[begun])


def _count_fused(subject: Subject) -> npt.NDArray[np.float64]:
    """float64[n]: the part of each sum that goes because its line has products that it takes in."""
    rows, found = subject.rows, np.zeros(len(subject.rows))
    lines, executed = np.unique(rows.own_lines, return_inverse=True)[1].reshape(-1), subject.executed
    names = [rows.mnemonic(row).split(".")[0] for row in range(len(rows))]
    for product, addition in _FUSED:
        products, sums = (np.array([name == one for name in names], dtype=np.bool_) for one in (product, addition))
        each, every = (np.bincount(lines, weights=executed * one) for one in (products, sums))
        found[sums] = np.minimum(1.0, each / np.maximum(every, 1.0))[lines][sums]
    return found


def _count_merged(subject: Subject) -> npt.NDArray[np.float64]:
    """float64[n]: the part of each access that goes where one of 16 bytes takes the place of several."""
    widths = subject.rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    return np.where(widths > 0, 1 - np.minimum(1.0, widths / WIDEST_ACCESS_BYTES), 0.0)


def _measure_part(subject: Subject, marked: npt.NDArray[np.bool_]) -> float:
    """Share of marked instructions among executed ones; in the code, where executions were not collected."""
    executed = subject.executed
    counts = executed if executed.any() else np.ones(len(marked), dtype=np.int64)
    return float(counts[marked].sum()) / max(1, int(counts.sum()))


OPTIMIZER = Optimizer(
    name=DEBUG_BUILD,
    title="Compile without -G",
    category=Category.BINARY,
    group="build",
    needs_samples=False,
    needs_code=False,
    find=match,
)
