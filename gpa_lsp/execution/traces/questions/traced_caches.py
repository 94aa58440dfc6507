"""How often would loads hit in L1 and L2?"""

from collections import defaultdict

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Missing, Table, list_columns
from gpa_lsp.execution.traces.code_centric import find_line_place
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import count, join, percent, say

_NAME = "traced_caches"
_TITLE = "Cache hits (predicted)"
_MOST_ROWS = 20


def _answer(analyses: TraceAnalyses) -> Answer:
    caches = analyses.caches
    l1, l2 = caches.l1_hit_ratio, caches.l2_hit_ratio
    missing = tuple(
        Missing(what=f"hits in {name}", why=say("its size on this GPU is unknown"))
        for name, size in (("L1", caches.l1_bytes), ("L2", caches.l2_bytes))
        if size is None
    )
    if l1 is None and l2 is None:
        return Answer(
            analysis=_NAME, title=_TITLE, summary=say("Nothing to predict: no loads, or caches of unknown size."),
            missing=missing, is_known=False,
        )  # fmt: skip
    gpu = f" on {analyses.context.gpu}" if analyses.context.gpu else ""
    hits = [
        say("{share} of the load sectors that reach {name} hit there", share=percent(ratio), name=name)
        for name, ratio in (("L1", l1), ("L2", l2))
        if ratio is not None
    ]
    return Answer(
        analysis=_NAME,
        title=_TITLE,
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
        tables=(_build_table(analyses),),
        missing=missing,
    )


def _build_table(analyses: TraceAnalyses) -> Table:
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


QUESTION = TraceQuestion(name=_NAME, order=40, answer=_answer)
