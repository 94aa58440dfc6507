"""Code that was compiled for a debugger."""

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.diagnosis.advice.model import Advice, Category, Region, Silence, SilenceStage, Speedup
from gpa_lsp.diagnosis.advice.naming import name_code
from gpa_lsp.diagnosis.advice.optimizers import Optimizer
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.figures import measure_share
from gpa_lsp.foundation.prose import Code, Sentence, list_of, say
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.kernel.scopes import ScopeKind

_DEBUG = Code(text="-G")

# What dropping -G often gains: least, middle, most. One product of matrices on an RTX 4090 gained 11.97×; that a range this wide is all that can be
# said beforehand follows from what -G does: every variable lives in memory, and nothing is scheduled.
OFTEN = (3.0, 6.0, 12.0)


class DebugBuild(Optimizer):
    """A kernel compiled with -G is not optimized, and its profile says little of what the optimized one would need."""

    name = "debug_build"
    title = "Compile without -G"
    category = Category.BINARY
    group = "build"
    needs_samples = False

    def advise(self, subject: Subject) -> Advice | Silence:
        """Say so where the image holds a debugger's map of the kernel's registers, or of those of a function that it calls."""
        if find_limiter(subject).kind is LimiterKind.BUILD:
            return self._make(subject, subject.total_samples, (), _write_hint(say("{debug}", debug=_DEBUG)))
        callees = _list_debug_callees(subject.kernel)
        if not callees:
            return self.unmatched(say("the code was compiled with optimization"))
        sampled = [one for one in subject.kernel.functions if one.name in callees and one.total_samples]
        if not sampled:
            names = list_of(name_code(demangle(name)) for name in callees)
            message = say(
                "{names}, which the kernel calls, was compiled with {debug}, but no sample lies there",
                names=names,
                debug=_DEBUG,
            )
            return self.silent(SilenceStage.GATED, message)
        names = list_of(name_code(demangle(one.name)) for one in sampled)
        regions = tuple(_make_region(subject, one) for one in sampled)
        matched = sum(one.total_samples for one in sampled)
        hint = _write_hint(say("{debug} for {names}, which the kernel calls", debug=_DEBUG, names=names))
        return self._make(subject, matched, regions, hint)

    def _make(self, subject: Subject, matched: int, regions: tuple[Region, ...], hint: Sentence) -> Advice:
        return Advice(
            optimizer=self.name,
            title=self.title,
            category=self.category,
            group=self.group,
            speedup=_price(subject, matched),
            share=measure_share(matched, subject.total_samples, subject.dropped_samples),
            matched_samples=float(matched),
            matched_latency_samples=None,
            scope=regions[0].scope if regions else subject.scopes.scopes[0],
            regions=regions,
            hint=hint,
            caveats=() if regions else (say("Other suggestions are about unoptimized code."),),
            reasons=(say("the image holds the debugger's map of registers, which only {debug} writes", debug=_DEBUG),),
        )


def _write_hint(what: Sentence) -> Sentence:
    return say("Compile with {lines} in place of {what}, and measure again.", lines=Code(text="-lineinfo"), what=what)


def _list_debug_callees(kernel: Kernel) -> tuple[str, ...]:
    """The functions compiled with -G among those that the kernel calls directly or through others, or that were sampled."""
    cubin = kernel.cubin
    if cubin is None or not cubin.debug_functions:
        return ()
    reached = {one.name for one in kernel.functions}
    left = list(reached)
    while left:
        caller = left.pop()
        for called in (callee for one, callee in cubin.calls if one == caller and callee not in reached):
            reached.add(called)
            left.append(called)
    return tuple(sorted(reached & cubin.debug_functions))


def _make_region(subject: Subject, function: FunctionSamples) -> Region:
    matched = function.total_samples
    scope = next(
        (one for one in subject.scopes.scopes if one.kind is ScopeKind.FUNCTION and one.function == function.name),
        subject.scopes.scopes[0],
    )
    return Region(
        scope=scope,
        matched_samples=float(matched),
        matched_latency_samples=None,
        share=measure_share(matched, subject.total_samples, subject.dropped_samples),
        speedup=_price(subject, matched),
        density=0.0,
        hotspots=(),
    )


def _price(subject: Subject, matched: int) -> Speedup:
    """What part of the time goes where the matched samples become as many times fewer as -G often costs, within what DRAM allows."""
    total = subject.total_samples
    part = matched / total if total else 1.0
    dram = find_limiter(subject).find("dram")
    roof = float("inf") if dram is None or dram.busy_ratio <= 0 else max(1.0, 1 / dram.busy_ratio)
    rest = float("inf") if part >= 1 else 1 / (1 - part)
    bound = min(roof, rest)
    low, middle, high = (min(1 / (1 - part + part / one), bound) for one in OFTEN)
    reason = say("the bytes that DRAM moves now") if roof <= rest else say("the time in other functions")
    return Speedup(estimate=middle, low=low, high=high, bound=bound, bound_reason=reason, uncapped=middle)


OPTIMIZER = DebugBuild()
