"""VIEW: advice in full: kernels by time; per kernel what bounds it, what to change, where, and on what basis."""

from collections.abc import Sequence

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Advice, Hotspot, Region
from gpa_lsp.document.advice_words import (
    NO_SASS,
    SECTION_TITLES,
    count_silences,
    describe_gain,
    describe_hotspot,
    describe_matched,
    describe_region,
    describe_rivals,
    describe_scope,
    describe_small_regions,
    describe_speedup,
    explain_silence,
    find_first_suggestion,
    label_suggestion,
    lead_gain,
    name_first_suggestion,
    show_gain_range,
)
from gpa_lsp.document.blame_words import describe_basis, describe_bounds
from gpa_lsp.document.blocks import NO_SPAN, Block, Item, Items, Paragraph, Part, Spot, Table, tabulate
from gpa_lsp.document.check_view import describe_code_finding, name_code_place
from gpa_lsp.document.context_words import build_context_table
from gpa_lsp.document.kernel_view import build_advice_table, build_overview, list_kernels
from gpa_lsp.document.layout import UNBROKEN, Span, Style, cut, flexible, join_facts, left, right, style_of_share
from gpa_lsp.document.places import InstructionPlaces, PlaceNames
from gpa_lsp.document.sampling_words import describe_dropped, describe_time
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    format_count,
    format_count_of,
    format_launches,
    format_percent,
    format_speedup,
)
from gpa_lsp.foundation.prose import Place, join
from gpa_lsp.kernel.scopes import Scope
from gpa_lsp.report.model import KernelReport, Report, RuleNote

_REMARK_CELLS = 120  # Of a remark of the profiler; ``gpa-lsp report`` shows all of it
_INSTRUCTION_CELLS = 64
_SOURCE_CELLS = 60
_MOST_HOTSPOTS = 3  # Pairs shown per region where the reader sets no limit; what is cut is counted

ALTERNATIVES = "Estimates are alternatives: several may count the same samples. Do not add or multiply them."

_GAP: Span = ("  ", Style.PLAIN)


def build_advice(
    report: Report,
    places: PlaceNames,
    *,
    max_kernels: int | None,
    max_advice: int | None,
    has_table: bool = False,
) -> list[Block]:
    """All advice: an overview of several kernels, then kernel by kernel, then the problems.

    Args:
        report: what to show.
        places: how sources are shown.
        max_kernels: kernels shown, of most time first; None shows all.
        max_advice: pieces of advice shown per kernel and category; None shows all.
        has_table: begin each kernel with a table of its advice, for writers that fold what follows.
    """

    def build(kernel: KernelReport, name: str) -> Part:
        return _build_kernel(kernel, name, places, max_advice, has_table)

    overview = build_overview(report.kernels[:max_kernels], _OVERVIEW, _describe_first, every=report.kernels)
    return list_kernels(report, places, overview, build, max_kernels=max_kernels)


_OVERVIEW = (right("gain"), flexible("first suggestion", 16, drop_order=3))


def _describe_first(kernel: KernelReport) -> Sequence[Span]:
    first = find_first_suggestion(kernel)
    gain = "" if first is None else describe_gain(first)
    return [(gain, Style.PLAIN), (name_first_suggestion(kernel), Style.DIM if first is None else Style.PLAIN)]


def _build_kernel(kernel: KernelReport, name: str, places: PlaceNames, max_advice: int | None, has_table: bool) -> Part:
    blocks: list[Block] = [Paragraph(text=join_facts(describe_run(kernel)), style=Style.DIM)]
    if bounds := describe_bounds(kernel):
        blocks.append(Paragraph(text=bounds))
    first = find_first_suggestion(kernel)
    if first is not None:
        blocks.append(Paragraph(text=f"first: {label_suggestion(first)}"))
    contexts = build_context_table(kernel, places)
    if contexts.rows:
        blocks.append(Part(title=contexts.title, blocks=[replace(contexts, title="")]))
    every = () if kernel.advice is None else kernel.advice.advice
    if every and has_table:
        blocks.append(replace(build_advice_table(kernel, places), title=""))
    for category, title in SECTION_TITLES.items():
        found = [one for one in every if one.category is category]
        shown = found[:max_advice]
        rest = len(found) - len(shown)
        more = [Paragraph(text=f"and {format_count(rest)} more", style=Style.DIM)] if rest else []
        if found:
            pieces = [build_piece(one, every, kernel, places) for one in shown]
            blocks.append(Part(title=title, blocks=[*pieces, *more]))
    if every:
        blocks.append(Paragraph(text=ALTERNATIVES, style=Style.DIM))
    blocks += [*_build_by_code(kernel, places), *_build_silences(kernel)]
    estimates = build_estimate_table(kernel)
    if estimates.rows:
        blocks.append(Part(title="The profiler's own estimates", blocks=[estimates], folds=True))
    return Part(title=name, style=Style.TITLE, blocks=[*blocks, *build_basis(kernel)])


