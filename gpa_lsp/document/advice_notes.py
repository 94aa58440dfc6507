"""Advice as notes on source lines: one per piece of advice, on the line that causes the stalls.

Views that can show one message on one line (SARIF, GitHub annotations, the summary of ``check``) show these.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Advice, Hotspot
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.document.advice_words import NO_SASS, describe_bound, describe_cause, describe_matched, summarise_advice
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.places import InstructionPlaces, PlaceNames
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.report.model import KernelReport, Report


class RelatedPlace(Struct, frozen=True, kw_only=True):
    """Another place that a note is about."""

    frame: Frame  # where
    function: str  # mangled name of the section its instruction is in
    samples: float  # of the pairs it takes part in
    is_use: bool  # the stalled instruction; False for another cause
    text: str  # disassembly of the instruction with most samples; may be empty
    category: BlameCategory | None  # what the pair with most samples is stalled on; None where no stall is meant


class AdviceNote(Struct, frozen=True, kw_only=True):
    """A piece of advice with the line it stands on."""

    kernel: KernelReport  # what it is about
    kernel_name: str  # short, and different for different kernels of the report
    advice: Advice  # the advice
    # the line that causes most of the stalls; for advice about the launch, the kernel's first line. None without line information.
    frame: Frame | None
    function: str  # mangled name of the function it is in
    hotspot: Hotspot | None  # the pair with most samples; None for advice about the launch
    related: tuple[RelatedPlace, ...]  # the stalled lines, then other causing lines; most samples first, each once


def list_notes(report: Report, places: PlaceNames) -> tuple[AdviceNote, ...]:
    """The notes of a report: kernels in its order, within a kernel the advice in its own."""
    names = name_kernels(report.kernels)
    return tuple(
        _make_note(kernel, names[kernel.name], advice, places)
        for kernel in report.kernels
        if kernel.advice is not None
        for advice in kernel.advice.advice
    )


def describe_note(note: AdviceNote, places: PlaceNames) -> str:
    """A note as running text: how much, what, why here, what to do."""
    advice, kernel = note.advice, note.kernel
    head = f"{summarise_advice(advice)} in {note.kernel_name} (estimate, {describe_bound(advice.speedup)})"
    parts = [head, describe_matched(advice), NO_SASS if kernel.lacks_sass else ""]
    hotspot = note.hotspot
    stalled = (
        None
        if hotspot is None or hotspot.use_row is None
        else InstructionPlaces(kernel, places).choose_frame(hotspot.use_row)
    )
    if hotspot is not None and stalled is not None:
        cause = "this line" if hotspot.category is None else describe_cause(hotspot.category)
        parts.append(f"{places.show_line(kernel, stalled.file, stalled.line)} is stalled on {cause}")
    parts = [part for part in parts if part]
    sentences = [f"{'; '.join(parts)}.", advice.hint, *(f"Caution: {caveat}" for caveat in advice.caveats)]
    return " ".join(sentence for sentence in sentences if sentence)


def _make_note(kernel: KernelReport, kernel_name: str, advice: Advice, places: PlaceNames) -> AdviceNote:
    instructions = InstructionPlaces(kernel, places)
    hotspots = advice.hotspots
    hottest = hotspots[0] if hotspots else None
    scope = advice.scope
    frame = None if scope.file is None else Frame(file=scope.file, line=scope.line or 0)
    function = scope.function
    if hottest is not None:
        frame = instructions.choose_frame(hottest.def_row) or frame
        function = _section_of(kernel, hottest.def_row)
    return AdviceNote(
        kernel=kernel,
        kernel_name=kernel_name,
        advice=advice,
        frame=frame,
        function=function,
        hotspot=hottest,
        related=_list_related(kernel, hotspots, frame, instructions),
    )


def _list_related(
    kernel: KernelReport, hotspots: Sequence[Hotspot], own: Frame | None, instructions: InstructionPlaces
) -> tuple[RelatedPlace, ...]:
    found: dict[tuple[bool, Frame], RelatedPlace] = {}
    for is_use in (True, False):
        for hotspot in hotspots:
            row = hotspot.use_row if is_use else hotspot.def_row
            frame = None if row is None else instructions.choose_frame(row)
            if row is None or frame is None or (not is_use and frame == own):
                continue
            before = found.get((is_use, frame))
            if before is not None:
                found[(is_use, frame)] = replace(before, samples=before.samples + hotspot.samples)
                continue
            found[(is_use, frame)] = RelatedPlace(
                frame=frame,
                function=_section_of(kernel, row),
                samples=hotspot.samples,
                is_use=is_use,
                text=kernel.instructions.texts[row],
                category=hotspot.category,
            )
    return tuple(sorted(found.values(), key=lambda place: (not place.is_use, -place.samples)))


def _section_of(kernel: KernelReport, row: int) -> str:
    columns = kernel.instructions
    name: str = columns.functions[columns.function_index[row]]
    return name
