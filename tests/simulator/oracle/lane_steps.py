"""Exchanges between the lanes of a warp, as columns of numpy: :data:`LANE_STEPS`."""

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.engine.geometry import WARP_LANES, pack_lanes
from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks
from gpa_lsp.execution.simulator.execution.operand_values import MachineInstruction, UnreadOperandError, is_predicate
from gpa_lsp.execution.simulator.execution.warp_state import Column, Lanes, WarpState
from tests.simulator.oracle.readers import Builder, Step, read_integer, read_predicate, write_predicate, write_register

_LANES = np.arange(WARP_LANES, dtype=np.int64)[None, :]


def build_shuffle(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """SHFL: values of other lanes."""
    inside, target, value_text, lane_text, bound_text = instruction.operands
    mode = instruction.modifiers[0]
    value, lane, bound = (read_integer(text, banks) for text in (value_text, lane_text, bound_text))
    write, out = write_register(target), write_predicate(inside)

    def step(state: WarpState, lanes: Lanes) -> None:
        given = np.broadcast_to(value(state, lanes), lanes.mask.shape)
        by, limit = lane(state, lanes).astype(np.int64) & 31, bound(state, lanes).astype(np.int64)
        segment, clamp = limit >> 8 & 31, limit & 31
        last = (_LANES & segment) | (clamp & ~segment)
        if mode == "UP":
            source, is_inside = _LANES - by, _LANES - by >= last
        elif mode == "DOWN":
            source, is_inside = _LANES + by, _LANES + by <= last
        elif mode == "BFLY":
            source, is_inside = _LANES ^ by, (_LANES ^ by) <= last
        else:
            source = (_LANES & segment) | (by & ~segment)
            is_inside = source <= last
        source = np.broadcast_to(np.where(is_inside, source, _LANES) & 31, lanes.mask.shape)
        write(state, lanes, np.take_along_axis(given, source, axis=1))
        out(state, lanes, is_inside)

    return step


def build_vote(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """VOTE, VOTEU: which of the lanes hold a predicate."""
    del banks
    operands = instruction.operands
    chosen = read_predicate(operands[-1])
    target = next((one for one in operands if not is_predicate(one)), None)
    outs = [one for one in operands[:-1] if is_predicate(one)]
    write = None if target is None else write_register(target)
    out = write_predicate(outs[0]) if outs else None
    mode = next(one for one in instruction.modifiers if one in ("ANY", "ALL", "EQ"))

    def step(state: WarpState, lanes: Lanes) -> None:
        holds = lanes.mask & chosen(state, lanes)
        if write is not None:
            write(state, lanes, pack_lanes(holds)[:, None])
        if out is not None:
            some: Column = np.any(holds, axis=1, keepdims=True)
            every: Column = np.all(holds == lanes.mask, axis=1, keepdims=True)
            out(state, lanes, some if mode == "ANY" else every if mode == "ALL" else every | ~some)

    return step


def build_match(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """MATCH: lanes with the same value."""
    if instruction.has("U64"):
        raise UnreadOperandError(instruction.text)
    value = read_integer(instruction.operands[-1], banks)
    target = next(one for one in instruction.operands if not is_predicate(one))
    write = write_register(target)
    out = write_predicate(instruction.operands[0]) if is_predicate(instruction.operands[0]) else None
    is_all = instruction.has("ALL")

    def step(state: WarpState, lanes: Lanes) -> None:
        given = np.broadcast_to(value(state, lanes), lanes.mask.shape)
        same = (given[:, :, None] == given[:, None, :]) & lanes.mask[:, None, :]
        bits = (same.astype(np.uint64) << np.arange(WARP_LANES, dtype=np.uint64)).sum(axis=2).astype(np.uint32)
        if is_all:
            agrees = bits == lanes.bits[:, None]
            bits = np.where(agrees, bits, np.uint32(0))
            if out is not None:
                out(state, lanes, agrees)
        write(state, lanes, bits)

    return step


_REDUCTIONS: dict[str, Callable[..., Column]] = {
    "SUM": lambda values, mask: np.where(mask, values, 0).sum(axis=1, keepdims=True),
    "MIN": lambda values, mask: np.where(mask, values, 1 << 40).min(axis=1, keepdims=True),
    "MAX": lambda values, mask: np.where(mask, values, -1 << 40).max(axis=1, keepdims=True),
    "OR": lambda values, mask: np.bitwise_or.reduce(np.where(mask, values, 0), axis=1, keepdims=True),
    "XOR": lambda values, mask: np.bitwise_xor.reduce(np.where(mask, values, 0), axis=1, keepdims=True),
    "AND": lambda values, mask: np.bitwise_and.reduce(np.where(mask, values, -1), axis=1, keepdims=True),
}


def build_reduction(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """REDUX: one value of all lanes'."""
    name = next((one for one in instruction.modifiers if one in _REDUCTIONS), "AND")
    value, write = read_integer(instruction.operands[1], banks), write_register(instruction.operands[0])
    is_signed = instruction.has("S32")

    def step(state: WarpState, lanes: Lanes) -> None:
        given = np.broadcast_to(value(state, lanes), lanes.mask.shape)
        wide = (given.view(np.int32) if is_signed else given).astype(np.int64)
        write(state, lanes, (_REDUCTIONS[name](wide, lanes.mask) & 0xFFFFFFFF).astype(np.uint32))

    return step


def build_to_uniform(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """R2UR: the value of the first lane that executes."""
    if len(instruction.operands) > 2 and not instruction.operands[0].endswith("T"):
        raise UnreadOperandError(instruction.text)
    value, write = read_integer(instruction.operands[-1], banks), write_register(instruction.operands[-2])

    def step(state: WarpState, lanes: Lanes) -> None:
        given = np.broadcast_to(value(state, lanes), lanes.mask.shape)
        first = lanes.mask.argmax(axis=1)[:, None]
        write(state, lanes, np.take_along_axis(given, first, axis=1))

    return step


_BARRIER = re.compile(r"B(\d+)")


def build_barrier_move(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """BMOV: a convergence barrier to a register or back."""
    target, source = instruction.operands
    into, outof = _BARRIER.fullmatch(target), _BARRIER.fullmatch(source)
    clears = instruction.has("CLEAR")
    if into and not outof:
        number, value = int(into[1]), read_integer(source, banks)

        def set_barrier(state: WarpState, lanes: Lanes) -> None:
            part = state.barriers[number][lanes.warps]
            np.copyto(part, np.broadcast_to(value(state, lanes), lanes.mask.shape), where=lanes.mask)
            state.barriers[number][lanes.warps] = part

        return set_barrier
    if outof is None or into is not None:
        raise UnreadOperandError(instruction.text)
    from_number, write = int(outof[1]), write_register(target)

    def get_barrier(state: WarpState, lanes: Lanes) -> None:
        part = state.barriers[from_number][lanes.warps]
        write(state, lanes, part)
        if clears:
            state.barriers[from_number][lanes.warps] = np.where(lanes.mask, np.uint32(0), part)

    return get_barrier


def build_barrier_set(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """BSSY: the lanes that execute it will wait for each other."""
    del banks
    found = _BARRIER.fullmatch(instruction.operands[0])
    if found is None:
        raise UnreadOperandError(instruction.text)
    number = int(found[1])

    def step(state: WarpState, lanes: Lanes) -> None:
        part = state.barriers[number][lanes.warps]
        np.copyto(part, lanes.bits[:, None], where=lanes.mask)
        state.barriers[number][lanes.warps] = part

    return step


def build_barrier_leave(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """BREAK: the lanes that execute it are waited for no longer."""
    del banks
    found = next((one for text in instruction.operands if (one := _BARRIER.fullmatch(text))), None)
    if found is None or any(is_predicate(one) and not one.endswith("T") for one in instruction.operands):
        raise UnreadOperandError(instruction.text)
    number = int(found[1])

    def step(state: WarpState, lanes: Lanes) -> None:
        part: npt.NDArray[np.uint32] = state.barriers[number][lanes.warps]
        state.barriers[number][lanes.warps] = part & ~lanes.bits[:, None]
        state.are_barriers_left = True

    return step


# By opcode
LANE_STEPS: dict[str, Builder] = {
    "SHFL": build_shuffle,
    "VOTE": build_vote,
    "MATCH": build_match,
    "REDUX": build_reduction,
    "R2UR": build_to_uniform,
    "BMOV": build_barrier_move,
    "BSSY": build_barrier_set,
    "BREAK": build_barrier_leave,
}
