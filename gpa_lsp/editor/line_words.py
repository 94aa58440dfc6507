"""Words about a line: its samples, what it is stalled on, what it stalls, and the remedy. Labels and sentences are plain text, rows and
blocks are for hovers and pages.

Pure functions from measurements to words: no protocol, no positions. What is imported inside them needs numpy, which the answer to initialize must
not wait for.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lsprotocol.types import Location

from gpa_lsp.document.blocks import Block, Item, Items, Paragraph, Table
from gpa_lsp.document.layout import Align, Column, Line, Span, Style, left
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.history import describe_line_change
from gpa_lsp.editor.kernel_page import head
from gpa_lsp.editor.lines.index import CauseLine, HotLine, RemedyAnchor
from gpa_lsp.editor.lines.places import Place, name_file
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.figures import sum_known
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_percent, format_share
from gpa_lsp.foundation.prose import join
from gpa_lsp.foundation.records import IdentityCache
from gpa_lsp.foundation.visible_text import make_one_line, shorten
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.measured_files import MeasuredFile

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.model import Advice
    from gpa_lsp.report.changes import ReasonCounts
    from gpa_lsp.report.model import InstructionColumns
    from gpa_lsp.report.pairs import BlamedPair, LinePair

# A measured line (None: code without lines) → what a reader calls it now
NamePlace = Callable[[tuple[str, int] | None], str]

_MAX_REASONS = 6
_MOST_NAMED = 4
_MAX_KERNELS = 3
_LEAST_CALLED_RATIO = 0.005  # Of a kernel's samples: less would be written as 0 %
_MOST_ROWS = 5
_MOST_PARTNERS = 3
_MOST_VICTIMS = 3
_MOST_LINE_CHARS = 120  # Of a diagnostic, its stop included
_MOST_NAME_CHARS = 44  # Of a kernel there
_LONGEST_TEXT = 60


# What was taken on a line


def _find_top_reason(counts: "ReasonCounts") -> str | None:
    from gpa_lsp.document.findings import choose_reasons

    reasons = choose_reasons(counts)
    return reasons[0].name if reasons else None


# The stall reason with most samples, chosen as in findings everywhere; None when there is no stall
find_top_reason: "IdentityCache[ReasonCounts, str | None]" = IdentityCache(_find_top_reason)


def _show_share(line: HotLine, samples: int | None = None) -> str:
    report = line.shown.kernel.report
    return format_percent(report.share_of(line.row.inclusive_samples if samples is None else samples).ratio)


def label_line(line: HotLine) -> str:
    """A line's share for lists and heat, e.g. ``41 % of samples, mostly long_scoreboard``; an estimate is added to nothing."""
    called = label_called_from(line)
    if line.is_mostly_called:
        return called
    reason = find_top_reason(line.row.inclusive_by_reason)
    mostly = "" if reason is None else f"mostly {reason}"
    return ", ".join(part for part in (f"{_show_share(line)} of samples", mostly, called) if part)


def label_share(line: HotLine) -> str:
    """A line's share of the kernel's samples and its heaviest stall reason, as briefly as a hint must: ``41 % samples, long_scoreboard``."""
    reason = find_top_reason(line.row.inclusive_by_reason)
    return f"{_show_share(line)} of samples" if reason is None else f"{_show_share(line)} samples, {reason}"


def describe_taken(line: HotLine) -> str:
    """A line's share and its reasons', all of the kernel's samples: ``41 % (±3) of the samples of k were taken here: 38 % long_scoreboard``."""
    report = line.shown.kernel.report
    taken = f"{format_share(report.share_of(line.row.inclusive_samples))} of the samples of {line.shown.name} were taken here"
    reasons = [
        f"{_show_share(line, count.all_samples)} {reason}"
        for reason, count in list(line.row.inclusive_by_reason.items())[:_MOST_NAMED]
        if count.all_samples
    ]
    return f"{taken}: {', '.join(reasons)}" if reasons else taken


def label_called_from(line: HotLine) -> str:
    """Label the share of functions called from a line, with the place of most of it where that is known; empty below half a percent."""
    callee = line.shown.kernel.callees.get(line.place)
    where = None if callee is None else f"{name_file(callee[0])}:{callee[1]}"
    return label_called(line.row.called_samples, line.shown.kernel.report.total_samples, where)


def label_called(samples: float, total: int, where: str | None = None) -> str:
    """Label samples of called functions; empty below half a percent.

    Args:
        where: most of them; None where unknown.

    >>> label_called(20.0, 100), label_called(0.2, 100), label_called(20.0, 100, "standard.py:47")
    ('≈20 % in called functions', '', '≈20 % in standard.py:47')
    """
    ratio = min(1.0, samples / total) if total else 0.0
    return f"≈{format_percent(ratio)} in {where or 'called functions'}" if ratio >= _LEAST_CALLED_RATIO else ""


