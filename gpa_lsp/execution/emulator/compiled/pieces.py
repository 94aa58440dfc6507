"""Building blocks of translated pieces: :mod:`translated` writes calls of these for the 32 lanes of each warp. Typed Python.

Where a lane may not access memory, the core does the piece operation by operation and reports the fault.
"""

from gpa_lsp.execution.emulator.compiled.addresses import (
    ALL_LANES,
    AT_ONE_PLACE,
    IN_A_ROW,
    IN_GLOBAL,
    SCATTERED,
    find_order,
)
from gpa_lsp.execution.emulator.compiled.model import LANES, CoreMachine
from gpa_lsp.execution.emulator.compiled.transfers import choose_marks, mark_chunk, mark_lanes, mark_words
from gpa_lsp.foundation.machine_code.types import (
    Pointer,
    Struct,
    all_lanes,
    gather,
    highest,
    lanes,
    lanes_of,
    local,
    lowest,
    mask_of,
    put,
    s32,
    s64,
    scatter,
    u8,
    u32,
    u64,
    union,
    view,
)


class Site(Struct):
    """Memory that an instruction may access: addresses from ``base`` to ``base + furthest``."""

    memory: Pointer[u8]
    base: u64
    furthest: u64
    is_open: u32


class Lie(Struct):
    """Layout of a warp's addresses, and the lowest and highest of them."""

    low: u64
    high: u64
    bits: u64
    order: s32


def find_written(mask, exists):
    """The lanes that write their results: all 32 where all existing ones do, as shuffles may read lanes without a thread."""
    return u32(ALL_LANES) if mask & exists == exists else mask


def view_lanes(values, kind):
    """Lanes as numbers of a type of as many bits."""
    return values(kind)


def find_global(machine, number, is_load, is_generic, size, site):
    """Fill the site of an access to global memory: the region that its lanes accessed last."""
    region = s64(machine.operations[number].region)
    site.memory, site.base, site.furthest, site.is_open = machine.arena - machine.arena_base, 0, 0, 0
    if region >= 0 and region < machine.region_count and u64(machine.region_bytes[region]) >= size:
        site.base = machine.region_bases[region]
        site.furthest = u64(machine.region_bytes[region]) - size
        is_open = machine.region_spaces[region] == IN_GLOBAL
        site.is_open = u32(is_open) | (1 if is_load and not is_generic else 0)


def find_shared(machine, size, site):
    """Fill the site of an access to shared memory."""
    site.memory, site.base, site.furthest = machine.shared, 0, u64(machine.shared_bytes) - size
    site.is_open = u32(machine.shared_bytes >= size and machine.checks == 0)


def are_apart(machine: CoreMachine, first: s64, second: s64) -> u32:
    """Whether two instructions were last seen in different regions."""
    return u32(machine.operations[first].region != machine.operations[second].region)


def find_lie(address, size, mask, lie):
    """Fill the layout of the addresses of the lanes of a mask."""
    order = find_order(address, mask, u64(size))
    lie.order = order
    if order != SCATTERED:
        lie.low, lie.bits = address[0], address[0]
        lie.high = address[0] + (u64(31 * size) if order == IN_A_ROW else u64(0))
    else:
        among = lanes_of(mask)
        lie.low = lowest(address if among else ~u64(0))
        lie.high = highest(address if among else u64(0))
        lie.bits = union(address if among else u64(0))


def fits(lie, site, offset, size):
    """Whether they may be accessed, each a multiple of its width."""
    low, high = lie.low + offset - site.base, lie.high + offset - site.base
    is_aligned = ((lie.bits | offset) & (size - 1)) == 0
    return (site.is_open != 0) & (high <= site.furthest) & (low <= high) & is_aligned


def mark_access(machine, address, lie, offset, size, mask, marks):
    """Mark the words of an access as read or written, if marks are kept."""
    if machine.word_marks is not None:
        kinds = choose_marks(u64(size), u8(marks))
        if lie.order == IN_A_ROW:
            mark_words(machine, lie.low + offset, u64(size * LANES), kinds)
            mark_chunk(machine, lie.low + offset, kinds)
            mark_chunk(machine, lie.high + offset, kinds)
        else:
            held = local(u64, LANES)
            put(held, address)
            mark_lanes(machine, held, offset, u64(size), u32(1) if lie.order == AT_ONE_PLACE else mask, kinds)


def load(kind, memory, address, lie, is_part, mask, before):
    """Load a value for each lane of the mask; the others keep theirs. Elements of vectors are never one row of memory."""
    found = before
    if lie.order == IN_A_ROW and not is_part:
        found = lanes(view(memory + lie.low, kind))
    elif lie.order == AT_ONE_PLACE:
        found = all_lanes(view(memory + lie.low, kind)[0])
    else:
        found = gather(view(memory, kind), address, mask) if lanes_of(mask) else before
    return found


def load_narrow(kind, wide, memory, address, lie, is_part, mask, before):
    """:func:`load` into wider registers."""
    return wide(load(kind, memory, address, lie, is_part, mask, all_lanes(kind(0)))) if lanes_of(mask) else before


def store(kind, memory, address, lie, is_part, mask, values):
    """Store a value of each lane of the mask; of lanes with one address the last wins."""
    if lie.order == IN_A_ROW and not is_part:
        put(view(memory + lie.low, kind), kind(values))
    else:
        scatter(view(memory, kind), address, mask, kind(values))


def has_zero(by, mask):
    """Whether a divisor is 0."""
    return (mask_of(by == 0) & mask) != 0
