"""The hover of an instruction, in at most twelve lines: the operand under the cursor, the instruction, its share and what causes it, its source; and
the page about it, which has the tables behind it.

It needs numpy, which the answer to initialize must not wait for: it is imported when somebody asks.
"""

import struct
from collections.abc import Iterator, Sequence

from lsprotocol.types import Hover, MarkupContent, MarkupKind, Position

from gpa_lsp.code.binary.opcodes import describe_special_register
from gpa_lsp.document.blocks import Block, Item, Items, Paragraph, make_line
from gpa_lsp.document.layout import Line, Style
from gpa_lsp.document.markdown import mark_code, write_markdown
from gpa_lsp.editor.kernel_page import link_hover, write_hover
from gpa_lsp.editor.line_words import describe_pair, make_reasons_table, read_text
from gpa_lsp.editor.lines.places import name_file
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.instruction_hover import describe_details, describe_opcode, list_names, name_resources
from gpa_lsp.editor.sass.jumps import point_at, span_instruction
from gpa_lsp.editor.sass.library import SassDocument, SassView
from gpa_lsp.editor.sass.operand_spans import OperandValue, SpanKind, find_target
from gpa_lsp.foundation.numbers import format_count, format_number, format_share
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.code_queries import FoundRows, find_defs, find_uses
from gpa_lsp.report.count import count_row
from gpa_lsp.report.model import KernelCode, KernelReport
from gpa_lsp.report.pairs import InstructionPair, count_unattributed, list_causes, list_own, list_victims

_MOST_PARTNERS = 3
_MOST_ROWS = 6
_LEAST_ISSUES = 2.0  # In samples: with fewer, cycles per execution would be chance

_WARP_THREADS = 32

_MOST_NAMED = 4
_LARGEST_WORD = 0xFFFFFFFF
_LAUNCH_BANK = "c[0x0]"
_ZEROS = ("RZ", "URZ")
_SMALLEST_FLOAT, _LARGEST_FLOAT = 1e-9, 1e12  # Numbers beyond are hardly ever meant as floats


def describe_hover(view: SassView, position: Position) -> Hover | None:
    """Describe the instruction under the cursor; None on lines without one."""
    pointed = point_at(view, position)
    if pointed is None:
        return None
    row, value = pointed.row, pointed.value
    operand = () if value is None else describe_operand(view.document, row, value)
    shown, line = view.document.shown, int(view.document.line_of_row[row])
    links = link_hover(shown, view.document.uri, line, is_sass=True) if view.has_links else ""
    text = write_hover((operand, *_list_rows(view.document, row)), links, _describe_source(view.document, row))
    span = span_instruction(view, row, value.start, value.end) if value is not None and operand else None
    content = MarkupContent(kind=MarkupKind.Markdown, value=text)
    return Hover(contents=content, range=span or span_instruction(view, row))


def _list_rows(document: SassDocument, row: int) -> list[Line]:
    """Rows of the hover: opcode, share, causes or victims, and details."""
    report = document.shown.kernel.report
    causes, victims = list_causes(report, row), list_victims(report, row)
    is_waiting = sum(pair.samples for pair in causes) >= sum(pair.samples for pair in victims)
    head, pairs = ("← stalled on", causes) if is_waiting else ("→ stalls", victims)
    said = [
        *(f"{head} {_describe_partner(document, pair)}" for pair in pairs[:_MOST_PARTNERS]),
        _describe_own(report, row, is_mixed=bool(causes or victims)),
        _describe_cost(report, row, victims),
        *describe_details(document, row),
    ]
    return [describe_opcode(document, row), _describe_share(document, row), *(make_line(one) for one in said if one)]


def describe_instruction(view: SassView, line: int) -> str | None:
    """All that is known of the instruction on a line (1-based) as a page of Markdown; None for a line without one."""
    document, row = view.document, view.document.find_row(line)
    return None if row is None else "\n".join(write_markdown([*_build_page(document, row)]))


