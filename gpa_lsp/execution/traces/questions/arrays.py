"""Questions of which arrays a kernel accesses, and which values it loads from them."""

from collections.abc import Iterable

from gpa_lsp.code.ptx.static_instructions import is_read_anew
from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Table, Weight, list_columns
from gpa_lsp.execution.traces.code_centric import find_place, list_path_branches
from gpa_lsp.execution.traces.data_centric import ArrayFacts, describe_pattern, list_array_facts
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import GLOBAL_SPACES, TraceAnalyses
from gpa_lsp.execution.traces.words import (
    DEAD_STORE_REMEDY,
    ONE_WAY_REMEDY,
    OUTSIDE_REMEDY,
    REPEAT_REMEDY,
    UNIFORM_REMEDY,
    deny,
)
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import Sentence, count, percent, say

_ARRAYS = "traced_arrays"
_MATTERS = 0.1
_LEAST_EXCESS = 0.25


def _answer_arrays(analyses: TraceAnalyses) -> Answer:
    """Answer which arrays are accessed, how much of them, in what patterns, and whether they are used again."""
    title = f"Arrays ({analyses.origin})"
    arrays = list_array_facts(analyses)
    if not arrays:
        return deny(_ARRAYS, title, "access no array", is_complete=analyses.is_complete)
    whole = max(1, sum(one.sectors for one in arrays))
    first = arrays[0]
    return Answer(
        analysis=_ARRAYS,
        title=title,
        summary=say(
            "{arrays} accessed in {blocks}; {share} of the sectors are in {name}.",
            arrays=count(len(arrays), "array"),
            blocks=analyses.sampled_words,
            share=percent(first.sectors / whole),
            name=first.words,
        ),
        findings=tuple(_find(arrays, whole)),
        tables=(_build_volumes(arrays, whole), _build_patterns(arrays)),
    )


def _find(arrays: tuple[ArrayFacts, ...], whole: int) -> list[Finding]:
    findings = []
    for one in arrays:
        if one.buffer is None:
            requests = one.loads.requests + one.stores.requests + one.atomics.requests
            findings.append(
                Finding(
                    text=say(
                        "{requests} outside of all arrays: to memory the kernel allocates itself, or through a wild pointer.",
                        requests=count(requests, "request"),
                    ),
                    remedy=OUTSIDE_REMEDY,
                )
            )
            continue
        excess = one.loads.excess_sectors + one.stores.excess_sectors
        if excess >= _LEAST_EXCESS * max(1, one.sectors) and excess >= _MATTERS * whole:
            findings.append(
                Finding(
                    text=say(
                        "{share} of the {sectors} that requests to {name} touch are excess; the worst access: {pattern}.",
                        share=percent(excess / one.sectors),
                        sectors=count(one.sectors, "sector"),
                        name=one.words,
                        pattern=one.worst_pattern,
                    ),
                    weight=Weight.HIGH,
                    remedy=say(
                        "Change the array's layout or traversal so that neighbouring threads access neighbouring elements."
                    ),
                )
            )
    return findings


def _build_volumes(arrays: tuple[ArrayFacts, ...], whole: int) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            one.name, None if one.buffer is None else one.buffer.size_bytes, one.footprint_bytes,
            one.loads.requested_bytes, one.stores.requested_bytes, one.atomics.requested_bytes,
            one.sectors, one.sectors / whole, one.touches_per_sector,
        )
        for one in arrays
    ]  # fmt: skip
    return Table(
        title="Volumes",
        columns=list_columns(
            "array | size [bytes] | touched [bytes] | loaded [bytes] | stored [bytes] | atomics [bytes] | "
            "sectors [count] | of all [ratio] | times each [number]"
        ),
        rows=tuple(rows),
        note=say(
            "Bytes are summed over threads, sectors over requests before any cache. Times each: requests per touched sector."
        ),
    )


