"""VIEW: advice as notices: one per piece of advice, on the line that causes the stalls; the stalled lines are related places."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpa_lsp.diagnosis.advice.model import Advice, Category, Hotspot
from gpa_lsp.document.advice_view import ALTERNATIVES
from gpa_lsp.document.advice_words import NO_SASS, describe_bound, describe_cause, describe_matched, label_suggestion
from gpa_lsp.document.check_view import identify
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.notices import Notice, Related, Rule, list_problems
from gpa_lsp.document.places import InstructionPlaces, PlaceNames
from gpa_lsp.foundation.json_records import make_record
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.report.model import KernelReport, Report

_CHANGES: Mapping[Category, str] = {
    Category.CODE: "Change the source",
    Category.PARALLEL: "Change the number of blocks or threads, or how work is distributed over them",
    Category.BINARY: "Change compiler flags; the source is unchanged",
    Category.CALLS: "Change how the library is called",
}

_MEANING = (
    "The estimate is run time before over run time after, computed from stall samples and counters, with the range in which it is "
    f"expected and an upper bound. {ALTERNATIVES}"
)


def list_advice_notices(report: Report, places: PlaceNames) -> list[Notice]:
    """Problems, then the advice: kernels in the report's order, within a kernel the advice in its own."""
    names = name_kernels(report.kernels)
    return [
        *list_problems(report.problems),
        *(
            _make_notice(kernel, names[kernel.name], advice, places)
            for kernel in report.kernels
            if kernel.advice is not None
            for advice in kernel.advice.advice
        ),
    ]


def _make_notice(kernel: KernelReport, kernel_name: str, advice: Advice, places: PlaceNames) -> Notice:
    """A notice on the line that causes most of the stalls; for advice about the launch, on the kernel's first line."""
    instructions = InstructionPlaces(kernel, places)
    hottest = advice.hotspots[0] if advice.hotspots else None
    scope = advice.scope
    frame = None if scope.file is None else Frame(file=scope.file, line=scope.line or 0)
    function = scope.function
    if hottest is not None:
        frame = instructions.choose_frame(hottest.def_row) or frame
        function = _find_section(kernel, hottest.def_row)
    file = "" if frame is None else frame.file
    return Notice(
        text=_describe(kernel, kernel_name, advice, hottest, places),
        title=f"GPU advice: {label_suggestion(advice)}",
        rule=Rule(
            name=advice.optimizer,
            text=f"{advice.title}.",
            more=f"{_CHANGES[advice.category]}.",
            help=f"{_CHANGES[advice.category]}. {_MEANING}",
            tags=("performance", "gpu", advice.category.value),
        ),
        kernel=kernel,
        function=function or kernel.mangled_name,
        frame=frame,
        path=kernel.profile_path,
        identity=identify("gpaLspAdvice/v1", kernel, function, file, advice.optimizer),
        rank=round(100 * (1 - 1 / max(1.0, advice.speedup.estimate)), 4),
        related=_list_related(kernel, advice.hotspots, frame, instructions),
        properties=_list_properties(kernel, advice),
    )


def _describe(kernel: KernelReport, name: str, advice: Advice, hotspot: Hotspot | None, places: PlaceNames) -> str:
    """Gain, share, cause and remedy of a piece of advice in one text."""
    head = f"{label_suggestion(advice)} in {name} (estimate, {describe_bound(advice.speedup)})"
    parts = [head, describe_matched(advice), NO_SASS if kernel.lacks_sass else ""]
    use = None if hotspot is None else hotspot.use_row
    stalled = None if use is None else InstructionPlaces(kernel, places).choose_frame(use)
    if hotspot is not None and stalled is not None:
        cause = "this line" if hotspot.category is None else describe_cause(hotspot.category)
        parts.append(f"{places.show_line(kernel, stalled.file, stalled.line)} is stalled on {cause}")
    sentences = [
        f"{'; '.join(filter(None, parts))}.",
        advice.hint,
        *(f"Caution: {caveat}" for caveat in advice.caveats),
    ]
    return " ".join(filter(None, sentences))


def _list_related(
    kernel: KernelReport, hotspots: Sequence[Hotspot], own: Frame | None, instructions: InstructionPlaces
) -> tuple[Related, ...]:
    """The stalled lines, then other causing lines; most samples first, each once, described by its heaviest pair."""
    found: dict[tuple[bool, Frame], tuple[float, int, Hotspot]] = {}
    for is_use in (True, False):
        for hotspot in hotspots:
            row = hotspot.use_row if is_use else hotspot.def_row
            frame = None if row is None else instructions.choose_frame(row)
            if row is None or frame is None or (not is_use and frame == own):
                continue
            samples, first_row, first = found.get((is_use, frame), (0.0, row, hotspot))
            found[is_use, frame] = (samples + hotspot.samples, first_row, first)
    ordered = sorted(found.items(), key=lambda item: (not item[0][0], -item[1][0]))
    return tuple(
        (
            f"{_describe_place(kernel, is_use, row, hotspot)}: {format_count_of(round(samples), 'sample')}",
            frame,
            _find_section(kernel, row),
        )
        for (is_use, frame), (samples, row, hotspot) in ordered
    )


def _describe_place(kernel: KernelReport, is_use: bool, row: int, hotspot: Hotspot) -> str:
    words = "another cause" if not is_use else "stalled here"
    if is_use and hotspot.category is not None:
        words = f"stalled on {describe_cause(hotspot.category)}"
    text = kernel.instructions.texts[row]
    return f"{words} at {text}" if text else words


def _find_section(kernel: KernelReport, row: int) -> str:
    """Mangled name of the function that holds a row."""
    columns = kernel.instructions
    name: str = columns.functions[columns.function_index[row]]
    return name


def _list_properties(kernel: KernelReport, advice: Advice) -> Mapping[str, Any]:
    share, speedup = advice.share, make_record(advice.speedup)
    return {
        "kernel": kernel.name,
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
        "kernelSamples": kernel.total_samples,
        "caveats": list(advice.caveats),
        "reasons": list(advice.reasons),
    }
