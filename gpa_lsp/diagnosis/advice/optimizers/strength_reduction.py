"""Slow arithmetic where equivalent cheaper arithmetic may do: integer divisions, double literals, conversions, FP64 on parts that lack it."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import Pipe
from gpa_lsp.diagnosis.advice.arithmetic_hints import (
    advise_double,
    advise_operations,
    choose_division_remedy,
    choose_slow_remedy,
    choose_widened_remedy,
    describe_division,
    describe_slow,
    describe_widened,
    find_double_row,
)
from gpa_lsp.diagnosis.advice.blamed_stalls import rank_regions
from gpa_lsp.diagnosis.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.sequence_regions import (
    build_row_region,
    build_sequence_regions,
    count_operations,
    find_line_scope,
    find_removable,
    mark_sequences,
)
from gpa_lsp.diagnosis.advice.slow_arithmetic import LOW_RATE, SlowKind, Slowness, find_slowness
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.prose import Sentence, count, join, say
from gpa_lsp.kernel.dataflow.arithmetic import ArithmeticSequence, ArithmeticSequences, find_arithmetic_sequences
from gpa_lsp.kernel.dataflow.expansions import FLOATING, Family
from gpa_lsp.kernel.scopes import Scope, ScopeKind

# What a slow arithmetic instruction makes others wait for: its result, its operands, its issue, its unit and the queue in front of it
_STALLS = (
    BlameCategory.EXECUTION_ARITHMETIC,
    BlameCategory.EXECUTION_SPECIAL,
    BlameCategory.WRITE_AFTER_READ,
    BlameCategory.ISSUE,
    BlameCategory.PIPE_THROTTLE,
    BlameCategory.MIO_THROTTLE,
    BlameCategory.TEXTURE_THROTTLE,
)

_DOUBLE_BITS = 64
_LIMITING_RATE = 0.5  # The largest share of the FP32 rate that GPUs have for FP64


def match(subject: Subject) -> Found:
    """Stalls of long-latency arithmetic that an equivalent cheaper form would not have.

    Matched: everything blamed on an integer division by a run-time value, or on a chain that widens, computes in double precision and narrows
    (these instructions would go); and the execution dependences, issue slots and busy units of other arithmetic that the architecture's table
    says is slow. Floating-point divisions, roots and functions are left to fast math.
    Approximation: what replaces them counts as free.

    Source: GPA Table II, Strength Reduction; "slow" by table instead of its fixed 10 cycles, which leave out FP64 on parts that lack it.
    """
    found = find_arithmetic_sequences(subject.rows)
    divisions = found.select(Family.INTEGER_DIVISION)
    slow = _find_slow_rows(subject, found)
    # Where values are double, so are the divisions, roots and functions of them, which go with the type.
    is_double = bool(found.widened) or any(one.kind is SlowKind.DOUBLE_PRECISION for one in slow.values())
    doubles = [one for one in found.select(*FLOATING) if is_double and one.operation.bits == _DOUBLE_BITS]
    taken = {row for one in doubles for row in (*one.inlined, *one.call_block)}
    widened = [own for chain in found.widened if (own := tuple(row for row in chain if row not in taken))]
    if not divisions and not found.widened and not slow:
        return say(
            "none of the {rows} is an integer division, a detour through FP64 or on a slow unit",
            rows=count(len(subject.rows), "instruction"),
        )
    parts = [
        *build_sequence_regions(subject, divisions, lambda members: _advise_division(subject, members)),
        *build_sequence_regions(subject, doubles, lambda members: advise_operations(subject, members)),
        *_build_widened_regions(subject, widened),
        *_build_slow_regions(subject, slow),
    ]
    if not parts:
        return say(
            "{operations} caused none of the {samples}",
            operations=count(len(divisions) + len(found.widened) + len(slow), "slow operation"),
            samples=count(subject.total_samples, "sample"),
        )
    regions = rank_regions(parts)
    gone = mark_sequences(subject, [*divisions, *doubles])
    narrowed = [row for chain in found.widened for row in chain] + list(slow)
    gone[narrowed] = 1.0
    executed = subject.executed
    wide = [row for row in narrowed if subject.rows.opcode(row).pipe is Pipe.FP64]
    divided, approximated = (count_operations(subject, some) for some in (divisions, doubles))
    # FP64 arithmetic becomes as much FP32; a division by a constant is a product and two shifts.
    added = {"fma": float(executed[wide].sum()) + divided + approximated, "alu": 2.0 * divided, "xu": approximated}
    return EliminationMatch(
        regions=regions,
        work=count_work_left(subject, executions=gone, added=added),
        hint=regions[0].hint,
        caveats=_list_caveats(bool(divisions), bool(found.widened), {slowness.kind for slowness in slow.values()}),
        reasons=(_count_operations(len(divisions), len(found.widened), len(slow)),),
    )


def _count_operations(divisions: int, detours: int, slow: int) -> Sentence:
    counts = {"integer division": divisions, "FP64 detour": detours, "slow instruction": slow}
    return join((say("{n}", n=count(present, noun)) for noun, present in counts.items() if present), ", ")


def _advise_division(subject: Subject, members: Sequence[ArithmeticSequence]) -> Sentence:
    return join([describe_division(subject, members), choose_division_remedy(subject, members)])


def _find_slow_rows(subject: Subject, found: ArithmeticSequences) -> dict[int, Slowness]:
    """Row → why it is slow, outside expansions and the compiler's routines; empty without a table of the architecture.

    Conversions, special functions and bit counts count in loops only: one on the way in or out has to be, and there is no cheaper one.
    """
    architecture = subject.kernel.architecture
    if architecture is None:
        return {}
    by_mnemonic: dict[str, Slowness | None] = {}
    slow = {}
    # Where no unit is busier than its pipe, FP64 at half the rate is slow, too.
    busiest = next((limit.unit for limit in find_limiter(subject).limits), "")
    low_rate = _LIMITING_RATE if busiest == "fp64" else LOW_RATE
    for row in np.flatnonzero(~found.mark()).tolist():
        mnemonic = subject.rows.mnemonic(row)
        if mnemonic not in by_mnemonic:
            slowness = find_slowness(architecture, mnemonic, low_rate, joins_doubles=True) if mnemonic else None
            by_mnemonic[mnemonic] = slowness
        slowness = by_mnemonic[mnemonic]
        if slowness is not None and (slowness.kind is SlowKind.DOUBLE_PRECISION or subject.scopes.loop_of(row) >= 0):
            slow[row] = slowness
    return slow


def _build_widened_regions(subject: Subject, chains: Sequence[tuple[int, ...]]) -> list[EliminationRegion]:
    """One region per line: all that is blamed on its chains."""
    edges = np.flatnonzero(find_removable(subject))
    groups: dict[tuple[object, ...], list[tuple[int, ...]]] = {}
    for chain in chains:
        groups.setdefault(_key(find_line_scope(subject, find_double_row(subject, chain))), []).append(chain)
    regions = []
    for members in groups.values():
        rows = sorted(row for chain in members for row in chain)
        scope = find_line_scope(subject, find_double_row(subject, members[0]))
        region = build_row_region(subject, scope, rows, edges)
        if region is not None:
            hint = join([describe_widened(subject, rows, len(members)), choose_widened_remedy(subject, rows)])
            regions.append(replace(region, hint=hint))
    return regions


def _build_slow_regions(subject: Subject, slow: dict[int, Slowness]) -> list[EliminationRegion]:
    """One region per line and kind; FP64 by loop or function, because a type is chosen for all of it."""
    edges = np.flatnonzero(np.isin(subject.edges.category, _STALLS))
    groups: dict[tuple[object, ...], list[int]] = {}
    for row, slowness in slow.items():
        groups.setdefault((slowness.kind, *_key(_find_slow_scope(subject, row, slowness))), []).append(row)
    regions = []
    for rows in groups.values():
        scope = _find_slow_scope(subject, rows[0], slow[rows[0]])
        region = build_row_region(subject, scope, rows, edges)
        if region is None:
            continue
        causes = [hotspot.def_row for hotspot in region.hotspots]
        slowness = slow[causes[0]]
        is_double = slowness.kind is SlowKind.DOUBLE_PRECISION
        hint = (
            advise_double(subject, scope, causes, slowness)
            if is_double
            else join([describe_slow(subject, causes[0], slowness), choose_slow_remedy(slowness)])
        )
        regions.append(replace(region, hint=hint))
    return regions


def _find_slow_scope(subject: Subject, row: int, slowness: Slowness) -> Scope:
    if slowness.kind is SlowKind.DOUBLE_PRECISION:
        return subject.scopes.scopes[int(subject.scopes.innermost[row])]
    return find_line_scope(subject, row)


def _key(scope: Scope) -> tuple[object, ...]:
    return (scope.kind, scope.function, scope.file, scope.line, None if scope.kind is ScopeKind.LINE else scope.row)


def _list_caveats(has_divisions: bool, has_widened: bool, kinds: set[SlowKind]) -> tuple[Sentence, ...]:
    caveats = []
    if has_divisions:
        caveats.append(say("A shift or a mask stands for powers of two only, and rounds negative numbers down."))
    if has_widened or SlowKind.DOUBLE_PRECISION in kinds:
        caveats.append(say("FP32 keeps 24 significant bits, FP64 53; check the results."))
    return tuple(caveats)


OPTIMIZER = Optimizer(
    name="strength_reduction",
    title="Use cheaper arithmetic",
    group="slow arithmetic",
    find=match,
)
