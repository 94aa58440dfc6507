"""Advice as SARIF 2.1.0: a result per piece of advice, on the line that causes the stalls; the stalled lines are related locations.

Rules are the optimizers. Graphs and code flows are left out: a pair of def and use is two places, which related locations already are.

Source: as :mod:`gpa_lsp.document.sarif`; section numbers below are of the same standard.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gpa_lsp.diagnosis.advice.model import Advice, Category
from gpa_lsp.document.advice_notes import AdviceNote, RelatedPlace, describe_note
from gpa_lsp.document.advice_view import ALTERNATIVES
from gpa_lsp.document.advice_words import describe_cause
from gpa_lsp.document.markdown_text import escape_markdown
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif import Json, SarifParts
from gpa_lsp.foundation.json_records import make_record
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.report.model import Report

_FINGERPRINT = "gpaLspAdvice/v1"

_CHANGES: Mapping[Category, str] = {
    Category.CODE: "Change the source",
    Category.PARALLEL: "Change the number of blocks or threads, or how work is distributed over them",
    Category.BINARY: "Change compiler flags; the source is unchanged",
}

_MEANING = (
    "The estimate is run time before over run time after, computed from stall samples and counters, with the range in which it is "
    f"expected and an upper bound. {ALTERNATIVES}"
)


def build_advice_sarif(report: Report, notes: Sequence[AdviceNote], places: PlaceNames, folder: Path) -> Json:
    """A SARIF log with one run.

    Args:
        report: what was looked at; its problems become notifications of the run.
        notes: the advice of this report; become results.
        places: where sources are on this machine.
        folder: sources below it get relative URIs.
    """
    parts = SarifParts(places, folder)
    first = {note.advice.optimizer: note.advice for note in reversed(notes)}
    rules = list(dict.fromkeys(note.advice.optimizer for note in notes))
    results = [_make_result(parts, note, rules.index(note.advice.optimizer), places) for note in notes]
    return parts.make_log(report, [_make_rule(first[name]) for name in rules], results)


def _make_rule(advice: Advice) -> Json:
    """A reportingDescriptor (3.49)."""
    text = f"{_CHANGES[advice.category]}. {_MEANING}"
    return {
        "id": advice.optimizer,
        "name": "".join(word.capitalize() for word in advice.optimizer.split("_")),
        "shortDescription": {"text": f"{advice.title}."},
        "fullDescription": {"text": f"{advice.title}. {_CHANGES[advice.category]}."},
        "help": {"text": f"{advice.title}. {text}", "markdown": f"**{escape_markdown(advice.title)}.** {text}"},
        "defaultConfiguration": {"level": "note"},
        "properties": {"tags": ["performance", "gpu", advice.category.value]},
    }


def _make_result(parts: SarifParts, note: AdviceNote, rule_index: int, places: PlaceNames) -> Json:
    advice, kernel = note.advice, note.kernel
    file = "" if note.frame is None else note.frame.file
    fingerprint = parts.make_fingerprint(kernel, note.function, file, advice.optimizer)
    result: Json = {
        "ruleId": advice.optimizer,
        "ruleIndex": rule_index,
        "level": "note",
        "message": {"text": describe_note(note, places)},
        "locations": [parts.make_location(kernel, note.function, note.frame)],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
        "rank": round(100 * (1 - 1 / max(1.0, advice.speedup.estimate)), 4),
        "properties": _make_properties(note),
    }
    if note.related:
        result["relatedLocations"] = [
            _make_related(parts, note, place, number) for number, place in enumerate(note.related, start=1)
        ]
    return result


def _make_related(parts: SarifParts, note: AdviceNote, place: RelatedPlace, number: int) -> Json:
    samples = format_count_of(round(place.samples), "sample")
    words = (
        "another cause"
        if not place.is_use
        else f"stalled on {describe_cause(place.category)}"
        if place.category is not None
        else "stalled here"
    )
    code = f" at {place.text}" if place.text else ""
    return {
        "id": number,
        **parts.make_location(note.kernel, place.function, place.frame),
        "message": {"text": f"{words}{code}: {samples}"},
    }


def _make_properties(note: AdviceNote) -> Json:
    advice, share = note.advice, note.advice.share
    speedup = make_record(advice.speedup)
    return {
        "kernel": note.kernel.name,
        "category": advice.category.value,
        "group": advice.group,
        "speedup": {
            "estimate": speedup["estimate"],
            "low": speedup["low"],
            "high": speedup["high"],
            "bound": speedup["bound"],
            "boundReason": speedup["bound_reason"],
            "uncapped": speedup["uncapped"],
        },
        "share": {"ratio": share.ratio, "lowRatio": share.low_ratio, "highRatio": share.high_ratio},
        "matchedSamples": advice.matched_samples,
        "byCounters": advice.by_counters,
        "matchedLatencySamples": advice.matched_latency_samples,
        "kernelSamples": note.kernel.total_samples,
        "caveats": list(advice.caveats),
        "reasons": list(advice.reasons),
    }
