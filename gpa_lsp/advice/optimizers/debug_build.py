"""Code that was compiled for a debugger."""

from typing import ClassVar

from gpa_lsp.advice.model import Advice, Category, MemoryLevel, Silence, SilenceStage, Speedup
from gpa_lsp.advice.optimizers import Optimizer
from gpa_lsp.advice.reliefs import Relief, Reliefs
from gpa_lsp.advice.subject import Subject
from gpa_lsp.analyses.limiter.model import LimiterKind
from gpa_lsp.basis.figures import measure_share
from gpa_lsp.basis.prose import Code, say

OFTEN = (3.0, 6.0, 12.0)
"""What dropping -G often gains: least, middle, most. One product of matrices on an RTX 4090 gained 11.97×; that a range this wide is all that can be
said beforehand follows from what -G does: every variable lives in memory, and nothing is scheduled."""


class DebugBuild(Optimizer):
    """A kernel compiled with -G is not optimized, and its profile says little of what the optimized one would need."""

    name: ClassVar[str] = "debug_build"
    title: ClassVar[str] = "Compile without -G"
    category: ClassVar[Category] = Category.BINARY
    group: ClassVar[str] = "build"
    reliefs: ClassVar[Reliefs] = Reliefs(
        relieves=frozenset({Relief.BYTES, Relief.OPERATIONS, Relief.ISSUES, Relief.LATENCY}),
        levels=frozenset({MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.DRAM, MemoryLevel.SHARED}),
    )
    needs_samples: ClassVar[bool] = False

    def advise(self, subject: Subject) -> Advice | Silence:
        """Say so where the image holds a debugger's map of registers."""
        if subject.limiter.kind is not LimiterKind.BUILD:
            return self.silent(SilenceStage.NOT_MATCHED, say("the code was compiled with optimization"))
        dram = subject.limiter.find("dram")
        bound = float("inf") if dram is None or dram.busy_ratio <= 0 else max(OFTEN[0], 1 / dram.busy_ratio)
        low, middle, high = (min(one, bound) for one in OFTEN)
        return Advice(
            optimizer=self.name,
            title=self.title,
            category=self.category,
            group=self.group,
            speedup=Speedup(
                estimate=middle,
                low=low,
                high=high,
                bound=bound,
                bound_reason=say("the bytes that DRAM moves now"),
                uncapped=middle,
            ),
            share=measure_share(subject.total_samples, subject.total_samples, subject.dropped_samples),
            matched_samples=float(subject.total_samples),
            matched_latency_samples=None,
            scope=subject.scopes.scopes[0],
            regions=(),
            hint=say(
                "Compile with {lines} in place of {debug}, and measure again.",
                lines=Code(text="-lineinfo"),
                debug=Code(text="-G"),
            ),
            caveats=(say("Other suggestions of this report are about code that nobody ships."),),
            reasons=(
                say(
                    "the image holds the debugger's map of registers, which only {debug} writes", debug=Code(text="-G")
                ),
            ),
        )


OPTIMIZER = DebugBuild()
