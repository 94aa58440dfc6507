"""Shared-memory accesses that take more wavefronts than their data needs, because lanes want different words of one bank."""

from collections.abc import Sequence
from math import log2

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode
from gpa_lsp.diagnosis.advice.blamed_stalls import (
    build_counted_regions,
    build_regions,
    count_samples,
    describe_causes,
    find_edges,
    find_worst,
)
from gpa_lsp.diagnosis.advice.loop_work import find_trees
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Hotspot
from gpa_lsp.diagnosis.advice.naming import describe_place
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.residency import AS_NOW, Filling, compare_filling, describe_block
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, Sentence, capitalize, count, factor, number, say
from gpa_lsp.kernel.dataflow.accesses import count_access_bytes, measure_excess
from gpa_lsp.kernel.scopes import Scope

_REASONS = ("short_scoreboard", "mio_throttle")  # Waiting for the words, and for room in the queue before the access
_BANKS = 32
_WORD_BYTES = 4
_POWER_TOLERANCE = 0.05


def _is_plain_access(opcode: Opcode) -> bool:
    """A load or store of shared memory, or a copy into it; atomics queue for addresses, not for banks."""
    if opcode.access is Access.COPY:
        return opcode.memory is MemorySpace.GLOBAL
    return opcode.memory in (MemorySpace.SHARED, MemorySpace.GENERIC) and opcode.access in (Access.LOAD, Access.STORE)


def match(subject: Subject) -> Found:
    """Passes through shared memory beyond the least an access could do with.

    Matched: the stalls blamed on an access (waiting for its words, for room in the queue before it) times its share of passes beyond the
    least. Approximation: the wait is in proportion to the passes; and instructions that only queue behind a conflict are not counted.

    Source: wavefronts per instruction of Nsight Compute's source counters.
    """
    passes, ideal = subject.rows.counter("shared_wavefronts"), subject.rows.counter("shared_wavefronts_ideal")
    accesses = subject.rows.mark_by_opcode(_is_plain_access)
    if passes is None or ideal is None or not (accesses & (passes > 0)).any():
        return say("the kernel has no shared-memory loads or stores")
    made, least = int(passes[accesses].clip(min=0).sum()), int(ideal[accesses].clip(min=0).sum())
    if made <= least or least == 0:
        ratio = factor(made / max(least, 1))
        return say("shared accesses take {ratio} the minimum number of wavefronts", ratio=ratio)
    ratio = factor(made / least)
    excess = np.where(accesses, measure_excess(passes, ideal), 0.0)
    edges = find_edges(subject, excess > 0, _REASONS)
    weights = excess[subject.edges.def_row[edges]]
    if subject.total_samples and count_samples(subject, edges, weights) == 0:
        return say(
            "shared accesses take {ratio} the minimum number of wavefronts, but no warp is stalled on those with conflicts",
            ratio=ratio,
        )
    ways = np.where(ideal > 0, passes / np.maximum(ideal, 1), 1.0)
    worst = find_worst(subject, edges, weights, excess * passes)

    def write_note(def_row: int, _use_row: int) -> Sentence:
        return say("{ways} where 1 would suffice", ways=number(float(ways[def_row]), "wavefront"))

    def write_hint(_scope: Scope, hotspots: Sequence[Hotspot]) -> Sentence:
        return describe_causes(hotspots, lambda row: _write_sentence(subject, row, float(ways[row])))

    return EliminationMatch(
        regions=build_regions(subject, edges, weights, write_hint=write_hint, write_note=write_note)
        if subject.total_samples
        else build_counted_regions(
            subject, excess * passes, lambda row: _write_sentence(subject, row, float(ways[row]))
        ),
        hint=_write_remedy(float(ways[worst]), is_step=any(worst in one.rows for one in find_trees(subject))),
        work=count_work_left(subject, wavefronts=excess),
        filling=_fill_padded(subject) if _find_pitch(float(ways[worst])) == _BANKS else AS_NOW,
        caveats=(
            say("Padding takes shared memory and can lower occupancy; swizzling does not."),
            say("An access limited by latency, not throughput, gains less than its share of wavefronts."),
        ),
        reasons=(
            *([say("stalls on each access, times its share of excess wavefronts")] if subject.total_samples else []),
            say(
                "shared accesses take {ratio} the minimum: {made} where {least} would suffice",
                ratio=ratio,
                made=count(made, "wavefront"),
                least=count(least),
            ),
        ),
    )


def _fill_padded(subject: Subject) -> Filling:
    """The filling where each 32 words of shared memory take one more."""
    block, launch = describe_block(subject), subject.launch
    if block is None or launch is None:
        return AS_NOW
    padded = replace(block, shared_bytes=block.shared_bytes * (_BANKS + 1) // _BANKS)
    return compare_filling(subject, launch.blocks, padded)


def _write_sentence(subject: Subject, row: int, ways: float) -> Sentence:
    access = capitalize(describe_place(subject, row))
    conflicts = say("{access} has {ways}-way bank conflicts", access=access, ways=number(ways))
    pitch = _find_pitch(ways) if count_access_bytes(subject.rows.mnemonic(row)) == _WORD_BYTES else None
    if pitch is None:
        return say("{conflicts}.", conflicts=conflicts)
    template = (
        "{conflicts}: its lanes are a multiple of {words} ({bytes}) apart."
        if pitch == _BANKS
        else "{conflicts}: its lanes are {words} ({bytes}) apart, or an odd multiple of that."
    )
    return say(template, conflicts=conflicts, words=count(pitch, "word"), bytes=count(pitch * _WORD_BYTES, "byte"))


def _find_pitch(ways: float) -> int | None:
    """Words between neighbouring lanes that make such a conflict; None where no even distance does.

    >>> _find_pitch(32.0), _find_pitch(8.1), _find_pitch(2.7)
    (32, 8, None)
    """
    power = round(log2(ways)) if ways >= 1 else 0
    is_power = abs(ways - 2**power) <= _POWER_TOLERANCE * ways
    return min(2**power, _BANKS) if is_power and power >= 1 else None


def _write_remedy(ways: float, *, is_step: bool) -> Sentence:
    """Write the remedy for the worst access, by its wavefronts over the fewest, and whether it is a step of a reduction."""
    if is_step:
        return say(
            "Begin the reduction with the largest distance and halve it, so that lanes access neighbouring banks."
        )
    if _find_pitch(ways) == _BANKS:
        return say(
            "Pad each row of the array by one word ({padded}), so that a column spans 32 banks, or swizzle: store column c of row r at {swizzled}.",
            padded=Code(text="tile[32][32 + 1]"),
            swizzled=Code(text="c ^ r"),
        )
    return say(
        "Lay out the array so that the lanes of a warp access different banks (word address modulo 32): pad rows by a word, swizzle, or store "
        "each field of a structure in an array of its own."
    )


OPTIMIZER = Optimizer(
    name="shared_bank_conflicts",
    title="Avoid shared-memory bank conflicts",
    group="shared memory",
    needs_samples=False,
    needs_counters=("shared_wavefronts", "shared_wavefronts_ideal"),
    find=match,
)