def _build_by_code(kernel: KernelReport, places: PlaceNames) -> list[Part]:
    """Static findings, of kernels that were not measured."""
    items = [
        Item(text=((name_code_place(kernel, one, places), Style.PATH), _GAP, (describe_code_finding(one), Style.PLAIN)))
        for one in kernel.code_findings or ()
    ]
    title = "By the code alone, where nothing was counted"
    return [Part(title=title, blocks=[Items(items=items)], folds=True)] if items else []


def _build_silences(kernel: KernelReport) -> list[Block]:
    """A kernel without advice gets every reason, by stage; one with advice a sentence that counts them."""
    if kernel.advice is None or not kernel.advice.advice:
        return [Part(title="No advice", blocks=list_silences(kernel))]
    counted = count_silences(kernel)
    return [Paragraph(text=counted, style=Style.DIM)] if counted else []


def list_silences(kernel: KernelReport) -> list[Block]:
    """All reasons why no more is advised, by stage."""
    stages = []
    for stage, messages in explain_silence(kernel).items():
        reasons = []
        for message, optimizers in messages.items():
            lead: Span = (f"{', '.join(optimizers)}: ", Style.DIM) if optimizers else NO_SPAN
            reasons.append(Item(text=(lead, (message, Style.PLAIN))))
        stages.append(Item(text=stage, below=[Items(items=reasons)]))
    return [Items(items=stages)]


def describe_run(kernel: KernelReport) -> list[str]:
    """Device, time, launches and samples of a kernel."""
    facts = [kernel.device.name] if kernel.device.name is not None else []
    if not kernel.launches:
        return [*facts, "not measured"]
    time = describe_time(kernel, kernel.total_duration_ns) if kernel.total_duration_ns else "unknown time"
    facts.append(f"{time} in {format_launches(kernel.launch_count)}")
    facts.append(format_count_of(kernel.total_samples, "sample") if kernel.total_samples else "no samples")
    if kernel.total_samples and kernel.latency_samples is None:
        facts.append("how many were not issued is unknown")
    if dropped := describe_dropped(kernel):
        facts.append(dropped)
    if kernel.samples_truncated:
        facts.append("the sampling buffer was full")
    if kernel.lacks_sass:
        facts.append(NO_SASS)
    return facts


def build_basis(kernel: KernelReport) -> list[Part]:
    """Method and coverage of the stall attribution; no part where stalls were not attributed."""
    items = [
        Item(text=((f"{name}: ", Style.DIM), (sentence, Style.PLAIN))) for name, sentence in describe_basis(kernel)
    ]
    return [Part(title="Basis", blocks=[Items(items=items)], folds=True)] if items else []


def build_piece(advice: Advice, every: Sequence[Advice], kernel: KernelReport, places: PlaceNames) -> Part:
    """One piece of advice: its gain, what to do, where, caveats, and the basis of the estimate.

    Args:
        advice: the piece.
        every: of the same kernel: those about the same samples are named.
        kernel: whose.
        places: how sources are shown.
    """
    rivals = describe_rivals(advice, every)
    texts = [
        (describe_speedup(advice.speedup), Style.PLAIN),
        (advice.witness, Style.PLAIN),
        (describe_matched(advice), Style.PLAIN),
        (f"alternative to: {rivals}" if rivals else "", Style.DIM),
        (advice.hint, Style.PLAIN),
    ]
    shown = advice.worthy_regions
    rest = len(advice.regions) - len(shown)
    instructions = InstructionPlaces(kernel, places)
    more = [Paragraph(text=f"and {describe_small_regions(rest)}", style=Style.DIM)] if rest else []
    remarks = [Item(text=(("caution: ", Style.WARNING), (caveat, Style.PLAIN))) for caveat in advice.caveats]
    if advice.reasons:
        remarks.append(Item(text=(("basis: ", Style.DIM), (join(advice.reasons, "; "), Style.DIM))))
    return Part(
        title=((advice.title, Style.TITLE), _GAP, (advice.optimizer, Style.DIM)),
        lead=lead_gain(advice),
        blocks=[
            *(Paragraph(text=text, style=style) for text, style in texts if text),
            Items(items=[_build_region(advice, one, kernel, places, instructions) for one in shown], are_numbered=True),
            *more,
            Items(items=remarks),
        ],
        folds=True,
    )


