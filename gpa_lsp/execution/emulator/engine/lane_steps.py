"""Instructions of lanes and warps, which the core executes: what is refused of them, and what is noted."""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Register
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, flatten, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment, Step
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.matrix_products import describe_product
from gpa_lsp.execution.emulator.semantics.model import Meaning


def bind_meaning(binder: Binder, meaning: Meaning) -> None:
    """Look at the operands of an instruction; a divisor of 0 is noted.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    sources, results = flatten(binder.instruction.sources), flatten(binder.instruction.destinations)
    for operand, kind in zip(sources, meaning.sources, strict=True):
        binder.check(operand, kind)
    for operand, kind in zip(results, meaning.results, strict=True):
        binder.check_result(operand, kind)
    if meaning.divides:
        dtype = meaning.sources[1].natural_dtype
        binder.steps.append(_check_divisor(binder, binder.read(sources[1], meaning.sources[1]), dtype))
    binder.finish()


def _check_divisor(binder: Binder, source: int, dtype: "np.dtype[Any]") -> Step:
    faults, static, guard = binder.machine.faults, binder.static, binder.guard

    def step(fragment: Fragment) -> None:
        wrong = guarded_mask(fragment, guard) & (read_as(fragment, source, dtype) == 0)
        message = "the divisor is 0; the quotient is not defined"
        faults.add_lanes(FaultKind.DIVISION_BY_ZERO, message, fragment.warps, np.flatnonzero(wrong), instruction=static)

    return step


def bind_product(binder: Binder) -> None:
    """Look at the operands of ``mma`` and ``wmma.mma``.

    Raises:
        UnsupportedInstruction: a form that is not known, or other registers than it has.
    """
    instruction = binder.instruction
    product = describe_product(instruction)
    if product is None:
        raise UnsupportedInstruction
    a, b, c, d = product.registers
    if [len(flatten((one,))) for one in (*instruction.destinations, *instruction.sources)] != [d, a, b, c]:
        raise UnsupportedInstruction("registers of this number")
    for operand in flatten((*instruction.destinations, *instruction.sources)):
        if not isinstance(operand, Register) or operand.selector:
            raise UnsupportedInstruction("operand of this kind")
        if binder.layout.dtypes[operand.slot].itemsize != product.register_bytes:
            raise UnsupportedInstruction("operand of this kind")
    binder.finish()


def guarded_mask(fragment: Fragment, guard: int | None) -> Value:
    """Lanes of a fragment whose guard is true: bool[n]."""
    if guard is None:
        return fragment.active()
    chosen = fragment.registers[guard]
    if not chosen.ndim:
        return fragment.active() if chosen else np.zeros(fragment.warps.lanes, np.bool_)
    return np.ascontiguousarray(chosen) if fragment.mask is None else chosen & fragment.mask


def narrow_mask(fragment: Fragment, guard: int | None) -> Value:
    """As :func:`guarded_mask`, but None when these are all lanes of the warp set."""
    if guard is None:
        return fragment.mask
    chosen = fragment.registers[guard]
    if not chosen.ndim and chosen:
        return fragment.mask
    return guarded_mask(fragment, guard)
