"""What the editor says about a line, as Markdown that reads as well where it is shown as it is (Neovim, Helix).

Pure functions from measurements to text: no protocol, no positions. What is imported inside them needs numpy, which the answer to initialize must
not wait for.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpa_lsp.document.markdown_text import escape_markdown, mark_code
from gpa_lsp.editor.history import describe_line_change
from gpa_lsp.editor.identity_cache import IdentityCache
from gpa_lsp.editor.lines.index import CauseLine, HotLine
from gpa_lsp.editor.lines.places import name_file
from gpa_lsp.foundation.figures import sum_known
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_percent, format_share
from gpa_lsp.foundation.visible_text import make_one_line, make_visible
from gpa_lsp.profile.stall_reasons import describe_stall_reason

if TYPE_CHECKING:
    from gpa_lsp.document.blocks import Table
    from gpa_lsp.report.changes import ReasonCounts
    from gpa_lsp.report.model import InstructionColumns

_MAX_REASONS = 6
_MOST_NAMED = 4
_MAX_KERNELS = 3
_LEAST_CALLED_RATIO = 0.005  # Of a kernel's samples: less would be written as 0 %


def find_top_reason(counts: "ReasonCounts") -> str | None:
    """The stall reason with most samples, chosen as in findings everywhere; None when there is no stall."""
    return _top_reasons(counts)


def _find_top_reason(counts: "ReasonCounts") -> str | None:
    from gpa_lsp.document.findings import choose_reasons

    reasons = choose_reasons(counts)
    return reasons[0].name if reasons else None


_top_reasons: "IdentityCache[ReasonCounts, str | None]" = IdentityCache(_find_top_reason)


def label_line(line: HotLine) -> str:
    """A line's share for lists and heat, e.g. ``41 % of samples, mostly long_scoreboard``; an estimate is added to nothing."""
    called = label_called_from(line)
    if line.is_mostly_called:
        return called
    share = format_percent(line.shown.kernel.report.share_of(line.row.inclusive_samples).ratio)
    reason = find_top_reason(line.row.inclusive_by_reason)
    mostly = "" if reason is None else f"mostly {reason}"
    return ", ".join(part for part in (f"{share} of samples", mostly, called) if part)


def label_share(line: HotLine) -> str:
    """A line's share of the kernel's samples and its heaviest stall reason, as briefly as a hint must: ``41 % samples, long_scoreboard``."""
    share = format_percent(line.shown.kernel.report.share_of(line.row.inclusive_samples).ratio)
    reason = find_top_reason(line.row.inclusive_by_reason)
    return f"{share} of samples" if reason is None else f"{share} samples, {reason}"


def describe_taken(line: HotLine) -> str:
    """A line's share and its reasons', all of the kernel's samples: ``41 % (±3) of the samples of k were taken here: 38 % long_scoreboard``."""
    report = line.shown.kernel.report
    taken = f"{format_share(report.share_of(line.row.inclusive_samples))} of the samples of {line.shown.name} were taken here"
    reasons = [
        f"{format_percent(report.share_of(count.all_samples).ratio)} {reason}"
        for reason, count in list(line.row.inclusive_by_reason.items())[:_MOST_NAMED]
        if count.all_samples
    ]
    return f"{taken}: {', '.join(reasons)}" if reasons else taken


def label_called_from(line: HotLine) -> str:
    """What lies in functions called from a line, and where most of that is, where that is known; empty where it is hardly anything."""
    total, place = line.shown.kernel.report.total_samples, line.place
    callee = line.shown.kernel.callees.get(place)
    return label_called(
        line.row.called_samples, total, None if callee is None else f"{name_file(callee[0])}:{callee[1]}"
    )


def label_called(samples: float, total: int, where: str | None = None) -> str:
    """What of that lies in functions called from the line; empty where it is hardly anything.

    Args:
        where: most of them; None where nobody knows.

    >>> label_called(20.0, 100), label_called(0.2, 100), label_called(20.0, 100, "standard.py:47")
    ('≈20 % in called functions', '', '≈20 % in standard.py:47')
    """
    ratio = min(1.0, samples / total) if total else 0.0
    return f"≈{format_percent(ratio)} in {where or 'called functions'}" if ratio >= _LEAST_CALLED_RATIO else ""


def summarise_line(line: HotLine) -> str:
    """A line as one sentence, for a diagnostic."""
    share = format_percent(line.shown.kernel.report.share_of(line.row.inclusive_samples).ratio)
    reason, called = find_top_reason(line.row.inclusive_by_reason), label_called_from(line)
    mostly = (
        "issuing, not stalled" if reason is None else f"mostly {reason} ({describe_stall_reason(reason).description})"
    )
    taken = f"{share} of the samples of {line.shown.name} are taken here"
    return make_one_line(", ".join(part for part in (taken, mostly, called) if part))


def describe_share(lines: Sequence[HotLine]) -> str:
    """A line's own share, a row of its hover; empty where nothing was taken on it."""
    if not lines:
        return ""
    first, *others = lines
    report, reason = first.shown.kernel.report, find_top_reason(first.row.inclusive_by_reason)
    share = format_share(report.share_of(first.row.inclusive_samples))
    why = "" if reason is None else f"mostly {reason}: {describe_stall_reason(reason).description}"
    also = f"also in {format_count_of(len(others), 'other kernel')}" if others else ""
    rest = ", ".join(filter(None, ("are taken here", why, label_called_from(first), also)))
    return f"**{share}** of the samples of {mark_code(first.shown.name)} {escape_markdown(rest)}"