def summarise_line(line: HotLine, doubts: str = "") -> str:
    """A line as one sentence, for a diagnostic: where there is room what its stall reason means, and at the end the *doubts*, as "(simulated)"."""
    reason, called = find_top_reason(line.row.inclusive_by_reason), label_called_from(line)
    name = shorten(line.shown.name, _MOST_NAME_CHARS)
    mostly = "issuing, not stalled" if reason is None else f"mostly {reason}"
    text = f"{_show_share(line)} of the samples of {name} are taken here, {mostly}"
    rest = f"{f', {called}' if called else ''}{doubts}"
    why = "" if reason is None else f" ({describe_stall_reason(reason).description})"
    has_room = len(text) + len(why) + len(rest) <= _MOST_LINE_CHARS
    return make_one_line(f"{text}{why if has_room else ''}{rest}")


def describe_share(lines: Sequence[HotLine]) -> Line:
    """A line's own share, a row of its hover; empty where nothing was taken on it."""
    if not lines:
        return ()
    first, *others = lines
    reason = find_top_reason(first.row.inclusive_by_reason)
    why = "" if reason is None else f"mostly {reason}: {describe_stall_reason(reason).description}"
    also = f"also in {format_count_of(len(others), 'other kernel')}" if others else ""
    rest = ", ".join(filter(None, ("are taken here", why, label_called_from(first), also)))
    return (*_quote_share(first), (f" {rest}", Style.PLAIN))


def _quote_share(line: HotLine) -> Line:
    share = format_share(line.shown.kernel.report.share_of(line.row.inclusive_samples))
    return (share, Style.TITLE), (" of the samples of ", Style.PLAIN), (line.shown.name, Style.CODE)


def build_line(lines: Sequence[HotLine]) -> Iterator[Block]:
    """Build the share of a line, its doubts and its stall table. Doubts come early: a page may be taller than its window."""
    line = lines[0]
    row, report = line.row, line.shown.kernel.report
    reason = find_top_reason(row.inclusive_by_reason)
    mostly: Line = ()
    if reason is not None:
        of_kernel = _show_share(line, row.inclusive_by_reason[reason].all_samples)
        meaning = f", {of_kernel} of the kernel's samples: {describe_stall_reason(reason).description}"
        mostly = (("mostly ", Style.PLAIN), (reason, Style.TITLE), (meaning, Style.PLAIN))
    share = (*_quote_share(line), (f": {_count_samples(line)}", Style.PLAIN))
    change = describe_line_change(line.shown.kernel.history, line.place)
    yield from (Paragraph(text=text) for text in (share, describe_doubts(line), change, mostly) if text)
    yield make_reasons_table(row.inclusive_by_reason, report.total_samples)
    for other in lines[1 : 1 + _MAX_KERNELS]:
        name = (other.shown.name, Style.CODE)
        yield Paragraph(text=((f"also {label_line(other)} of ", Style.PLAIN), name))
    if len(lines) > 1 + _MAX_KERNELS:
        yield Paragraph(text=f"and {len(lines) - 1 - _MAX_KERNELS} more kernels")


def _count_samples(line: HotLine) -> str:
    row = line.row
    parts = [f"{format_count(row.inclusive_samples)} of {format_count(line.shown.kernel.report.total_samples)} samples"]
    if row.samples != row.inclusive_samples:
        own = f"{format_count(row.samples)} of them its own" if row.samples else "none of them its own"
        parts.append(f"{own}, the others in code inlined into it")
    if row.called_samples >= 0.5:
        parts.append(f"about {format_count(row.called_samples)} more in functions it calls")
    return "; ".join(parts)


def describe_doubts(line: HotLine | CauseLine) -> str:
    """Describe how far the numbers of this line can be trusted; empty when there is nothing to say."""
    brief = line.shown.kernel.brief
    if line.is_edited:
        here = f"{'simulated' if brief.simulated else 'measured'} before your edits; this line is as it was"
    else:
        doubt = line.file.describe_doubt()
        here = f"unverified: the file {doubt}, so lines may have moved" if doubt else ""
    return "; ".join(filter(None, (brief.simulated, here, brief.doubts)))


