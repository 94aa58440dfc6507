"""The samples of one stall reason, shared out among its sources."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.warp_time import SourceRule, find_warp_state
from gpa_lsp.diagnosis.analyses.line_sums import index_lines, sum_by_place
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency
from gpa_lsp.foundation.prose import Sentence, count, say
from gpa_lsp.foundation.records import ColumnRecord, remembered
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind, find_kind, list_kinds

NO_CAUSE = say("no cause found")
_MOST_PLACES = 12  # Places of a reason that are named one by one; the rest is one source
_LONGEST_NAME = 60  # Characters of a mangled name that are written

Rows = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


class Source(Struct, frozen=True, kw_only=True):
    """One source of a stall reason."""

    label: Sentence  # for people
    samples: float  # of the reason; shares of causes waited for together are fractions
    kind: InstructionKind | None = None  # of its instructions; None where it is not a kind
    row: int | None = None  # the instruction with most of it; None where there is none


class StallSplit(Struct, frozen=True, kw_only=True):
    """A stall reason and its sources."""

    reason: str  # as sampled
    samples: int  # of it, in the whole kernel
    sources: tuple[Source, ...]  # most samples first; they add up to ``samples``

    def share_of(self, source: Source) -> float:
        """The source's part of the reason, 0..1."""
        return source.samples / self.samples if self.samples else 0.0


class Causes(ColumnRecord, frozen=True, kw_only=True):
    """Causes of the samples of one reason, e pairs of rows."""

    use: Rows  # int64[e], the row that was sampled
    cause: Rows  # int64[e], the row that caused them; the same where nothing better is known
    dependency: npt.NDArray[np.uint8]  # uint8[e] of :class:`~gpa_lsp.diagnosis.blame.model.Dependency`
    category: npt.NDArray[np.uint8]  # uint8[e] of :class:`~gpa_lsp.diagnosis.blame.model.BlameCategory`
    samples: Weights  # float64[e]
    is_known: npt.NDArray[np.bool_]  # bool[e], False where blame found no cause


@remembered
def list_causes(subject: Subject, reason: str) -> Causes:
    """Causes of a reason: as attributed, or, without attribution, each instruction itself.

    The samples are those of the profile, no more and no fewer: pairs, and rows without a cause.
    """
    number = subject.kernel.reasons.index(reason)
    if subject.blame is None:
        counts = subject.rows.all_samples[:, number]
        rows = np.flatnonzero(counts).astype(np.int64)
        itself = np.full(len(rows), Dependency.ITSELF, dtype=np.uint8)
        misc = np.full(len(rows), BlameCategory.MISC, dtype=np.uint8)
        known = np.zeros(len(rows), dtype=bool)
        return Causes(
            use=rows,
            cause=rows,
            dependency=itself,
            category=misc,
            samples=counts[rows].astype(np.float64),
            is_known=known,
        )
    edges, lost = subject.edges, subject.blame.unattributed
    chosen, left = edges.reason == number, lost.reason == number
    rows = lost.row[left].astype(np.int64)
    return Causes(
        use=np.concatenate([edges.use_row[chosen].astype(np.int64), rows]),
        cause=np.concatenate([edges.def_row[chosen].astype(np.int64), rows]),
        dependency=np.concatenate([edges.dependency[chosen], np.zeros(len(rows), dtype=np.uint8)]),
        category=np.concatenate([edges.category[chosen], np.full(len(rows), BlameCategory.MISC, dtype=np.uint8)]),
        samples=np.concatenate([edges.all_samples[chosen], lost.all_samples[left]]),
        is_known=np.concatenate([np.ones(int(chosen.sum()), dtype=bool), np.zeros(len(rows), dtype=bool)]),
    )


_KEPT_RATIO = 0.99
_MOST_REASONS = 8


def keep_heaviest(weights: Mapping[str, float]) -> list[str]:
    """The reasons of most weight, heaviest first, until they cover 99 % of all; at most eight."""
    kept, covered, whole = list[str](), 0.0, sum(weights.values())
    for reason, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:_MOST_REASONS]:
        if covered >= _KEPT_RATIO * whole:
            break
        kept.append(reason)
        covered += weight
    return kept


@remembered
def split_reason(subject: Subject, reason: str) -> StallSplit:
    """The sources of a stall reason by its rule in :data:`~gpa_lsp.diagnosis.analyses.decomposition.warp_time.WARP_STATES`."""
    samples = subject.rows.count_reason(reason)
    if samples == 0:
        return StallSplit(reason=reason, samples=0, sources=())
    sources = _RULES[find_warp_state(reason).rule](subject, list_causes(subject, reason))
    ordered = sorted(sources, key=lambda one: (-one.samples, one.label))
    return StallSplit(reason=reason, samples=samples, sources=tuple(ordered))


