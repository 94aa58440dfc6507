"""The core's structures, as ``native/sources/warps.h`` has them."""

import ctypes
from enum import IntEnum
from functools import cache

import numpy as np

from gpa_lsp.foundation.native.shared_library import Core

MOST_ELEMENTS = 4
LANES = 32

OPERATION = np.dtype(
    [
        *((name, np.int32) for name in (
            "code", "instruction", "guard", "is_negated", "counts", "result_bytes", "result", "other_result", "a", "b", "c", "combination",
        )),
        ("literal", np.int64),
        *((name, np.int32) for name in (
            "space", "elements", "element_bytes", "address_bytes", "is_strong", "kind", "is_float", "is_signed", "region", "is_known",
        )),
        ("places", np.int32, (2 * MOST_ELEMENTS,)),
        ("register_bytes", np.int32),
        ("number_of_execution", np.int32),
    ],
    align=True,
)  # fmt: skip

SEGMENT = np.dtype(
    [
        ("first", np.int64),
        ("last", np.int64),
        ("size", np.int64),
        *((name, np.int32) for name in (
            "end", "predicate", "is_negated", "instruction", "taken", "fallen", "is_polling", "enters_block", "number_of_execution", "counts",
        )),
    ],
    align=True,
)  # fmt: skip


class End(IntEnum):
    """How a segment ends."""

    PYTHON = 0
    JUMP = 1
    BRANCH = 2
    EXIT = 3
    GUARDED_EXIT = 4
    BARRIER = 5
    GATE = 6


class Stop(IntEnum):
    """Why the core stopped."""

    IDLE = 0
    STEP = 1
    END = 2
    TIME = 3
    BUDGET = 4
    METER = 5
    MEMORY = 6
    POLLED = 7


class Phase(IntEnum):
    """Where the core goes on."""

    NOBODY = 0
    OPERATIONS = 1
    END = 2
    ENTRY = 3
    ASKED = 4


PYTHON, LOAD, STORE, ATOMIC, DIVIDE = range(1000, 1005)  # Codes of what is not done lane by lane

_POINTER = ctypes.c_void_p
_INTEGER = ctypes.c_int64


class Rows(ctypes.Structure):
    """Rows of a trace, in the core's memory."""

    _fields_ = (
        ("count", _INTEGER), ("room", _INTEGER), ("warp", _POINTER), ("instruction", _POINTER), ("execution", _POINTER), ("mask", _POINTER),
        ("other", _POINTER), ("bytes", _POINTER), ("space", _POINTER), ("addresses", _POINTER), ("address_count", _INTEGER),
        ("address_room", _INTEGER),
    )  # fmt: skip


def _declare(names: str, kind: type) -> list[tuple[str, type]]:
    return [(name, kind) for name in names.split()]


class CoreMachine(ctypes.Structure):
    """Everything the core works on."""

    _fields_ = (
        *_declare("operations segments", _POINTER),
        *_declare("segment_count", _INTEGER),
        *_declare("constants frames", _POINTER),
        *_declare("frame_bytes warps blocks threads", _INTEGER),
        *_declare("slots ranks", _POINTER),
        *_declare("exists live live_lanes", _POINTER),
        *_declare("live_count", _INTEGER),
        *_declare("waiting arrivals", _POINTER),
        *_declare("arrived", _INTEGER),
        *_declare("current", _POINTER),
        *_declare("segment operation phase polled patience least_patience", _INTEGER),
        *_declare("has_parked has_arrivals clock executed most_executed quantum", _INTEGER),
        *_declare("warp_executions lane_executions guarded arena", _POINTER),
        *_declare("arena_base", ctypes.c_uint64),
        *_declare("region_bases region_bytes region_spaces", _POINTER),
        *_declare("region_count", _INTEGER),
        *_declare("shared", _POINTER),
        *_declare("shared_stride shared_bytes", _INTEGER),
        *_declare("local", _POINTER),
        *_declare("local_stride", _INTEGER),
        *_declare("word_marks chunk_marks addresses masks before", _POINTER),
        *_declare("traces_accesses traces_branches traces_entries left_out_spaces", _INTEGER),
        *_declare("held_bytes metered_bytes limit_bytes is_cut_off most_executions is_cut", _INTEGER),
        *_declare("executions", _POINTER),
        ("accesses", Rows),
        ("branches", Rows),
        ("entries", Rows),
        *_declare("checks unit_shift", _INTEGER),
        *_declare("writes reads others losers is_written", _POINTER),
        *_declare("units unwritten time", _INTEGER),
        *_declare("block_since warp_since", _POINTER),
        *_declare("warps_met oldest in_step has_writes has_reads has_losers", _INTEGER),
        *_declare("pieces piece_ends held", _POINTER),
        *_declare("is_held held_piece held_warp refusals", _INTEGER),
        *_declare("numbers", _POINTER),
        *_declare("batch last_batch most_patience first_segment zeroed_first zeroed_bytes", _INTEGER),
        ("block_places", _INTEGER * 3),
        ("grid", _INTEGER * 2),
    )


@cache
def list_codes(core: Core) -> dict[str, int]:
    """The codes of operations on lanes, by name."""
    codes: dict[str, int] = {}
    name = np.zeros(LANES, np.uint8)
    while core.has_done("name_operation", len(codes), name):
        codes[name.tobytes().rstrip(b"\0").decode()] = len(codes)
    return codes
