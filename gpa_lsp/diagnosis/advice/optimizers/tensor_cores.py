"""Products of matrices on the FP32 pipe."""

import numpy as np

from gpa_lsp.diagnosis.advice.blamed_stalls import build_counted_regions, build_regions, find_edges
from gpa_lsp.diagnosis.advice.loop_work import list_loop_work
from gpa_lsp.diagnosis.advice.model import Category, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.naming import describe_scope
from gpa_lsp.diagnosis.advice.optimizers import UnitOptimizer
from gpa_lsp.diagnosis.advice.reliefs import Relief, Reliefs
from gpa_lsp.diagnosis.advice.unit_pricing import UnitMatch
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, percent, say

LEAST_SHARE = 0.4  # Of a loop's instructions that are multiply-adds: then it is a product, and already a lean one

_FIRST = (8, 0)  # Compute capability from which on tensor cores take FP32 data, rounded to TF32

_TENSOR_OPCODES = ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "HGMMA", "QGMMA", "UTCHMMA", "WGMMA")
# A TF32 instruction does the multiply-adds of 32 to 64 FFMA; operands are still loaded
_LEFT = {"fma": 0.15, "issue": 0.3, "shared": 0.5, "l1": 0.5, "alu": 0.5}
_REACH = 0.5


class TensorCores(UnitOptimizer):
    """A lean FP32 product is at most as fast as the FP32 pipe; tensor cores have several times its rate, at lower precision.

    Matched: a loop of which at least two fifths are multiply-adds and that loads its operands from shared memory, on a GPU with TF32, in a kernel
    without tensor instructions, where arithmetic, issue or shared memory limits it.
    """

    name = "tensor_cores"
    title = "Use tensor cores"
    category = Category.CODE
    group = "arithmetic"
    reliefs = Reliefs(relieves=frozenset({Relief.OPERATIONS, Relief.ISSUES}))
    needs_samples = False

    def match(self, subject: Subject) -> UnitMatch | Silence:
        """Find a lean product loop."""
        architecture, works = subject.kernel.architecture, list_loop_work(subject)
        if architecture is None or architecture.compute_capability < _FIRST:
            return self.unmatched(say("the GPU has no tensor cores for FP32 data"))
        if any(mnemonic.startswith(_TENSOR_OPCODES) for mnemonic in subject.rows.mnemonics):
            return self.unmatched(say("the kernel uses tensor cores"))
        work = next(
            (one for one in works if one.shared_loads and one.multiply_adds >= LEAST_SHARE * one.executions), None
        )
        if work is None:
            return self.unmatched(say("no loop is mostly multiply-adds on operands in shared memory"))
        if find_limiter(subject).unit not in _LEFT:
            return self.silent(
                SilenceStage.GATED,
                say("arithmetic does not limit the kernel: {why}", why=find_limiter(subject).sentence),
            )
        inside = np.zeros(len(subject.rows), dtype=np.bool_)
        inside[work.rows] = True
        edges = find_edges(subject, inside)
        return UnitMatch(
            leaves=_LEFT,
            reach=_REACH,
            regions=build_regions(subject, edges, np.ones(len(edges)))
            if subject.total_samples
            else build_counted_regions(subject, np.where(inside, np.maximum(subject.rows.executions, 0), 0)),
            hint=say(
                "Do the product of {where} with {wmma} in TF32 or FP16, or call a library for it.",
                where=describe_scope(subject, work.scope),
                wmma=Code(text="nvcuda::wmma"),
            ),
            caveats=(
                say("TF32 rounds operands to 10 bits of mantissa, FP16 also narrows their range; sums stay FP32."),
            ),
            reasons=(
                say(
                    "{share} of the loop's instructions are multiply-adds",
                    share=percent(work.multiply_adds / work.executions),
                ),
            ),
        )


OPTIMIZER = TensorCores()
