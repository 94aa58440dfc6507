"""Products of matrices on the FP32 pipe."""

from math import prod

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.advice.blamed_stalls import build_counted_regions, build_regions, mark_reasons
from gpa_lsp.diagnosis.advice.loop_work import LoopWork, count_results, list_loop_work, mark_multiply_adds
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.naming import describe_scope
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer, refuse_unlimiting
from gpa_lsp.diagnosis.advice.pricing import WAITING
from gpa_lsp.diagnosis.advice.work_left import count_work_left, remove_feeders
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, percent, say
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS, mark_accesses
from gpa_lsp.kernel.dataflow.value_flow import build_flow

LEAST_SHARE = 0.4  # Of a loop's instructions that are multiply-adds: then it is a product, and already a lean one

# Compute capability from which on tensor cores take halves, and FP32 data, rounded to TF32
_FIRST_OF_HALVES, _FIRST = (7, 0), (8, 0)

_TENSOR_OPCODES = ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "HGMMA", "QGMMA", "UTCHMMA", "WGMMA")
# HMMA.1688 of 16 × 8 × 8 TF32 multiply-adds does those of 32 warp-wide FFMA, HMMA.16816 on halves those of 64
_MULTIPLY_ADDS_EACH = 32
_HALF_MULTIPLY_ADDS_EACH = 64
_LOADS_EACH = 16  # LDSM.x4 loads what 16 loads of a half per lane do: 4 matrices of 8 × 8

_RESULTS_EACH = 16 * 16  # Of a warp's tile

# Of a loop's instructions, those that are multiply-adds on converted halves: the others convert and load
_LEAST_HALF_SHARE = 0.1
_MOST_LOOKED_AT = 64  # Multiply-adds of a loop
_WIDENS = "HADD2.F32"  # What a half is converted to FP32 by

# Units that a product's loop does not use
_BEHIND_SHARED = frozenset({"dram", "l2", "l2_slice"})

# Units on which a product spends its time
_UNITS = frozenset({"fma", "issue", "shared", "l1", "lsu", "alu"})


def match(subject: Subject) -> Found:
    """A lean FP32 product is at most as fast as the FP32 pipe; tensor cores have several times its rate, at lower precision.

    Matched: a loop of which at least two fifths are multiply-adds, or a tenth on operands that are converted from halves, and that loads its operands
    from shared memory, on a GPU with tensor cores for them, in a kernel without tensor instructions, where arithmetic, issue or shared memory limits
    it. A warp's tile is of 16 × 16 results: where its threads have fewer, the loop's other instructions go round less often for each.
    """
    architecture, works = subject.kernel.architecture, list_loop_work(subject)
    if architecture is None or architecture.compute_capability < _FIRST_OF_HALVES:
        return say("the GPU has no tensor cores")
    if any(mnemonic.startswith(_TENSOR_OPCODES) for mnemonic in subject.rows.mnemonics):
        return say("the kernel uses tensor cores")
    work = next((one for one in works if one.shared_loads and one.multiply_adds >= LEAST_SHARE * one.executions), None)
    half = None if work is not None else next((one for one in works if _is_of_halves(subject, one)), None)
    work = work or half
    if half is None and architecture.compute_capability < _FIRST:
        return say("the GPU has no tensor cores for FP32 data")
    if work is None:
        return say("no loop is mostly multiply-adds on operands in shared memory")
    unit = find_limiter(subject).unit
    if unit in _BEHIND_SHARED or (half is None and unit not in _UNITS):
        return refuse_unlimiting(subject, "arithmetic does")
    inside = subject.rows.mark(work.rows)
    gone = _weigh_rows(subject, inside, is_half=half is not None)
    # A warp waits for each tile as before.
    edges = np.flatnonzero((gone > 0)[subject.edges.def_row] & ~mark_reasons(subject, (WAITING,)))
    return EliminationMatch(
        work=count_work_left(subject, executions=remove_feeders(subject, gone)),
        regions=build_regions(subject, edges, gone[subject.edges.def_row[edges]])
        if subject.total_samples
        else build_counted_regions(subject, np.where(inside, subject.executed, 0)),
        hint=say(
            "Do the product of {where} with {wmma} {how}, or call a library for it.",
            where=describe_scope(subject, work.scope),
            wmma=Code(text="nvcuda::wmma"),
            how=say("in TF32 or FP16") if half is None else say("on the halves as they are"),
        ),
        caveats=(
            say("TF32 rounds operands to 10 bits of mantissa, FP16 also narrows their range; sums stay FP32.")
            if half is None
            else say("Products are summed in another order."),
            say(
                "Fragments that are loaded without tiles in shared memory, or by few warps, can be slower than what they replace."
            ),
        ),
        reasons=(
            say(
                "{share} of the loop's instructions are multiply-adds",
                share=percent(work.multiply_adds / work.executions),
            ),
        ),
    )


def _is_of_halves(subject: Subject, work: LoopWork) -> bool:
    """Whether most multiply-adds of a loop have two factors that were converted from halves of shared memory."""
    if not work.shared_loads or work.multiply_adds < _LEAST_HALF_SHARE * work.executions:
        return False
    flow = build_flow(subject.rows, int(subject.rows.function_index[work.rows[0]]))
    if flow is None:
        return False
    rows = work.rows[mark_multiply_adds(subject.rows)[work.rows]][:_MOST_LOOKED_AT] - flow.first_row
    converted = (
        sum(flow.mnemonic(one).startswith(_WIDENS) for one in flow.find_defs(row)) >= 2 for row in rows.tolist()
    )
    return 2 * sum(converted) > len(rows)


def _weigh_rows(subject: Subject, inside: npt.NDArray[np.bool_], *, is_half: bool) -> npt.NDArray[np.float64]:
    """float64[n]: the part of each instruction of the loop that goes; of halves their conversions and loads, too."""
    is_fma = inside & mark_multiply_adds(subject.rows)
    if not is_half:
        return np.where(is_fma, 1 - 1 / _MULTIPLY_ADDS_EACH, 0.0)
    loads = inside & mark_accesses(subject.rows, (MemorySpace.SHARED,), (Access.LOAD,))
    widens = inside & subject.rows.spread_by_mnemonic(lambda name: int(name.startswith(_WIDENS)), unknown=0).astype(
        bool
    )
    gone = np.where(is_fma, 1 - 1 / _HALF_MULTIPLY_ADDS_EACH, np.where(loads, 1 - 1 / _LOADS_EACH, 0.0))
    results, launch = count_results(subject), subject.launch
    tiles = 1.0
    if results is not None and launch is not None and launch.grid is not None:
        tiles = min(1.0, WARP_THREADS * results / (prod(launch.grid) * launch.threads_per_block) / _RESULTS_EACH)
    return np.where(widens, 1.0, np.where(inside, np.maximum(gone, 1 - tiles), 0.0))


OPTIMIZER = Optimizer(
    name="tensor_cores",
    title="Use tensor cores",
    group="arithmetic",
    needs_samples=False,
    find=match,
)
