"""Slow arithmetic where equivalent cheaper arithmetic may do: integer divisions, double literals, conversions, FP64 on parts that lack it."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gpa_lsp.advice.arithmetic_patterns import Family
from gpa_lsp.advice.arithmetic_sequences import (
    ArithmeticSequence,
    ArithmeticSequences,
    Constancy,
    find_arithmetic_sequences,
)
from gpa_lsp.advice.arithmetic_words import describe_size, describe_slow_path, name_operations
from gpa_lsp.advice.blamed_stalls import build_hotspots
from gpa_lsp.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.advice.model import Category, Hotspot, Scope, ScopeKind, Silence, SilenceStage
from gpa_lsp.advice.optimizers import EliminationOptimizer
from gpa_lsp.advice.sequence_regions import build_sequence_regions, find_line_scope, find_removable
from gpa_lsp.advice.slow_arithmetic import SlowKind, Slowness, find_slowness
from gpa_lsp.advice.source_words import describe_line, describe_scope, quote, read_parts
from gpa_lsp.advice.subject import Subject
from gpa_lsp.blame.model import BlameCategory

_STALLS = (
    BlameCategory.EXECUTION_ARITHMETIC,
    BlameCategory.EXECUTION_SPECIAL,
    BlameCategory.WRITE_AFTER_READ,
    BlameCategory.ISSUE,
    BlameCategory.PIPE_THROTTLE,
    BlameCategory.MIO_THROTTLE,
    BlameCategory.TEXTURE_THROTTLE,
)
"""What a slow arithmetic instruction makes others wait for: its result, its operands, its issue, its unit and the queue in front of it."""

_REMEDIES = {
    SlowKind.DOUBLE_PRECISION: "use float where its accuracy does, or a pair of floats where it nearly does",
    SlowKind.CONVERSION: "keep the value in one type, or convert it once where it does not change",
    SlowKind.SPECIAL_FUNCTION: "compute it once where its operand does not change, and share it between lines that need the same one",
    SlowKind.BIT_COUNT: "count once for several words, or keep the count instead of the bits",
}


class StrengthReduction(EliminationOptimizer):
    """Stalls of long-latency arithmetic that an equivalent cheaper form would not have.

    Matched: everything blamed on an integer division by a run-time value, or on a chain that widens, computes in double precision and narrows
    (these instructions would go); and the execution dependences, issue slots and busy units of other arithmetic that the architecture's table
    says is slow. Floating-point divisions, roots and functions are left to fast math.
    Approximation: what replaces them counts as free.

    Source: GPA Table II, Strength Reduction; "slow" by table instead of its fixed 10 cycles, which leave out FP64 on parts that lack it.
    """

    name: ClassVar[str] = "strength_reduction"
    title: ClassVar[str] = "Cheaper arithmetic"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "arithmetic"

    def match(self, subject: Subject) -> EliminationMatch | Silence:
        """Find slow arithmetic and what it costs."""
        if all(function.instructions is None for function in subject.kernel.functions):
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        found = find_arithmetic_sequences(subject)
        divisions = found.select(Family.INTEGER_DIVISION)
        slow = _find_slow_rows(subject, found)
        if not divisions and not found.widened and not slow:
            message = f"none of the {subject.row_count:,} instructions is an integer division, a detour through double precision or on a slow unit"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        regions = [
            *build_sequence_regions(subject, divisions, lambda members: _advise_division(subject, members)),
            *_build_widened_regions(subject, found.widened),
            *_build_slow_regions(subject, slow),
        ]
        if not regions:
            count = len(divisions) + len(found.widened) + len(slow)
            message = f"{count} slow operations caused none of the {subject.total_samples:,} samples to wait"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        regions.sort(key=lambda region: (-region.samples, region.scope.row))
        return EliminationMatch(
            regions=tuple(regions),
            hint=regions[0].hint,
            caveats=_list_caveats(bool(found.widened), {slowness.kind for slowness in slow.values()}),
            reasons=(
                f"{len(divisions)} integer divisions, {len(found.widened)} detours through double precision, "
                f"{len(slow)} other instructions that are slow on this architecture",
            ),
        )


def _find_slow_rows(subject: Subject, found: ArithmeticSequences) -> dict[int, Slowness]:
    """Row → why it is slow, outside expansions and the compiler's routines; empty without a table of the architecture.

    Conversions, special functions and bit counts count in loops only: one on the way in or out has to be, and there is no cheaper one.
    """
    architecture = subject.kernel.architecture
    if architecture is None:
        return {}
    elsewhere = found.routine_rows.copy()
    for sequence in found.sequences:
        elsewhere[[*sequence.inlined, *sequence.call_block]] = True
    for chain in found.widened:
        elsewhere[list(chain)] = True
    by_mnemonic: dict[str, Slowness | None] = {}
    slow = {}
    for row in np.flatnonzero(~elsewhere).tolist():
        mnemonic = subject.mnemonic(row)
        if mnemonic not in by_mnemonic:
            by_mnemonic[mnemonic] = find_slowness(architecture, mnemonic) if mnemonic else None
        slowness = by_mnemonic[mnemonic]
        if slowness is not None and (slowness.kind is SlowKind.DOUBLE_PRECISION or subject.scopes.loop_of(row) >= 0):
            slow[row] = slowness
    return slow


def _build_widened_regions(subject: Subject, chains: Sequence[tuple[int, ...]]) -> list[EliminationRegion]:
    every = np.flatnonzero(find_removable(subject))
    groups = _group_by_scope((find_line_scope(subject, chain[0]), chain) for chain in chains)
    regions = []
    for scope, members in groups.items():
        rows = sorted(row for chain in members for row in chain)
        hint = _advise_widened(subject, rows, len(members))
        regions.extend(_build_region(subject, scope, rows, every, lambda _, text=hint: text))  # type: ignore[misc]
    return regions


def _build_slow_regions(subject: Subject, slow: dict[int, Slowness]) -> list[EliminationRegion]:
    """One region per line and kind; FP64 by loop or function, because a type is chosen for all of it."""
    wanted = np.flatnonzero(np.isin(subject.blame.edges.category, _STALLS))
    groups: dict[tuple[Scope, SlowKind], list[int]] = {}
    scopes: dict[tuple[object, ...], Scope] = {}
    for row, slowness in slow.items():
        is_double = slowness.kind is SlowKind.DOUBLE_PRECISION
        scope = (
            subject.scopes.scopes[int(subject.scopes.innermost[row])] if is_double else find_line_scope(subject, row)
        )
        groups.setdefault((scopes.setdefault(_key(scope), scope), slowness.kind), []).append(row)
    regions = []
    for (scope, kind), rows in groups.items():

        def advise(hotspots: Sequence[Hotspot], kind: SlowKind = kind, scope: Scope = scope) -> str:
            row = hotspots[0].def_row
            if kind is SlowKind.DOUBLE_PRECISION:
                return _advise_double(subject, scope, hotspots, slow[row])
            return _advise_slow(subject, row, kind, slow[row])

        regions.extend(_build_region(subject, scope, rows, wanted, advise))
    return regions


def _key(scope: Scope) -> tuple[object, ...]:
    """What makes two scopes one place."""
    return (scope.kind, scope.function, scope.file, scope.line, None if scope.kind is ScopeKind.LINE else scope.row)


def _group_by_scope(
    members: Iterable[tuple[Scope, tuple[int, ...]]],
) -> dict[Scope, list[tuple[int, ...]]]:
    """Chains of one line together, under the scope of the first."""
    first: dict[tuple[object, ...], Scope] = {}
    groups: dict[Scope, list[tuple[int, ...]]] = {}
    for scope, rows in members:
        place = (
            scope.kind,
            scope.function,
            scope.file,
            scope.line,
            None if scope.kind is ScopeKind.LINE else scope.row,
        )
        groups.setdefault(first.setdefault(place, scope), []).append(rows)
    return groups


def _build_region(
    subject: Subject,
    scope: Scope,
    rows: Sequence[int],
    edges: npt.NDArray[np.int64],
    write_hint: Callable[[Sequence[Hotspot]], str],
) -> list[EliminationRegion]:
    """One region of what is blamed on some rows, or none."""
    causes = np.zeros(subject.row_count, dtype=np.bool_)
    causes[list(rows)] = True
    chosen = edges[causes[subject.blame.edges.def_row[edges]] & (subject.blame.edges.all_samples[edges] > 0)]
    if len(chosen) == 0:
        return []
    hotspots = build_hotspots(subject, chosen, np.ones(len(chosen)))
    return [
        EliminationRegion(
            scope=scope,
            samples=sum(hotspot.samples for hotspot in hotspots),
            latency_samples=sum(hotspot.latency_samples for hotspot in hotspots),
            hotspots=hotspots,
            hint=write_hint(hotspots),
        )
    ]


def _advise_division(subject: Subject, members: Sequence[ArithmeticSequence]) -> str:
    what = name_operations(subject, members)
    sentences = [f"{what[0].upper()}{what[1:]} {describe_size(members)}: the hardware has no integer divider."]
    slow_path = describe_slow_path(subject, members)
    if slow_path:
        sentences.append(f"{slow_path[0].upper()}{slow_path[1:]}.")
    kinds = {one.divisor.constancy for one in members if one.divisor is not None}
    if kinds and kinds <= {Constancy.INVARIANT, Constancy.CONSTANT}:
        sentences.append(
            "The divisor does not change: make it known to the compiler, use a shift and a mask if it is a power of two, or multiply by a "
            "factor computed once on the host."
        )
    else:
        sentences.append(
            "Carry quotient and remainder along from one turn to the next, or use a shift and a mask if the divisor is a power of two."
        )
    if any(one.operation.bits == 64 for one in members):
        sentences.append("Use 32-bit integers if the values fit: that is the part without a call.")
    return " ".join(sentences)


def _advise_widened(subject: Subject, rows: Sequence[int], chains: int) -> str:
    place = describe_line(subject, rows[0])
    parts = read_parts(subject, rows[0])
    doubles = parts.doubles if parts is not None else ()
    times = f" {chains} times" if chains > 1 else ""
    preposition = "in" if place.startswith("line") else "by"
    detour = f"are widened to FP64, computed with, and narrowed again{times}"
    opening = f"Single precision values {preposition} {place} {detour}"
    slowness = _find_double_slowness(subject)
    rate = f", at {slowness}" if slowness else ""
    if doubles:
        plural = "s" if len(doubles) > 1 else ""
        fixed = quote([f"{literal}f" for literal in doubles])
        verb = "are" if len(doubles) > 1 else "is"
        return f"{opening}{rate}: the literal{plural} {quote(doubles)} {verb} of type double. Write {fixed}."
    return f"{opening}{rate}. Look for a literal without an f, a double variable, or a function of double precision (`sqrt` for `sqrtf`)."


def _find_double_slowness(subject: Subject) -> str:
    architecture = subject.kernel.architecture
    found = find_slowness(architecture, "DFMA") if architecture is not None else None
    return found.words if found is not None else ""


def _advise_slow(subject: Subject, row: int, kind: SlowKind, slowness: Slowness) -> str:
    place = describe_line(subject, row)
    mnemonic = subject.mnemonic(row)
    preposition = "in" if place.startswith("line") else "by"
    where = ", in a loop" if subject.scopes.loop_of(row) >= 0 else ""
    remedy = _REMEDIES[kind]
    return (
        f"The {kind.value}{_name_types(mnemonic)} {preposition} {place} ({mnemonic}{where}) is slow on this GPU: {slowness.words}. "
        f"{remedy[0].upper()}{remedy[1:]}."
    )


def _advise_double(subject: Subject, scope: Scope, hotspots: Sequence[Hotspot], slowness: Slowness) -> str:
    rows = dict.fromkeys(hotspot.def_row for hotspot in hotspots)
    doubles: dict[str, None] = {}
    for row in rows:
        parts = read_parts(subject, row)
        doubles.update(dict.fromkeys(parts.doubles if parts is not None else ()))
    literals = f" Literals such as {quote(tuple(doubles))} are of type double." if doubles else ""
    remedy = _REMEDIES[SlowKind.DOUBLE_PRECISION]
    many = f"{len(rows)} instructions" if len(rows) > 1 else "1 instruction"
    return (
        f"The FP64 arithmetic in {describe_scope(subject, scope)} ({many}) is slow on this GPU: {slowness.words}. "
        f"{remedy[0].upper()}{remedy[1:]}.{literals}"
    )


def _name_types(mnemonic: str) -> str:
    """What is converted to what; empty for anything but a conversion.

    >>> _name_types("I2F.F64"), _name_types("F2F.F32.F64"), _name_types("MUFU.RCP")
    (' from integer to FP64', ' from FP64 to FP32', '')
    """
    name, *modifiers = mnemonic.split(".")
    floats = [f"FP{modifier.removeprefix('F')}" for modifier in modifiers if modifier in ("F16", "F32", "F64")]
    if name == "F2F" and len(floats) == 2:
        return f" from {floats[1]} to {floats[0]}"
    if name in ("I2F", "F2I"):
        real = floats[0] if floats else "FP32"
        return f" from integer to {real}" if name == "I2F" else f" from {real} to integer"
    return ""


def _list_caveats(has_widened: bool, kinds: set[SlowKind]) -> tuple[str, ...]:
    if has_widened or SlowKind.DOUBLE_PRECISION in kinds:
        return ("Single precision keeps 24 bits of a value, double precision 53; check the results.",)
    return ()


OPTIMIZER = StrengthReduction()
