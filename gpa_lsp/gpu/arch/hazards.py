"""Hazards of fixed latency: how many cycles after a writer a reader may issue, by latency class.

From compute capability 7.0 on the hardware does not check registers: the compiler encodes the distance, and a warp waits it out as ``wait``.
A result of *variable* latency is guarded by a scoreboard instead; its rows here hold what is left to wait after that (1).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct

from gpa_lsp.gpu.arch.sections import Figure, Unknown


class LatencyClass(StrEnum):
    """Instructions that behave alike as writers and readers. The names follow the vendor's register scheduling sheets."""

    ALU = "alu"
    DUAL_ALU = "dual_alu"  # Compares, selects and moves; like ALU except on 12.0
    FMA = "fma"
    IMAD_WIDE = "imad_wide"
    DISPATCH = "dispatch"
    DISPATCH_64 = "dispatch_64"
    FP16 = "fp16"
    FP16_ALU = "fp16_alu"
    FP16_F32 = "fp16_f32"
    HFMA2_MMA = "hfma2_mma"
    FP64 = "fp64"
    CLMAD = "clmad"
    HMMA_884_F16 = "hmma_884_f16"
    HMMA_884_F32 = "hmma_884_f32"
    HMMA_1X = "hmma_1x"
    HMMA_2X = "hmma_2x"
    IMMA_8 = "imma_8"
    IMMA_1X = "imma_1x"
    IMMA_2X = "imma_2x"
    DMMA = "dmma"
    WARPGROUP_MMA = "warpgroup_mma"
    TENSOR_MEMORY_MMA = "tensor_memory_mma"
    R2P = "r2p"
    R2UR = "r2ur"
    TO_UNIFORM = "to_uniform"
    UNIFORM = "uniform"
    UNIFORM_MOVE = "uniform_move"
    UNIFORM_CONSTANT = "uniform_constant"
    VOTE_UNIFORM = "vote_uniform"
    CONTROL = "control"
    DECOUPLED = "decoupled"
    MEMORY = "memory"


class CycleBounds(Struct, frozen=True, kw_only=True):
    """A number of cycles that is known up to a range."""

    low_cycles: int  # at least this many; where the two agree it is the number itself
    high_cycles: int  # at most this many


HazardRow = tuple[tuple[int | None, ...], tuple[int | None, ...]]


class HazardMatrix(Struct, frozen=True, kw_only=True):
    """Writer class × reader class → cycles from the writer's issue to the earliest issue of the reader."""

    readers: tuple[str, ...]  # names of the columns
    # writer → the least and the most that it asks of every reader, None where the sources give no number; or why there is none
    rows: Mapping[str, Figure[HazardRow] | Unknown]

    def find_bounds(self, writer: str, reader: str) -> CycleBounds | None:
        """The distance between a writer and a reader; None when the table has no number for the pair.

        >>> from gpa_lsp.gpu.arch.sections import Status
        >>> figure = Figure(value=((4, None), (5, None)), sources=("sheet",), status=Status.DOCUMENTED)
        >>> matrix = HazardMatrix(readers=("alu", "fp64"), rows={"alu": figure})
        >>> matrix.find_bounds("alu", "alu")
        CycleBounds(low_cycles=4, high_cycles=5)
        >>> matrix.find_bounds("alu", "fp64") is None
        True
        """
        figure = self.rows.get(writer)
        if not isinstance(figure, Figure) or reader not in self.readers:
            return None
        column = self.readers.index(reader)
        low_cycles, high_cycles = (row[column] for row in figure.value)
        if low_cycles is None or high_cycles is None:
            return None
        return CycleBounds(low_cycles=low_cycles, high_cycles=high_cycles)


_VARIABLE = frozenset({LatencyClass.CONTROL, LatencyClass.DECOUPLED, LatencyClass.MEMORY, LatencyClass.WARPGROUP_MMA})
_HMMA = frozenset({LatencyClass.HMMA_884_F16, LatencyClass.HMMA_884_F32, LatencyClass.HMMA_1X, LatencyClass.HMMA_2X})
_IMMA = frozenset({LatencyClass.IMMA_8, LatencyClass.IMMA_1X, LatencyClass.IMMA_2X})
_UNIFORM = frozenset(
    {LatencyClass.UNIFORM, LatencyClass.UNIFORM_MOVE, LatencyClass.UNIFORM_CONSTANT, LatencyClass.TO_UNIFORM}
)
_AS_DECOUPLED = frozenset(
    {LatencyClass.DECOUPLED, LatencyClass.MEMORY, LatencyClass.FP64, LatencyClass.DMMA, LatencyClass.WARPGROUP_MMA}
)


