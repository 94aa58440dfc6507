"""Is what is loaded used again, and how much lies between?"""

from gpa_lsp.code.symbolic_accesses.requests import LINE_BYTES
from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Table, Weight, list_columns
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.execution.traces.reuse_distance import BINS, ReuseDistances, ReuseHistogram
from gpa_lsp.execution.traces.words import deny, list_reuse_bars, name_bin
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import NOTHING, number, percent, say

_NAME = "traced_reuse"
_MOSTLY = 0.9
_MUCH = 0.25


def _answer(analyses: TraceAnalyses) -> Answer:
    title = f"Reuse distance ({analyses.origin})"
    lines = analyses.block_lines
    if not lines.total.references:
        return deny(_NAME, title, "do not access global memory", is_complete=analyses.is_complete)
    mean = lines.total.mean_distance
    between = (
        NOTHING
        if mean is None
        else say("; on average {lines} lie between two uses", lines=number(mean, "distinct line"))
    )
    return Answer(
        analysis=_NAME,
        title=title,
        summary=say(
            "Within a block, {share} of the uses of a line are its only one{between}.",
            share=percent(lines.total.streaming_ratio),
            between=between,
        ),
        findings=tuple(_find(analyses)),
        bars=list_reuse_bars(lines.total),
        tables=(_build_table(analyses),),
    )


def _find(analyses: TraceAnalyses) -> list[Finding]:
    findings = []
    elements, sm = analyses.block_elements.total, analyses.sm_lines.total
    if elements.references and elements.streaming_ratio >= _MOSTLY:
        findings.append(
            Finding(
                text=say(
                    "{share} of the uses of a word are its only one in the block: the kernel streams.",
                    share=percent(elements.streaming_ratio),
                ),
                remedy=say("Caches do not help a streaming kernel; fewer, wider accesses and smaller types do."),
            )
        )
    l1_bytes = analyses.context.l1_bytes
    if sm.references and l1_bytes:
        beyond = _count_beyond(sm, l1_bytes // LINE_BYTES) / sm.references
        if beyond >= _MUCH:
            findings.append(
                Finding(
                    text=say(
                        "{share} of the line loads return to a line after more lines than L1 holds.",
                        share=percent(beyond),
                    ),
                    weight=Weight.HIGH,
                    remedy=say(
                        "Tile the work to fit: in shared memory, by blocking the loops, or with a block order that shares lines."
                    ),
                )
            )
    if any(not one.is_whole for one in (analyses.block_elements, analyses.block_lines, analyses.sm_lines)):
        findings.append(Finding(text=say("Reuse was measured in part of the traced blocks, each of them taken whole.")))
    return findings


def _count_beyond(histogram: ReuseHistogram, lines: int) -> int:
    """References whose whole bin lies at or beyond a number of lines; those in the bin around it do not count."""
    first = max(0, lines - 1).bit_length() + 1
    return int(histogram.bins[first : BINS - 1].sum())


def _build_table(analyses: TraceAnalyses) -> Table:
    kinds = (analyses.block_elements, analyses.block_lines, analyses.warp_lines, analyses.sm_lines)
    last = max((number for one in kinds for number in range(BINS - 1) if one.total.bins[number]), default=0)
    bins = [*range(last + 1), BINS - 1]
    rows: list[tuple[Cell, ...]] = [(name_bin(number), *(_share(one, number) for one in kinds)) for number in bins]
    rows.append(("used once", *(one.total.streaming_ratio if one.total.references else None for one in kinds)))
    return Table(
        title="Uses by reuse distance",
        columns=list_columns("distance", *(f"{one.granularity.value}s by {one.scope.value} [ratio]" for one in kinds)),
        rows=tuple(rows),
        note=say(
            "Distance: distinct words or lines used between two uses of the same one; ∞ is a first use. "
            "Warps are scheduled round-robin, one request each; per SM, loads only, of all its resident blocks."
        ),
    )


def _share(reuse: ReuseDistances, number: int) -> float | None:
    whole = reuse.total.references
    return int(reuse.total.bins[number]) / whole if whole else None


QUESTION = TraceQuestion(name=_NAME, order=30, answer=_answer)