def _build_region(
    advice: Advice, region: Region, kernel: KernelReport, places: PlaceNames, instructions: InstructionPlaces
) -> Item:
    """A place to change, with the hottest pairs of cause and stalled instruction there."""
    scope = region.scope
    words, place = describe_scope(scope, kernel, places)
    text: list[Span] = [(words, Style.PLAIN)]
    if place:
        text += [(" ", Style.PLAIN), (Spot(place, _find_scope(scope, kernel)), Style.PATH)]
    source = None if scope.file is None or not scope.line else places.read_line(kernel, scope.file, scope.line)
    if source:
        text += [_GAP, (cut(source, _SOURCE_CELLS), Style.CODE)]
    facts = [describe_region(advice, region)]
    if len(advice.regions) > 1:
        facts.append(f"alone {show_gain_range(region.speedup)}")
    if region.hotspots and region.matched_samples:
        count = len(region.hotspots)
        hold = f"the {format_count(count)} hottest pairs hold" if count > 1 else "the hottest pair holds"
        facts.append(f"{hold} {format_percent(region.density)}")
    pairs = [_build_hotspot(hotspot, scope, kernel, instructions) for hotspot in region.hotspots]
    below: list[Block] = [Paragraph(text=join_facts(facts))]
    if region.hint and region.hint != advice.hint:
        below.append(Paragraph(text=region.hint))
    return Item(text=tuple(text), below=[*below, Items(items=pairs, most_items=_MOST_HOTSPOTS)])


def _find_scope(scope: Scope, kernel: KernelReport) -> Place | int | None:
    if scope.file is not None and scope.line:
        return Place(file=scope.file, line=scope.line)
    return scope.row if scope.row < len(kernel.instructions) else None


def _build_hotspot(hotspot: Hotspot, region: Scope, kernel: KernelReport, instructions: InstructionPlaces) -> Item:
    """A def and its use."""
    ratio = hotspot.samples / kernel.total_samples if kernel.total_samples else None
    text = _show_instruction(hotspot.def_row, kernel, instructions)
    if hotspot.use_row is not None:
        text += [(f"  →{UNBROKEN}", Style.DIM), *_show_instruction(hotspot.use_row, kernel, instructions)]
    facts = " · ".join(describe_hotspot(hotspot, region))
    return Item(
        text=tuple(text),
        lead=(UNKNOWN if ratio is None else format_percent(ratio), style_of_share(ratio or 0.0)),
        below=[Paragraph(text=facts, style=Style.DIM)] if facts else [],
    )


def _show_instruction(row: int, kernel: KernelReport, instructions: InstructionPlaces) -> list[Span]:
    text = kernel.instructions.texts[row]
    place: Span = (Spot(" < ".join(instructions.show(row)), row), Style.PATH)
    return [place, _GAP, (cut(text, _INSTRUCTION_CELLS), Style.CODE)] if text else [place]


def build_estimate_table(kernel: KernelReport) -> Table:
    """Estimates of the profiler's own rules, kept apart from ours."""

    def show_factor(note: RuleNote) -> str:
        factor = convert_saving(note.speedup_percent or 0.0)
        return UNKNOWN if factor is None else format_speedup(factor)

    return tabulate(
        list_estimates(kernel),
        [
            (right("factor"), show_factor),
            (right("saves", drop_order=1), lambda note: format_percent((note.speedup_percent or 0.0) / 100)),
            (left("of the time of", drop_order=2), lambda note: "the kernel" if note.speedup_is_global else "its part"),
            (left("rule"), lambda note: (note.rule, Style.CODE)),
            (flexible("remark", 16), lambda note: (cut(note.text, _REMARK_CELLS), Style.DIM)),
        ],
    )


def list_estimates(kernel: KernelReport) -> tuple[RuleNote, ...]:
    """Rules of the profiler with an estimate, for the longest launch that has any; of the whole kernel first, then largest first."""
    launches = sorted(kernel.launches, key=lambda launch: -(launch.duration_ns or 0.0))
    for launch in launches:
        notes = [note for note in dict.fromkeys(launch.rules) if note.speedup_percent]
        if notes:
            notes.sort(key=lambda note: (not note.speedup_is_global, -(note.speedup_percent or 0.0), note.rule))
            return tuple(notes)
    return ()


def convert_saving(percent: float) -> float | None:
    """A percentage of run time saved as a factor, 1 / (1 - x); None for what cannot be, all of it and more.

    >>> convert_saving(50.0), convert_saving(100.0)
    (2.0, None)
    """
    left = 1 - percent / 100
    return 1 / left if left > 0 else None
