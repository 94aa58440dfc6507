"""From a SASS mnemonic to its latency class and its group of producers, by the longest entry the mnemonic begins with."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct

from gpa_lsp.gpu.arch.figures import Figure
from gpa_lsp.gpu.arch.hazards import LatencyClass

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
    """What the opcodes are, on every architecture alike."""

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
