"""Accurate divisions, roots and mathematical functions where cheaper arithmetic may do."""

from collections.abc import Sequence

from gpa_lsp.diagnosis.advice.arithmetic_hints import advise_operations
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.sequence_regions import build_sequence_regions, count_operations, mark_sequences
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, Sentence, count, say
from gpa_lsp.kernel.dataflow.arithmetic import ArithmeticSequence, find_arithmetic_sequences
from gpa_lsp.kernel.dataflow.expansions import FLOATING, Family


def match(subject: Subject) -> Found:
    """Instructions and calls that the compiler adds to make a division, a root or a function accurate.

    Matched: everything blamed on the inlined chain, on the blocks around the call of the slow path, and on the called routine, shared among
    its call sites by executions. Waits of the chain for its operands stay with their producers.
    Approximation: what replaces an operation (one multiplication) counts as free.

    Source: GPA Table II, Fast Math (stalls in CUDA math functions); the inlined part is matched by its structure.
    """
    sequences = find_arithmetic_sequences(subject.rows).select(*FLOATING)
    if not sequences:
        return say(
            "none of the {rows} belongs to an accurate division, root or math function",
            rows=count(len(subject.rows), "instruction"),
        )
    regions = build_sequence_regions(subject, sequences, lambda members: advise_operations(subject, members))
    if not regions:
        return say(
            "{operations} caused none of the {samples}",
            operations=count(len(sequences), "accurate operation"),
            samples=count(subject.total_samples, "sample"),
        )
    return EliminationMatch(
        regions=regions,
        work=_count_work_left(subject, sequences),
        hint=regions[0].hint,
        caveats=_list_caveats(sequences),
        reasons=(
            say(
                "{operations} expanded in software, with the routines they call",
                operations=count(len(sequences), "accurate operation"),
            ),
        ),
    )


def _count_work_left(subject: Subject, sequences: Sequence[ArithmeticSequence]) -> dict[str, float]:
    """Unit → the part of its work that stays: of each operation a special function and a product."""
    operations = count_operations(subject, sequences)
    gone = mark_sequences(subject, sequences)
    return count_work_left(subject, executions=gone, added={"xu": operations, "fma": operations})


def _list_caveats(sequences: Sequence[ArithmeticSequence]) -> tuple[Sentence, ...]:
    families = {one.operation.family for one in sequences}
    has_single = any(one.operation.bits == 32 for one in sequences)
    caveats = []
    if Family.DIVISION in families:
        caveats.append(
            say(
                "Multiplying by a reciprocal can change the last bit, and overflows or underflows for extreme divisors."
            )
        )
    if has_single:
        caveats.append(
            say(
                "{option} changes every division, root and function of the file, flushes denormals to zero, and is wrong for large "
                "arguments of sine and cosine.",
                option=Code(text="-use_fast_math"),
            )
        )
    return tuple(caveats)


OPTIMIZER = Optimizer(
    name="fast_math",
    title="Use faster division and math functions",
    group="arithmetic",
    find=match,
)
