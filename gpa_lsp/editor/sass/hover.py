"""The hover of an instruction, in at most twelve lines: the operand under the cursor, the instruction, its share and what causes it, its source; and
the page about it, which has the tables behind it.

It needs numpy, which the answer to initialize must not wait for: it is imported when somebody asks.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence

from lsprotocol.types import Hover, MarkupContent, MarkupKind, Position

from gpa_lsp.code.binary.model import ResourceKind, name_resource
from gpa_lsp.code.binary.opcodes import describe_special_register, describe_words
from gpa_lsp.document.blocks import Block, Item, Items, Paragraph, make_line
from gpa_lsp.document.control_words import describe_control_of
from gpa_lsp.document.layout import Line, Style
from gpa_lsp.document.markdown import mark_code, write_markdown
from gpa_lsp.editor.kernel_page import link_hover, write_hover
from gpa_lsp.editor.line_words import describe_pair, make_reasons_table, read_text
from gpa_lsp.editor.lines.places import name_file
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.jumps import point_at, span_instruction
from gpa_lsp.editor.sass.library import SassDocument, SassView
from gpa_lsp.editor.sass.operand_spans import OperandValue, SpanKind, find_mnemonic, find_target
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.numbers import format_count, format_number, format_share
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.gpu.arch.hazards import CycleBounds, ProducerGroup
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure, MemoryHierarchy, ScoreboardKind, Unknown
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.code_queries import (
    FoundRows,
    find_defs,
    find_setters,
    find_uses,
    find_waiters,
    list_awaited,
    list_set,
)
from gpa_lsp.report.count import count_row
from gpa_lsp.report.model import KernelCode, KernelReport
from gpa_lsp.report.pairs import InstructionPair, count_unattributed, list_causes, list_own, list_victims

_MOST_PARTNERS = 3  # Causes or victims, with a row each
_MOST_NAMED_PARTNERS = 3  # Who sets or awaits a scoreboard, in one clause
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


_ARITHMETIC = ("IADD3", "FFMA")
_MEMORY = ("LDG.E",)
_UNIFORM = ("UIADD3",)  # Readers that stand for their like

_CACHED = (ProducerGroup.GLOBAL_LOAD, ProducerGroup.LOCAL_LOAD)
_FEW_INSTRUCTIONS_PER_CYCLE = 1.0


def find_table(compute_capability: tuple[int, int] | None) -> Architecture | None:
    """The tables of an architecture; None when it is not known or has none."""
    if compute_capability is None:
        return None
    try:
        return find_architecture(compute_capability)
    except GpaError:
        return None


def describe_latency(architecture: Architecture, mnemonic: str, writes: Sequence[int]) -> str:
    """Describe when the result of an instruction can be used, and how often its unit takes one; empty where the tables say nothing.

    >>> describe_latency(find_architecture((8, 0)), "FFMA", (4,))
    'result after 4–5 cycles for arithmetic, 5 for memory instructions; the unit takes one every 2 cycles'
    >>> describe_latency(find_architecture((8, 0)), "ISETP.GE.AND", (512,))
    'predicate after 4–5 cycles for arithmetic, 13 for a guard; the unit takes one every 2 cycles'
    """
    parts = []
    if _is_behind_scoreboard(architecture, mnemonic):
        parts.append(_describe_variable(architecture, mnemonic) if writes else "")
    else:
        parts += [words for kind in _list_kinds(writes) if (words := _describe_fixed(architecture, mnemonic, kind))]
    parts.append(_describe_rate(architecture, mnemonic))
    return "; ".join(part for part in parts if part)


def _is_behind_scoreboard(architecture: Architecture, mnemonic: str) -> bool:
    kind = architecture.find_scoreboard(mnemonic)
    if kind is None:
        return architecture.find_producer(mnemonic) is not None
    return kind is not ScoreboardKind.NONE


def _list_kinds(writes: Iterable[int]) -> tuple[ResourceKind, ...]:
    return tuple(dict.fromkeys(ResourceKind(number >> 8) for number in writes))


def _describe_variable(architecture: Architecture, mnemonic: str) -> str:
    group = architecture.opcodes.find_producer(mnemonic)
    levels = _list_levels(architecture.hierarchy, group)
    if levels:
        return f"result behind a scoreboard: {', '.join(levels)}, unloaded"
    producer = architecture.find_producer(mnemonic)
    least = None if producer is None else producer.min_cycles.value
    most = None if producer is None else producer.unloaded_max_cycles.value
    if least is None:
        return "result behind a scoreboard"
    words = f"result behind a scoreboard: {_format_cycles(least)} cycles at best"
    return words if most is None else f"{words}, {_format_cycles(most)} unloaded"


def _list_levels(hierarchy: MemoryHierarchy, group: ProducerGroup | None) -> list[str]:
    """Latencies of a memory access, by the level that answers."""
    levels: list[tuple[str, Figure[float] | Unknown]] = []
    if group in _CACHED:
        levels.append(("L1", hierarchy.l1_hit_cycles))
    if group in (*_CACHED, ProducerGroup.GLOBAL_ATOMIC):
        levels += [("L2", hierarchy.l2_near_cycles), ("DRAM", hierarchy.dram_tlb_warm_cycles)]
    if group is ProducerGroup.SHARED_LOAD:
        levels.append(("shared memory", hierarchy.shared_cycles))
    if group is ProducerGroup.TEXTURE:
        levels += [("its cache", hierarchy.texture_hit_cycles), ("beyond", hierarchy.texture_miss_cycles)]
    known = [(name, figure.value) for name, figure in levels if figure.value is not None]
    return [
        f"{_format_cycles(cycles)}{' cycles' if place == 0 else ''} from {name}"
        for place, (name, cycles) in enumerate(known)
    ]


def _describe_fixed(architecture: Architecture, mnemonic: str, kind: ResourceKind) -> str:
    if kind is ResourceKind.REGISTER:
        return _join(
            "result",
            arithmetic=[_find_register(architecture, mnemonic, reader) for reader in _ARITHMETIC],
            memory=[_find_register(architecture, mnemonic, reader) for reader in _MEMORY],
        )
    if kind is ResourceKind.PREDICATE:
        return _join(
            "predicate",
            arithmetic=[architecture.find_predicate_latency(mnemonic, one, is_guard=False) for one in _ARITHMETIC],
            guard=[architecture.find_predicate_latency(mnemonic, _ARITHMETIC[0], is_guard=True)],
        )
    if kind is ResourceKind.UNIFORM_REGISTER:
        return _join(
            "uniform result",
            uniform=[architecture.find_uniform_latency(mnemonic, one) for one in _UNIFORM],
            arithmetic=[architecture.find_uniform_latency(mnemonic, one) for one in _ARITHMETIC],
            memory=[architecture.find_uniform_latency(mnemonic, one) for one in _MEMORY],
        )
    return ""


def _find_register(architecture: Architecture, mnemonic: str, reader: str) -> CycleBounds | None:
    """Latency bounds over both halves of a wide result."""
    halves = (architecture.find_register_latency(mnemonic, reader, result_register=half) for half in (0, 1))
    return _merge([found for found in halves if found is not None])


def _merge(bounds: Sequence[CycleBounds]) -> CycleBounds | None:
    if not bounds:
        return None
    low, high = min(one.low_cycles for one in bounds), max(one.high_cycles for one in bounds)
    return CycleBounds(low_cycles=low, high_cycles=high)


_READERS = {
    "arithmetic": "arithmetic",
    "memory": "memory instructions",
    "guard": "a guard",
    "uniform": "uniform arithmetic",
}


def _join(what: str, **readers: Sequence[CycleBounds | None]) -> str:
    """``result after 4–5 cycles for arithmetic, 6 for memory instructions``; readers that wait alike are named together."""
    alike: dict[str, list[str]] = {}
    for name, bounds in readers.items():
        merged = _merge([one for one in bounds if one is not None])
        if merged is not None:
            alike.setdefault(_format(merged), []).append(_READERS[name])
    parts = [
        f"{cycles}{' cycles' if place == 0 else ''} for {' and '.join(alike[cycles])}"
        for place, cycles in enumerate(alike)
    ]
    return f"{what} after {', '.join(parts)}" if parts else ""


def _format(bounds: CycleBounds) -> str:
    low, high = bounds.low_cycles, bounds.high_cycles
    return str(low) if low == high else f"{low}–{high}"


def _describe_rate(architecture: Architecture, mnemonic: str) -> str:
    """Issue interval of an instruction's unit in a sub-partition; empty for one per cycle."""
    name = describe_words(mnemonic).rate
    rate = None if name is None else getattr(architecture.throughput, name).value
    if not rate or rate >= _FEW_INSTRUCTIONS_PER_CYCLE:
        return ""
    return f"the unit takes one every {_format_cycles(1 / rate)} cycles"