def _build_page(document: SassDocument, row: int) -> Iterator[Block]:
    report = document.shown.kernel.report
    causes, victims = list_causes(report, row), list_victims(report, row)
    yield from (
        Paragraph(text=text) for text in (describe_opcode(document, row), _describe_share(document, row)) if text
    )
    yield make_reasons_table(count_row(report.instructions, row), report.total_samples)
    for title, pairs in (("stalled on", causes), ("stalls", victims)):
        if pairs:
            yield Paragraph(text=((title, Style.TITLE),))
            items = [Item(text=_describe_partner(document, pair)) for pair in pairs]
            yield Items(items=items, most_items=_MOST_ROWS)
    said = (_describe_own(report, row, is_mixed=bool(causes or victims)), _describe_cost(report, row, victims))
    details = [*filter(None, said), *describe_details(document, row)]
    yield Items(items=[Item(text=one) for one in details])
    yield from (Paragraph(text=text) for text in _describe_source(document, row))


def _describe_share(document: SassDocument, row: int) -> Line:
    """Share of the kernel's samples, and what most of them mean; empty without samples."""
    report = document.shown.kernel.report
    counts = count_row(report.instructions, row)
    total = sum(count.all_samples for count in counts.values())
    if not total:
        return ()
    top = next((reason for reason in counts if describe_stall_reason(reason).is_stall), None)
    mostly = "" if top is None else f", mostly {top}: {describe_stall_reason(top).description}"
    of_all = f": {format_count(total)} of {format_count(report.total_samples)} samples{mostly}"
    share = (format_share(report.share_of(total)), Style.HOT)
    return share, (" of ", Style.PLAIN), (document.shown.name, Style.CODE), (of_all, Style.PLAIN)


def _describe_partner(document: SassDocument, pair: InstructionPair) -> str:
    # names have stars, which would be taken for Markdown
    name = mark_code(name_instruction(document, pair.row))
    return describe_pair(name, pair, document.shown.kernel.report.total_samples)


def _describe_own(report: KernelReport, row: int, *, is_mixed: bool) -> str:
    """Stalls with no cause in another instruction, where others have causes."""
    parts = []
    own = [(reason, count) for reason, count in list_own(report, row) if describe_stall_reason(reason).is_stall]
    if own and is_mixed:
        named = ", ".join(f"{format_count(round(count))} {reason}" for reason, count in own)
        parts.append(f"not caused elsewhere: {named}")
    lost = count_unattributed(report, row)
    if lost > 0.5:
        parts.append(f"{format_count(round(lost))} samples have no known cause")
    return "; ".join(parts)


def _describe_cost(report: KernelReport, row: int, victims: Sequence[InstructionPair] = ()) -> str:
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


def _describe_source(document: SassDocument, row: int) -> list[Line]:
    """The source line of an instruction and what it was inlined into, innermost first, in one row; none without line information."""
    shown = document.shown
    columns = shown.kernel.report.instructions
    chain = int(columns.chain_index[row])
    names = []
    for frame in () if chain < 0 else columns.chains[chain]:
        text = read_text(shown, (frame.file, frame.line))
        where = f"{name_file(frame.file)}:{frame.line}"
        names.append(f"{where} {mark_code(text)}" if text else where)
    return [make_line(" in ".join(names))] if names else []


def describe_operand(document: SassDocument, row: int, value: OperandValue) -> Line:
    """Describe the source and uses of an operand's value, or the meaning of a constant; empty where there is nothing to say."""
    name = document.shown.kernel.report.instructions.texts[row][value.start : value.end]
    if value.kind is SpanKind.TARGET:
        target = find_target(document, row, value)
        return () if target is None else make_line(f"goes to {mark_code(name_instruction(document, target))}")
    if value.resources:
        return _describe_value(document, row, value)
    if value.kind is SpanKind.SPECIAL_REGISTER:
        words = describe_special_register(name)
        return _head(name, f": {words}") if words else ()
    if value.kind is SpanKind.CONSTANT and name.startswith(_LAUNCH_BANK):
        return _head(name, ": constant bank 0: sizes of grid and block, and the kernel's parameters")
    if value.kind is SpanKind.IMMEDIATE:
        number = describe_number(name)
        return make_line(number) if number else ()
    return _head(name, " is always zero") if name in _ZEROS else ()


