"""Question: what does every stall reason come from? Instructions, pipes, barriers, functions.

Samples of a reason are shared out among its sources by :mod:`~gpa_lsp.diagnosis.analyses.decomposition.stall_split`, and add up to it. Queues and
pipes are looked into by :mod:`~gpa_lsp.diagnosis.analyses.decomposition.unit_use`.

Source: after DrGPU (Hao et al., ICPE 2023), the children of its stall nodes; the producers behind scoreboards are blame's.
"""

from collections.abc import Iterator

import numpy as np

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Finding,
    LineMark,
    Missing,
    Table,
    Weight,
    know_nothing,
    list_columns,
    order_findings,
)
from gpa_lsp.diagnosis.analyses.decomposition.reason_notes import choose_remedy, note_reason
from gpa_lsp.diagnosis.analyses.decomposition.stall_split import (
    NO_CAUSE,
    StallSplit,
    keep_heaviest,
    list_causes,
    split_reason,
)
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import (
    PIPE_UNITS,
    QUEUE_UNITS,
    QueueUse,
    list_queue_use,
    list_unit_use,
    tabulate_units,
)
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import find_warp_state
from gpa_lsp.diagnosis.analyses.line_sums import mark_rows
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import Sentence, join, percent, say
from gpa_lsp.kernel.dataflow.instruction_kinds import QUEUES

_MOST_SOURCES = 6
_MATTERS_RATIO = 0.05  # Part of all samples from which a reason has a finding of its own
_HOLDS_UP_RATIO = 0.2
_NAMED_RATIO = 0.02


def answer(subject: Subject) -> Answer:
    """Answer what every stall reason comes from."""
    total = subject.total_samples
    if total == 0:
        missing = lack("where warps stall", section="SourceCounters")
        return know_nothing(say("Unknown: no stall samples were taken."), missing)
    kept = split_heaviest(subject)
    if not kept:
        summary = say("No warp was sampled while stalled.")
        finding = Finding(text=summary, weight=Weight.GOOD, share_ratio=0.0)
        return Answer(summary=summary, findings=(finding,))
    return Answer(
        summary=_summarise(kept, total),
        findings=order_findings(_find(subject, kept), by_share=True),
        bars=tuple(_draw_bars(kept, total)),
        tables=tuple(_list_tables(subject, kept)),
        marks=_mark_causes(subject),
        missing=tuple(_list_missing(subject)),
    )


def split_heaviest(subject: Subject) -> tuple[StallSplit, ...]:
    """The sources of the heaviest reasons for which warps were stalled, until they cover 99 % of the stalls; at most eight, most samples first."""
    stalls = {
        reason: samples
        for reason in subject.kernel.reasons
        if find_warp_state(reason).is_stall and (samples := subject.rows.count_reason(reason))
    }
    return tuple(split_reason(subject, reason) for reason in keep_heaviest(stalls))


def _summarise(kept: tuple[StallSplit, ...], total: int) -> Sentence:
    first = kept[0]
    source = first.sources[0]
    return say(
        "The heaviest stall reason is {reason} ({share} of all samples), {part} of it {source}.",
        reason=first.reason,
        share=percent(first.samples / total),
        part=percent(first.share_of(source)),
        source=say("without a known cause") if source.label == NO_CAUSE else say("from {source}", source=source.label),
    )


def _find(subject: Subject, kept: tuple[StallSplit, ...]) -> Iterator[Finding]:
    total = subject.total_samples
    for split in kept:
        share = split.samples / total
        if share < _MATTERS_RATIO and split is not kept[0]:
            continue
        leading = next((source for source in split.sources if source.label != NO_CAUSE), split.sources[0])
        named = [source for source in split.sources[:3] if split.share_of(source) >= _NAMED_RATIO] or split.sources[:1]
        parts = (say("{part} {source}", part=percent(split.share_of(one)), source=one.label) for one in named)
        text = say(
            "{reason}, {share} of all samples: {parts}.",
            reason=split.reason,
            share=percent(share),
            parts=join(parts, "; "),
        )
        yield Finding(
            text=join([text, note_reason(subject, split)]),
            weight=Weight.HIGH if share >= _HOLDS_UP_RATIO else Weight.PLAIN,
            remedy=choose_remedy(subject, split, leading),
            share_ratio=share,
        )


