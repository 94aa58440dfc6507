"""How long an instruction takes, from the tables of the architecture, in words."""

from collections.abc import Iterable, Sequence

from gpa_lsp.arch.figures import Figure, Unknown
from gpa_lsp.arch.hazards import CycleBounds
from gpa_lsp.arch.lookup import find_architecture
from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.opcodes import ProducerGroup
from gpa_lsp.arch.sections import MemoryHierarchy, ScoreboardKind
from gpa_lsp.basis.errors import GpaError
from gpa_lsp.basis.numbers import format_number
from gpa_lsp.binary.model import ResourceKind
from gpa_lsp.binary.opcode_words import describe_words

_ARITHMETIC = ("IADD3", "FFMA")
_MEMORY = ("LDG.E",)
_UNIFORM = ("UIADD3",)
"""Readers that stand for their like."""

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
    """When the result of an instruction can be used, and how often its unit takes one; empty where the tables say nothing.

    Args:
        architecture: the tables.
        mnemonic: opcode with modifiers.
        writes: resource numbers it writes.

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
    """What a memory access takes, by the level that answers."""
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
    """Over both halves of a wide result."""
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
    """How often the unit of a sub-partition takes such an instruction, where that is less than every cycle."""
    name = describe_words(mnemonic).rate
    rate = None if name is None else getattr(architecture.throughput, name).value
    if not rate or rate >= _FEW_INSTRUCTIONS_PER_CYCLE:
        return ""
    return f"the unit takes one every {_format_cycles(1 / rate)} cycles"


def _format_cycles(cycles: float) -> str:
    """Three digits, without decimals that say nothing."""
    text = format_number(cycles)
    return text.rstrip("0").rstrip(".") if "." in text else text
