"""The notation of advice in built reports; ``tests/report_builder.py`` describes it."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.advise import decide
from gpa_lsp.diagnosis.advice.model import (
    Advice,
    Category,
    Hotspot,
    KernelAdvice,
    Region,
    Silence,
    SilenceStage,
    Speedup,
)
from gpa_lsp.diagnosis.blame.model import BlameCategory, KernelBlame
from gpa_lsp.foundation.figures import measure_share
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from gpa_lsp.report.model import InstructionColumns
from tests.blame_notation import PAIR, ROW, Rows, Words, choose_category, count_samples, list_lines, parse_words

_FACTOR = re.compile(r"([\d.]+)x")
_RANGE = re.compile(r"([\d.]+)-([\d.]+)")
_KEY = re.compile(r"(title|group|hint|caveat|reason|bound|here): (.*)")
_SILENCE = re.compile(r"silence (\w+) (\w+): (.*)")


@dataclass(slots=True, kw_only=True)
class _OpenRegion:
    scope: Scope
    estimate: float | None
    samples: tuple[float, float] | None
    density: float
    hotspots: list[Hotspot] = field(default_factory=list)
    hint: str = ""

    def count(self) -> tuple[float, float]:
        if self.samples is not None:
            return self.samples
        return sum(one.samples for one in self.hotspots), sum(one.latency_samples for one in self.hotspots)


@dataclass(slots=True, kw_only=True)
class _OpenAdvice:
    optimizer: str
    category: Category
    speedup: Speedup
    samples: tuple[float, float] | None
    said: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    regions: list[_OpenRegion] = field(default_factory=list)


def parse_advice(text: str, columns: InstructionColumns, kernel: str, blame: KernelBlame | None) -> KernelAdvice:
    """The advice a text describes, best first, and the silences."""
    rows = Rows(columns, kernel)
    opened: list[_OpenAdvice] = []
    silences: list[Silence] = []
    for line in list_lines(text):
        if found := _SILENCE.fullmatch(line):
            silences.append(Silence(optimizer=found[1], stage=SilenceStage(found[2]), message=found[3]))
        elif found := _KEY.fullmatch(line):
            if found[1] == "here":
                opened[-1].regions[-1].hint = found[2]
            else:
                opened[-1].said[found[1]].append(found[2])
        elif line.startswith("region "):
            opened[-1].regions.append(_open_region(line.split()[1:], rows))
        elif ROW.match(line):
            opened[-1].regions[-1].hotspots.append(_parse_hotspot(line, rows, blame))
        else:
            opened.append(_open_advice(line.split()))
    advice = [_close_advice(one, rows) for one in opened]
    advice.sort(key=lambda one: (-one.speedup.estimate, -one.matched_samples, one.optimizer))
    return decide(KernelAdvice(advice=tuple(advice), silences=tuple(silences)), None)


def _open_advice(words: Sequence[str]) -> _OpenAdvice:
    numbers = _parse_numbers(words[1:])
    category = next((word for word in words[1:] if word in set(Category)), "code")
    return _OpenAdvice(
        optimizer=words[0], category=Category(category), speedup=_make_speedup(numbers), samples=numbers.samples
    )


def _open_region(words: Sequence[str], rows: Rows) -> _OpenRegion:
    row = rows.find(words[1])
    numbers = _parse_numbers(words[2:])
    return _OpenRegion(
        scope=replace(
            _make_scope(ScopeKind(words[0]), row, rows, numbers.last_line),
            **({} if numbers.line is None else {"line": numbers.line}),
        ),
        estimate=numbers.estimate,
        samples=numbers.samples,
        density=1.0 if numbers.density is None else numbers.density,
    )


@dataclass(slots=True, kw_only=True)
class _Numbers:
    estimate: float | None = None
    ends: tuple[float, float] | None = None
    bound: float | None = None
    uncapped: float | None = None
    samples: tuple[float, float] | None = None
    density: float | None = None
    last_line: int | None = None
    line: int | None = None


def _parse_numbers(words: Sequence[str]) -> _Numbers:
    numbers = _Numbers()
    for word in words:
        if found := _FACTOR.fullmatch(word):
            numbers.estimate = float(found[1])
        elif found := _RANGE.fullmatch(word):
            numbers.ends = float(found[1]), float(found[2])
        elif word.startswith("<="):
            numbers.bound = float(word[2:])
        elif word.startswith("density="):
            numbers.density = float(word[8:])
        elif word.startswith("uncapped="):
            numbers.uncapped = float(word[9:])
        elif word.startswith("samples="):
            every, _, latency = word[8:].partition("/")
            numbers.samples = float(every), float(latency or 0)
        elif word.startswith("to="):
            numbers.last_line = int(word[3:])
        elif word.startswith("line="):
            numbers.line = int(word[5:])
    return numbers


def _make_speedup(numbers: _Numbers) -> Speedup:
    estimate = numbers.estimate or 1.0
    low, high = numbers.ends or (1 + 0.9 * (estimate - 1), 1 + 1.1 * (estimate - 1))
    return Speedup(
        estimate=estimate,
        low=low,
        high=high,
        bound=max(2.0, high) if numbers.bound is None else numbers.bound,
        bound_reason="hiding latency cannot do more",
        uncapped=estimate if numbers.uncapped is None else numbers.uncapped,
    )


def _make_scope(kind: ScopeKind, row: int, rows: Rows, last_line: int | None = None) -> Scope:
    columns = rows.columns
    if kind is ScopeKind.KERNEL or not len(columns):
        function = rows.kernel
    else:
        function = columns.functions[columns.function_index[row]]
    chain = int(columns.chain_index[row]) if len(columns) else -1
    frame = columns.chains[chain][-1] if chain >= 0 else None
    return Scope(
        kind=kind,
        function=function,
        row=row,
        file=frame.file if frame else None,
        line=frame.line if frame else None,
        last_line=last_line,
    )


def _parse_hotspot(line: str, rows: Rows, blame: KernelBlame | None) -> Hotspot:
    found = PAIR.fullmatch(line)
    first, _, rest = line.partition(" ")
    use = rows.find(found["use"]) if found else None
    cause = rows.find(found["def"] if found else first)
    words = parse_words(found["rest"] if found else rest)
    suffers = cause if use is None else use
    every, latency = count_samples(words, rows.samples(suffers, words.reason))
    hotspot = Hotspot(
        def_row=cause,
        use_row=use,
        reason=words.reason,
        category=choose_category(words.reason, words.category),
        samples=every,
        latency_samples=latency,
        distance_cycles=None if words.cycles < 0 else words.cycles,
        distance_instructions=None if words.instructions < 0 else words.instructions,
        resource=None if words.resource < 0 else words.resource,
        is_separable=not words.is_shared,
        note=words.note,
    )
    edge = None if blame is None or use is None else _find_edge(blame, use, cause, words.reason, rows)
    return hotspot if edge is None or blame is None else _take_from_edge(hotspot, blame, edge, words)


def _find_edge(blame: KernelBlame, use: int, cause: int, reason: str, rows: Rows) -> int | None:
    edges = blame.edges
    number = rows.columns.reasons.index(reason) if reason in rows.columns.reasons else -1
    found = np.flatnonzero((edges.use_row == use) & (edges.def_row == cause) & (edges.reason == number))
    return int(found[0]) if len(found) else None


def _take_from_edge(hotspot: Hotspot, blame: KernelBlame, edge: int, words: Words) -> Hotspot:
    """Fill in from the blame what the advice's text does not say."""
    edges = blame.edges
    return replace(
        hotspot,
        category=BlameCategory(int(edges.category[edge])) if words.category is None else hotspot.category,
        samples=float(edges.all_samples[edge]) if words.samples is None else hotspot.samples,
        latency_samples=float(edges.latency_samples[edge]) if words.samples is None else hotspot.latency_samples,
        distance_cycles=_prefer(hotspot.distance_cycles, edges.distance_cycles[edge]),
        distance_instructions=_prefer(hotspot.distance_instructions, edges.distance_instructions[edge]),
        resource=_prefer(hotspot.resource, edges.resource[edge]),
        is_separable=hotspot.is_separable and int((edges.group == edges.group[edge]).sum()) == 1,
    )


