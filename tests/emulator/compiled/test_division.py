"""Quotients in pieces: lanes outside of a mask hold anything, and end no process."""

import numpy as np
import pytest

from gpa_lsp.execution.emulator.compiled import pieces
from gpa_lsp.foundation.machine_code import types
from gpa_lsp.foundation.machine_code.build import Code, compile_module
from gpa_lsp.foundation.machine_code.translate import read_functions, translate

_TEXT = """
def f(of: Pointer[{kind}], by: Pointer[{kind}], to: Pointer[{kind}], mask: u64) -> s64:
    put(to, {name}(lanes(of), lanes(by), {rest}, u32(mask), lanes(to)))
    return 0
"""


@pytest.mark.parametrize("rest", [False, True])
@pytest.mark.parametrize("kind", ["s16", "s32", "s64", "u32", "u64"])
def test_lanes_of_the_mask_are_divided(kind: str, rest: bool) -> None:
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")
    name = "divide_signed" if kind[0] == "s" else "divide_unsigned"
    written = read_functions(_TEXT.format(kind=kind, name=name, rest=rest), {**vars(types), **vars(pieces)}, "made")
    code = Code(compile_module(translate([written["f"]], name="made")), "made", ["f"])
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.min + 1, limits.max, 0, 1, 2, 7, limits.max - 1, *([-1, -2, -7] if limits.min else [])]
    random = np.random.Generator(np.random.PCG64(5))
    for _ in range(200):
        of, by = (random.choice(np.array(edges, dtype), 32) for _ in range(2))
        mask = int(random.integers(0, 1 << 32)) & sum(1 << lane for lane in range(32) if by[lane] != 0)
        to = np.full(32, 5, dtype)
        code.call("f", of, by, to, mask)
        for lane, (one, other) in enumerate(zip(of.tolist(), by.tolist(), strict=True)):
            expected = 5
            if mask >> lane & 1:
                quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
                expected = one - quotient * other if rest else quotient
                expected = (expected - limits.min) % (1 << limits.bits) + limits.min
            assert to[lane] == expected