def _format_cycles(cycles: float) -> str:
    """Three digits, without decimals that say nothing."""
    text = format_number(cycles)
    return text.rstrip("0").rstrip(".") if "." in text else text


def describe_opcode(document: SassDocument, row: int) -> Line:
    """Opcode, kind, what it does, how that shows in a profile."""
    text = document.shown.kernel.report.instructions.texts[row]
    if not text:
        name = name_instruction(document, row)
        return (name, Style.TITLE), (": there is no disassembly of this code", Style.PLAIN)
    mnemonic = _find_mnemonic(text)
    words = describe_words(mnemonic)
    kinds = "".join(f" · {part}" for part in (words.kind, words.pipe) if part)
    sentence = words.sentence or "This version does not know this opcode; what it reads and writes is a guess."
    says = f"{sentence} {words.waits}" if words.waits else sentence
    return (mnemonic.partition(".")[0], Style.TITLE), (f"{kinds}. {says}", Style.PLAIN)


def describe_details(document: SassDocument, row: int) -> list[str]:
    """Operands, scoreboards, modifiers, latency, scheduling, a row each."""
    report = document.shown.kernel.report
    text = report.instructions.texts[row]
    if not text:
        return []
    mnemonic = _find_mnemonic(text)
    control = describe_control_of(report.instructions, row)
    lines = [
        _describe_operand_uses(report, row),
        *_describe_scoreboards(document, row),
        " · ".join(f"{mark_code(f'.{modifier}')} {says}" for modifier, says in describe_words(mnemonic).modifiers),
        _describe_latency(report, row, mnemonic),
        f"for the scheduler: {control}" if control else "",
    ]
    return [line for line in lines if line]


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


