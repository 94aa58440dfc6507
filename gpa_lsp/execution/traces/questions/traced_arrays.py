"""Which arrays are accessed, how much of them, in what patterns, and is it used again?"""

from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Table, Weight, list_columns
from gpa_lsp.execution.traces.data_centric import ArrayFacts, describe_pattern, list_array_facts
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.execution.traces.words import OUTSIDE_REMEDY, deny
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import count, percent, say

_NAME = "traced_arrays"
_MATTERS = 0.1
_LEAST_EXCESS = 0.25


def _answer(analyses: TraceAnalyses) -> Answer:
    title = f"Arrays ({analyses.origin})"
    arrays = list_array_facts(analyses)
    if not arrays:
        return deny(_NAME, title, "access no array", is_complete=analyses.is_complete)
    whole = max(1, sum(one.sectors for one in arrays))
    first = arrays[0]
    return Answer(
        analysis=_NAME,
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


QUESTION = TraceQuestion(name=_NAME, order=20, answer=_answer)
