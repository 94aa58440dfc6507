"""What stands out in a kernel's mix of instructions, as findings."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.answers import Finding, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex
from gpa_lsp.diagnosis.analyses.mix.classes import ARITHMETIC, MEMORY, WorkClass, classify_mnemonic
from gpa_lsp.diagnosis.analyses.mix.fusion import NonFused
from gpa_lsp.diagnosis.analyses.mix.pipes import PipeUse
from gpa_lsp.foundation.prose import Code, Sentence, count, percent, say

BUSY = 0.6
"""From this use on a pipe is busy.

Source: above it a pipe is likely to limit, below it seldom does; Nsight Compute's own rules draw the line there for its throughputs.
"""

_MOST_LINES = 3
_MANY_NON_FUSED = 0.1  # From this share of all instructions on, sums and products that are not fused are named
_MANY_CONVERSIONS = 0.03
_MANY_DOUBLES = 0.01
_FEW_FP64 = 0.25  # Warp instructions per cycle and SM below which 64-bit floating point is a sideline of the GPU
_LITTLE_WORK = 0.25  # Below this share of arithmetic in a numeric kernel, the rest is named
_NUMERIC = 0.05  # From this share of arithmetic on, a kernel is taken to be numeric; else integers are its work

_FUSION_REMEDY = say(
    "Write products and sums so that they fuse: {expression} in one expression, {fma}, reassociated polynomials; check that {option} or the "
    "intrinsics {multiply} and {add} do not forbid it.",
    expression=Code(text="a*b + c"),
    fma=Code(text="fma()"),
    option=Code(text="-fmad=false"),
    multiply=Code(text="__fmul_rn"),
    add=Code(text="__fadd_rn"),
)
_CONVERSION_REMEDY = say(
    "Keep values in one type: no integer counters in float expressions, literals with the suffix {f}, narrow types converted once and not at each "
    "use.",
    f=Code(text="f"),
)
_DOUBLE_REMEDY = say(
    "Write literals with the suffix {f} and call the float functions ({sqrtf}, {powf}); use double arithmetic only where it is needed.",
    f=Code(text="f"),
    sqrtf=Code(text="sqrtf"),
    powf=Code(text="powf"),
)
_OVERHEAD_REMEDY = say(
    "Let one index serve several elements: unroll, compute more than one result per thread, advance pointers instead of computing addresses, use "
    "32-bit indices and constant strides."
)


def find_busy_pipes(uses: tuple[PipeUse, ...]) -> list[Finding]:
    """One finding for each busy pipe, or one that names the busiest."""
    known = [use for use in uses if use.use_ratio is not None]
    if not known:
        return []
    busy = [use for use in known if (use.use_ratio or 0.0) >= BUSY]
    if not busy:
        return [Finding(text=say("No pipe is busy: the busiest, {use}.", use=_describe_use(known[0], ",")))]
    return [
        Finding(
            text=say("Pipe {use}.", use=_describe_use(use)),
            weight=Weight.HIGH,
            remedy=use.pipe.remedy,
        )
        for use in busy
    ]


def find_non_fused(counts: tuple[NonFused, ...], total: int, index: LineIndex) -> list[Finding]:
    """Types whose sums and products make up many instructions and could still fuse."""
    findings = []
    for one in counts:
        if one.non_fused < _MANY_NON_FUSED * total or one.most_savings == 0:
            continue
        findings.append(
            Finding(
                text=say(
                    "{share} of the {type} sums and products are not fused ({sums}, {products}, {fused} fused). Fusing pairs would save at most "
                    "{saved} ({part} of all). Most are at {lines}.",
                    share=percent(one.non_fused / max(one.non_fused + one.fused, 1)),
                    type=one.name,
                    sums=count(one.sums, "sum"),
                    products=count(one.products, "product"),
                    fused=count(one.fused),
                    saved=count(one.most_savings, "warp instruction"),
                    part=percent(one.most_savings / total),
                    lines=index.list_heaviest(index.sum_by_line(one.rows), _MOST_LINES),
                ),
                weight=Weight.HIGH if one.is_busy else Weight.PLAIN,
                remedy=_FUSION_REMEDY,
            )
        )
    return findings


def find_conversions(
    facts: KernelFacts, executions: npt.NDArray[np.int64], uses: tuple[PipeUse, ...], index: LineIndex, total: int
) -> list[Finding]:
    """Many conversions, and those between float and double, which a literal without its suffix makes."""
    findings = []
    converts = np.where(facts.rows.spread_by_mnemonic(_is_conversion, unknown=0) > 0, executions, 0)
    many = int(converts.sum())
    if many >= _MANY_CONVERSIONS * total:
        is_busy = any(use.pipe.name == "xu" and (use.use_ratio or 0.0) >= BUSY for use in uses)
        findings.append(
            Finding(
                text=say(
                    "{share} of the instructions convert between types, most of them at {lines}.",
                    share=percent(many / total),
                    lines=index.list_heaviest(index.sum_by_line(converts), _MOST_LINES),
                ),
                weight=Weight.HIGH if is_busy else Weight.PLAIN,
                remedy=_CONVERSION_REMEDY,
            )
        )
    doubles = np.where(facts.rows.spread_by_mnemonic(_is_float_to_double, unknown=0) > 0, executions, 0)
    if doubles.any():
        findings.append(
            Finding(
                text=say(
                    "{conversions} between float and double at {lines}: typical of a literal such as {literal} in a float expression.",
                    conversions=count(int(doubles.sum()), "conversion"),
                    lines=index.list_heaviest(index.sum_by_line(doubles), _MOST_LINES),
                    literal=Code(text="0.5"),
                ),
                remedy=_DOUBLE_REMEDY,
            )
        )
    return findings


def find_doubles(facts: KernelFacts, classes: Mapping[WorkClass, int], total: int) -> list[Finding]:
    """64-bit floating point on a GPU that has little of it."""
    architecture = facts.architecture
    if architecture is None or classes[WorkClass.FP64] < _MANY_DOUBLES * total:
        return []
    rate = architecture.throughput.fp64_instructions_per_cycle.value
    if not isinstance(rate, (int, float)):
        return []
    per_sm = rate * architecture.sm.sub_partitions_per_sm.value
    if per_sm >= _FEW_FP64:
        return []
    return [
        Finding(
            text=say(
                "{share} of the instructions are 64-bit floating point, and an SM of this GPU does one such warp instruction every {interval}.",
                share=percent(classes[WorkClass.FP64] / total),
                interval=count(1 / per_sm, "cycle"),
            ),
            weight=Weight.HIGH if classes[WorkClass.FP64] >= _MANY_NON_FUSED * total else Weight.PLAIN,
            remedy=_DOUBLE_REMEDY,
        )
    ]


def find_overhead(classes: Mapping[WorkClass, int], total: int) -> list[Finding]:
    """How much of a numeric kernel is arithmetic, and what the rest is."""
    arithmetic = sum(classes[one] for one in ARITHMETIC)
    if classes[WorkClass.TENSOR] >= _NUMERIC * total:
        return []  # one tensor instruction does the work of hundreds; its share says nothing
    if not _NUMERIC * total <= arithmetic < _LITTLE_WORK * total:
        return []
    memory = sum(classes[one] for one in MEMORY)
    addressing = classes[WorkClass.ADDRESS]
    rest = total - arithmetic - memory
    return [
        Finding(
            text=say(
                "{arithmetic} of the instructions are floating-point arithmetic and {memory} access memory; the other {rest} are integers, addresses "
                "({addressing}), moves and control flow.",
                arithmetic=percent(arithmetic / total),
                memory=percent(memory / total),
                rest=percent(rest / total),
                addressing=percent(addressing / total),
            ),
            remedy=_OVERHEAD_REMEDY,
        )
    ]


def _describe_use(use: PipeUse, stop: str = "") -> Sentence:
    """``ALU (integer additions …) is at 80 % of its rate while the SMs are active (counted)``; ``stop`` stands before the verb."""
    return say(
        "{pipe} ({executes}){stop} is at {share} of its rate while the SMs are active ({how})",
        pipe=use.pipe.title,
        executes=use.pipe.says,
        stop=stop,
        share=percent(use.use_ratio or 0.0),
        how="counted" if use.counted_ratio is not None else "computed from executions",
    )


def _is_conversion(mnemonic: str) -> int:
    return int(classify_mnemonic(mnemonic) is WorkClass.CONVERSION)


def _is_float_to_double(mnemonic: str) -> int:
    name, *modifiers = mnemonic.split(".")
    return int(name == "F2F" and {"F32", "F64"} <= set(modifiers))
