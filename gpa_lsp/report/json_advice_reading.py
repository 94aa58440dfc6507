"""The ``advice`` and ``advice_silences`` of a kernel from JSON values, each checked before it is believed."""

import math

from gpa_lsp.advice.model import (
    Advice,
    Category,
    Hotspot,
    KernelAdvice,
    Region,
    Scope,
    ScopeKind,
    Silence,
    SilenceStage,
    Speedup,
    UnitUse,
)
from gpa_lsp.blame.model import BlameCategory
from gpa_lsp.figures import Share
from gpa_lsp.report.json_blame_reading import read_category, read_resource
from gpa_lsp.report.json_cursor import JsonCursor


def read_advice(at: JsonCursor, instruction_count: int) -> KernelAdvice | None:
    """The advice of a kernel object; None where nobody was asked.

    Args:
        at: the kernel object.
        instruction_count: of the kernel; rows must be below it.

    Raises:
        InputError: it breaks the schema.
    """
    advice = at.find("advice").maybe(
        lambda listed: tuple(_read_advice(one, instruction_count) for one in listed.items())
    )
    if advice is None:
        return None
    silences = at.find("advice_silences").maybe(lambda listed: tuple(_read_silence(one) for one in listed.items()))
    memory = at.find("advice_memory")
    return KernelAdvice(
        advice=advice,
        silences=silences or (),
        memory=memory.maybe(lambda found: found.at("words").text()) or "",
        is_bandwidth_bound=memory.maybe(lambda found: found.at("is_bandwidth_bound").flag()) or False,
        units=memory.maybe(_read_units) or (),
    )


def _read_units(at: JsonCursor) -> tuple[UnitUse, ...]:
    """Missing in older reports."""
    return at.find("units").maybe(lambda listed: tuple(_read_unit(one) for one in listed.items())) or ()


def _read_unit(at: JsonCursor) -> UnitUse:
    return UnitUse(
        name=at.at("name").text(),
        achieved_ratio=at.at("achieved_ratio").positive(),
        ceiling_ratio=at.at("ceiling_ratio").positive(),
    )


def _read_advice(at: JsonCursor, instruction_count: int) -> Advice:
    return Advice(
        optimizer=at.at("optimizer").text(),
        title=at.at("title").text(),
        category=at.at("category").choice(Category),
        group=at.at("group").text(),
        speedup=_read_speedup(at.at("speedup")),
        share=_read_share(at.at("share")),
        matched_samples=at.at("matched_samples").positive(),
        matched_latency_samples=at.at("matched_latency_samples").positive(),
        scope=_read_scope(at.at("scope"), instruction_count),
        regions=tuple(_read_region(region, instruction_count) for region in at.at("regions").items()),
        hint=at.at("hint").text(),
        caveats=tuple(caveat.text() for caveat in at.at("caveats").items()),
        reasons=tuple(reason.text() for reason in at.at("reasons").items()),
        rank_reason=at.find("rank_reason").maybe(JsonCursor.text) or "",
    )


def _read_silence(at: JsonCursor) -> Silence:
    return Silence(
        optimizer=at.at("optimizer").text(),
        stage=at.at("stage").choice(SilenceStage),
        message=at.at("message").text(),
    )


def _read_speedup(at: JsonCursor) -> Speedup:
    speedup = Speedup(
        estimate=at.at("estimate").positive(),
        low=at.at("low").positive(),
        high=_read_limit(at.at("high")),
        bound=_read_limit(at.at("bound")),
        bound_reason=at.at("bound_reason").text(),
        uncapped=_read_limit(at.at("uncapped")),
    )
    if not speedup.low <= speedup.estimate <= speedup.high <= speedup.bound:
        at.fail("has low, estimate, high and bound in another order")
    return speedup


def _read_limit(at: JsonCursor) -> float:
    limit = at.maybe(JsonCursor.positive)
    return math.inf if limit is None else limit


def _read_share(at: JsonCursor) -> Share:
    whole = at.at("whole_samples").count()
    return Share(
        part_samples=at.at("part_samples").count(maximum=whole),
        whole_samples=whole,
        ratio=at.at("ratio").ratio(),
        low_ratio=at.at("low_ratio").ratio(),
        high_ratio=at.at("high_ratio").ratio(),
    )


def _read_scope(at: JsonCursor, instruction_count: int) -> Scope:
    return Scope(
        kind=at.at("kind").choice(ScopeKind),
        function=at.at("function").text(),
        row=at.at("row").count(maximum=max(0, instruction_count - 1)),
        file=at.at("file").maybe(JsonCursor.text),
        line=at.at("line").maybe(JsonCursor.count),
        last_line=at.at("last_line").maybe(JsonCursor.count),
    )


def _read_region(at: JsonCursor, instruction_count: int) -> Region:
    return Region(
        scope=_read_scope(at.at("scope"), instruction_count),
        matched_samples=at.at("matched_samples").positive(),
        matched_latency_samples=at.at("matched_latency_samples").positive(),
        share=_read_share(at.at("share")),
        speedup=_read_speedup(at.at("speedup")),
        density=at.at("density").ratio(),
        hotspots=tuple(_read_hotspot(hotspot, instruction_count) for hotspot in at.at("hotspots").items()),
        hint=at.at("hint").text(),
    )


def _read_hotspot(at: JsonCursor, instruction_count: int) -> Hotspot:
    category = at.at("category").maybe(read_category)
    return Hotspot(
        def_row=_read_row(at.at("def"), instruction_count),
        use_row=at.at("use").maybe(lambda use: _read_row(use, instruction_count)),
        reason=at.at("reason").text(),
        category=None if category is None else BlameCategory(category),
        samples=at.at("samples").positive(),
        latency_samples=at.at("latency_samples").positive(),
        distance_cycles=at.at("distance_cycles").maybe(JsonCursor.count),
        distance_instructions=at.at("distance_instructions").maybe(JsonCursor.count),
        resource=at.at("operand").maybe(read_resource),
        is_separable=at.at("is_separable").flag(),
        note=at.at("note").text(),
        def_loop=_read_loop(at.at("def"), instruction_count),
        use_loop=at.at("use").maybe(lambda use: _read_loop(use, instruction_count)),
    )


def _read_loop(place: JsonCursor, instruction_count: int) -> Scope | None:
    """The loop of an instruction's place; None outside loops, and in files of writers that did not say."""
    return place.find("loop").maybe(lambda loop: _read_scope(loop, instruction_count))


def _read_row(at: JsonCursor, instruction_count: int) -> int:
    """The instruction's number; what else the object says repeats the ``instructions``."""
    return at.at("row").count(maximum=instruction_count - 1)