def make_reasons_table(counts: "ReasonCounts", total: int) -> Table:
    """The stall table, with shares of a kernel's samples."""

    def show(name: str, samples: int, quiet: int | None) -> list[Span]:
        share = format_percent(samples / total if total else 0.0)
        return [(cell, Style.PLAIN) for cell in (name, format_count(samples), format_count(quiet), share)]

    shown = list(counts.items())
    others = shown[_MAX_REASONS:] if len(shown) > _MAX_REASONS + 1 else []
    rows = [
        show(reason, count.all_samples, count.latency_samples) for reason, count in shown[: len(shown) - len(others)]
    ]
    if others:
        samples, quiet = zip(*((count.all_samples, count.latency_samples) for _, count in others), strict=True)
        rows.append(show(f"{len(others)} others", sum(samples), sum_known(quiet)))
    titles = ("stall reason", "samples", "not issued", "of kernel")
    columns = [Column(title=title, align=Align.RIGHT if number else Align.LEFT) for number, title in enumerate(titles)]
    return Table(columns=columns, rows=rows)


def build_origin(line: HotLine) -> Iterator[Block]:
    """The hottest instructions behind a line's numbers, and the profile they are from; what matters less than causes and remedies."""
    shown, report = line.shown, line.shown.kernel.report
    rows = [_show_instruction(report.instructions, index, report.total_samples) for index in line.hottest]
    yield Table(title="hottest instructions", columns=(left(), left()), rows=rows, is_listing=True)
    when = datetime.fromtimestamp(shown.kernel.measured_ns / 1e9, tz=UTC).astimezone()
    on_device = f" on {report.device.name}" if report.device.name else ""
    how = "simulated" if report.is_simulated else "measured"
    yield Paragraph(text=f"{shown.profile.path.name}, {how} {when:%Y-%m-%d %H:%M}{on_device}", style=Style.DIM)


def _show_instruction(columns: "InstructionColumns", index: int, total: int) -> tuple[Span, Span]:
    """An instruction, and its share of the kernel's samples, stall reason and control code."""
    from gpa_lsp.document.control_words import describe_control_of
    from gpa_lsp.document.sampling_words import label_samples

    remark, control = (
        label_samples(columns.reasons, columns.all_samples[index], total),
        describe_control_of(columns, index),
    )
    text = f"/*{int(columns.pc_offsets[index]):04x}*/ {columns.texts[index] or '(no disassembly)'}"
    return (text, Style.CODE), (f"// {remark}; {control}" if control else f"// {remark}", Style.DIM)


# What causes it, and what it causes


def summarise_cause(cause: CauseLine, name_place: NamePlace, doubts: str = "") -> str:
    """A causing line for a diagnostic: the stalls it causes and the stalled lines, in a second sentence the remedy, and at the end the *doubts*.
    Lens and hover, which editors show beside it, give the kernel's limiter."""
    causes, victims = cause.causes, list_victims(cause)
    name, reason = shorten(cause.shown.name, _MOST_NAME_CHARS), find_caused_reason(cause)
    text = f"{format_percent(cause.caused_ratio)} of the samples of {name} are stalls caused here"
    text += f", mostly {reason}" if reason else ""
    room = _MOST_LINE_CHARS - (0 if cause.remedies else len(doubts))
    own = sum(pair.samples for pair in causes.waiters if _find_place(pair) == cause.place)
    stalled = [_list_names(victims, name_place, most) for most in range(min(len(victims), _MOST_VICTIMS), 0, -1)]
    if victims and own > sum(pair.samples for pair in cause.victims):
        itself = "it stalls mostly this line itself"
        text = _add_clause(text, room, *(f"{itself}, and {names}" for names in stalled), itself)
    elif victims:
        text = _add_clause(text, room, *(f"it stalls {names}" for names in stalled))
    elif causes.blame.causing_samples > causes.caused_samples / 2:
        text = _add_clause(text, room, "it stalls this line itself")
    if causes.called_samples >= 0.5:
        called = causes.called_samples / cause.shown.kernel.report.total_samples
        text = _add_clause(text, room, f"about {format_percent(called)} more in functions called from here (estimate)")
    lines = [text]
    if cause.remedies:
        others = len(cause.remedies) - 1
        more = f", or {others} other{'' if others == 1 else 's'}" if others else ""
        lines.append(f"{label_advice(cause.remedies[0])}{more}")
    return ".\n".join(map(make_one_line, lines)) + doubts


def _add_clause(text: str, room: int, *clauses: str) -> str:
    """A text with the first clause for which a line of a diagnostic has room behind it; as it is without one."""
    fitting = (longer for clause in clauses if len(longer := f"{text}; {clause}") < room)
    return next(fitting, text)