def name_register_writer(latency_class: LatencyClass, result_register: int = 0) -> str:
    """The row of the register matrix a class writes by.

    Args:
        result_register: which register of its result is read, 0-based: the halves of IMAD.WIDE come at different times.

    >>> name_register_writer(LatencyClass.IMAD_WIDE, 1), name_register_writer(LatencyClass.MEMORY)
    ('imad_wide_high', 'variable')
    """
    if latency_class is LatencyClass.IMAD_WIDE:
        return "imad_wide_low" if result_register == 0 else "imad_wide_high"
    if latency_class is LatencyClass.R2P:
        return LatencyClass.ALU.value
    return "variable" if latency_class in _VARIABLE else latency_class.value


def name_register_reader(latency_class: LatencyClass, source_operand: int = 0, source_register: int = 0) -> str:
    """The column of the register matrix a class reads by.

    Args:
        source_operand: which source operand, 0-based: IMAD.WIDE reads its addend (2) later than its factors.
        source_register: which register of that operand, 0-based.

    >>> name_register_reader(LatencyClass.IMAD_WIDE, 2, 1), name_register_reader(LatencyClass.HMMA_2X)
    ('imad_wide_c_high', 'hmma')
    """
    if latency_class is LatencyClass.IMAD_WIDE:
        if source_operand < 2:
            return "imad_wide_ab"
        return "imad_wide_c_low" if source_register == 0 else "imad_wide_c_high"
    if latency_class in _HMMA:
        return "hmma"
    if latency_class in _IMMA:
        return "imma"
    if latency_class is LatencyClass.R2P:
        return LatencyClass.ALU.value
    if latency_class in {LatencyClass.TO_UNIFORM, LatencyClass.WARPGROUP_MMA, LatencyClass.TENSOR_MEMORY_MMA}:
        return LatencyClass.DECOUPLED.value
    return latency_class.value


_PREDICATE_NAMES = {
    LatencyClass.IMAD_WIDE: "fma",
    LatencyClass.FP16_ALU: "fp16",
    LatencyClass.FP16_F32: "fp16",
    LatencyClass.DISPATCH_64: "dispatch",
}


def name_predicate_writer(latency_class: LatencyClass) -> str:
    """The row of the predicate matrix a class writes by.

    >>> name_predicate_writer(LatencyClass.DUAL_ALU), name_predicate_writer(LatencyClass.MEMORY)
    ('dual_alu', 'variable')
    """
    if latency_class in _VARIABLE:
        return "variable"
    return _PREDICATE_NAMES.get(latency_class, latency_class.value)


def name_predicate_reader(latency_class: LatencyClass, *, is_guard: bool) -> str:
    """The column of the predicate matrix a class reads by; a guard is read alike by every instruction.

    >>> name_predicate_reader(LatencyClass.FMA, is_guard=True), name_predicate_reader(LatencyClass.CONTROL, is_guard=False)
    ('guard', 'decoupled')
    """
    if is_guard:
        return "guard"
    if latency_class in _VARIABLE:
        return LatencyClass.DECOUPLED.value
    if latency_class is LatencyClass.R2P:
        return LatencyClass.ALU.value
    return _PREDICATE_NAMES.get(latency_class, latency_class.value)


def name_uniform_reader(latency_class: LatencyClass, *, is_bindless: bool = False) -> str:
    """The column of the uniform register matrix a class reads by.

    Args:
        is_bindless: the register is the address of a constant bank (``cx[UR4][0x10]``).

    >>> name_uniform_reader(LatencyClass.FMA), name_uniform_reader(LatencyClass.MEMORY), name_uniform_reader(LatencyClass.UNIFORM)
    ('coupled', 'decoupled', 'uniform')
    """
    if is_bindless:
        return "bindless"
    if latency_class in _UNIFORM or latency_class is LatencyClass.CONTROL:
        return latency_class.value
    if latency_class is LatencyClass.VOTE_UNIFORM:
        return LatencyClass.UNIFORM_MOVE.value
    return "decoupled" if latency_class in _AS_DECOUPLED else "coupled"


