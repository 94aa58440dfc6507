"""The figures of an architecture: :class:`Architecture`, every number in it a :class:`~gpa_lsp.gpu.arch.sections.Figure`."""

from collections.abc import Mapping

from msgspec import Struct

from gpa_lsp.gpu.arch.hazards import (
    CycleBounds,
    HazardMatrix,
    LatencyClass,
    OpcodeClasses,
    ProducerGroup,
    name_predicate_reader,
    name_predicate_writer,
    name_register_reader,
    name_register_writer,
    name_uniform_predicate_reader,
    name_uniform_reader,
)
from gpa_lsp.gpu.arch.sections import (
    Caches,
    Figure,
    IssueCosts,
    MemoryHierarchy,
    OccupancyRules,
    Producer,
    ScoreboardKind,
    Simulation,
    Stalls,
    StreamingMultiprocessor,
    Throughput,
    Unknown,
)


class Architecture(Struct, frozen=True, kw_only=True):
    """One compute capability.

    Numbers are read as ``architecture.occupancy.max_warps_per_sm.value``.
    """

    name: str  # of the table, e.g. ``sm_80``.
    compute_capability: tuple[int, int]  # (major, minor) that was asked for
    # (major, minor) the table was written for; differs from ``compute_capability`` where the vendor makes the same SM under several numbers. Figures
    # known to differ between them are then Unknown.
    table_of: tuple[int, int]
    family: str  # the vendor's name, e.g. ``Ampere``.
    examples: tuple[str, ...]  # products
    sm: StreamingMultiprocessor  # structure of the SM
    occupancy: OccupancyRules  # what limits residency
    caches: Caches  # sizes and rates
    hierarchy: MemoryHierarchy  # unloaded latencies by level
    throughput: Throughput  # rates at best
    register_latency: HazardMatrix  # fixed-latency hazards of registers
    predicate_latency: HazardMatrix  # of predicates
    uniform_latency: HazardMatrix  # of uniform registers
    uniform_predicate_latency: HazardMatrix  # of uniform predicates
    # whether an instruction of a class sets a scoreboard for its result
    scoreboard: Mapping[LatencyClass, Figure[bool] | Unknown]
    issue: IssueCosts  # costs of issue
    producers: Mapping[ProducerGroup, Producer]  # instructions of variable latency
    stalls: Stalls  # what a profiler reports
    simulation: Simulation  # what the simulator of an SM needs beside the rest
    opcodes: OpcodeClasses  # which class and group an opcode is in
    sources: Mapping[str, str]  # key → full citation

    def __hash__(self) -> int:
        """Hash of the name and the compute capability alone: hashing all figures would cost more than the caches keyed by it save."""
        return hash((self.name, self.compute_capability))

    def find_producer(self, mnemonic: str) -> Producer | None:
        """The known facts of an instruction of variable latency; None when its latency is fixed, or the opcode is not known."""
        group = self.opcodes.find_producer(mnemonic)
        return None if group is None else self.producers[group]

    def find_scoreboard(self, mnemonic: str) -> ScoreboardKind | None:
        """The stall reason under which a wait for this instruction's scoreboard counts; None when that is not known.

        An instruction of fixed latency has no scoreboard to wait for.
        """
        producer = self.find_producer(mnemonic)
        if producer is not None:
            return producer.scoreboard.value
        latency_class = self.opcodes.find_latency_class(mnemonic)
        if latency_class is None or self.scoreboard[latency_class].value is not False:
            return None
        return ScoreboardKind.NONE

    def find_register_latency(
        self,
        writer: str,
        reader: str,
        *,
        result_register: int = 0,
        source_operand: int = 0,
        source_register: int = 0,
    ) -> CycleBounds | None:
        """Cycles from the issue of ``writer`` to the earliest issue of ``reader`` of one of its registers.

        Args:
            writer: mnemonic, e.g. ``IMAD.WIDE.U32``.
            reader: mnemonic.
            result_register: which register of the writer's result, 0-based.
            source_operand: which source operand of the reader, 0-based.
            source_register: which register of that operand, 0-based.

        Returns:
            None for an opcode that is not known, or a pair the table has no number for.
        """
        writer_class, reader_class = self.opcodes.find_latency_class(writer), self.opcodes.find_latency_class(reader)
        if writer_class is None or reader_class is None:
            return None
        return self.register_latency.find_bounds(
            name_register_writer(writer_class, result_register),
            name_register_reader(reader_class, source_operand, source_register),
        )

    def find_predicate_latency(self, writer: str, reader: str, *, is_guard: bool) -> CycleBounds | None:
        """The same for a predicate; ``is_guard`` where it is the one before the reader (``@P0``)."""
        writer_class, reader_class = self.opcodes.find_latency_class(writer), self.opcodes.find_latency_class(reader)
        if writer_class is None or (reader_class is None and not is_guard):
            return None
        column = name_predicate_reader(reader_class or LatencyClass.ALU, is_guard=is_guard)
        return self.predicate_latency.find_bounds(name_predicate_writer(writer_class), column)

    def find_uniform_latency(self, writer: str, reader: str, *, is_bindless: bool = False) -> CycleBounds | None:
        """The same for a uniform register; ``is_bindless`` where it is the address of a constant bank."""
        writer_class, reader_class = self.opcodes.find_latency_class(writer), self.opcodes.find_latency_class(reader)
        if writer_class is None or reader_class is None:
            return None
        return self.uniform_latency.find_bounds(
            writer_class.value, name_uniform_reader(reader_class, is_bindless=is_bindless)
        )

    def find_uniform_predicate_latency(self, writer: str, reader: str, *, is_guard: bool) -> CycleBounds | None:
        """The same for a uniform predicate; ``is_guard`` where it is the one before the reader (``@UP0``)."""
        writer_class, reader_class = self.opcodes.find_latency_class(writer), self.opcodes.find_latency_class(reader)
        if writer_class is None or (reader_class is None and not is_guard):
            return None
        column = name_uniform_predicate_reader(reader_class or LatencyClass.ALU, is_guard=is_guard)
        return self.uniform_predicate_latency.find_bounds(writer_class.value, column)
