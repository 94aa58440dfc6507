"""Words about an instruction itself, for its hover: meaning, operands, latency, and its partners behind scoreboards."""

from collections.abc import Iterable, Sequence

from gpa_lsp.code.binary.model import ResourceKind, name_resource
from gpa_lsp.code.binary.opcodes import describe_words
from gpa_lsp.document.control_words import describe_control_of
from gpa_lsp.document.layout import Line, Style
from gpa_lsp.document.markdown import mark_code
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.library import SassDocument
from gpa_lsp.editor.sass.operand_spans import find_mnemonic
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.numbers import format_number
from gpa_lsp.gpu.arch.hazards import CycleBounds, ProducerGroup
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure, MemoryHierarchy, ScoreboardKind, Unknown
from gpa_lsp.report.code_queries import find_setters, find_waiters, list_awaited, list_set
from gpa_lsp.report.model import KernelReport

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


_MOST_NAMED = 3


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
        _describe_uses(report, row),
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
    document: SassDocument, rows: Sequence[int], *, most: int = _MOST_NAMED, is_complete: bool = True
) -> str:
    """Instructions by their names, the first few; empty without any."""
    named = ", ".join(mark_code(name_instruction(document, row)) for row in rows[:most])
    more = len(rows) - most
    if more > 0:
        return f"{named} and {'' if is_complete else 'at least '}{more} more"
    return named if is_complete else f"{named} and perhaps others"
