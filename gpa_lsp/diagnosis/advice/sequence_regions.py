"""Regions of arithmetic sequences: one for each line and operation, with the called routines' samples shared among their calls."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.blamed_stalls import (
    MOST_HOTSPOTS,
    NoteWriter,
    build_hotspots,
    build_region,
    rank_regions,
    sum_by_reason,
)
from gpa_lsp.diagnosis.advice.matches import EliminationRegion
from gpa_lsp.diagnosis.advice.naming import find_own_frame
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.prose import NOTHING, Sentence, say
from gpa_lsp.foundation.records import ColumnRecord, remembered
from gpa_lsp.kernel.calls import estimate_called_samples
from gpa_lsp.kernel.dataflow.arithmetic import ArithmeticSequence
from gpa_lsp.kernel.scopes import Scope, ScopeKind

# Sequences of one line and operation → what to do there
HintWriter = Callable[[Sequence[ArithmeticSequence]], Sentence]


class CalledShares(ColumnRecord, frozen=True, kw_only=True):
    """Cost of the calls of a kernel, out of the samples blamed on the called code."""

    all_samples: npt.NDArray[np.float64]  # float64[n], by row of the call; callees of callees included
    latency_samples: npt.NDArray[np.float64] | None  # float64[n]; None when unknown


@remembered
def find_removable(subject: Subject) -> npt.NDArray[np.bool_]:
    """bool[e]: blamed pairs that go when the blamed instruction goes. A miss of a kernel argument moves on to its next reader."""
    return np.not_equal(subject.edges.category, BlameCategory.CONSTANT_MISS)


@remembered
def share_called_samples(subject: Subject) -> CalledShares:
    """The samples blamed on called code, shared among the call sites by how often each executed."""
    edges, removable = subject.edges, find_removable(subject)

    def share(samples: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        by_cause = np.bincount(edges.def_row, weights=np.where(removable, samples, 0.0), minlength=len(subject.rows))
        return estimate_called_samples(subject.kernel, by_cause.astype(np.float64))

    latency = edges.latency_samples
    return CalledShares(
        all_samples=share(edges.all_samples), latency_samples=None if latency is None else share(latency)
    )


def find_line_scope(subject: Subject, row: int) -> Scope:
    """The source line a row is on; without one, the innermost loop or function."""
    around, frame = subject.scopes.scopes[int(subject.scopes.innermost[row])], find_own_frame(subject, row)
    if frame is None:
        return around
    line = frame.line
    return replace(around, kind=ScopeKind.LINE, row=row, file=frame.file, line=line, last_line=line)


def build_sequence_regions(
    subject: Subject, sequences: Iterable[ArithmeticSequence], write_hint: HintWriter
) -> tuple[EliminationRegion, ...]:
    """Regions of sequences: everything blamed on their instructions, and on the routines they call."""
    called = share_called_samples(subject)
    calls_of = _count_calls_by_routine(called, sequences := tuple(sequences))
    groups: dict[tuple[str, str, str | None, int | None, int], list[ArithmeticSequence]] = {}
    scopes: dict[int, Scope] = {}
    for sequence in sequences:
        scope = scopes[sequence.anchor] = find_line_scope(subject, sequence.anchor)
        number = scope.row if scope.kind is not ScopeKind.LINE else -1
        key = (sequence.operation.title, scope.function, scope.file, scope.line, number)
        groups.setdefault(key, []).append(sequence)
    regions = []
    for members in groups.values():
        region = _build_region(subject, members, called, calls_of)
        if region[0] > 0:
            samples, latency, edges, weights = region
            regions.append(
                EliminationRegion(
                    scope=scopes[members[0].anchor],
                    samples=samples,
                    latency_samples=latency,
                    hotspots=build_hotspots(
                        subject,
                        edges,
                        weights,
                        write_note=_note_routine(members),
                        most=MOST_HOTSPOTS,
                    ),
                    hint=write_hint(members),
                    by_reason=sum_by_reason(subject, edges, weights),
                )
            )
    return rank_regions(regions)


def build_row_region(
    subject: Subject,
    scope: Scope,
    rows: Sequence[int],
    edges: npt.NDArray[np.int64],
) -> EliminationRegion | None:
    """The region of what is blamed on some rows, without a hint; None when that is nothing.

    Args:
        edges: int64[m], indices of the blamed pairs that may count.
    """
    causes = subject.rows.mark(rows)
    chosen = edges[causes[subject.edges.def_row[edges]] & (subject.edges.all_samples[edges] > 0)]
    if len(chosen) == 0:
        return None
    return build_region(subject, scope, chosen)


def mark_sequences(subject: Subject, sequences: Iterable[ArithmeticSequence]) -> npt.NDArray[np.float64]:
    """float64[n]: the part of each row's executions that goes with some sequences; the routines they call go whole."""
    gone = np.zeros(len(subject.rows))
    for sequence in sequences:
        gone[[*sequence.inlined, *sequence.call_block, *sequence.callee]] = 1.0
    return gone


def count_operations(subject: Subject, sequences: Iterable[ArithmeticSequence]) -> float:
    """Count the operations of sequences, in warp instructions; the call is made for few operands alone."""
    return sum(float(subject.executed[[one.anchor, *one.inlined]].max()) for one in sequences)


def _count_calls_by_routine(called: CalledShares, sequences: Sequence[ArithmeticSequence]) -> dict[range, float]:
    found: dict[range, float] = {}
    for sequence in sequences:
        if sequence.site is not None and sequence.callee:
            found[sequence.callee] = found.get(sequence.callee, 0.0) + float(called.all_samples[sequence.site])
    return found


def _build_region(
    subject: Subject,
    members: Sequence[ArithmeticSequence],
    called: CalledShares,
    calls_of: dict[range, float],
) -> tuple[float, float | None, npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Samples, latency samples (None when unknown), and the blamed pairs with their weights."""
    edges = subject.edges
    weight_of = np.zeros(len(subject.rows))
    samples = latency = 0.0
    for sequence in members:
        weight_of[[*sequence.inlined, *sequence.call_block]] = 1.0
        if sequence.site is None or not sequence.callee:
            continue
        samples += float(called.all_samples[sequence.site])
        if called.latency_samples is not None:
            latency += float(called.latency_samples[sequence.site])
        whole = calls_of[sequence.callee]
        if whole > 0:
            weight_of[sequence.callee.start : sequence.callee.stop] += float(called.all_samples[sequence.site]) / whole
    own = subject.rows.mark(row for sequence in members for row in (*sequence.inlined, *sequence.call_block))
    removable = find_removable(subject)
    is_own = own[edges.def_row] & removable
    samples += float(edges.all_samples[is_own].sum())
    if edges.latency_samples is not None:
        latency += float(edges.latency_samples[is_own].sum())
    weights = weight_of[edges.def_row]
    chosen = np.flatnonzero((weights > 0) & (edges.all_samples > 0) & removable)
    return samples, None if edges.latency_samples is None else latency, chosen, weights[chosen]


def _note_routine(members: Sequence[ArithmeticSequence]) -> NoteWriter:
    routines = {row for sequence in members for row in sequence.callee}

    def write(def_row: int, _: int) -> Sentence:
        return say("in the routine called from here, shared among its calls") if def_row in routines else NOTHING

    return write
