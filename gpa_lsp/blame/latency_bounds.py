"""Upper bounds of latencies, by what produces and what consumes."""

from collections.abc import Iterable, Iterator
from itertools import product

from gpa_lsp.arch.hazards import CycleBounds
from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.opcodes import ProducerGroup
from gpa_lsp.arch.sections import Producer, ScoreboardKind
from gpa_lsp.binary.model import ResourceKind
from gpa_lsp.binary.opcodes import describe_mnemonic

UNBOUNDED = float("inf")

_Kinds = frozenset[tuple[ResourceKind, bool]]
_BEHIND_SCOREBOARD = (ScoreboardKind.LONG, ScoreboardKind.SHORT)


class LatencyBounds:
    """How long the consumer of a result may have to wait for it, at most, with nothing else going on.

    * Fixed latencies are those of the architecture's hazard tables, for the pair of opcodes; the longest of a pair's cases.
    * Variable ones are the upper bounds of the producer table: a global access that misses the TLB, as published; an access to another
      memory that has no figure of its own takes no longer.
    * An instruction of the memory input/output unit without a figure (shuffles, conversions, special registers) is taken to be answered
      within what the unit needs for a shared load with bank conflicts, its slowest.

    Args:
        architecture: its tables; None: nothing is bounded.

    Source: GPA section IV, rule 3.
    """

    __slots__ = ("_architecture", "_known")

    def __init__(self, architecture: Architecture | None) -> None:
        self._architecture = architecture
        self._known: dict[tuple[str, str, _Kinds], float] = {}

    def find(self, writer: str, reader: str, kinds: _Kinds) -> float:
        """The bound for a pair of mnemonics, in cycles.

        Args:
            writer: mnemonic of the def.
            reader: mnemonic of the use.
            kinds: the resources that connect the two: which file, and whether it is the use's guard. Empty where only a scoreboard does.

        Returns:
            :data:`UNBOUNDED` where the tables have no number.

        >>> from gpa_lsp.arch.lookup import find_architecture
        >>> bounds = LatencyBounds(find_architecture((8, 6)))
        >>> bounds.find("IADD3", "FFMA", frozenset({(ResourceKind.REGISTER, False)}))
        5
        >>> bounds.find("ISETP.LT.AND", "BRA", frozenset({(ResourceKind.PREDICATE, True)}))
        13
        >>> bounds.find("LDG.E", "FFMA", frozenset()), bounds.find("STG.E", "FFMA", frozenset())
        (1400.0, 1400.0)
        """
        key = (writer, reader, kinds)
        bound = self._known.get(key)
        if bound is None:
            bound = self._known[key] = UNBOUNDED if self._architecture is None else self._find(self._architecture, *key)
        return bound

    def _find(self, architecture: Architecture, writer: str, reader: str, kinds: _Kinds) -> float:
        producer = architecture.find_producer(writer)
        if producer is not None and producer.scoreboard.value in _BEHIND_SCOREBOARD:
            return _bound_variable(architecture, writer, producer)
        fixed = [
            bounds.high_cycles
            for kind, is_guard in kinds
            for bounds in _list_fixed(architecture, writer, reader, kind, is_guard)
        ]
        if producer is not None and producer.unloaded_max_cycles.value is not None:
            fixed.append(int(producer.unloaded_max_cycles.value))
        return max(fixed, default=UNBOUNDED)


def _bound_variable(architecture: Architecture, writer: str, producer: Producer) -> float:
    if producer.unloaded_max_cycles.value is not None:
        return producer.unloaded_max_cycles.value
    is_short = producer.scoreboard.value is ScoreboardKind.SHORT
    group = ProducerGroup.SHARED_LOAD if is_short else ProducerGroup.GLOBAL_LOAD
    if describe_mnemonic(writer).memory is None and not is_short:
        return UNBOUNDED
    bound = architecture.producers[group].unloaded_max_cycles.value
    return UNBOUNDED if bound is None else bound


def _list_fixed(
    architecture: Architecture, writer: str, reader: str, kind: ResourceKind, is_guard: bool
) -> Iterator[CycleBounds]:
    """The bounds of all cases in which the reader can read a resource of this kind."""
    found: Iterable[CycleBounds | None]
    if kind is ResourceKind.REGISTER:
        found = (
            architecture.find_register_latency(
                writer, reader, result_register=result, source_operand=operand, source_register=register
            )
            for result, operand, register in product((0, 1), (0, 2), (0, 1))
        )
    elif kind is ResourceKind.PREDICATE:
        found = (architecture.find_predicate_latency(writer, reader, is_guard=is_guard),)
    elif kind is ResourceKind.UNIFORM_REGISTER:
        found = (architecture.find_uniform_latency(writer, reader, is_bindless=one) for one in (False, True))
    else:
        found = (architecture.find_uniform_predicate_latency(writer, reader, is_guard=is_guard),)
    return (bounds for bounds in found if bounds is not None)
