"""Structures of the core, which Python fills and :mod:`schedule`, :mod:`memory` and :mod:`lane_operations` read."""

from enum import IntEnum
from typing import Literal

import numpy as np

from gpa_lsp.foundation.machine_code.types import Array, Pointer, Struct, f64, s32, s64, u8, u32, u64

LANES = 32


class Operation(Struct):
    """One operation. An operand is the place of its 32 values in the frame of a warp or, complemented, among the constants."""

    code: s32  # number of a lane operation, or one of those below
    instruction: s32  # static number
    guard: s32  # place of the predicate; -1 without one
    is_negated: s32  # the guard holds where it is false
    counts: s32  # executions by its guard are counted here
    result_bytes: s32
    result: s32  # places; -1 for none
    other_result: s32
    a: s32
    b: s32
    c: s32
    exchanges: s32  # lanes read those of others
    # of atomics: which, or FUNCTIONS and the number of a lane operation of the old value and the operand; of notes: the lanes that ask
    combination: s32
    literal: s64  # of accesses, the offset; else as the operation defines it
    space: s32  # of accesses, from here on
    other_space: s32  # of bulk copies, where they write
    elements: s32
    element_bytes: s32
    address_bytes: s32
    is_strong: s32
    kind: s32
    is_float: s32
    is_signed: s32
    region: s32  # the one its lanes went to last
    is_known: s32  # reads of uninitialized words were reported
    places: Array[s32, Literal[16]]  # of values, then where atomic operations put what they found; -1 for none
    register_bytes: s32
    is_hidden: s32  # it leaves no rows in traces
    shown_as: s32  # the space that traces name; 0 for the one that lanes went to


class SegmentRow(Struct):
    """A run of operations, and how it ends."""

    first: s64  # operations, last excluded
    last: s64
    size: s64  # instructions
    end: s32
    predicate: s32  # of branches and guarded exits
    is_negated: s32
    instruction: s32
    taken: s32
    fallen: s32
    is_polling: s32
    enters_block: s32  # number of the block; -1 for none
    counts: s32
    base: s64  # where the registers of its call begin in the frames
    local_base: s64  # and the memory of its own in the local memory of threads
    numbers: s64  # of its instructions in traces: what :attr:`CoreMachine.reached` has from there on; -1 for their own


class Rows(Struct):
    """Rows of a trace, in memory of the core."""

    count: s64
    room: s64
    columns: Array[Pointer[u8], Literal[7]]  # WARP, INSTRUCTION, …
    addresses: Pointer[u64]
    address_count: s64
    address_room: s64


class Surface(Struct):
    """A texture or surface, by its handle."""

    handle: u64
    base: u64  # address of its texels
    extents: Array[s64, Literal[3]]  # bytes of a row, rows and layers
    shape: Array[s64, Literal[3]]  # texels along x, y and z; 0 beyond its dimensions
    strides: Array[s64, Literal[3]]  # bytes from one to the next, along x, y and z
    limit: f64  # what an integer is divided by; 0 where it stays
    element: s32  # what a channel is; this and the mode of addresses as in :mod:`textures`
    mode: s32
    channels: s32
    channel_bytes: s32
    dimensions: s32
    is_filtered: s32  # reads by floating-point coordinates are
    is_normalized: s32  # coordinates run from 0 to 1


