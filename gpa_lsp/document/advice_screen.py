"""Advice on one screen: per kernel what limits it, what causes that, what to do, and what would not help.

A kernel takes at most :data:`MOST_LINES` lines. Everything else stands in the long text (:mod:`gpa_lsp.document.advice_view`).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from gpa_lsp.diagnosis.advice.model import SMALL_SPEEDUP, Advice, KernelAdvice, Standing
from gpa_lsp.diagnosis.advice.naming import name_inside
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.document.advice_words import (
    NO_SASS,
    describe_cause,
    describe_gain,
    describe_limit,
    describe_suggestion,
    explain_silence,
)
from gpa_lsp.document.blocks import Block, Paragraph, Part, Row, Rows
from gpa_lsp.document.context_words import describe_contexts
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.layout import Style, cut, join_facts
from gpa_lsp.document.notices import build_problems
from gpa_lsp.document.places import InstructionPlaces, PlaceNames
from gpa_lsp.document.sampling_words import describe_time
from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_launches, format_limit
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.foundation.prose import NOTHING, Place, Sentence, begin_lower, count, factor, join, list_of, percent, say
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from gpa_lsp.report.count import MainStall, find_main_stall
from gpa_lsp.report.gather import explain_no_samples
from gpa_lsp.report.model import KernelReport, Report

MOST_LINES = 12  # Of one kernel

LEAST_TIME_RATIO = 0.01  # Of the time of all kernels; those below share a line

MORE = join_facts(("more: gpa-lsp advise --details", "by line: gpa-lsp check", "everything: gpa-lsp report --html"))

WHOLE = "lines that end in … are cut; whole sentences: gpa-lsp "

_MOST_SUGGESTIONS = 3

# Of a suggestion and its place: as much as two lines of 80 cells hold behind its number and its gain
_MOST_CHARS = 112

_MOST_CODE_CELLS = 50
_MOST_NAMED = 4
_MOST_BY_CODE = 2
_MOST_REFUSALS = 2  # Reasons given for what would not help

UNHELPED = say("no known suggestion for it")  # Of the most stalls, where no suggestion is about them

_LATER = "then"  # In place of a range: it helps once the first suggestion is done

_ACCESSES = "memory_access"  # The analysis that says why an access costs what it does

_ALMOST_ALL = 0.9  # Of the stalls that a line causes: the others are not worth a clause


def build_screens(report: Report, places: PlaceNames, *, max_kernels: int | None) -> list[Block]:
    """The screens of a report's kernels, of most time first, then its problems and where more is.

    Args:
        report: what to show.
        places: how sources are shown.
        max_kernels: kernels shown; None shows all.
    """
    names = name_kernels(report.kernels)
    shown, short = _split_kernels(report)
    seen = shown[:max_kernels]
    blocks: list[Block] = [build_screen(kernel, names[kernel.name], places) for kernel in seen]
    blocks += [Paragraph(text=words, style=Style.DIM) for words in _count_others(seen, shown, short, names)]
    if not report.kernels:
        blocks.append(Paragraph(text="no kernel was found", style=Style.DIM))
    blocks += build_problems(report.problems, places)
    return [*blocks, Paragraph(text=MORE, style=Style.DIM)] if report.kernels else blocks


def build_screen(kernel: KernelReport, name: str, places: PlaceNames) -> Part:
    """A kernel in at most :data:`MOST_LINES` lines and about as many words as one reads at once."""
    return Part(title=name, style=Style.TITLE, facts=list_run_facts(kernel), blocks=[build_rows(kernel, places)])


def build_rows(
    kernel: KernelReport, places: PlaceNames, *, whole: str = f"{WHOLE}advise --details", has_code: bool = False
) -> Rows:
    """Rows of a kernel: its limit, the cause of most stalls, suggestions, and what would not help.

    Args:
        kernel: to show.
        places: how sources are shown.
        whole: said where a row was cut.
        has_code: quote the lines of suggestions, too.
    """
    every = () if kernel.advice is None else kernel.advice.advice
    small, outside = (
        [one for one in every if one.standing is standing] for standing in (Standing.SMALL, Standing.OUTSIDE)
    )
    worthy = () if kernel.advice is None else kernel.advice.worthy
    rows = [Row(label="limit", text=describe_limit(kernel)), *_find_cause(kernel, places)]
    for number, one in enumerate(worthy[:_MOST_SUGGESTIONS], start=1):
        rows.append(_suggest(kernel, one, number, places, has_code=has_code))
    if small and len(worthy) < _MOST_SUGGESTIONS:
        titles = list_of(islice((begin_lower(one.title) for one in small), _MOST_NAMED))
        rows.append(
            Row(
                label="small",
                heading="Small gains",
                text=say("under {most} each: {titles}", most=factor(SMALL_SPEEDUP), titles=titles),
            )
        )
    if outside:
        gains = (say("{title} ({gain})", title=begin_lower(one.title), gain=describe_gain(one)) for one in outside)
        rows.append(
            Row(
                label="outside the kernel",
                heading="Outside the kernel",
                text=join(gains, "; "),
            )
        )
    if not every:
        rows.append(Row(label="No advice", heading="No suggestion", text=_explain_none(kernel, places)))
    rows.extend(Row(label="in", heading="Launched with", text=one) for one in describe_contexts(kernel))
    rows.extend(_list_by_code(kernel, places))
    refused = _describe_refusals(kernel.advice)
    if refused:
        rows.append(Row(label="won't help", heading="Would not help", text=refused))
    return Rows(rows=tuple(rows), most_lines=MOST_LINES - 1, whole=whole)


def _list_by_code(kernel: KernelReport, places: PlaceNames) -> Iterator[Row]:
    """The first static findings of a kernel without samples; the last row counts the others."""
    found = kernel.code_findings or ()
    for finding in found[:_MOST_BY_CODE]:
        at = None if finding.file is None or not finding.line else Place(file=finding.file, line=finding.line)
        others = len(found) - _MOST_BY_CODE if finding is found[:_MOST_BY_CODE][-1] else 0
        more = say("{others} more by gpa-lsp check", others=count(others)) if others > 0 else NOTHING
        text = join((finding.message, say("(static, not measured)"), more))
        yield Row(
            label="code",
            heading="By the code alone",
            place="" if at is None else places.show_line(kernel, at.file, at.line),
            text=text,
            at=at,
        )


def _split_kernels(report: Report) -> tuple[Sequence[KernelReport], Sequence[KernelReport]]:
    """Kernels with a screen of their own, and those of too little time for one."""
    least_ns = LEAST_TIME_RATIO * sum(kernel.total_duration_ns for kernel in report.kernels)
    sides: tuple[list[KernelReport], list[KernelReport]] = ([], [])
    for one in report.kernels:
        sides[0 < one.total_duration_ns < least_ns].append(one)
    return sides


def _count_others(
    seen: Sequence[KernelReport], shown: Sequence[KernelReport], short: Sequence[KernelReport], names: Mapping[str, str]
) -> Iterator[str]:
    rest = len(shown) - len(seen)
    if rest:
        yield f"and {format_count_of(rest, 'more kernel')}"
    if short:
        listed = [names[kernel.name] for kernel in short[:_MOST_NAMED]]
        more = len(short) - len(listed)
        named = ", ".join(listed) + (f" and {format_count(more)} more" if more else "")
        yield f"{format_count_of(len(short), 'kernel')} under {format_limit(LEAST_TIME_RATIO)} of the time: {named}"


def list_run_facts(kernel: KernelReport) -> tuple[str, ...]:
    """Time, GPU, and what is wrong with the measurement, a few words each."""
    if not kernel.launches:
        return ("not measured",)
    time = describe_time(kernel, kernel.duration_ns)
    if kernel.launch_count != 1:
        count = kernel.launch_count
        time += f" × {format_count(count)}" if count is not None else f" in {format_launches(None)}"
    facts = [time] if kernel.duration_ns is not None else [format_launches(kernel.launch_count)]
    if kernel.device.name is not None:
        facts.append(kernel.device.name)
    if not kernel.total_samples:
        facts.append("no samples")
    if kernel.lacks_sass:
        facts.append(NO_SASS)
    return tuple(facts)


def _suggest(kernel: KernelReport, advice: Advice, number: int, places: PlaceNames, *, has_code: bool) -> Row:
    is_later = advice.standing is Standing.THEN
    place = _place_scope(kernel, advice.scope, places) if advice.regions else ""
    text, room = say("{title}", title=advice.title), _MOST_CHARS
    for room in () if is_later else (_MOST_CHARS, _MOST_CHARS - len(place)):
        text = describe_suggestion(advice, room)
        if any(isinstance(part, Place) for part in text.parts) or (bool(place) and place in text):
            place = ""
            break
    if advice.speedup.doubt and not is_later and len(text) + len(advice.speedup.doubt) + 3 <= room:
        text = say("{text} ({doubt})", text=text, doubt=advice.speedup.doubt)
    at = _point_at(advice)
    return Row(
        label=f"{number}.",
        gain=_LATER if is_later else describe_gain(advice),
        place=place,
        text=text,
        code=(places.read_line(kernel, at.file, at.line) or "") if has_code and at is not None else "",
        at=at,
        remarks={"edit": advice.witness} if advice.witness else {},
    )


def _point_at(advice: Advice) -> Place | None:
    """The line a suggestion is about."""
    scope = advice.scope if advice.regions else None
    if scope is None or scope.kind is ScopeKind.KERNEL or scope.file is None or not scope.line:
        return None
    return Place(file=scope.file, line=scope.line)


def _find_cause(kernel: KernelReport, places: PlaceNames) -> Iterator[Row]:
    """The row of the main stall, by cause, else by stall reason; none without stalls."""
    found = find_main_stall(kernel)
    if found is None:
        return
    row = found.row
    place, code = _locate(kernel, row, places)
    text = join((_describe_stall(kernel, found), _find_fact(kernel, row)), "; ")
    chain = int(kernel.instructions.chain_index[row])
    inside = name_inside(kernel.instructions.chains[chain]) if chain >= 0 else NOTHING
    text = say("{inside} {text}", inside=inside, text=text) if inside else text
    frame = InstructionPlaces(kernel, places).choose_frame(row)
    at = None if frame is None or not frame.line else Place(file=frame.file, line=frame.line)
    unhelped = NOTHING if _is_helped(kernel, row) else UNHELPED
    yield Row(label="cause", place=place, code=code, text=join((text, unhelped), "; "), at=at)


def _describe_stall(kernel: KernelReport, stall: MainStall) -> Sentence:
    """Cause and share of the main stall; also the share of all stalls the line causes, where those are more."""
    share = percent(stall.samples / kernel.total_samples)
    if isinstance(stall.what, BlameCategory):
        text = say("{share} of the samples are stalled on {cause}", share=share, cause=describe_cause(stall.what))
    else:
        text = say("{share} of the samples are stalled there on {reason}", share=share, reason=stall.what)
    if stall.samples >= _ALMOST_ALL * stall.line_samples:
        return text
    every = percent(stall.line_samples / kernel.total_samples)
    return say("{text} ({every} with all stalls from this line)", text=text, every=every)


def _is_helped(kernel: KernelReport, row: int) -> bool:
    """Whether a suggestion is about this instruction, its line, or the limit of the whole kernel."""
    every = () if kernel.advice is None else kernel.advice.advice
    chain = int(kernel.instructions.chain_index[row])
    frames = kernel.instructions.chains[chain] if chain >= 0 else ()
    return not every or any(one.helps(row, frames) for one in every)


def _locate(kernel: KernelReport, row: int, places: PlaceNames) -> tuple[str, str]:
    """Place of an instruction, and the source text of that line."""
    shown = InstructionPlaces(kernel, places)
    frame = shown.choose_frame(row)
    if frame is None:
        text = kernel.instructions.texts[row]
        return shown.show_offset(row), cut(text, _MOST_CODE_CELLS)
    source = places.read_line(kernel, frame.file, frame.line) if frame.line else None
    return write_place(shown.name_file(frame.file), frame.line), cut(source or "", _MOST_CODE_CELLS)


def _place_scope(kernel: KernelReport, scope: Scope, places: PlaceNames) -> str:
    """``file:first-last`` of a scope; empty for the whole kernel."""
    if scope.kind is ScopeKind.KERNEL or (scope.kind is ScopeKind.FUNCTION and not scope.line):
        return ""
    shown = InstructionPlaces(kernel, places)
    if scope.file is None or scope.line is None:
        return shown.show_offset(scope.row) if scope.row < len(kernel.instructions) else ""
    return write_place(shown.name_file(scope.file), scope.line, scope.last_line)


def _find_fact(kernel: KernelReport, row: int) -> Sentence:
    """The largest mark of the memory analysis on the instruction's line; empty without one."""
    chain = int(kernel.instructions.chain_index[row])
    frames = kernel.instructions.chains[chain] if chain >= 0 else ()
    own = choose_frame(frames) if frames else None
    lines = set() if own is None else {(own.file, own.line)}
    every = () if kernel.analyses is None else kernel.analyses.answers
    answers = [answer for answer in every if answer.analysis == _ACCESSES]
    marks = [mark for answer in answers for mark in answer.marks if (mark.file, mark.line) in lines and mark.text]
    best = max(marks, key=lambda mark: mark.share_ratio or 0.0, default=None)
    return NOTHING if best is None else join((best.text,))