def find_caused_reason(cause: CauseLine) -> str | None:
    """The stall reason of most samples that a line causes, elsewhere or itself, as far as its pairs were kept; None when there is none."""
    sums = dict(cause.causes.own_stalls)
    for pair in cause.causes.waiters:
        sums[pair.reason] = sums.get(pair.reason, 0.0) + pair.samples
    return max(sums, key=lambda reason: sums[reason], default=None)


def list_victims(cause: CauseLine) -> list[tuple[str, int]]:
    """The other lines that are stalled on this one, as measured, most samples first."""
    return list(dict.fromkeys(place for pair in cause.victims if (place := _find_place(pair)) is not None))


def _find_place(pair: "LinePair") -> tuple[str, int] | None:
    return None if pair.place is None else (pair.place.file, pair.place.line)


def _list_names(places: Sequence[tuple[str, int]], name_place: NamePlace, most: int) -> str:
    shown = ", ".join(dict.fromkeys(map(name_place, places[:most])))
    more = len(places) - most
    return f"{shown} and {format_count_of(more, 'more place')}" if more > 0 else shown


def describe_stalls(cause: CauseLine, hot: HotLine | None, name_place: NamePlace) -> list[str | Line]:
    """Describe what a line is stalled on, or what it stalls, whichever is more: rows for its hover, never both.

    Args:
        hot: what was taken on the line; None where nothing was.
    """
    is_waiting = hot is not None and hot.share_ratio >= cause.share_ratio
    sign, pairs = ("← stalled on", cause.causes.waits) if is_waiting else ("→ stalls", cause.victims)
    rows: list[str | Line] = [
        f"{sign} {describe_pair(_name_partner(cause, pair, name_place), pair, 0)}" for pair in pairs[:_MOST_PARTNERS]
    ]
    if is_waiting:
        lost = cause.causes.blame.unattributed_samples
        return [*rows, f"{format_count_of(round(lost), 'sample')} without a known cause"] if lost > 0.5 else rows
    reason = find_caused_reason(cause)
    mostly = "" if reason is None else f", mostly {reason}"
    share, name = (format_percent(cause.caused_ratio), Style.TITLE), (cause.shown.name, Style.CODE)
    words = (("causes ", Style.PLAIN), share, (" of the samples of ", Style.PLAIN), name, (mostly, Style.PLAIN))
    return [words, *rows]


def _name_partner(cause: CauseLine, pair: "LinePair", name_place: NamePlace) -> str:
    """The other end of a stall; the line itself where that stalls code that is inlined into it."""
    place = _find_place(pair)
    return "this line" if place == cause.place else name_place(place)


def build_causes(cause: CauseLine, name_place: NamePlace) -> Iterator[Block]:
    """Build lists of what a line is stalled on and what it stalls, for its page."""
    total, causes, blame = cause.shown.kernel.report.total_samples, cause.causes, cause.causes.blame
    for title, samples, what, pairs in (
        ("stalled on", blame.waiting_samples, "taken here", causes.waits),
        ("stalls", blame.causing_samples, "caused by this line", causes.waiters),
    ):
        if pairs:
            words = f" · {format_count(round(samples))} samples {what}"
            yield Paragraph(text=((title, Style.TITLE), (words, Style.PLAIN)))
            # a list wraps in a narrow window where a table would not
            said = (describe_pair(_name_partner(cause, pair, name_place), pair, total) for pair in pairs[:_MOST_ROWS])
            yield Items(items=[Item(text=one) for one in said])
    if causes.own_stalls and (causes.waits or causes.waiters):
        own = ", ".join(f"{format_count(round(count))} {reason}" for reason, count in causes.own_stalls.items())
        yield Paragraph(text=f"not caused elsewhere: {own}")
    if blame.unattributed_samples > 0.5:
        yield Paragraph(text=f"{format_count(round(blame.unattributed_samples))} samples have no known cause")


def describe_pair(name: str, pair: "BlamedPair", total: int) -> str:
    """The other end of a stall: ``line 13: 37 %, 2,709 samples · long_scoreboard: data from global memory · R6, 10 cycles later``."""
    from gpa_lsp.document.advice_words import describe_cause

    samples = format_count_of(round(pair.samples), "sample")
    share = f"{format_percent(min(1.0, pair.samples / total))}, " if total else ""
    words = make_one_line(f"{pair.reason}: {describe_cause(pair.category)}")
    return " · ".join(part for part in (f"{name}: {share}{samples}", words, _describe_link(pair)) if part)


