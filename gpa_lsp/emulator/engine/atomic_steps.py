"""``atom``, ``red`` and ``mbarrier``: what reads and writes memory at once."""

from collections.abc import Callable

import numpy as np

from gpa_lsp.emulator.engine.accesses import Place
from gpa_lsp.emulator.engine.atomic_order import apply_in_order
from gpa_lsp.emulator.engine.binder import Binder, UnsupportedInstruction, flatten, read_as
from gpa_lsp.emulator.engine.fragments import Fragment
from gpa_lsp.emulator.engine.lane_steps import narrow_mask
from gpa_lsp.emulator.engine.resolving import bind_address, make_access, make_resolver
from gpa_lsp.emulator.engine.values import U64, Value
from gpa_lsp.emulator.operations.atomics import AtomicFunction, atomic_function
from gpa_lsp.emulator.trace import AccessKind
from gpa_lsp.ptx.model import Immediate, Operand, Space
from gpa_lsp.ptx.scalar_types import ScalarType

_PENDING_SHIFT = 20
_COUNT_MASK = (1 << _PENDING_SHIFT) - 1
_PHASE_SHIFT = 63


def bind_atomic(binder: Binder) -> None:
    """``atom`` and ``red``, lanes one after the other.

    Raises:
        UnsupportedInstruction: a form that is not known.
    """
    instruction = binder.instruction
    function = atomic_function(instruction)
    if function is None or "async" in instruction.suffixes:
        raise UnsupportedInstruction
    _bind_function(binder, function, instruction.sources[0], instruction.sources[1:])


def _bind_function(
    binder: Binder, function: AtomicFunction, address: Operand, operands: tuple[Operand, ...], elements: int = 0
) -> None:
    instruction = binder.instruction
    kind = function.type
    dtype = kind.natural_dtype
    results = [one for one in flatten(instruction.destinations) if one is not None]
    parts = [flatten((operand,)) for operand in operands[: function.operands]]
    count = elements or len(parts[0])
    sources = [[binder.read(part, kind) for part in part_list] for part_list in parts]
    find, offset = bind_address(binder, address)
    access = make_access(binder, AccessKind.ATOMIC if results else AccessKind.REDUCTION, dtype, count, offset)
    slots = [binder.write(result, kind) for result in flatten(instruction.destinations)] if results else []
    resolve, guard, tracer = make_resolver(binder, access), binder.guard, binder.machine.tracer

    def apply(fragment: Fragment, place: Place) -> None:
        views, index, allowed, _ = place
        registers = fragment.registers
        lanes = np.arange(fragment.warps.lanes) if allowed is None else np.flatnonzero(allowed)
        where = np.full(len(lanes), index, np.int64) if type(index) is int else index[lanes]
        for element, view in enumerate(views):
            given = []
            for source in sources:
                value = read_as(fragment, source[element], dtype)
                given.append(value[lanes] if value.ndim else value)
            old = apply_in_order(view, where, given, function, wants_old=bool(slots))
            if slots:
                _put(registers, slots[element], old, lanes, fragment.warps.lanes)

    def step(fragment: Fragment) -> None:
        mask = narrow_mask(fragment, guard)
        address = find(fragment)
        for slot in slots:
            fragment.registers[slot] = np.zeros(fragment.warps.lanes, dtype)
        for space, place in resolve(fragment, address, mask):
            _, index, allowed, bad = place
            if tracer is not None:
                tracer.record(access, fragment, space, address, allowed if bad is None else allowed | bad)
            if space is Space.SHARED and fragment.batch.checks is not None:
                fragment.batch.checks.check_store(access, fragment, index, allowed)
            apply(fragment, place)

    binder.steps.append(step)
    binder.finish()


def _put(registers: list[Value], slot: int, old: Value, lanes: Value, count: int) -> None:
    if len(lanes) == count:
        registers[slot] = old
        return
    registers[slot][lanes] = old


