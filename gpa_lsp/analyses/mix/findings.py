"""What stands out in a kernel's mix of instructions, as findings."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.analyses.answers import Finding, Weight
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.line_sums import LineIndex, rank_lines
from gpa_lsp.analyses.mix.classes import ARITHMETIC, MEMORY, WorkClass, classify_mnemonic
from gpa_lsp.analyses.mix.fusion import NonFused
from gpa_lsp.analyses.mix.pipes import PipeUse
from gpa_lsp.basis.numbers import format_percent

BUSY = 0.6
"""From this use on a pipe is busy.

Source: above it a pipe is likely to limit, below it seldom does; Nsight Compute's own rules draw the line there for its throughputs.
"""

_MOST_LINES = 3
_MANY_NON_FUSED = 0.1
"""From this share of all instructions on, sums and products that are not fused are spoken of."""
_MANY_CONVERSIONS = 0.03
_MANY_DOUBLES = 0.01
_FEW_FP64 = 0.25
"""Warp instructions per cycle and SM below which 64-bit floating point is a sideline of the GPU."""
_LITTLE_WORK = 0.25
"""Below this share of arithmetic in a numeric kernel, the rest is spoken of."""
_NUMERIC = 0.05
"""From this share of arithmetic on, a kernel is taken to be numeric; else integers are its work."""

_FUSION_REMEDY = (
    "Write products and sums so that they fuse: a*b + c in one expression, fma(), reassociated polynomials; see that -fmad=false or the "
    "intrinsics __fmul_rn and __fadd_rn do not forbid it."
)
_CONVERSION_REMEDY = (
    "Keep a value in one type: no integer counters in expressions of floats, literals with the suffix f, narrow types converted once and not at "
    "each use."
)
_DOUBLE_REMEDY = "Write literals with the suffix f and call the float functions (sqrtf, powf); double arithmetic only where it is needed."
_OVERHEAD_REMEDY = (
    "Let one index serve several elements: unroll, let a thread compute more than one result, advance pointers instead of computing addresses, "
    "32-bit indices, constant strides."
)


def find_busy_pipes(uses: tuple[PipeUse, ...]) -> list[Finding]:
    """One finding for each busy pipe, or one that names the busiest."""
    known = [use for use in uses if use.use_ratio is not None]
    if not known:
        return []
    busy = [use for use in known if (use.use_ratio or 0.0) >= BUSY]
    if not busy:
        use = known[0]
        return [
            Finding(
                text=f"No pipe is busy: the busiest, {use.pipe.title} ({use.pipe.says}), is at {_describe_use(use)}."
            )
        ]
    return [
        Finding(
            text=f"The pipe {use.pipe.title} ({use.pipe.says}) is at {_describe_use(use)}.",
            weight=Weight.HIGH,
            remedy=use.pipe.remedy,
        )
        for use in busy
    ]


def find_non_fused(counts: tuple[NonFused, ...], total: int, index: LineIndex) -> list[Finding]:
    """Types whose sums and products make up many instructions and could still fuse."""
    findings = []
    for count in counts:
        if count.non_fused < _MANY_NON_FUSED * total or count.most_savings == 0:
            continue
        sums = index.sum_by_line(count.rows)
        lines = _name_lines(index, sums)
        share = count.non_fused / max(count.non_fused + count.fused, 1)
        findings.append(
            Finding(
                text=f"{format_percent(share)} of the {count.name} sums and products are not fused ({count.sums:,} sums, "
                f"{count.products:,} products, {count.fused:,} fused). Fusing pairs of them would save at most {count.most_savings:,} warp "
                f"instructions, {format_percent(count.most_savings / total)} of all. Most are at {lines}.",
                weight=Weight.HIGH if count.is_busy else Weight.PLAIN,
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
                text=f"{format_percent(many / total)} of the instructions convert between types; most at "
                f"{_name_lines(index, index.sum_by_line(converts))}.",
                weight=Weight.HIGH if is_busy else Weight.PLAIN,
                remedy=_CONVERSION_REMEDY,
            )
        )
    doubles = np.where(facts.rows.spread_by_mnemonic(_is_float_to_double, unknown=0) > 0, executions, 0)
    if doubles.any():
        lines = _name_lines(index, index.sum_by_line(doubles))
        findings.append(
            Finding(
                text=f"{int(doubles.sum()):,} conversions between float and double, at {lines}: what a literal such as 0.5 in an expression of "
                "floats makes.",
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
            text=f"{format_percent(classes[WorkClass.FP64] / total)} of the instructions are 64-bit floating point, of "
            f"which an SM of this GPU does one warp "
            f"instruction in {1 / per_sm:.0f} cycles.",
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
            text=f"{format_percent(arithmetic / total)} of the instructions are floating-point arithmetic, "
            f"{format_percent(memory / total)} access memory; the other "
            f"{format_percent(rest / total)} are integers, addresses ({format_percent(addressing / total)}), moves and control flow.",
            remedy=_OVERHEAD_REMEDY,
        )
    ]


def _describe_use(use: PipeUse) -> str:
    how = "counted" if use.counted_ratio is not None else "computed from executions"
    return f"{format_percent(use.use_ratio or 0.0)} of its rate while the SMs are active ({how})"


def _name_lines(index: LineIndex, sums: npt.NDArray[np.float64]) -> str:
    total = max(float(sums.sum()), 1.0)
    return ", ".join(
        f"{index.places[line]} ({format_percent(sums[line] / total)})" for line in rank_lines(sums, _MOST_LINES)
    )


def _is_conversion(mnemonic: str) -> int:
    return int(classify_mnemonic(mnemonic) is WorkClass.CONVERSION)


def _is_float_to_double(mnemonic: str) -> int:
    name, *modifiers = mnemonic.split(".")
    return int(name == "F2F" and {"F32", "F64"} <= set(modifiers))