def _build_patterns(arrays: tuple[ArrayFacts, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in arrays:
        reuse, words = one.line_reuse, one.element_reuse
        rows.append(
            (
                one.name,
                describe_pattern(one.patterns, one.strides),
                one.patterns[0].ratio if one.patterns else None,
                words.streaming_ratio if words.references else None,
                words.mean_distance,
                reuse.streaming_ratio if reuse.references else None,
                reuse.mean_distance,
            )
        )
    return Table(
        title="Patterns and reuse within blocks",
        columns=list_columns(
            "array | commonest lane pattern | share of requests [ratio] | words used once [ratio] | "
            "words between [number] | lines used once [ratio] | lines between [number]"
        ),
        rows=tuple(rows),
        note=say(
            "Between: mean number of distinct words or lines between two uses of the same one, over those that are used again."
        ),
    )


_VALUES = "traced_values"
_MOST_EACH = 3
_LEAST = 0.05  # From this share of all requests, or of all executions of branches, on a fact is told
_MOSTLY = 0.5


def _answer_values(analyses: TraceAnalyses) -> Answer:
    """Answer which values never change, are the same for all lanes, or are loaded or stored redundantly."""
    findings = (
        *_find_repeats(analyses, "loads"),
        *_find_repeats(analyses, "stores"),
        *_find_uniform(analyses),
        *_find_one_way(analyses),
    )
    found = count(len(findings), "finding") if findings else "nothing stands out"
    return Answer(
        analysis=_VALUES,
        title=f"Values ({analyses.origin})",
        summary=say(
            "Redundant, uniform or constant values in {blocks}: {found}.", blocks=analyses.sampled_words, found=found
        ),
        findings=findings,
    )


def _count_requests(analyses: TraceAnalyses) -> int:
    requests = sum(one.totals.requests for one in analyses.accesses.instructions if one.space in GLOBAL_SPACES)
    return max(1, requests + sum(one.requests for one in analyses.banks))


def _sum_by_place(analyses: TraceAnalyses, counts: Iterable[tuple[int, int, int]]) -> list[tuple[Sentence, int, int]]:
    """(Instruction, part, whole) summed by call path: what the compiler unrolled is one. Most parts first."""
    sums: dict[Sentence, list[int]] = {}
    for instruction, part, whole in counts:
        row = sums.setdefault(find_place(analyses, instruction).say(analyses.short_files), [0, 0])
        row[0] += part
        row[1] += whole
    found = [(place, part, whole) for place, (part, whole) in sums.items()]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:_MOST_EACH]


def _find_repeats(analyses: TraceAnalyses, kind: str) -> list[Finding]:
    is_load = kind == "loads"
    found = analyses.repeats.loads if is_load else analyses.repeats.stores
    whole = _count_requests(analyses)
    words = "repeat an earlier load of the same warp" if is_load else "are overwritten before they are read"
    return [
        Finding(
            text=say(
                "{share} of {requests} at {place} {words}, with no thread of the block in between.",
                share=percent(repeated / requests),
                requests=count(requests, kind.removesuffix("s")),
                place=place,
                words=words,
            ),
            remedy=REPEAT_REMEDY if is_load else DEAD_STORE_REMEDY,
        )
        for place, repeated, requests in _sum_by_place(
            analyses, ((one.instruction, one.repeated, one.requests) for one in found)
        )
        if repeated >= _LEAST * whole
    ]


def _find_uniform(analyses: TraceAnalyses) -> list[Finding]:
    whole = _count_requests(analyses)
    uniform = (
        (one.instruction, one.totals.uniform, one.totals.requests)
        for one in analyses.accesses.instructions
        if one.space in GLOBAL_SPACES
        and analyses.find_kind(one.instruction) is AccessGroupKind.LOADS
        and not is_read_anew(analyses.instructions[one.instruction])
        and one.totals.uniform >= _MOSTLY * one.totals.requests
    )
    return [
        Finding(
            text=say(
                "In {share} of {requests} at {place} all lanes read one address.",
                share=percent(same / requests),
                requests=count(requests, "load"),
                place=place,
            ),
            remedy=UNIFORM_REMEDY,
        )
        for place, same, requests in _sum_by_place(analyses, uniform)
        if same >= _LEAST * whole
    ]


def _find_one_way(analyses: TraceAnalyses) -> list[Finding]:
    if not analyses.is_complete:
        return []  # where rows are missing, a branch may have gone the other way in them
    findings = []
    for is_taken, word in ((True, "always"), (False, "never")):
        branches = (
            one
            for one in list_path_branches(analyses)
            if one.executions and not one.place.stand_in and one.taken_lanes == (one.active_lanes if is_taken else 0)
        )
        findings += [
            Finding(
                text=say(
                    "The {branch} {verb} {word} taken ({executions}).",
                    branch=one.say(analyses.short_files),
                    verb="is" if one.count == 1 else "are",
                    word=word,
                    executions=count(one.executions, "execution"),
                ),
                remedy=ONE_WAY_REMEDY,
            )
            for one in sorted(branches, key=lambda one: -one.executions)[:_MOST_EACH]
            if one.executions >= _LEAST * analyses.branches.executions and not one.which.startswith("in ")
        ]
    return findings


QUESTIONS = {
    "traced_arrays": TraceQuestion(order=20, answer=_answer_arrays),
    "traced_values": TraceQuestion(order=70, answer=_answer_values),
}
