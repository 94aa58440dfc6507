"""What compiled steps work on: the structures that :mod:`lowering` and :mod:`compiled_steps` fill and :mod:`walk_steps` executes."""

from enum import IntEnum, IntFlag
from typing import Literal

import numpy as np

from gpa_lsp.foundation.machine_code.types import Array, Pointer, Struct, s32, s64, u8, u32, u64

MOST_LANE_SECTORS = 4  # of an access


class SourceRow(Struct):
    """A value of each lane: ``((value >> shift & mask) * scale ^ flip) + added``, of which 32 bits count where it is extended from them."""

    value: u64  # of a constant
    mask: u64
    scale: u64
    flip: u64
    added: u64
    shift: s32
    file: s32
    number: s32  # register
    is_pair: s32  # with the register that follows, the upper word
    extension: s32


class StepRow(Struct):
    """An instruction. Predicates are numbers with bits of :class:`PredicateBit`."""

    sources: Array[SourceRow, Literal[3]]
    offset: s64  # of an address; what values make of it
    code: s32
    flags: s32
    source_count: s32
    predicate_count: s32
    out_count: s32
    predicates: Array[s32, Literal[4]]
    outs: Array[s32, Literal[2]]  # -1 for one that goes nowhere
    target_file: s32
    target: s32  # -1 for none; of stores, the registers that are stored
    tables: Array[s32, Literal[2]]  # what the code makes of them
    join: s32
    guard: s32  # -1 without one
    guard_resource: s32
    first_read: s32  # among the resources
    read_count: s32
    first_write: s32
    write_count: s32
    first_address: s32
    address_count: s32
    space: s32
    width: s32
    words: s32  # of the target
    sign_bytes: s32


class CoreBytes(Struct):
    """A memory."""

    data: Pointer[u8]
    unknown: Pointer[u8]  # by word; none while all is known
    size: s64


class CoreWalk(Struct):
    """The warps, their memories, and room for what they do."""

    registers: Pointer[u32]  # [number][warp][lane]
    uniform: Pointer[u32]  # [number][warp]
    predicates: Pointer[u8]
    uniform_predicates: Pointer[u8]
    unknown: Pointer[u32]  # [resource][warp]
    tainted: Pointer[u8]
    lengths: Pointer[s64]
    shared_starts: Pointer[s64]
    resources: Pointer[s32]
    warps: s64
    has_unknown: s64
    keeps_walks: s64
    global_base: s64
    shared_bytes: s64
    local_bytes: s64
    local_sector: s64  # number of the first one
    memories: Array[CoreBytes, Literal[3]]  # by MemorySpace
    access_warp: Pointer[s64]
    access_place: Pointer[s64]
    access_passes: Pointer[s64]
    access_sectors: Pointer[s64]
    access_count: s64
    access_room: s64
    sectors: Pointer[s64]
    sector_count: s64
    sector_room: s64
    guard_warp: Pointer[s64]
    guard_place: Pointer[s64]
    guard_bits: Pointer[s64]
    guard_count: s64
    guard_room: s64
    # who executes: some warps, and the lanes of each
    chosen: Pointer[s64]
    count: s64
    whole: Pointer[u32]
    offset: s64  # of the step at work, in its segment
    bits: Pointer[u32]  # lanes that execute it
    unknown_bits: Pointer[u32]  # lanes in which what it writes is not known
    functions: Pointer[u64]  # of values, by number
    results: Pointer[u64]  # [chosen][lane]; of accesses, addresses
    places: Pointer[s64]


STEP = np.dtype(StepRow.c_type)
MOST_SOURCES, MOST_PREDICATES, MOST_OUTS = (StepRow.fields[name][2] for name in ("sources", "predicates", "outs"))


class Code(IntEnum):
    """What a step does. Of sources a, b and c; results that nobody knows come before what is known."""

    PYTHON = 0
    SKIP = 1
    OPAQUE = 2
    ADD = 3  # a + b + c
    MULTIPLY = 4  # 32 bits of a b, + c
    MULTIPLY_WIDE = 5  # a b + c
    LOAD_ADDRESS = 6  # a (the upper word b) shifted left, + c
    LOGIC = 7
    PREDICATE_LOGIC = 8
    COMPARE = 9  # less, equal, more: bits of the table
    SHIFT = 10  # a, with the upper word c, by b
    SELECT = 11
    EXTREME = 12
    PERMUTE = 13  # the bytes of a and c that b says
    VALUE = 14  # that one of :mod:`lane_values` has, by the number in the table; its other predicate says that it is all ones
    TRUTH = 15  # its two lowest bits, joined with the first predicate
    FROM_PREDICATES = 16  # those of the offset's mask, in place of the bits of the table's
    TO_PREDICATES = 17  # the bits of the offset's mask
    LOAD = 18
    STORE = 19


class Flag(IntFlag):
    """How a step does it."""

    UPPER = 1  # the result's upper word is kept
    HIGH = 2  # the upper word of what was shifted is added
    SIGNED = 4
    LEFT = 8
    WRAPS = 16
    AND = 32
    ASKED = 64


class File(IntEnum):
    """What a source or a target is."""

    CONSTANT = 0
    REGISTER = 1
    UNIFORM = 2


class Extension(IntEnum):
    """How 64 bits become of a source."""

    NONE = 0
    ZERO = 1
    SIGN = 2


class PredicateBit(IntFlag):
    """Beside the number of a predicate."""

    UNIFORM = 8
    NEGATED = 16


class Join(IntEnum):
    """Of what is compared and a predicate."""

    AND = 0
    OR = 1
    XOR = 2
