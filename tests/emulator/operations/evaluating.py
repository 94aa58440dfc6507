"""Instructions as PTX text, bound and evaluated in every way the engine may: arrays, scalars, and both mixed."""

import itertools
import warnings
from functools import cache
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.operations.find import bind_operation
from gpa_lsp.execution.emulator.operations.model import LaneOperation, WarpOperation

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
    operation = bind_operation(read_instruction(text))
    assert isinstance(operation, LaneOperation), text
    return operation


@cache
def bind_warp(text: str) -> WarpOperation:
    operation = bind_operation(read_instruction(text))
    assert isinstance(operation, WarpOperation), text
    return operation


def evaluate(text: str, *sources: Any) -> Any:
    """Results of arrays of lanes, each checked against scalars and mixtures of both on some lanes.

    Sources may be lists; they are converted to the source types.
    """
    operation = bind(text)
    kinds = [kind.natural_dtype for kind in operation.source_types]
    if operation.reads_carry:
        kinds.append(np.dtype(np.bool_))
    assert len(kinds) == len(sources), (text, kinds)
    arrays = [as_dtype(source, dtype) for source, dtype in zip(sources, kinds, strict=True)]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        before = [array.tobytes() for array in arrays]
        found = operation.evaluate(*arrays)
        assert [array.tobytes() for array in arrays] == before, "sources were written into"
        _check_scalars(operation, arrays, found)
    results = found if isinstance(found, tuple) else (found,)
    types = [kind.natural_dtype for kind in operation.result_types] + [np.dtype(np.bool_)] * operation.writes_carry
    assert [result.dtype for result in results] == types, text
    return found


def as_dtype(values: Any, dtype: "np.dtype[Any]") -> Any:
    """Python integers wrap into the dtype."""
    if isinstance(values, np.ndarray):
        return values if values.dtype == dtype else values.view(dtype)
    if dtype.kind in "iu":
        bits = dtype.itemsize * 8
        return np.array([int(value) & ((1 << bits) - 1) for value in values], f"u{dtype.itemsize}").view(dtype)
    return np.array(values, dtype)


def _check_scalars(operation: LaneOperation, arrays: list[Any], found: Any) -> None:
    whole = found if isinstance(found, tuple) else (found,)
    lanes = len(arrays[0])
    for lane in {lanes // 3, lanes - 1}:
        for scalars in itertools.product((False, True), repeat=len(arrays)):
            mixed = [
                array[lane] if scalar else array[lane : lane + 2] for array, scalar in zip(arrays, scalars, strict=True)
            ]
            part = operation.evaluate(*mixed)
            for one, all_lanes in zip(part if isinstance(part, tuple) else (part,), whole, strict=True):
                if all(scalars):
                    assert isinstance(one, np.generic), type(one)
                first = one if not np.ndim(one) else one[0]
                if first.dtype == np.float64 and np.isnan(first) and np.isnan(all_lanes[lane]):
                    continue  # which NaN it is depends on how numpy computes: its bits are unspecified in double precision
                assert first.tobytes() == all_lanes[lane].tobytes(), (lane, scalars, first, all_lanes[lane])


def pairs(values: Any) -> tuple[Any, Any]:
    """All ordered pairs of some values, as two lists."""
    first, second = zip(*itertools.product(values, repeat=2), strict=True)
    return list(first), list(second)


def triples(values: Any) -> tuple[Any, Any, Any]:
    """All ordered triples."""
    first, second, third = zip(*itertools.product(values, repeat=3), strict=True)
    return list(first), list(second), list(third)


def edge_integers(bits: int, seed: int = 1, more: int = 12) -> list[int]:
    """Unsigned patterns at the edges of a width, and some random ones."""
    top = 1 << bits
    random = np.random.Generator(np.random.PCG64(seed))
    edges = {
        0,
        1,
        2,
        3,
        7,
        bits - 1,
        bits,
        bits + 1,
        top - 1,
        top - 2,
        top // 2,
        top // 2 - 1,
        top // 2 + 1,
        top // 3,
        255,
        256,
    }
    drawn = {int.from_bytes(random.bytes(bits // 8), "little") for _ in range(more)}
    small = {int.from_bytes(random.bytes(bits // 16), "little") for _ in range(more // 2)}
    return sorted(value % top for value in edges | drawn | small)


def as_signed(value: int, bits: int) -> int:
    """Two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def bits_of(values: Any) -> list[int]:
    """Unsigned patterns of an array, as Python integers."""
    array = np.ascontiguousarray(values)
    return [int(value) for value in array.view(f"u{array.dtype.itemsize}")]