def _draw_bars(kept: tuple[StallSplit, ...], total: int) -> Iterator[Bar]:
    for split in kept:
        yield Bar(label=split.reason, ratio=split.samples / total, words=split.sources[0].label)


def _list_tables(subject: Subject, kept: tuple[StallSplit, ...]) -> Iterator[Table]:
    yield _tabulate_sources(kept, subject.total_samples)
    reasons = {split.reason for split in kept}
    for reason in QUEUES:
        if reason in reasons:
            yield _tabulate_queue(reason, list_queue_use(subject, reason))
    if reasons & QUEUES.keys():
        yield tabulate_units(
            "How busy the units behind the queues are", "unit", "what", list_unit_use(subject, QUEUE_UNITS)
        )
    if "math_pipe_throttle" in reasons:
        yield tabulate_units("How busy the arithmetic pipes are", "unit", "what", list_unit_use(subject, PIPE_UNITS))


def _tabulate_sources(kept: tuple[StallSplit, ...], total: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for split in kept:
        rows += (
            (split.reason, source.label, split.share_of(source), source.samples / total, source.samples)
            for source in split.sources[:_MOST_SOURCES]
        )
        rest = sum(source.samples for source in split.sources[_MOST_SOURCES:])
        if rest > 0:
            rows.append((split.reason, "others", rest / split.samples, rest / total, rest))
    return Table(
        title="Stalls and their sources",
        columns=list_columns("reason | source | of the reason [ratio] | of all samples [ratio] | samples [samples]"),
        rows=tuple(rows),
        note=say(
            "The sources of a reason add up to it; causes that share a stall get its samples in proportion to their executions."
        ),
    )


def _tabulate_queue(reason: str, uses: tuple[QueueUse, ...]) -> Table:
    return Table(
        title=f"What goes through the queue behind {reason}",
        columns=list_columns(
            "kind | executions [count] | of the queue [ratio] | per SM and cycle [number] | "
            "passes per execution [number] | fewest passes [number] | per thread and access [bytes]"
        ),
        rows=tuple(
            (
                use.kind.value,
                use.executions,
                use.share_ratio,
                use.per_cycle,
                use.passes,
                use.least_passes,
                use.thread_bytes,
            )
            for use in uses
        ),
        note=say("Passes are wavefronts of shared memory, and 128-byte lines of global memory."),
    )


def _mark_causes(subject: Subject) -> tuple[LineMark, ...]:
    """The instructions that cause stalls, of all reasons; the text names the heaviest of each. Shares are of all samples, as everywhere else."""
    size, places = len(subject.rows), subject.rows.own_lines
    reasons = [
        one for one in subject.kernel.reasons if find_warp_state(one).is_stall and subject.rows.count_reason(one)
    ]
    by_reason = np.zeros((len(reasons), size))
    for number, reason in enumerate(reasons):
        causes = list_causes(subject, reason)
        chosen = causes.is_known if subject.blame is not None else np.ones(len(causes.cause), dtype=bool)
        by_reason[number] = np.bincount(causes.cause[chosen], weights=causes.samples[chosen], minlength=size)
    of_places = np.stack([np.bincount(places, weights=one) for one in by_reason])

    def write_text(row: int) -> Sentence:
        sums = of_places[:, places[row]]
        heaviest = int(sums.argmax())
        most = "all" if sums[heaviest] == sums.sum() else "most"
        return say("{most} of them {reason}", most=most, reason=reasons[heaviest])

    return mark_rows(
        subject,
        by_reason.sum(axis=0),
        measure="stalls caused",
        quantity=Quantity.SAMPLES,
        describe=write_text,
        whole=float(subject.total_samples),
    )


def _list_missing(subject: Subject) -> Iterator[Missing]:
    if subject.blame is None:
        yield Missing(
            what="the instructions that cause the stalls", why=say("the stalls of this code were not attributed")
        )
    if not subject.rows.has_code:
        why = say("the code could not be disassembled: nvdisasm was not found, or the profile does not hold the code")
        yield Missing(what="which instructions stall", why=why)
    if not (subject.rows.executions >= 0).any():
        yield lack("what fills the queues", "inst_executed", section="SourceCounters")


ANALYSIS = Analysis(name="stall_sources", title="Where stalls come from", order=70, answer=answer)
