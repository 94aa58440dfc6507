"""Questions of what accesses do to memory: lines and sectors of each access, and banks of shared memory."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.diagnosis.analyses.access import CONFLICT_REMEDY
from gpa_lsp.diagnosis.analyses.answers import Answer, Chart, ChartKind, Finding, Series, Table, Weight, list_columns
from gpa_lsp.execution.accesses.lane_addresses import Integers, LanePattern
from gpa_lsp.execution.traces.access_sums import BankConflicts
from gpa_lsp.execution.traces.code_centric import PathAccesses, find_place, list_path_accesses
from gpa_lsp.execution.traces.data_centric import describe_pattern, name_in_words, share_patterns, sum_strides
from gpa_lsp.execution.traces.keyed_sums import AccessGroup
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import GLOBAL_SPACES, TraceAnalyses
from gpa_lsp.execution.traces.words import SPACE_WORDS, deny, find_remedy
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, join, list_of, number, percent, say

_MEMORY = "traced_memory"
_MOST_ROWS = 20
_MOST_FINDINGS = 3
_LEAST_EXCESS = 0.05
# From this share of the kernel's sectors on, the excess sectors of a line are likely to hold the kernel up
_MATTERS = 0.1


def _answer_memory(analyses: TraceAnalyses) -> Answer:
    """Answer how many lines and sectors the requests to global and local memory touch, and how many would suffice."""
    title = f"Memory divergence ({analyses.origin})"
    lines = list_path_accesses(analyses)
    if not lines:
        return deny(_MEMORY, title, "do not access global memory", is_complete=analyses.is_complete)
    return Answer(
        analysis=_MEMORY,
        title=title,
        summary=_summarise(analyses),
        findings=tuple(_find_excess(analyses, lines)),
        tables=(_build_totals(analyses), _build_lines(analyses, lines)),
        charts=_build_charts(analyses),
    )


def _summarise(analyses: TraceAnalyses) -> Sentence:
    clauses = []
    for kind in AccessGroupKind:
        totals = analyses.find_global_totals(kind)
        if totals.requests:
            clauses.append(
                say(
                    "global {kind} touch {sectors} per request ({ideal} ideally)",
                    kind=kind.value,
                    sectors=number(totals.sectors_per_request, "sector"),
                    ideal=number(totals.ideal_sectors_per_request),
                )
            )
    return say("In {blocks}, {clauses}.", blocks=analyses.sampled_words, clauses=list_of(clauses))


def _find_excess(analyses: TraceAnalyses, lines: tuple[PathAccesses, ...]) -> list[Finding]:
    whole = max(1, analyses.count_global_sectors())
    findings: list[Finding] = []
    for line in lines[:_MOST_FINDINGS]:
        part = line.totals.excess_sectors / whole
        if line.totals.excess_ratio < _LEAST_EXCESS or (findings and part < _LEAST_EXCESS):
            continue
        groups = _list_groups(analyses, line)
        strides = sum_strides(groups)
        names = list_of(say("{name}", name=name_in_words(name)) for name in line.arrays)
        findings.append(
            Finding(
                text=say(
                    "{kind}{arrays} at {place} touch {sectors} per request; {ideal} would suffice (lane pattern: {pattern}). "
                    "The excess is {share} of all sectors of the kernel.",
                    kind=line.kind.value.capitalize(),
                    arrays=say(" of {names}", names=names) if names else NOTHING,
                    place=line.place.say(analyses.short_files),
                    sectors=number(line.totals.sectors_per_request, "sector"),
                    ideal=number(line.totals.ideal_sectors_per_request),
                    pattern=describe_pattern(share_patterns(groups), strides),
                    share=percent(part),
                ),
                weight=Weight.HIGH if part >= _MATTERS else Weight.PLAIN,
                remedy=find_remedy(line.kind, _sum_patterns(groups), strides),
            )
        )
    local = sum(one.totals.sectors for one in analyses.accesses.instructions if one.space is Space.LOCAL)
    if local > _LEAST_EXCESS * (whole + local):
        findings.append(
            Finding(
                text=say(
                    "Local memory takes {sectors}, {share} of all sectors of global and local memory.",
                    sectors=count(local, "sector"),
                    share=percent(local / (whole + local)),
                ),
                weight=Weight.HIGH if local > _MATTERS * (whole + local) else Weight.PLAIN,
                remedy=say(
                    "Index per-thread arrays by constants only (unroll the loops), or keep them in shared memory."
                ),
            )
        )
    good = say("Global accesses touch close to the fewest sectors possible.")
    return findings or [Finding(text=good, weight=Weight.GOOD)]


def _list_groups(analyses: TraceAnalyses, line: PathAccesses) -> list[AccessGroup]:
    return [
        one
        for one in analyses.accesses.instructions
        if one.instruction in line.instructions and one.space in GLOBAL_SPACES
    ]


def _sum_patterns(groups: list[AccessGroup]) -> tuple[tuple[LanePattern, int], ...]:
    return tuple((one.pattern, one.requests) for one in share_patterns(groups))


def _build_totals(analyses: TraceAnalyses) -> Table:
    rows: list[tuple[Cell, ...]] = []
    spaces = ((GLOBAL_SPACES, "global"), ((Space.LOCAL,), SPACE_WORDS[Space.LOCAL]), ((Space.CONST,), "constant"))
    for chosen, name in spaces:
        for kind in AccessGroupKind:
            totals = analyses.find_totals(kind, chosen)
            if totals.requests:
                rows.append(
                    (
                        f"{name} {kind.value}", totals.requests, totals.lane_ratio, totals.lines_per_request,
                        totals.sectors_per_request, totals.ideal_sectors_per_request, totals.excess_ratio, totals.used_ratio,
                    )
                )  # fmt: skip
    return Table(
        title="Requests",
        columns=list_columns(
            "requests | number [count] | lanes [ratio] | lines each [number] | sectors each [number] | "
            "ideal [number] | excess [ratio] | bytes used [ratio]"
        ),
        rows=tuple(rows),
        note=say(
            "A request is one access by a warp. Lines have 128 bytes, sectors 32; both before any cache. "
            "Ideal: what the distinct bytes of a request need."
        ),
    )


def _build_lines(analyses: TraceAnalyses, lines: tuple[PathAccesses, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for line in lines[:_MOST_ROWS]:
        groups = _list_groups(analyses, line)
        totals = line.totals
        rows.append(
            (
                line.place.write(analyses.short_files), line.kind.value, ", ".join(line.arrays),
                describe_pattern(share_patterns(groups), sum_strides(groups)), totals.requests, totals.lines_per_request,
                totals.sectors_per_request, totals.ideal_sectors_per_request, line.share_ratio,
            )
        )  # fmt: skip
    return Table(
        title="Global memory by call path",
        columns=list_columns(
            "line | kind | array | lanes | requests [count] | lines each [number] | sectors each [number] | "
            "ideal [number] | of all sectors [ratio]"
        ),
        rows=tuple(rows),
        note=NOTHING
        if len(lines) <= _MOST_ROWS
        else say(
            "The first {shown} of {all}, most excess sectors first.",
            shown=count(_MOST_ROWS),
            all=count(len(lines)),
        ),
    )


def _build_charts(analyses: TraceAnalyses) -> tuple[Chart, ...]:
    charts = []
    for title, label, column in (
        ("Distinct lines of 128 bytes per request", "lines", "line_histogram"),
        ("Distinct sectors of 32 bytes per request", "sectors", "sector_histogram"),
    ):
        series = []
        for kind in AccessGroupKind:
            histogram: Integers = getattr(analyses.find_global_totals(kind), column)
            if histogram.any():
                shown = Counter({lines: int(requests) for lines, requests in enumerate(histogram.tolist()) if requests})
                whole = sum(shown.values())
                series.append(
                    Series(
                        label=kind.value,
                        xs=tuple(float(lines) for lines in sorted(shown)),
                        ys=tuple(shown[lines] / whole for lines in sorted(shown)),
                    )
                )
        if series:
            charts.append(
                Chart(
                    title=title, kind=ChartKind.BARS, x_label=label, y_label="of the requests", y_quantity=Quantity.RATIO,
                    series=tuple(series),
                )
            )  # fmt: skip
    return tuple(charts)


_BANKS = "traced_banks"
_ATOMIC_REMEDY = say(
    "Let the threads of a warp update different addresses: combine equal ones in registers first, or privatize (several copies)."
)


def _answer_banks(analyses: TraceAnalyses) -> Answer:
    """Answer whether requests to shared memory meet in the same banks."""
    title = f"Bank conflicts ({analyses.origin})"
    banks = sorted(analyses.banks, key=lambda one: (-one.excess_wavefronts, -one.wavefronts, one.instruction))
    if not banks:
        return deny(_BANKS, title, "do not access shared memory", is_complete=analyses.is_complete)
    taken, ideal = sum(one.wavefronts for one in banks), sum(one.ideal_wavefronts for one in banks)
    requests = sum(one.requests for one in banks)
    return Answer(
        analysis=_BANKS,
        title=title,
        summary=say(
            "{requests} to shared memory took {wavefronts}, {share} of them due to bank conflicts.",
            requests=count(requests, "request"),
            wavefronts=count(taken, "wavefront"),
            share=percent((taken - ideal) / taken),
        ),
        findings=tuple(_find_conflicts(analyses, banks, taken)),
        tables=(_build_banks_table(analyses, banks),),
    )


class _LineConflicts(Struct, frozen=True):
    """Requests of one kind at one line: an access that was unrolled is one thing to mend."""

    place: Sentence
    kind: AccessGroupKind
    requests: int
    wavefronts: int
    ideal_wavefronts: int

    @property
    def excess_wavefronts(self) -> int:
        return self.wavefronts - self.ideal_wavefronts


def _find_conflicts(analyses: TraceAnalyses, banks: Sequence[BankConflicts], taken: int) -> list[Finding]:
    """The lines with the most conflicts, or that there are hardly any: the same total as in the summary says which."""
    if sum(one.excess_wavefronts for one in banks) < _LEAST_EXCESS * taken:
        return [
            Finding(
                text=say("Shared-memory accesses take close to the fewest wavefronts possible."), weight=Weight.GOOD
            )
        ]
    lines = _sum_by_line(analyses, banks)
    findings = []
    for one in lines[:_MOST_FINDINGS]:
        part = one.excess_wavefronts / taken
        if part < _LEAST_EXCESS and one is not lines[0]:
            continue
        findings.append(
            Finding(
                text=say(
                    "Shared {kind} at {place} take {wavefronts} per request, a {ways}-way bank conflict; the excess is {share} of all wavefronts.",
                    kind=one.kind.value,
                    place=one.place,
                    wavefronts=number(one.wavefronts / one.requests, "wavefront"),
                    ways=number(one.wavefronts / one.ideal_wavefronts),
                    share=percent(part),
                ),
                weight=Weight.HIGH if part >= _MATTERS else Weight.PLAIN,
                remedy=_ATOMIC_REMEDY if one.kind is AccessGroupKind.ATOMICS else join([CONFLICT_REMEDY]),
            )
        )
    return findings


def _sum_by_line(analyses: TraceAnalyses, banks: Sequence[BankConflicts]) -> list[_LineConflicts]:
    """Conflicts by place and kind, most first."""
    sums: dict[tuple[Sentence, AccessGroupKind], list[int]] = {}
    for one in banks:
        place = find_place(analyses, one.instruction).say(analyses.short_files)
        total = sums.setdefault((place, analyses.find_kind(one.instruction)), [0, 0, 0])
        for index, value in enumerate((one.requests, one.wavefronts, one.ideal_wavefronts)):
            total[index] += value
    lines = [_LineConflicts(place, kind, *total) for (place, kind), total in sums.items()]
    return sorted(lines, key=lambda one: (-one.excess_wavefronts, -one.wavefronts, one.place))


def _build_banks_table(analyses: TraceAnalyses, banks: list[BankConflicts]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            find_place(analyses, one.instruction).write(analyses.short_files),
            analyses.find_kind(one.instruction).value,
            analyses.instructions[one.instruction].bytes_per_lane,
            one.requests,
            one.wavefronts_per_request,
            one.ideal_wavefronts / one.requests,
            one.excess_wavefronts,
        )
        for one in banks[:_MOST_ROWS]
    ]
    return Table(
        title="Shared memory by instruction",
        columns=list_columns(
            "line | kind | per thread [bytes] | requests [count] | wavefronts each [number] | ideal [number] | "
            "excess [count]"
        ),
        rows=tuple(rows),
        note=say(
            "32 banks of 4 bytes. A request is served half a warp at a time at 8 bytes per thread, a quarter at 16; "
            "twice as many threads where neighbours load the same address."
        ),
    )


QUESTIONS = {
    "traced_memory": TraceQuestion(order=10, answer=_answer_memory),
    "traced_banks": TraceQuestion(order=50, answer=_answer_banks),
}
