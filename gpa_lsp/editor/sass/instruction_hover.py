"""What a hover says about an instruction itself: what it is, what it touches, how long it takes, whom it meets behind scoreboards."""

from collections.abc import Callable, Iterable, Sequence

from gpa_lsp.basis.visible_text import make_one_line, make_visible
from gpa_lsp.binary.model import name_resource
from gpa_lsp.binary.opcode_words import describe_words
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.latencies import describe_latency, find_table
from gpa_lsp.editor.sass.model import SassDocument
from gpa_lsp.editor.sass.operand_spans import find_mnemonic
from gpa_lsp.render.control_words import describe_control_of
from gpa_lsp.render.markdown_text import mark_code
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.scoreboard_queries import (
    FoundPartners,
    find_setters,
    find_waiters,
    list_awaited,
    list_set,
)

_MOST_NAMED = 3


def describe_opcode(document: SassDocument, row: int) -> str:
    """Opcode, kind, what it does, how that shows in a profile; and the instruction's text."""
    text = document.shown.kernel.report.instructions.texts[row]
    if not text:
        return f"**{name_instruction(document, row)}**: there is no disassembly of this code"
    mnemonic = _find_mnemonic(text)
    words = describe_words(mnemonic)
    head = make_one_line(
        " · ".join(part for part in (f"**{mnemonic.partition('.')[0]}**", words.kind, words.pipe) if part)
    )
    sentence = words.sentence or "This version does not know this opcode; what it reads and writes is a guess."
    says = f"{sentence} {words.waits}" if words.waits else sentence
    return f"{head}\n\n{says}\n\n```nvsass\n{make_visible(text)}\n```"


def describe_details(document: SassDocument, row: int) -> str:
    """Modifiers, operands, latency, scheduling, scoreboards, as a list."""
    report = document.shown.kernel.report
    text = report.instructions.texts[row]
    if not text:
        return ""
    mnemonic = _find_mnemonic(text)
    control = describe_control_of(report.instructions, row)
    lines = [
        " · ".join(f"{mark_code(f'.{modifier}')} {says}" for modifier, says in describe_words(mnemonic).modifiers),
        _describe_uses(report, row),
        _describe_latency(report, row, mnemonic),
        f"for the scheduler: {control}" if control else "",
        *_describe_scoreboards(document, row),
    ]
    return "\n".join(f"- {line}" for line in lines if line)


def _find_mnemonic(text: str) -> str:
    _, start, end = find_mnemonic(text)
    return text[start:end]


def name_resources(numbers: Iterable[int]) -> str:
    """Registers with stretches joined.

    >>> name_resources([2, 4, 5, 6, 512, 260, 261])
    'R2, R4–R6, P0, UR4–UR5'
    """
    stretches: list[tuple[int, int]] = []
    for number in numbers:
        if stretches and number == stretches[-1][1] + 1:
            stretches[-1] = (stretches[-1][0], number)
        else:
            stretches.append((number, number))
    names = (
        name_resource(first) if first == last else f"{name_resource(first)}–{name_resource(last)}"
        for first, last in stretches
    )
    return ", ".join(names)


def _describe_uses(report: KernelReport, row: int) -> str:
    """``reads R2, R4–R5 · writes R0 · under P0``; what only the encoding names is there too."""
    code = report.code
    if code is None or code.mnemonic_index[row] < 0:
        return ""
    guard = int(code.guard[row])
    reads = [number for number in code.reads.of(row) if number != guard]
    parts = []
    if reads:
        parts.append(f"reads {name_resources(reads)}")
    if writes := code.writes.of(row):
        parts.append(f"writes {name_resources(writes)}")
    if guard >= 0:
        parts.append(f"if {name_resource(guard)} is {'false' if code.guard_negated[row] else 'true'}")
    return " · ".join(parts)


def _describe_latency(report: KernelReport, row: int, mnemonic: str) -> str:
    """By the tables of the architecture; empty where it has none."""
    table = find_table(report.device.compute_capability)
    writes = () if report.code is None else report.code.writes.of(row)
    return "" if table is None else describe_latency(table, mnemonic, writes)


def _describe_scoreboards(document: SassDocument, row: int) -> list[str]:
    report = document.shown.kernel.report
    if not report.instructions.has_control[row]:
        return []
    lines = []
    for scoreboard in list_awaited(report, row):
        setters = find_setters(report, row, scoreboard)
        if setters.rows:
            lines.append(f"waits for SB{scoreboard}: set by {_name_partners(document, setters)}")
    for scoreboard in list_set(report, row):
        waiters = find_waiters(report, row, scoreboard)
        what = "result" if report.instructions.write_barrier[row] == scoreboard else "operands"
        if not waiters.rows:
            lines.append(f"SB{scoreboard} (its {what}): no instruction depends on it")
            continue
        line = f"SB{scoreboard} (its {what}): awaited by {_name_partners(document, waiters)}"
        others = [one for one in find_setters(report, waiters.rows[0], scoreboard).rows if one != row]
        if others:
            line += f", together with {_list_names(others, lambda one: name_instruction(document, one))}"
        lines.append(line)
    return lines


def _name_partners(document: SassDocument, found: FoundPartners) -> str:
    names = _list_names(found.rows, lambda row: name_instruction(document, row))
    return names if found.is_complete else f"{names} and perhaps others"


def _list_names(rows: Sequence[int], name: Callable[[int], str]) -> str:
    named = ", ".join(mark_code(name(row)) for row in rows[:_MOST_NAMED])
    return f"{named} and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else named
