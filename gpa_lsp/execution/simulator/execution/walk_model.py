"""Structures of the walk, which :mod:`lowering` and :mod:`compiled_steps` fill and :mod:`walk_steps` executes."""

from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpa_lsp.foundation.machine_code.types import Array, Pointer, Struct, s32, s64, u8, u32, u64

MOST_LANE_SECTORS = 4  # of an access
VOTES = ("EQ", "ANY", "ALL")  # What a vote asks
MEMORIES = 16  # those of :class:`~.memory_spaces.MemorySpace`, then banks of constants


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

    sources: Array[SourceRow, Literal[4]]  # of accesses, terms of the address come first
    offset: s64  # of an address; what values make of it
    target_offset: s64  # of the address that is copied to
    code: s32
    flags: s32
    source_count: s32
    predicate_count: s32
    out_count: s32
    predicates: Array[s32, Literal[4]]
    outs: Array[s32, Literal[2]]  # -1 for one that goes nowhere
    target_file: s32
    target: s32  # -1 for none; of stores, the registers that are stored
    address_sources: s32  # terms of the address
    copied_sources: s32  # behind them, terms of the address that is copied to
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
    barriers: Pointer[u32]  # of convergence, [number][warp][lane]
    specials: Pointer[u32]  # registers, [number][warp][lane]
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
    are_barriers_left: s64  # some lane is waited for no longer
    memories: Array[CoreBytes, Literal[16]]
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
    targets: Pointer[s64]  # of copies, places that are written
    spaces: Pointer[u8]  # of each chosen warp, where its access goes
    faults: Pointer[u8]  # of each chosen warp, why it cannot go on; 0 where it can
    stop: s64  # why not all steps were done
    unmarked: s64  # the memory whose marks are missing


STEP = np.dtype(StepRow.c_type)
MOST_SOURCES, MOST_PREDICATES, MOST_OUTS = (StepRow.fields[name][2] for name in ("sources", "predicates", "outs"))


class Code(IntEnum):
    """Operations of a step, with sources a, b and c."""

    REFUSED = 0
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
    SHUFFLE = 18  # a of the lane that b says, within the bounds of c
    VOTE = 19
    MATCH = 20  # of all lanes where the table says so
    REDUCE = 21
    FROM_FIRST = 22  # a of the first lane that executes
    LEAVE_BARRIER = 23  # the one of the table
    LOAD = 24
    STORE = 25
    ATOMIC = 26  # what the table says; below 0 for what is not known
    COPY = 27  # from global to shared memory
    LOAD_MATRIX = 28  # of rows whose addresses so many lanes hold as the table says
    LOAD_CONSTANT = 29


class Flag(IntFlag):
    """Variants of a step."""

    UPPER = 1  # the result's upper word is kept
    HIGH = 2  # the upper word of what was shifted is added
    SIGNED = 4
    LEFT = 8
    WRAPS = 16
    AND = 32
    ASKED = 64
    CLEARS = 128  # the convergence barrier that was read
    SUCCEEDS = 256  # an atomic operation says whether it swapped
    TRIES = 512  # an atomic operation at generic addresses says whether their memory can do it, else does nothing
    GLOBAL_ONLY = 1024  # shared memory cannot


class File(IntEnum):
    """Kinds of sources and targets."""

    CONSTANT = 0
    REGISTER = 1
    UNIFORM = 2
    SPECIAL = 3
    BARRIER = 4
    EXECUTING = 5  # the lanes that execute the step, as bits


class Extension(IntEnum):
    """Extension of a source to 64 bits."""

    NONE = 0
    ZERO = 1
    SIGN = 2


class PredicateBit(IntFlag):
    """Bits that are added to the number of a predicate."""

    UNIFORM = 8
    NEGATED = 16


class Join(IntEnum):
    """Operator that joins a comparison with a predicate."""

    AND = 0
    OR = 1
    XOR = 2


class Reduction(IntEnum):
    """Reductions of the lanes' values."""

    SUM = 0
    AND = 1
    OR = 2
    XOR = 3
    MIN = 4
    MAX = 5
    MIN_SIGNED = 6
    MAX_SIGNED = 7


class Stop(IntEnum):
    """Reason why not all steps were done."""

    DONE = 0
    ROOM = 1  # what was noted is to be taken
    MARKS = 2  # a memory has no marks of what is not known
    FAULT = 3


class Fault(IntEnum):
    """Reason why a warp cannot execute a step."""

    GUARD = 1
    ADDRESS = 2
    OUTSIDE = 3
    MISALIGNED = 4
    SEVERAL = 5
    REFUSED = 6


WHOLE = (1 << 64) - 1  # Bits of a source


def tabulate(rows: Sequence[dict[str, Any]]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int32]]:
    """Rows as machine code reads them, and the numbers of the resources that they name."""
    table = np.zeros(max(len(rows), 1), STEP)
    for name in ("guard", "guard_resource", "target"):
        table[name] = -1
    table["words"] = 1
    table["sources"]["mask"], table["sources"]["scale"] = WHOLE, 1
    resources: list[int] = []
    for entry, row in zip(table, rows, strict=False):
        for name, given in row.items():
            if name in ("read", "write", "address"):
                entry[f"first_{name}"], entry[f"{name}_count"] = len(resources), len(given)
                resources.extend(given)
            elif name == "sources":
                for number, source in enumerate(given):
                    for part, value in source.items():
                        entry[name][number][part] = value
            elif name in ("predicates", "outs", "tables"):
                entry[name][: len(given)] = given
            else:
                entry[name] = given
        for name in ("source", "predicate", "out"):
            entry[f"{name}_count"] = len(row.get(f"{name}s", ()))
    return table, np.array([*resources, 0], dtype=np.int32)
