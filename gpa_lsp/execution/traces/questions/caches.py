"""Questions of what caches keep: reuse, hits, and how many warps should use L1."""

from collections import defaultdict

from gpa_lsp.code.symbolic_accesses.requests import LINE_BYTES
from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Finding, Missing, Table, Weight, list_columns
from gpa_lsp.execution.traces.cache_hits import BypassingAdvice
from gpa_lsp.execution.traces.code_centric import find_line_place
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.execution.traces.reuse_distance import BINS, ReuseDistances, ReuseHistogram
from gpa_lsp.execution.traces.words import deny, list_reuse_bars, name_bin
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, join, number, percent, say

_REUSE = "traced_reuse"
_MOSTLY = 0.9
_MUCH = 0.25


def _answer_reuse(analyses: TraceAnalyses) -> Answer:
    """Answer whether loaded data is used again, and how much lies between."""
    title = f"Reuse distance ({analyses.origin})"
    lines = analyses.block_lines
    if not lines.total.references:
        return deny(_REUSE, title, "do not access global memory", is_complete=analyses.is_complete)
    mean = lines.total.mean_distance
    between = (
        NOTHING
        if mean is None
        else say("; on average {lines} lie between two uses", lines=number(mean, "distinct line"))
    )
    return Answer(
        analysis=_REUSE,
        title=title,
        summary=say(
            "Within a block, {share} of the uses of a line are its only one{between}.",
            share=percent(lines.total.streaming_ratio),
            between=between,
        ),
        findings=tuple(_find(analyses)),
        bars=list_reuse_bars(lines.total),
        tables=(_build_reuse_table(analyses),),
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


def _build_reuse_table(analyses: TraceAnalyses) -> Table:
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


_CACHES = "traced_caches"
_CACHES_TITLE = "Cache hits (predicted)"
_MOST_ROWS = 20


def _answer_caches(analyses: TraceAnalyses) -> Answer:
    """Answer how often loads would hit in L1 and L2."""
    caches = analyses.caches
    l1, l2 = caches.l1_hit_ratio, caches.l2_hit_ratio
    missing = tuple(
        Missing(what=f"hits in {name}", why=say("its size on this GPU is unknown"))
        for name, size in (("L1", caches.l1_bytes), ("L2", caches.l2_bytes))
        if size is None
    )
    if l1 is None and l2 is None:
        return Answer(
            analysis=_CACHES, title=_CACHES_TITLE, summary=say("Nothing to predict: no loads, or caches of unknown size."),
            missing=missing, is_known=False,
        )  # fmt: skip
    gpu = f" on {analyses.context.gpu}" if analyses.context.gpu else ""
    hits = [
        say("{share} of the load sectors that reach {name} hit there", share=percent(ratio), name=name)
        for name, ratio in (("L1", l1), ("L2", l2))
        if ratio is not None
    ]
    return Answer(
        analysis=_CACHES,
        title=_CACHES_TITLE,
        summary=say("{hits}{gpu}, by a model of the resident blocks.", hits=join(hits, ", and "), gpu=gpu),
        bars=tuple(
            Bar(
                label=f"{name} hits",
                ratio=ratio,
                words=say("{found} of {sectors}", found=count(found), sectors=count(sectors, "sector")),
            )
            for name, ratio, found, sectors in (
                ("L1", l1, caches.sum_column("l1_hits"), caches.sum_column("l1_sectors")),
                ("L2", l2, caches.sum_column("l2_hits"), caches.sum_column("l2_sectors")),
            )
            if ratio is not None
        ),
        tables=(_build_caches_table(analyses),),
        missing=missing,
    )


def _build_caches_table(analyses: TraceAnalyses) -> Table:
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * 5)
    for one in analyses.caches.instructions:
        row = sums[find_line_place(analyses, one.instruction).write(analyses.short_files)]
        for column, value in enumerate((one.l1_sectors, one.l1_hits, one.l2_sectors, one.l2_hits, one.store_sectors)):
            row[column] += value
    ordered = sorted(sums.items(), key=lambda item: (-(item[1][2] - item[1][3]), item[0]))
    rows: list[tuple[Cell, ...]] = [
        (place, l1, hits / l1 if l1 else None, l2, l2_hits / l2 if l2 else None, l2 - l2_hits, stores)
        for place, (l1, hits, l2, l2_hits, stores) in ordered[:_MOST_ROWS]
    ]
    return Table(
        title="By line",
        columns=list_columns(
            "line | load sectors to L1 [count] | hit [ratio] | load sectors to L2 [count] | hit [ratio] | "
            "load sectors from memory [count] | store sectors [count]"
        ),
        rows=tuple(rows),
        note=join((say("Over the modelled waves and SMs."), *analyses.caches.assumptions)),
    )


_BYPASSING = "traced_bypassing"
_BYPASSING_TITLE = "Bypassing L1 (predicted)"
_HOW = say("{ldcg}, or {ptx} in inline PTX", ldcg=Code(text="__ldcg"), ptx=Code(text="ld.global.cg"))
_ONCE = say("Data that is used once can bypass L1 in all warps ({ldcs}).", ldcs=Code(text="__ldcs"))
_SOME_REMEDY = join(
    [
        say(
            "Try bypassing L1 in the loads of the other warps ({how}), selected by the warp's index in the block.",
            how=_HOW,
        ),
        _ONCE,
    ]
)
_NONE_REMEDY = join([say("Try bypassing L1 in the loads ({how}).", how=_HOW), _ONCE])


def _answer_bypassing(analyses: TraceAnalyses) -> Answer:
    """Answer how many warps of a block should use L1."""
    advice = analyses.bypassing
    if advice is None:
        return Answer(
            analysis=_BYPASSING,
            title=_BYPASSING_TITLE,
            summary=say(
                "Nothing to predict: no load that L1 keeps reuses a line within a warp, or the size of L1 is unknown."
            ),
            is_known=False,
        )
    findings: tuple[Finding, ...] = ()
    if advice.warps < advice.warps_per_block:
        needs = say(
            "To reuse a line, a warp needs {lines} kept in L1, and an SM holds {blocks}.",
            lines=number(advice.mean_distance, "line"),
            blocks=count(analyses.context.blocks_per_sm, "block"),
        )
        remedy = _SOME_REMEDY if advice.warps else _NONE_REMEDY
        findings = (Finding(text=needs, weight=Weight.PLAIN, remedy=remedy),)
    return Answer(analysis=_BYPASSING, title=_BYPASSING_TITLE, summary=summarise_bypassing(advice), findings=findings)


def summarise_bypassing(advice: BypassingAdvice) -> Sentence:
    """Number of warps that L1 has room for, as a sentence."""
    warps, whole = advice.warps, count(advice.warps_per_block, "warp")
    if advice.warps_per_block == 1:
        if warps >= 1:
            return say("The only warp of a block can use L1.")
        return say("L1 cannot hold the lines that the only warp of a block reuses.")
    if warps >= advice.warps_per_block:
        return say("All {whole} of a block can use L1.", whole=whole)
    if warps == 0:
        return say("L1 cannot hold the lines that even one of the {whole} of a block reuses.", whole=whole)
    verb = "reuses" if warps == 1 else "reuse"
    return say(
        "L1 can hold the lines that {warps} of the {whole} of a block {verb}.",
        warps=count(warps),
        whole=whole,
        verb=verb,
    )


QUESTIONS = {
    "traced_reuse": TraceQuestion(order=30, answer=_answer_reuse),
    "traced_caches": TraceQuestion(order=40, answer=_answer_caches),
    "traced_bypassing": TraceQuestion(order=80, answer=_answer_bypassing),
}
