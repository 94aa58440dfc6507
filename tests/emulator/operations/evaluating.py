"""Instructions as PTX text, evaluated by the core."""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.core_functions import LANE_FUNCTION, LaneOperation, find_core, prepare_meanings
from gpa_lsp.execution.emulator.compiled.lane_operations import OPERATIONS
from gpa_lsp.execution.emulator.compiled.matrix_instructions import write_product
from gpa_lsp.execution.emulator.compiled.model import CoreMachine
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.matrix_products import describe_product
from gpa_lsp.execution.emulator.semantics.model import Meaning

HEADER = """.version 8.8
.target sm_100
.address_size 64
.visible .entry kernel() {
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<40>; .reg .f64 %e<40>;
"""


@cache
def read_instruction(text: str) -> PtxInstruction:
    """One instruction; registers %p %h %r %d %f %e (predicate, 16, 32, 64 bits, float, double)."""
    module = parse_ptx(f"{HEADER}{text};\nret;\n}}\n", name="one instruction")
    return module.functions["kernel"].instructions[0]


@cache
def bind(text: str) -> LaneOperation:
    """The meaning of an instruction of lanes."""
    meaning = find_meaning(read_instruction(text))
    assert meaning is not None and not meaning.exchanges, text
    return LaneOperation(meaning)


def prepare(*texts: str) -> None:
    """Compile the meanings of instructions together, which is faster than one by one."""
    prepare_meanings(one for text in texts if (one := find_meaning(read_instruction(text))) is not None)


@cache
def bind_product(text: str) -> Callable[..., list[Any]]:
    """A product of matrices, of the registers of A, B and C, [w, 32] each: those of D."""
    instruction = read_instruction(text)
    product = describe_product(instruction)
    core = find_core()
    assert product is not None, text
    results = product.registers[-1]
    number = OPERATIONS.number(write_product(product))
    core.prepare([number])
    call, machine = LANE_FUNCTION(int(core.functions[number])), CoreMachine.c_type()
    described = np.array(product.numbers, np.int32)
    kind = (
        instruction.types[0].natural_dtype
        if instruction.types[0] in (ScalarType.F32, ScalarType.F64)
        else np.dtype("u4")
    )

    def evaluate_product(*registers: Any) -> list[Any]:
        size = registers[0].itemsize
        count, warps = results + len(registers), len(registers[0])
        places = np.arange(count, dtype=np.int32) * 32 * size
        found = np.zeros((warps, results, 32), kind)
        for warp in range(warps):
            given = [np.ascontiguousarray(one[warp]).view(f"u{size}") for one in registers]
            frame = np.concatenate([np.zeros((results, 32), f"u{size}"), given])
            operands = described.ctypes.data, places.ctypes.data, None
            call(None, None, *operands, ctypes.addressof(machine), 0, 0, 0, 0xFFFFFFFF, frame.ctypes.data)
            found[warp] = frame[:results].view(kind)
        return [found[:, place] for place in range(results)]

    return evaluate_product


def evaluate_expression(value: str, *operands: Any) -> Any:
    """Results of an expression of typed Python for numbers of 64 bits: uint64[n]."""
    operation = LaneOperation(
        Meaning(sources=(ScalarType.U64,) * len(operands), results=(ScalarType.U64,), values=(value,))
    )
    given = [np.resize(np.array(one, np.uint64), -(-len(one) // 32) * 32).reshape(-1, 32) for one in operands]
    return operation.evaluate(np.ones(given[0].shape, np.bool_), *given).reshape(-1)[: len(operands[0])]


def as_signed(value: int, bits: int) -> int:
    """Two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