def name_uniform_predicate_reader(latency_class: LatencyClass, *, is_guard: bool) -> str:
    """The column of the uniform predicate matrix a class reads by.

    >>> name_uniform_predicate_reader(LatencyClass.CONTROL, is_guard=False)
    'control'
    """
    if is_guard:
        return "guard"
    if latency_class in {LatencyClass.CONTROL, LatencyClass.UNIFORM}:
        return latency_class.value
    return "uniform_constant" if latency_class in {LatencyClass.UNIFORM_CONSTANT, *_HMMA, *_IMMA} else "coupled"


Kind = TypeVar("Kind")


class ProducerGroup(StrEnum):
    """Instructions of variable latency that wait for the same thing."""

    GLOBAL_LOAD = "global_load"
    LOCAL_LOAD = "local_load"
    SHARED_LOAD = "shared_load"
    MATRIX_LOAD = "matrix_load"
    CONSTANT_LOAD = "constant_load"
    UNIFORM_CONSTANT_LOAD = "uniform_constant_load"
    TEXTURE = "texture"
    SURFACE = "surface"
    GLOBAL_STORE = "global_store"
    LOCAL_STORE = "local_store"
    SHARED_STORE = "shared_store"
    GLOBAL_ATOMIC = "global_atomic"
    GLOBAL_REDUCTION = "global_reduction"
    SHARED_ATOMIC = "shared_atomic"
    ASYNC_COPY = "async_copy"
    ASYNC_COPY_FENCE = "async_copy_fence"
    SPECIAL_FUNCTION = "special_function"
    CONVERSION = "conversion"
    BIT_COUNT = "bit_count"
    DIVISION_CHECK = "division_check"
    SHUFFLE = "shuffle"
    MATCH = "match"
    WARP_REDUCTION = "warp_reduction"
    SPECIAL_REGISTER = "special_register"
    REGISTER_TO_UNIFORM = "register_to_uniform"
    FP64 = "fp64"
    TENSOR = "tensor"
    TENSOR_FP64 = "tensor_fp64"
    WARPGROUP_MMA = "warpgroup_mma"
    TENSOR_MEMORY = "tensor_memory"
    BULK_COPY = "bulk_copy"
    MBARRIER = "mbarrier"


class OpcodeClasses(Struct, frozen=True, kw_only=True):
    """The classes of the opcodes, the same on every architecture."""

    # class → its opcodes with leading modifiers, e.g. ``IMAD.WIDE``.
    latency_classes: Mapping[LatencyClass, Figure[tuple[str, ...]]]
    producers: Mapping[ProducerGroup, Figure[tuple[str, ...]]]  # group → its opcodes with leading modifiers
    sources: Mapping[str, str]  # key → citation, for the figures of both
    class_by_opcode: Mapping[str, LatencyClass]  # the first mapping turned round
    producer_by_opcode: Mapping[str, ProducerGroup]  # the second mapping turned round

    def find_latency_class(self, mnemonic: str) -> LatencyClass | None:
        """The class of an instruction; None for an opcode no entry names."""
        return find_longest_entry(self.class_by_opcode, mnemonic)

    def find_producer(self, mnemonic: str) -> ProducerGroup | None:
        """The group of an instruction; None when its latency is fixed or no entry names it."""
        return find_longest_entry(self.producer_by_opcode, mnemonic)


def find_longest_entry(entries: Mapping[str, Kind], mnemonic: str) -> Kind | None:
    """The entry that is the mnemonic, or its beginning up to a dot; the longest of several; None when there is none.

    >>> entries = {"IMAD": "fma", "IMAD.WIDE": "imad_wide"}
    >>> find_longest_entry(entries, "IMAD.WIDE.U32"), find_longest_entry(entries, "IMAD.MOV.U32")
    ('imad_wide', 'fma')
    >>> find_longest_entry(entries, "IMADX") is None
    True
    """
    name = mnemonic
    while name:
        found = entries.get(name)
        if found is not None:
            return found
        name = name.rpartition(".")[0]
    return None
