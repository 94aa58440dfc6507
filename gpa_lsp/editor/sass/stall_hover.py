"""What a hover says of the samples of an instruction: how many, why, what it waits for, and who waits for it."""

from collections.abc import Sequence

from gpa_lsp.document.markdown_text import begin_paragraph, mark_code
from gpa_lsp.editor.cause_table import list_pair
from gpa_lsp.editor.lines.names import read_text
from gpa_lsp.editor.lines.places import name_file
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.library import SassDocument, SassView
from gpa_lsp.editor.stall_table import draw_reasons
from gpa_lsp.foundation.numbers import format_count, format_number, format_share
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.changes import ReasonCounts
from gpa_lsp.report.count import count_row
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.pairs import (
    InstructionPair,
    count_unattributed,
    list_causes,
    list_own,
    list_victims,
)

_MOST_ROWS = 6
_LEAST_ISSUES = 2.0  # In samples: with fewer, cycles per execution would be chance

_WARP_THREADS = 32


def describe_share(document: SassDocument, row: int) -> str:
    """Share of the kernel's samples, and what most of them mean; empty without samples."""
    report = document.shown.kernel.report
    counts = _count(report, row)
    total = sum(count.all_samples for count in counts.values())
    if not total:
        return ""
    share = format_share(report.share_of(total))
    whole = format_count(report.total_samples)
    words = f"**{share}** of {mark_code(document.shown.name)}: {format_count(total)} of {whole} samples"
    top = next((reason for reason in counts if describe_stall_reason(reason).is_stall), None)
    if top is None:
        return words
    return make_one_line(f"{words}, mostly **{top}**: {describe_stall_reason(top).description}")


def describe_stalls(document: SassDocument, row: int) -> str:
    """Stall table, causes, victims, what was counted; empty for an instruction without samples that nobody waits for."""
    report = document.shown.kernel.report
    counts = _count(report, row)
    causes, victims = list_causes(report, row), list_victims(report, row)
    parts = [draw_reasons(counts, report.total_samples, "of kernel")]
    if causes:
        parts.append(_list_pairs(document, "**waits for**", causes))
    if victims:
        parts.append(_list_pairs(document, "**waited for by**", victims))
    parts += [_describe_own(report, row, is_mixed=bool(causes or victims)), describe_cost(report, row, victims)]
    return "\n\n".join(part for part in parts if part)


def _count(report: KernelReport, row: int) -> ReasonCounts:
    return count_row(report.instructions, row)


def _list_pairs(document: SassDocument, title: str, pairs: Sequence[InstructionPair]) -> str:
    total = document.shown.kernel.report.total_samples
    rows = [
        # names have stars, which would be taken for Markdown
        list_pair(mark_code(name_instruction(document, pair.row)), pair, total)
        for pair in pairs[:_MOST_ROWS]
    ]
    more = len(pairs) - _MOST_ROWS
    return "\n".join((title, "", *rows, *([f"- and {more} more"] if more > 0 else [])))


def _describe_own(report: KernelReport, row: int, *, is_mixed: bool) -> str:
    """What no other instruction has to do with, where others have to do with some of it."""
    parts = []
    own = [(reason, count) for reason, count in list_own(report, row) if describe_stall_reason(reason).is_stall]
    if own and is_mixed:
        named = ", ".join(f"{format_count(round(count))} {reason}" for reason, count in own)
        parts.append(f"not caused elsewhere: {make_one_line(named)}")
    lost = count_unattributed(report, row)
    if lost > 0.5:
        parts.append(f"{format_count(round(lost))} samples have no known cause")
    return "; ".join(parts)


def describe_cost(report: KernelReport, row: int, victims: Sequence[InstructionPair] = ()) -> str:
    """Executions, active threads, cycles per execution, memory traffic: what was counted; empty where nothing was.

    Cycles per execution follow from samples: a warp is sampled at an instruction as long as it stays there, and as issuing for one cycle.
    """
    parts = []
    executions = int(report.instructions.executions[row])
    if executions >= 0:
        parts.append(f"executed {format_count(executions)} times")
        parts += _describe_counters(report, row, executions)
    issues = 0.0 if report.blame is None else float(report.blame.issue_counts.counts[row])
    if issues >= _LEAST_ISSUES:
        stay = float(report.instructions.all_samples[row].sum()) / issues
        if stay >= 1.0:
            parts.append(f"warps stayed about {format_number(stay)} cycles at it each time")
        caused = sum(pair.samples for pair in victims) / issues
        if caused >= 1.0:
            parts.append(f"others waited about {format_number(caused)} cycles for it")
    return " · ".join(parts)


def _describe_counters(report: KernelReport, row: int, executions: int) -> list[str]:
    code = report.code
    if code is None or not executions:
        return []

    def count(name: str) -> int:
        column = code.counters.get(name)
        return -1 if column is None else int(column[row])

    parts = []
    threads, effective = count("thread_executions"), count("thread_executions_true")
    if threads >= 0:
        parts.append(f"{format_number(threads / executions)} of {_WARP_THREADS} threads active")
        if 0 <= effective < threads:
            parts.append(f"{format_number(effective / executions)} with the guard")
    for name, ideal, noun in (
        ("global_sectors", "global_sectors_ideal", "sectors"),
        ("shared_wavefronts", "shared_wavefronts_ideal", "wavefronts"),
    ):
        asked, least = count(name), count(ideal)
        if asked > 0 and least > 0:
            each, best = format_number(asked / executions), format_number(least / executions)
            parts.append(f"{each} {noun} each ({best} would do)" if asked > least else f"{each} {noun} each")
    return parts


def describe_source(view: SassView, row: int) -> str:
    """The source line of an instruction and what it was inlined into, innermost first; empty without line information."""
    shown = view.document.shown
    columns = shown.kernel.report.instructions
    chain = int(columns.chain_index[row])
    if chain < 0:
        return ""
    names = []
    for frame in columns.chains[chain]:
        place = (frame.file, frame.line)
        text = read_text(shown, place)
        where = f"{name_file(frame.file)}:{frame.line}"
        names.append(f"{where} {mark_code(text)}" if text else where)
    return begin_paragraph(" in ".join(names))