def bind_mbarrier(binder: Binder) -> None:
    """``mbarrier`` objects, as words of shared memory: expected arrivals, pending ones, and the phase in the highest bit.

    Bytes of transactions are not counted: what would complete them is not emulated.

    Raises:
        UnsupportedInstruction: a form that is not known.
    """
    instruction = binder.instruction
    words = instruction.suffixes
    verb = words[0] if words else ""
    operands = instruction.sources
    if verb in ("inval", "expect_tx"):
        binder.finish()
        return
    if verb == "init":
        _bind_function(
            binder,
            _word_function(lambda _old, count: count | count << np.uint64(_PENDING_SHIFT)),
            operands[0],
            operands[1:2],
        )
    elif verb in ("arrive", "arrive_drop"):
        has_count = len(operands) > 1 and "expect_tx" not in words
        count = operands[1] if has_count else Immediate(1)
        function = _word_function(_arrive if verb == "arrive" else _arrive_and_drop)
        _bind_function(binder, function, operands[0], (count,))
    elif verb in ("test_wait", "try_wait"):
        _bind_wait(binder, has_parity="parity" in words)
    else:
        raise UnsupportedInstruction


def bind_copy_arrival(binder: Binder) -> None:
    """``cp.async.mbarrier.arrive``: an arrival when the copies of a thread are done, which they are.

    Without ``.noinc`` it is expected in addition to the others, so that nothing changes.
    """
    if "noinc" not in binder.instruction.suffixes:
        binder.finish()
        return
    _bind_function(binder, _word_function(_arrive), binder.instruction.sources[0], (Immediate(1),))


def _word_function(evaluate: Callable[..., Value]) -> AtomicFunction:
    return AtomicFunction(name="mbarrier", evaluate=evaluate, type=ScalarType.U64)


def _arrive(word: Value, count: Value) -> Value:
    expected = word & np.uint64(_COUNT_MASK)
    pending = word >> np.uint64(_PENDING_SHIFT) & np.uint64(_COUNT_MASK)
    phase = word >> np.uint64(_PHASE_SHIFT)
    left = pending - np.minimum(count, pending)
    done = left == 0
    left = np.where(done, expected, left)
    phase = phase ^ done.astype(np.uint64)
    return expected | left << np.uint64(_PENDING_SHIFT) | phase << np.uint64(_PHASE_SHIFT)


def _arrive_and_drop(word: Value, count: Value) -> Value:
    expected = word & np.uint64(_COUNT_MASK)
    fewer = expected - np.minimum(count, expected)
    return _arrive((word & ~np.uint64(_COUNT_MASK)) | fewer, count)


def _bind_wait(binder: Binder, *, has_parity: bool) -> None:
    """Whether the phase that a token (or parity) stands for has ended."""
    instruction = binder.instruction
    kind = ScalarType.U32 if has_parity else ScalarType.U64
    token = binder.read(instruction.sources[1], kind)
    find, offset = bind_address(binder, instruction.sources[0])
    access = make_access(binder, AccessKind.LOAD, U64, 1, offset)
    access.is_strong = True
    result = binder.write(flatten(instruction.destinations)[0], ScalarType.PRED)
    resolve, guard = make_resolver(binder, access), binder.guard

    def step(fragment: Fragment) -> None:
        done: Value = np.bool_(False)
        for _, (views, index, _, _) in resolve(fragment, find(fragment), narrow_mask(fragment, guard)):
            word = views[0][index] if type(index) is int else views[0].take(index, mode="wrap")
            phase = word >> np.uint64(_PHASE_SHIFT)
            given = read_as(fragment, token, kind.storage_dtype)
            asked = (given & given.dtype.type(1)).astype(np.uint64) if has_parity else given >> np.uint64(_PHASE_SHIFT)
            done = phase != asked
        fragment.registers[result] = done

    binder.steps.append(step)
    binder.finish()