def _split_by_cause(subject: Subject, causes: Causes) -> Iterable[Source]:
    """Split by kind of the cause; stalls until operands are read are apart from stalls on results."""
    reads = causes.category == BlameCategory.WRITE_AFTER_READ
    groups = list_kinds(subject.rows)[causes.cause].astype(np.int64) * 2 + reads
    for group, samples, row in _gather(groups, causes, 2 * len(KINDS)):
        kind = KINDS[group // 2]
        template = "{kind}, until they have read their operands" if group % 2 else "{kind}"
        yield Source(label=say(template, kind=kind.value), samples=samples, kind=kind, row=row)
    yield from _leave_unknown(causes)


# How a stall of fixed length depends on its cause, where that is no result; a guard is a predicate, whose latency is the longest of them
_WAIT_WORDS = {
    Dependency.GUARD: "predicates set by {kind}",
    Dependency.ISSUE: "issue cost of {kind}",
    Dependency.ITSELF: "issue cost of {kind}",
    Dependency.CONTROL: "issue cost of {kind}",
}


def _split_by_producer(subject: Subject, causes: Causes) -> Iterable[Source]:
    """Split by kind of the cause, and by whether the stall is on its result, on a predicate or only on its issue."""
    groups = list_kinds(subject.rows)[causes.cause].astype(np.int64) * len(Dependency) + causes.dependency
    merged: dict[str, Source] = {}
    for group, samples, row in _gather(groups, causes, len(KINDS) * len(Dependency)):
        kind, dependency = KINDS[group // len(Dependency)], Dependency(group % len(Dependency))
        label = say(_WAIT_WORDS.get(dependency, "results of {kind}"), kind=kind.value)
        old = merged.get(label)
        if old is None:
            merged[label] = Source(label=label, samples=samples, kind=kind, row=row)
        else:
            leading = row if samples > old.samples else old.row
            merged[label] = Source(label=label, samples=old.samples + samples, kind=kind, row=leading)
    yield from merged.values()
    yield from _leave_unknown(causes)


def _split_by_waiter(subject: Subject, causes: Causes) -> Iterable[Source]:
    """Split by kind of the stalled instruction: one that found its pipe or queue taken is of the kind that takes it."""
    for group, samples, row in _gather(
        list_kinds(subject.rows)[causes.use].astype(np.int64), causes, len(KINDS), of_use=True
    ):
        yield Source(label=say(KINDS[group].value), samples=samples, kind=KINDS[group], row=row)


def _split_by_place(subject: Subject, causes: Causes) -> Iterable[Source]:
    """Split by source line of the cause, or by instruction where it has no line."""
    size = len(subject.rows)
    weights = np.bincount(causes.cause, weights=causes.samples, minlength=size).astype(np.float64)
    sums = sum_by_place(subject.rows.own_lines, weights)
    for row, samples in sums[:_MOST_PLACES]:
        yield Source(label=name_row(subject, row), samples=samples, row=row)
    if rest := sums[_MOST_PLACES:]:
        label = count(len(rest), "other place")
        yield Source(label=say("{label}", label=label), samples=sum(samples for _, samples in rest), row=rest[0][0])


def _split_by_function(subject: Subject, causes: Causes) -> Iterable[Source]:
    """Split by function section of the instruction that was not fetched yet."""
    sections = subject.rows.function_index[causes.use].astype(np.int64)
    for section, samples, row in _gather(sections, causes, len(subject.kernel.functions), of_use=True):
        yield Source(label=_name_section(subject, section), samples=samples, row=row)


def _name_section(subject: Subject, section: int) -> Sentence:
    name = subject.kernel.functions[section].name
    if name == subject.kernel.mangled_name:
        return say("code of the kernel itself")
    return say("code of {name}", name=name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…")


def _split_not(_subject: Subject, causes: Causes) -> Iterable[Source]:
    yield Source(label=say("not stalled"), samples=float(causes.samples.sum()))


_RULES: dict[SourceRule, Callable[[Subject, Causes], Iterable[Source]]] = {
    SourceRule.BY_CAUSE: _split_by_cause,
    SourceRule.BY_PRODUCER: _split_by_producer,
    SourceRule.BY_WAITER: _split_by_waiter,
    SourceRule.BY_PLACE: _split_by_place,
    SourceRule.BY_FUNCTION: _split_by_function,
    SourceRule.NONE: _split_not,
}


def name_row(subject: Subject, row: int) -> Sentence:
    """An instruction for people: its opcode and its line, or its offset where it has none."""
    mnemonic = subject.rows.mnemonic(row)
    # The scope of a fence is in its modifiers.
    is_fence = bool(mnemonic) and find_kind(mnemonic) is InstructionKind.FENCE
    opcode = (mnemonic if is_fence else mnemonic.partition(".")[0]) or "an instruction"
    place = subject.rows.place(row)
    if place is not None:
        shown = index_lines(subject).make_place(place.file, place.line)
        return say("{opcode} at {place}", opcode=opcode, place=shown)
    offset = int(subject.rows.pc_offsets[row])
    return say("{opcode} at {offset}", opcode=opcode, offset=f"{offset:#x}")


def _gather(groups: Rows, causes: Causes, number: int, *, of_use: bool = False) -> Iterable[tuple[int, float, int]]:
    """Group, samples and leading row of each group with samples; pairs without a known cause only where the stalled one decides."""
    chosen = np.flatnonzero(causes.is_known | of_use)
    if not len(chosen):
        return
    rows = (causes.use if of_use else causes.cause)[chosen]
    weights, of_pair = causes.samples[chosen], groups[chosen]
    totals = np.bincount(of_pair, weights=weights, minlength=number)
    by_row = np.bincount(rows, weights=weights)
    order = np.lexsort((rows, -by_row[rows], of_pair))
    firsts = order[np.unique(of_pair[order], return_index=True)[1]]
    for first in firsts.tolist():
        group = int(of_pair[first])
        if totals[group] > 0:
            yield group, float(totals[group]), int(rows[first])


def _leave_unknown(causes: Causes) -> Iterable[Source]:
    lost = np.flatnonzero(~causes.is_known)
    if len(lost):
        most = lost[np.argmax(causes.samples[lost])]
        yield Source(label=NO_CAUSE, samples=float(causes.samples[lost].sum()), row=int(causes.use[most]))