def _prefer(written: int | None, blamed: int) -> int | None:
    if written is not None:
        return written
    return None if blamed < 0 else int(blamed)


def _close_advice(opened: _OpenAdvice, rows: Rows) -> Advice:
    total = int(rows.columns.all_samples.sum())
    said = opened.said
    counts = [region.count() for region in opened.regions]
    every, latency = opened.samples or (sum(one for one, _ in counts), sum(one for _, one in counts))
    speedup = opened.speedup
    if said["bound"]:
        speedup = replace(speedup, bound_reason=said["bound"][0])
    regions = tuple(_close_region(region, speedup, total) for region in opened.regions)
    return Advice(
        optimizer=opened.optimizer,
        title=said["title"][0] if said["title"] else opened.optimizer.replace("_", " ").capitalize(),
        category=opened.category,
        group=said["group"][0] if said["group"] else opened.optimizer,
        speedup=speedup,
        share=measure_share(round(every), total),
        matched_samples=every,
        matched_latency_samples=latency,
        scope=regions[0].scope if regions else _make_scope(ScopeKind.KERNEL, 0, rows),
        regions=regions,
        hint=" ".join(said["hint"]),
        caveats=tuple(said["caveat"]),
        reasons=tuple(said["reason"]),
    )


def _close_region(opened: _OpenRegion, speedup: Speedup, total: int) -> Region:
    every, latency = opened.count()
    own = speedup if opened.estimate is None else _make_speedup(_Numbers(estimate=opened.estimate, bound=speedup.bound))
    return Region(
        scope=opened.scope,
        matched_samples=every,
        matched_latency_samples=latency,
        share=measure_share(round(every), total),
        speedup=own,
        density=opened.density,
        hotspots=tuple(sorted(opened.hotspots, key=lambda one: -one.samples)),
        hint=opened.hint,
    )