def _describe_link(pair: "BlamedPair") -> str:
    """``R2, 6 cycles later``; ``one of several`` where the hardware waits for all of a group."""
    from gpa_lsp.code.binary.model import name_resource
    from gpa_lsp.document.advice_words import describe_sharing

    parts = []
    if pair.resource is not None:
        parts.append(name_resource(pair.resource))
    if pair.distance_cycles is not None:
        parts.append(f"{pair.distance_cycles} cycles later")
    if pair.separable_samples < pair.samples / 2:
        parts.append(describe_sharing(pair.dependency))
    return ", ".join(parts)


# What to do


def summarise_remedy(remedies: "Sequence[Advice]") -> Line:
    """The best remedy in a row, and how many others there are."""
    from gpa_lsp.document.advice_words import describe_priced

    others = f"; {format_count_of(len(remedies) - 1, 'other')}" if len(remedies) > 1 else ""
    return head("suggestion", join((describe_priced(remedies[0]), others), ""))


def label_remedy(anchor: RemedyAnchor, value: str = "") -> str:
    """A lens on a loop or call."""
    from gpa_lsp.document.advice_words import show_gain_range

    words = f"{anchor.advice.title} {show_gain_range(anchor.region.speedup)}"
    return f"{value} · {words}" if value else words


def label_advice(advice: "Advice") -> str:
    """``Unroll a loop 1.1–1.3×``."""
    from gpa_lsp.document.advice_words import label_suggestion

    return label_suggestion(advice)


# What it is called


def name_line(shown: VisibleKernel, place: Place, current_line: int) -> str:
    """``line 12: x[i]``, or ``m.h:12: x[i]`` in another file than the kernel's own; without the text where it is not known.

    Args:
        current_line: where the line is now, 1-based.
    """
    home = shown.kernel.body[0] if shown.kernel.body is not None else place[0]
    where = f"line {current_line}" if place[0] == home else f"{name_file(place[0])}:{current_line}"
    text = read_text(shown, place)
    return f"{where}: {text}" if text else where


def name_place(view: DocumentView, shown: VisibleKernel, place: Place | None) -> str:
    """A place in a sentence, by the line it is on now: ``line 12``, or ``m.h:12`` in another document than the reader is in.

    Args:
        place: as measured; None for code without lines.
    """
    if place is None:
        return "code without lines"
    file = shown.profile.files.get(place[0])
    if file is not None and file.local_path == view.local_path:
        line = _find_here(view, file, place)
        return "a line edited since" if line is None else f"line {line}"
    location = view.places.locate(shown, place)
    if location is not None:
        return name_location(view, place, location)
    where = f"{name_file(place[0])}:{place[1]}"
    return where if file is None else f"{where} as measured"


def name_location(view: DocumentView, place: Place, location: Location) -> str:
    """The same for a place that was found."""
    line = location.range.start.line + 1
    return f"line {line}" if location.uri == view.uri else f"{name_file(place[0])}:{line}"


def name_briefly(view: DocumentView, shown: VisibleKernel, place: Place, location: Location | None) -> str:
    """A place in a few characters: as in a sentence where it was found, and as compiled where its file is not here; empty where it was edited away.

    Args:
        location: where it is now; None where nobody can tell.
    """
    if location is not None:
        return name_location(view, place, location)
    file = shown.profile.files.get(place[0])
    return f"{name_file(place[0])}:{place[1]}" if file is None else ""


def locate_from(view: DocumentView, shown: VisibleKernel, place: Place) -> Location | None:
    """Locate a measured place as seen from a document: inside it by its own lines, elsewhere as far as it can be found."""
    file = shown.profile.files.get(place[0])
    if file is None or file.local_path != view.local_path:
        return view.places.locate(shown, place)
    line = _find_here(view, file, place)
    return None if line is None else Location(uri=view.uri, range=view.positions.find_text(line))


def _find_here(view: DocumentView, file: MeasuredFile, place: Place) -> int | None:
    """The line of the document, 1-based, that a place in its file is on now; None where it was edited away."""
    line = view.finder.find(file, place[1])
    return line if line is not None and 1 <= line <= len(view.positions.lines) else None


def read_text(shown: VisibleKernel, place: Place) -> str:
    """Read the measured text of a line with white space collapsed, cut to a list's width; empty when it is not known."""
    file = shown.profile.files.get(place[0])
    if file is None or file.lines is None or not 1 <= place[1] <= len(file.lines):
        return ""
    return shorten_text(file.lines[place[1] - 1])


def shorten_text(text: str) -> str:
    """A line for a list.

    >>> shorten_text("    y[i]  =\\tx[i];")
    'y[i] = x[i];'
    """
    plain = " ".join(text.split())
    return shorten(plain, _LONGEST_TEXT)
