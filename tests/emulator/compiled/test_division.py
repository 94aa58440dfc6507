"""Quotients: lanes that divide by 0, or overflow, end no process."""

import numpy as np
import pytest

from tests.emulator.operations.evaluating import evaluate


@pytest.mark.parametrize("rest", [False, True])
@pytest.mark.parametrize("kind", ["s16", "s32", "s64", "u32", "u64"])
def test_all_lanes_are_divided(kind: str, rest: bool) -> None:
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")
    limits, register = np.iinfo(dtype), {2: "%h", 4: "%r", 8: "%d"}[dtype.itemsize]
    edges = [limits.min, limits.min + 1, limits.max, 0, 1, 2, 7, limits.max - 1, *([-1, -2, -7] if limits.min else [])]
    random = np.random.Generator(np.random.PCG64(5))
    of, by = (random.choice(np.array(edges, dtype), 6400) for _ in range(2))
    found = evaluate(f"{'rem' if rest else 'div'}.{kind} {register}1, {register}2, {register}3", of, by)
    for one, other, value in zip(of.tolist(), by.tolist(), found.tolist(), strict=True):
        expected = -1
        if other:
            quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
            expected = one - quotient * other if rest else quotient
        assert value == (expected - limits.min) % (1 << limits.bits) + limits.min