def describe_line(lines: Sequence[HotLine]) -> str:
    """How hot a line is, and why."""
    parts = [_describe_one(lines[0])]
    parts.extend(
        f"also {make_visible(label_line(line))} of {mark_code(line.shown.name)}" for line in lines[1 : 1 + _MAX_KERNELS]
    )
    if len(lines) > 1 + _MAX_KERNELS:
        parts.append(f"and {len(lines) - 1 - _MAX_KERNELS} more kernels")
    return "\n\n".join(parts)


def _describe_one(line: HotLine) -> str:
    """The doubts come early: a hover may be taller than its window."""
    from gpa_lsp.document.markdown import write_markdown

    row, report = line.row, line.shown.kernel.report
    reason = find_top_reason(row.inclusive_by_reason)
    parts = [
        f"**{format_share(report.share_of(row.inclusive_samples))}** of the samples of {mark_code(line.shown.name)}: {_count_samples(line)}"
    ]
    parts.append(describe_doubts(line))
    parts.append(describe_line_change(line.shown.kernel.history, line.place))
    if reason is not None:
        of_kernel = format_percent(report.share_of(row.inclusive_by_reason[reason].all_samples).ratio)
        meaning = describe_stall_reason(reason).description
        parts.append(make_one_line(f"mostly **{reason}**, {of_kernel} of the kernel's samples: {meaning}"))
    parts.append(
        "\n".join(write_markdown([make_reasons_table(row.inclusive_by_reason, report.total_samples, "of kernel")]))
    )
    return "\n\n".join(part for part in parts if part)


def describe_origin(line: HotLine) -> str:
    """The instructions behind a line's numbers, and the profile they are from; what matters less than causes and remedies."""
    report = line.shown.kernel.report
    parts = (draw_instructions(report.instructions, line.hottest, report.total_samples), _name_source(line))
    return "\n\n".join(part for part in parts if part)


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
    """How far the numbers can be trusted on this line; empty when there is nothing to say."""
    from gpa_lsp.document.sampling_words import describe_dropped, describe_simulation

    report = line.shown.kernel.report
    simulated = describe_simulation(report)
    doubts = [simulated] if simulated else []
    if line.is_edited:
        doubts.append(f"{'simulated' if simulated else 'measured'} before your edits; this line is as it was")
    elif line.file.describe_doubt():
        doubts.append(f"unverified: the file {line.file.describe_doubt()}, so lines may have moved")
    if report.samples_truncated:
        doubts.append("the sampling buffer was full, so only the first part of the run was sampled")
    if report.sampling.dropped_samples:
        doubts.append(describe_dropped(report))
    if report.lacks_sass:
        from gpa_lsp.document.advice_words import NO_SASS

        doubts.append(f"{NO_SASS}, so causes and most advice are missing")
    return f"_{'; '.join(doubts)}_" if doubts else ""


def make_reasons_table(counts: "ReasonCounts", total: int, whole: str) -> "Table":
    """The stall table.

    Args:
        whole: the title of the shares' column, e.g. ``of line``.
    """
    from gpa_lsp.document.blocks import Table
    from gpa_lsp.document.layout import Align, Column, Style

    shown = list(counts.items())
    others = shown[_MAX_REASONS:] if len(shown) > _MAX_REASONS + 1 else []
    rows = [
        (
            reason,
            format_count(count.all_samples),
            format_count(count.latency_samples),
            _format_part(count.all_samples, total),
        )
        for reason, count in shown[: len(shown) - len(others)]
    ]
    if others:
        samples = sum(count.all_samples for _, count in others)
        quiet = sum_known(count.latency_samples for _, count in others)
        rows.append((f"{len(others)} others", format_count(samples), format_count(quiet), _format_part(samples, total)))
    titles = ("stall reason", "samples", "not issued", whole)
    columns = [Column(title=title, align=Align.RIGHT if number else Align.LEFT) for number, title in enumerate(titles)]
    return Table(columns=columns, rows=[[(cell, Style.PLAIN) for cell in row] for row in rows])


def _format_part(samples: int, total: int) -> str:
    return format_percent(samples / total if total else 0.0)


def draw_instructions(columns: "InstructionColumns", indices: Sequence[int], total: int) -> str:
    """The hottest instructions with their share of the kernel's samples, stall reason and control code; empty when there are none."""
    if not indices:
        return ""
    rows = [tuple(map(make_visible, _draw_instruction(columns, index, total))) for index in indices]
    width = max(len(text) for text, _ in rows)
    listing = "\n".join(f"{text.ljust(width)}  // {remark}" for text, remark in rows)
    return f"hottest instructions\n\n```\n{listing}\n```"


def _draw_instruction(columns: "InstructionColumns", index: int, total: int) -> tuple[str, str]:
    from gpa_lsp.document.control_words import describe_control_of
    from gpa_lsp.document.sampling_words import label_samples

    samples = columns.all_samples[index]
    remark = label_samples(columns.reasons, samples, total)
    control = describe_control_of(columns, index)
    text = columns.texts[index] or "(no disassembly)"
    return f"/*{int(columns.pc_offsets[index]):04x}*/ {text}", f"{remark}; {control}" if control else remark


def _name_source(line: HotLine) -> str:
    shown = line.shown
    when = datetime.fromtimestamp(shown.kernel.measured_ns / 1e9, tz=UTC).astimezone()
    device = shown.kernel.report.device.name
    on_device = f" on {device}" if device else ""
    how = "simulated" if shown.kernel.report.is_simulated else "measured"
    return f"_{make_one_line(f'{shown.profile.path.name}, {how} {when:%Y-%m-%d %H:%M}{on_device}')}_"