def _explain_none(kernel: KernelReport, places: PlaceNames) -> Sentence:
    """Reason why there is no suggestion, with the main stall."""
    found = find_main_stall(kernel)
    is_measured = bool(kernel.launches) and all(launch.failure is None for launch in kernel.launches)
    if found is None and is_measured and not kernel.total_samples:
        message, remedy = explain_no_samples(kernel)
        return say("{why}. {what}.", why=message, what=remedy[:1].upper() + remedy[1:])
    if found is None:
        reasons = explain_silence(kernel)
        stage = next(iter(reasons), "")
        return join((stage, next(iter(reasons.get(stage, {})), "")), ": ")
    place = _locate(kernel, found.row, places)[0]
    what = describe_cause(found.what) if isinstance(found.what, BlameCategory) else found.what
    return say("no known suggestion for stalls on {what} at {place}", what=what, place=place)


def _describe_refusals(advice: KernelAdvice | None) -> Sentence:
    """Titles of advice that would not help, by reason, the reason with most titles first."""
    refusals = () if advice is None else advice.refusals or ()
    shown = (say("{titles} ({why})", titles=_name_some(one.titles), why=one.why) for one in refusals[:_MOST_REFUSALS])
    return join(shown, "; ")


def _name_some(titles: Sequence[str]) -> Sentence:
    rest = len(titles) - _MOST_NAMED
    more = say("{rest} more", rest=count(rest)) if rest > 0 else ""
    return join((*map(begin_lower, titles[:_MOST_NAMED]), more), ", ")
