"""The trace of an emulation beside that which instrumented PTX writes of itself in another one."""

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.emulate import emulate, find_kernel
from gpa_lsp.execution.emulator.engine.launching import HEAP_NAME
from gpa_lsp.execution.emulator.model import (
    ACCESS_DTYPES,
    BRANCH_DTYPES,
    ENTRY_DTYPES,
    Budget,
    Emulation,
    Trace,
    TraceSettings,
    join_pieces,
)
from gpa_lsp.execution.instrumentation.code import HEAD_WORDS, PLACES, ROWS, STATE, VARIABLES, StateWord
from gpa_lsp.execution.instrumentation.decode import TracedLaunch, Written, decode_records
from gpa_lsp.execution.instrumentation.instrument import OwnBuffers, instrument
from gpa_lsp.execution.launches.launch import LaunchDescription


def emulate_traced(module: PtxModule, launch: LaunchDescription, budget: Budget) -> Emulation:
    """Trace of the emulator, without textures."""
    settings = TraceSettings(entries=True, spaces_left_out=frozenset({int(Space.TEXTURE)}))
    return emulate(module, launch, budget=budget, trace=settings, check_races=False)


def count_words(trace: Trace) -> int:
    """Room for records of all rows; those of matrices take less than their rows."""
    rows = len(trace.accesses) + len(trace.branches) + len(trace.entries)
    return (HEAD_WORDS + 2) * rows + 34 * len(trace.branches) + len(trace.accesses.addresses) + 1024


def emulate_instrumented(
    module: PtxModule, launch: LaunchDescription, budget: Budget, expected: Trace, words: int | None = None
) -> tuple[Emulation, Trace]:
    """Trace that the instrumented PTX records."""
    kernel = find_kernel(module, launch.kernel).name
    threads = int(np.prod(launch.grid)) * int(np.prod(launch.block))
    buffers = OwnBuffers(words=count_words(expected) if words is None else words, threads=threads)
    written = instrument(module, kernel, entries=True, buffers=buffers)
    again = parse_ptx(written.text, name=module.name)
    found = emulate(again, replace(launch, kernel=kernel), budget=budget, check_races=False)
    state = found.arrays[STATE].view(np.uint64)
    reserved = int(state[StateWord.NEXT])
    pieces = decode_records(
        written,
        Written(
            words=found.arrays[ROWS].view(np.uint64)[: min(reserved, buffers.words)],
            reserved_words=reserved,
            dropped=int(state[StateWord.DROPPED]),
            places=found.arrays[PLACES].view(np.uint64),
        ),
        TracedLaunch(
            grid=launch.grid,
            block_threads=launch.block,
            buffers=expected.buffers,
            traced_blocks=expected.traced_blocks,
            origin="instrumented",
        ),
        words_at_once=4096,
    )
    trace = join_pieces(list(pieces))
    return found, _move_back(trace, found, expected)


def _move_back(trace: Trace, found: Emulation, expected: Trace) -> Trace:
    """Parameters and the device's heap lie behind the variables, and with ours further behind."""
    own = sum(-(-(found.arrays[name].nbytes + _GAP_BYTES) // _GAP_BYTES) * _GAP_BYTES for name in VARIABLES)
    end = max((one.base + one.size_bytes for one in expected.buffers if one.name != HEAP_NAME), default=0)
    rows = trace.accesses
    spaces = np.repeat(rows.space, np.bitwise_count(rows.lane_mask))
    behind = (rows.addresses >= np.uint64(end + own)) & (spaces == int(Space.GLOBAL))
    moved = np.where(behind, rows.addresses - np.uint64(own), rows.addresses)
    return replace(trace, accesses=replace(rows, addresses=moved))


_GAP_BYTES = 512
"""Between the arrays of an emulation, and what they are aligned to."""


def list_different(expected: Trace, found: Trace) -> list[str]:
    """Columns that differ, each warp's rows in their order."""
    out = []
    for part, names in (("accesses", ACCESS_DTYPES), ("branches", BRANCH_DTYPES), ("entries", ENTRY_DTYPES)):
        first, second = _list_rows(expected, part, tuple(names)), _list_rows(found, part, tuple(names))
        if first != second:
            place = next((i for i, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
            shown = "" if place is None else f": row {place} is {second[place]}, not {first[place]}"
            out.append(f"{part}: {len(second)} rows, expected {len(first)}{shown}")
    return out


def _list_rows(trace: Trace, part: str, names: tuple[str, ...]) -> list[tuple[object, ...]]:
    columns = getattr(trace, part)
    order = np.lexsort((np.arange(len(columns)), columns.warp, columns.block))
    rows = [getattr(columns, name)[order].tolist() for name in names if name != "first_address"]
    if "instruction" in names:
        ways = [(one.index if one.same_as is None else one.same_as, one.calls) for one in trace.instructions]
        rows[2] = [ways[number] for number in rows[2]]
    if part == "accesses":
        addresses = np.split(columns.addresses, columns.first_address[1:].astype(np.int64)) if len(columns) else []
        rows.append([addresses[place].tolist() for place in order.tolist()])
    return list(zip(*rows, strict=True))


def rebase(trace: Trace) -> Trace:
    """The same with addresses of arrays as if each began at a multiple of 2^40, by the order of their names: two memories compare by it."""
    rows = trace.accesses
    spaces = np.repeat(rows.space, np.bitwise_count(rows.lane_mask))
    moved = rows.addresses.copy()
    for number, one in enumerate(sorted(trace.buffers, key=lambda buffer: buffer.name)):
        inside = (rows.addresses >= np.uint64(one.base)) & (rows.addresses < np.uint64(one.base + one.size_bytes))
        inside &= np.isin(spaces, (int(Space.GLOBAL), int(Space.CONST)))
        moved[inside] += np.uint64(((number + 1) << 40) - one.base)
    return replace(trace, accesses=replace(rows, addresses=moved))


def list_own(found: Emulation) -> dict[str, bytes]:
    """Contents of the arrays that are not the instrumentation's."""
    return {name: array.tobytes() for name, array in found.arrays.items() if name not in VARIABLES}