def _head(name: str, rest: str) -> Line:
    return (make_one_line(name), Style.TITLE), (rest, Style.PLAIN)


def describe_number(text: str) -> str:
    """A hexadecimal number in decimal, and as a 32-bit float where it may be meant as one; empty for what is plain already.

    >>> describe_number("0x3f800000"), describe_number("-0x10"), describe_number("0x8"), describe_number("1.5")
    ('0x3f800000 = 1065353216, or 1.0 as a 32-bit float', '-0x10 = -16', '', '')
    """
    digits = text.removeprefix("-")
    if not digits.startswith("0x"):
        return ""
    number = int(digits, 16)
    if number < 10:
        return ""
    words = f"{text} = {-number if text.startswith('-') else number}"
    if number <= _LARGEST_WORD and not text.startswith("-"):
        (meant,) = struct.unpack("<f", struct.pack("<I", number))
        if _SMALLEST_FLOAT < abs(meant) < _LARGEST_FLOAT:
            words += f", or {_shorten_float(meant)} as a 32-bit float"
    return words


def _shorten_float(number: float) -> str:
    """Write a number with as many digits as a 32-bit float has."""
    return repr(float(f"{number:.7g}"))


def _describe_value(document: SassDocument, row: int, value: OperandValue) -> Line:
    code = document.shown.kernel.report.code
    spans: Line = ()
    if code is None:
        return spans
    for is_written, lists in ((False, code.reads), (True, code.writes)):
        if not (value.is_written if is_written else value.is_read):
            continue
        resources = [resource for resource in value.resources if resource in lists.of(row)]
        if resources:
            describe = _describe_uses if is_written else _describe_defs
            said = _head(name_resources(resources), f" {describe(document, code, row, resources)}")
            spans = (*spans, ("; ", Style.PLAIN), *said) if spans else said
    return spans


def _describe_defs(document: SassDocument, code: KernelCode, row: int, resources: Sequence[int]) -> str:
    answers = [find_defs(code, row, resource) for resource in resources]
    names = _name_writers(document, answers)
    words = f"was written by {names}" if names else ""
    if any(answer.is_from_outside for answer in answers):
        words += " or holds" if words else "holds"
        words += " what it held before the function, or nothing"
    calls = _name_calls(document, answers)
    return (words or "was not written before") + (
        f" (unless the function called at {calls} changes it)" if calls else ""
    )


def _describe_uses(document: SassDocument, code: KernelCode, row: int, resources: Sequence[int]) -> str:
    answers = [find_uses(code, row, resource) for resource in resources]
    names = _name_writers(document, answers)
    calls = _name_calls(document, answers)
    perhaps = [f"by the function called at {calls}"] if calls else []
    if any(answer.is_from_outside for answer in answers):
        perhaps.append("where the function returns to")
    words = f"is read by {names}" if names else ""
    if perhaps:
        words += f"{', and perhaps' if words else 'may be read'} {' or '.join(perhaps)}"
    return words or "is not read any more"


def _name_writers(document: SassDocument, answers: Sequence[FoundRows]) -> str:
    rows = sorted({row for answer in answers for row in answer.rows})
    is_complete = all(answer.is_complete for answer in answers)
    return list_names(document, rows, most=_MOST_NAMED, is_complete=is_complete)


def _name_calls(document: SassDocument, answers: Sequence[FoundRows]) -> str:
    """The calls on the way whose code is not followed; empty without any."""
    return list_names(document, sorted({call for answer in answers for call in answer.past_calls}), most=1)