class CoreMachine(Struct):
    """State of the core: a batch with its code, memory, trace and checks."""

    functions: Pointer[u64]  # of lane operations, by code
    operations: Pointer[Operation]
    segments: Pointer[SegmentRow]
    segment_count: s64
    order: Pointer[s32]  # of segments: those first that are run first
    reached: Pointer[s32]  # numbers of instructions as calls reach them
    constants: Pointer[u8]
    frames: Pointer[u8]
    frame_bytes: s64
    warps: s64
    blocks: s64
    threads: s64
    cluster_blocks: s64  # blocks of a cluster, which stand side by side in the order of their ranks
    slots: Pointer[s32]  # of warps: their block in the batch, and which one of it they are
    ranks: Pointer[s32]
    exists: Pointer[u32]
    live: Pointer[u32]
    live_lanes: Pointer[u8]
    live_count: s64
    # the schedule
    waiting: Pointer[u32]  # [segment][warp]
    arrivals: Pointer[s64]  # of waiting segments, by when they began to wait; 0 for none
    arrived: s64
    current: Pointer[u32]
    segment: s64
    base: s64  # of the segment at work, as its row has it
    operation: s64
    phase: s64
    polled: s64
    patience: s64
    least_patience: s64
    has_parked: s64
    has_arrivals: s64
    clock: s64
    clock_reads: s64
    clock_began: s64  # what it was at the first read
    executed: s64
    most_executed: s64
    quantum: s64
    warp_executions: Pointer[s64]
    lane_executions: Pointer[s64]
    guarded: Pointer[s64]
    # memory
    arena: Pointer[u8]
    arena_base: u64
    region_bases: Pointer[u64]
    region_bytes: Pointer[s64]
    region_spaces: Pointer[u8]
    region_count: s64
    surfaces: Pointer[Surface]
    surface_count: s64
    shared: Pointer[u8]
    shared_stride: s64
    shared_bytes: s64
    local: Pointer[u8]
    local_stride: s64
    word_marks: Pointer[
        u8
    ]  # words of 4 and chunks of 512 bytes of the arena that were accessed; null if they are not marked
    chunk_marks: Pointer[u8]
    addresses: Pointer[u64]  # scratch, by lane
    masks: Pointer[u32]  # scratch, by warp
    wrong: Pointer[u32]  # of the access at work: lanes that may not access what they want, and those that are done with
    done: Pointer[u32]
    before: Pointer[u64]  # scratch, LONGEST_VECTOR by lane
    # the trace
    traces_accesses: s64
    traces_branches: s64
    traces_entries: s64
    left_out_spaces: s64
    held_bytes: s64
    metered_bytes: s64
    limit_bytes: s64
    is_cut_off: s64
    most_executions: s64
    is_cut: s64
    executions: Pointer[u32]  # [number][warp]
    rows: Array[Rows, Literal[3]]  # ACCESSES, BRANCHES, ENTRIES
    # checks of shared memory
    checks: s64
    unit_shift: s64
    writes: Pointer[s64]
    reads: Pointer[s64]
    others: Pointer[s64]
    losers: Pointer[s64]
    is_written: Pointer[u8]
    units: s64
    unwritten: s64
    time: s64
    block_since: Pointer[s64]
    warp_since: Pointer[s64]
    cluster_since: Pointer[s64]  # by block
    # by block, of accesses by other blocks: the first one if no barrier of the cluster was before it, and the last one
    first_remote: Pointer[s64]
    last_remote: Pointer[s64]
    warps_met: s64
    oldest: s64
    in_step: s64
    has_writes: s64
    has_reads: s64
    has_losers: s64
    # pieces: functions by the operation they begin with, and where they end
    pieces: Pointer[u64]
    piece_ends: Pointer[s64]
    held: Pointer[u32]  # all lanes of the segment, while a piece is done operation by operation for some warps
    is_held: s64
    held_piece: s64  # then: the piece, and the warp that it goes on with
    held_warp: s64
    refusals: s64  # warps that pieces left to single operations
    # batches that follow in the same memory, each of as many blocks
    numbers: Pointer[u32]  # of blocks in the grid
    batch: s64  # the one at work, and the last one
    last_batch: s64
    most_patience: s64
    first_segment: s64
    zeroed_first: s64  # of each frame
    zeroed_bytes: s64
    block_places: Array[s64, Literal[3]]  # of the block's index in the grid; -1 for none
    grid: Array[s64, Literal[2]]  # its first two extents


OPERATION = np.dtype(Operation.c_type)
SURFACE = np.dtype(Surface.c_type)
SEGMENT = np.dtype(SegmentRow.c_type)


class End(IntEnum):
    """The end of a segment."""

    PYTHON = 0
    JUMP = 1
    BRANCH = 2
    EXIT = 3
    GUARDED_EXIT = 4
    BARRIER = 5
    GATE = 6
    PARTING = 7  # as a branch, which no trace notes: calls and returns under a guard


class Stop(IntEnum):
    """Reason why the core stopped."""

    IDLE = 0
    STEP = 1
    END = 2
    TIME = 3
    BUDGET = 4
    METER = 5
    MEMORY = 6
    POLLED = 7


class Phase(IntEnum):
    """Point at which the core resumes."""

    NOBODY = 0
    OPERATIONS = 1
    END = 2
    ENTRY = 3
    ASKED = 4


MOST_FUNCTIONS = 1 << 16  # Lower codes are numbers of lane operations; those of what is not done lane by lane follow
LOAD, STORE, ATOMIC, NOT_ZERO, NOTE, TEXTURE, BULK = range(MOST_FUNCTIONS, MOST_FUNCTIONS + 7)
ACCESS_CODES = (LOAD, STORE, ATOMIC)
ACCESSES, BRANCHES, ENTRIES = range(3)  # Kinds of rows
# Their columns; of branches OTHER has the lanes that jumped
COLUMNS = 7
WARP, INSTRUCTION, EXECUTION, MASK, OTHER, BYTES, SPACE = range(COLUMNS)
WIDE_COLUMNS = 5  # The first ones are of 32 bits, the others of 8
FUNCTIONS = 1 << 8  # Combinations from here on are lane operations of the old value and the operand
FAILED = -1  # Result of a function that could not do its work