def _describe_operand_uses(report: KernelReport, row: int) -> str:
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
    """Latency by the tables of the architecture; empty where it has none."""
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
            lines.append(
                f"waits for SB{scoreboard}: set by {list_names(document, setters.rows, is_complete=setters.is_complete)}"
            )
    for scoreboard in list_set(report, row):
        waiters = find_waiters(report, row, scoreboard)
        what = "result" if report.instructions.write_barrier[row] == scoreboard else "operands"
        if not waiters.rows:
            lines.append(f"SB{scoreboard} (its {what}): no instruction depends on it")
            continue
        line = f"SB{scoreboard} (its {what}): awaited by {list_names(document, waiters.rows, is_complete=waiters.is_complete)}"
        others = [one for one in find_setters(report, waiters.rows[0], scoreboard).rows if one != row]
        if others:
            line += f", together with {list_names(document, others)}"
        lines.append(line)
    return lines


def list_names(
    document: SassDocument, rows: Sequence[int], *, most: int = _MOST_NAMED_PARTNERS, is_complete: bool = True
) -> str:
    """Instructions by their names, the first few; empty without any."""
    named = ", ".join(mark_code(name_instruction(document, row)) for row in rows[:most])
    more = len(rows) - most
    if more > 0:
        return f"{named} and {'' if is_complete else 'at least '}{more} more"
    return named if is_complete else f"{named} and perhaps others"
