"""Accurate divisions, roots and mathematical functions where cheaper arithmetic may do."""

from collections.abc import Sequence
from typing import ClassVar

from gpa_lsp.advice.arithmetic_words import choose_operation_remedy, describe_operations, describe_slow_path
from gpa_lsp.advice.hint_words import begin_sentence, list_counts
from gpa_lsp.advice.matches import EliminationMatch
from gpa_lsp.advice.model import Category, Silence, SilenceStage
from gpa_lsp.advice.optimizers import EliminationOptimizer
from gpa_lsp.advice.sequence_regions import build_sequence_regions
from gpa_lsp.advice.subject import Subject
from gpa_lsp.dataflow.arithmetic.patterns import Family
from gpa_lsp.dataflow.arithmetic.sequences import ArithmeticSequence, find_arithmetic_sequences

_FAMILIES = (Family.DIVISION, Family.ROOT, Family.FUNCTION)


class FastMath(EliminationOptimizer):
    """Instructions and calls that the compiler adds to make a division, a root or a function accurate.

    Matched: everything blamed on the inlined chain, on the blocks around the call of the slow path, and on the called routine, shared among
    its call sites by executions. Waits of the chain for its operands stay with whoever produces them.
    Approximation: what replaces an operation (one multiplication) counts as free.

    Source: GPA Table II, Fast Math (stalls in CUDA math functions); the inlined part is matched by its structure.
    """

    name: ClassVar[str] = "fast_math"
    title: ClassVar[str] = "Cheaper division and functions"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "arithmetic"

    def match(self, subject: Subject) -> EliminationMatch | Silence:
        """Find the operations and what they cost."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        sequences = find_arithmetic_sequences(subject.rows).select(*_FAMILIES)
        if not sequences:
            message = f"none of the {len(subject.rows):,} instructions belongs to an accurate division, root or mathematical function"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        regions = build_sequence_regions(subject, sequences, lambda members: _write_hint(subject, members))
        if not regions:
            message = f"the {len(sequences)} accurate divisions, roots and functions caused none of the {subject.total_samples:,} samples"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        return EliminationMatch(
            regions=regions,
            hint=regions[0].hint,
            caveats=_list_caveats(sequences),
            reasons=(f"{_count_expansions(len(sequences))} the hardware does not have, and the routines called",),
        )


def _count_expansions(count: int) -> str:
    return list_counts([(count, "expansion of an operation", "expansions of operations")])


def _write_hint(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    slow_path = describe_slow_path(subject, members)
    sentences = [
        describe_operations(subject, members),
        f"{begin_sentence(slow_path)}." if slow_path else "",
        choose_operation_remedy(subject, members),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _list_caveats(sequences: Sequence[ArithmeticSequence]) -> tuple[str, ...]:
    families = {one.operation.family for one in sequences}
    has_single = any(one.operation.bits == 32 for one in sequences)
    caveats = []
    if Family.DIVISION in families:
        caveats.append(
            "A product with a reciprocal can differ from the quotient in the last bit, and overflows or vanishes for extreme divisors."
        )
    if has_single:
        caveats.append(
            "-use_fast_math changes every division, root and function of the file, flushes denormal numbers to zero, "
            "and is wrong for large arguments of sine and cosine."
        )
    return tuple(caveats)


OPTIMIZER = FastMath()
