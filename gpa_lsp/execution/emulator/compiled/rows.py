"""Rows of the trace, in memory of the core: typed Python."""

from gpa_lsp.execution.emulator.compiled.addresses import ALL_LANES, IN_PARAM, measure
from gpa_lsp.execution.emulator.compiled.model import (
    ACCESSES,
    BRANCHES,
    BYTES,
    COLUMNS,
    ENTRIES,
    EXECUTION,
    FAILED,
    INSTRUCTION,
    LANES,
    MASK,
    OTHER,
    SPACE,
    WARP,
    WIDE_COLUMNS,
    CoreMachine,
    Operation,
    Rows,
    SegmentRow,
    Stop,
)
from gpa_lsp.foundation.machine_code.types import (
    Pointer,
    bits_of,
    copy,
    lanes,
    popcount,
    put,
    release,
    resize,
    s32,
    s64,
    u8,
    u32,
    u64,
    view,
)

_ROW_BYTES, _BRANCH_ROW_BYTES, _ENTRY_ROW_BYTES = 28, 22, 14
METERED_AT_ONCE = 1 << 20
_FEWEST_ROWS = 1 << 14  # Room at first: what is never touched costs nothing


def reserve(rows: Rows, more: s64, addresses: s64) -> u32:
    """Find room for more rows; whether there is any."""
    if rows.count + more > rows.room:
        room = 2 * rows.room + more + _FEWEST_ROWS
        for number in range(COLUMNS):
            column = resize(rows.columns[number], room * (4 if number < WIDE_COLUMNS else 1))
            if column is None:
                return 0
            rows.columns[number] = column
        rows.room = room
    if rows.address_count + addresses > rows.address_room:
        room = 2 * rows.address_room + addresses + _FEWEST_ROWS * LANES
        larger = resize(rows.addresses, 8 * room)
        if larger is None:
            return 0
        rows.addresses, rows.address_room = larger, room
    return 1


def free_rows(machine: CoreMachine) -> s64:
    """Free all rows."""
    for kind in range(3):
        rows = machine.rows[kind]
        for number in range(COLUMNS):
            release(rows.columns[number])
        release(rows.addresses)
    return forget_rows(machine)


def forget_rows(machine: CoreMachine) -> s64:
    """Forget the rows without freeing them: the taker of the columns frees each with :func:`free_column`."""
    for kind in range(3):
        rows = machine.rows[kind]
        for number in range(COLUMNS):
            rows.columns[number] = None
        rows.addresses = None  # type: ignore[assignment]
        rows.count, rows.room, rows.address_count, rows.address_room = 0, 0, 0, 0
    return 0


def free_column(column: Pointer[u8]) -> s64:
    """Free a column that was taken."""
    release(column)
    return 0


def find_room(machine: CoreMachine) -> s32:
    """Whether there is room for another row: IDLE; FAILED where not; METER where held rows must be metered first."""
    if machine.held_bytes >= machine.limit_bytes:
        machine.is_cut_off = 1
        return FAILED
    return s32(Stop.METER if machine.held_bytes - machine.metered_bytes > METERED_AT_ONCE else Stop.IDLE)


def next_execution(machine: CoreMachine, number: s64, warp: s64) -> u32:
    """Number of earlier executions of an instruction by a warp; counts this one."""
    place = number * machine.warps + warp
    found = machine.executions[place]
    machine.executions[place] = found + 1
    return found


def number_of(machine: CoreMachine, instruction: s32) -> s32:
    """The number of an instruction in traces, as the calls have reached it that the lanes are in."""
    first = machine.segments[machine.segment].numbers
    return instruction if first < 0 else machine.reached[first + s64(instruction)]


def append(rows: Rows, warp: s64, instruction: s32, execution: u32, mask: u32, other: u32) -> s64:
    """Add a row, for which there is room."""
    row = rows.count
    rows.count = row + 1
    view(rows.columns[WARP], u32)[row] = u32(warp)
    view(rows.columns[INSTRUCTION], u32)[row] = u32(instruction)
    view(rows.columns[EXECUTION], u32)[row] = execution
    view(rows.columns[MASK], u32)[row] = mask
    view(rows.columns[OTHER], u32)[row] = other
    return row


def note_access(machine: CoreMachine, operation: Operation, space: s32) -> s32:
    """Add the rows of an access; IDLE, or why not."""
    if operation.shown_as != 0:
        space = operation.shown_as
    is_shown = machine.traces_accesses != 0 and operation.is_hidden == 0 and space != IN_PARAM
    return note_rows(machine, operation, space, measure(operation)) if is_shown else s32(Stop.IDLE)


def note_rows(machine: CoreMachine, operation: Operation, space: s32, size: u64) -> s32:
    """Add rows of so many bytes for each lane of the masks, unless the space is left out; IDLE, or why not."""
    if (machine.left_out_spaces >> space & 1) != 0:
        return Stop.IDLE
    if find_room(machine) == FAILED:
        return Stop.IDLE
    rows = machine.rows[ACCESSES]
    more, addresses = 0, 0
    for warp in range(machine.warps):
        more += s64(machine.masks[warp] != 0)
        addresses += s64(popcount(machine.masks[warp]))
    if reserve(rows, more, addresses) == 0:
        return Stop.MEMORY
    number = number_of(machine, operation.instruction)
    for warp in range(machine.warps):
        mask = machine.masks[warp]
        if mask == 0:
            continue
        execution = next_execution(machine, s64(number), warp)
        if s64(execution) >= machine.most_executions:
            machine.is_cut = 1
            more -= 1
            addresses -= s64(popcount(mask))
            continue
        row = append(rows, warp, number, execution, mask, 0)
        rows.columns[BYTES][row], rows.columns[SPACE][row] = u8(size), u8(space)
        address = machine.addresses + warp * LANES
        if mask == ALL_LANES:
            put(rows.addresses + rows.address_count, lanes(address))
            rows.address_count += LANES
        else:
            for lane in bits_of(mask):
                rows.addresses[rows.address_count] = address[lane]
                rows.address_count += 1
    machine.held_bytes += more * _ROW_BYTES + addresses * 8
    return Stop.IDLE


def note_branch(machine: CoreMachine, segment: SegmentRow, taken: Pointer[u32]) -> s32:
    """Add the rows of a branch; IDLE, or why not."""
    rows = machine.rows[BRANCHES]
    if reserve(rows, machine.warps, 0) == 0:
        return Stop.MEMORY
    before, number = rows.count, number_of(machine, segment.instruction)
    for warp in range(machine.warps):
        if machine.current[warp] != 0:
            execution = next_execution(machine, s64(number), warp)
            append(rows, warp, number, execution, machine.current[warp], taken[warp])
    machine.held_bytes += (rows.count - before) * _BRANCH_ROW_BYTES
    return Stop.IDLE


def note_entry(machine: CoreMachine, segment: SegmentRow) -> s32:
    """Add the rows of a block that is entered; IDLE, or why not."""
    rows = machine.rows[ENTRIES]
    if reserve(rows, machine.warps, 0) == 0:
        return Stop.MEMORY
    before = rows.count
    for warp in range(machine.warps):
        if machine.current[warp] != 0:
            append(rows, warp, segment.enters_block, 0, machine.current[warp], 0)
    machine.held_bytes += (rows.count - before) * _ENTRY_ROW_BYTES
    return Stop.IDLE


def append_rows(
    machine: CoreMachine, kind: s64, warps: Pointer[s64], masks: Pointer[u32], taken: Pointer[u32], count: s64, number: s64, size: s64,
    space: s64, addresses: Pointer[u64], address_count: s64,
) -> s64:  # fmt: skip
    """Add rows of one instruction that numpy executed, with the addresses of their lanes, or branches with the lanes that jumped. FAILED where
    they cannot be added.
    """
    rows = machine.rows[kind]
    if reserve(rows, count, address_count) == 0:
        return FAILED
    before, following, kept = rows.count, 0, rows.address_count
    for place in range(count):
        among = s64(popcount(masks[place])) if address_count != 0 else 0
        warp = warps[place]
        if warp < 0 or warp >= machine.warps or following + among > address_count:
            return FAILED
        execution = next_execution(machine, number, warp)
        following += among
        if kind == ACCESSES and s64(execution) >= machine.most_executions:
            machine.is_cut = 1
            continue
        copy(rows.addresses + rows.address_count, addresses + (following - among), 8 * among)
        rows.address_count += among
        row = append(rows, warp, s32(number), execution, masks[place], taken[place] if kind == BRANCHES else 0)
        rows.columns[BYTES][row], rows.columns[SPACE][row] = u8(size), u8(space)
    row_bytes = _ROW_BYTES if kind == ACCESSES else _BRANCH_ROW_BYTES
    machine.held_bytes += (rows.count - before) * row_bytes + 8 * (rows.address_count - kept)
    return 0
