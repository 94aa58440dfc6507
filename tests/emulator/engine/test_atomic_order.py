"""Atomic operations of many lanes are what they are one after the other."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.engine.atomic_steps import apply_in_order
from gpa_lsp.execution.emulator.operations.atomics import atomic_function
from tests.conftest import examples

_FORMS = (
    "add.u32", "add.u64", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b64", "inc.u32", "dec.u32", "exch.b32", "cas.b32",
    "add.f32", "add.f64", "add.noftz.f16", "add.noftz.f16x2", "min.s64",
)  # fmt: skip


def _find_function(form: str):
    register = "%d1" if "64" in form else "%h1" if form.endswith("f16") else "%r1"
    operands = f"{register}, {register}" if "cas" in form else register
    text = f""".version 8.0 .target sm_90 .address_size 64 .entry k() {{ .reg .b64 %d<3>; .reg .b32 %r<3>; .reg .b16 %h<3>;
    atom.global.{form} {register}, [%d0], {operands}; ret; }}"""
    function = atomic_function(parse_ptx(text, name="k").functions["k"].instructions[0])
    assert function is not None
    return function


@pytest.mark.parametrize("form", _FORMS)
@examples(25)
@given(data=st.data())
def test_many_lanes_are_one_lane_after_the_other(form: str, data: st.DataObject) -> None:
    function = _find_function(form)
    dtype = function.type.natural_dtype
    count = data.draw(st.integers(1, 60))
    places = data.draw(st.lists(st.integers(0, data.draw(st.integers(0, 8))), min_size=count, max_size=count))
    small = st.integers(0, 4)
    values = [
        np.array(data.draw(st.lists(small, min_size=count, max_size=count)), np.int64).astype(dtype)
        for _ in range(function.operands)
    ]
    if dtype.kind == "f":
        values = [value / dtype.type(3) for value in values]
    memory = np.array(data.draw(st.lists(small, min_size=9, max_size=9)), np.int64).astype(dtype)
    wants_old = data.draw(st.booleans())
    expected, expected_old = memory.copy(), []
    with np.errstate(all="ignore"):
        for lane, place in enumerate(places):
            expected_old.append(expected[place])
            expected[place] = function.evaluate(expected[place], *(value[lane] for value in values))
        old = apply_in_order(memory, np.array(places, np.int64), values, function, wants_old=wants_old)
    assert memory.tobytes() == expected.tobytes()
    if wants_old:
        assert old.tobytes() == np.array(expected_old, dtype).tobytes()


def test_sums_of_many_lanes_are_rounded_one_after_the_other() -> None:
    values = np.random.Generator(np.random.PCG64(1)).random(20_000, np.float32)
    memory = np.zeros(3, np.float32)
    index = np.arange(20_000) % 2
    apply_in_order(memory, index, [values], _find_function("add.f32"), wants_old=False)
    even = 0.0
    for value in values[::2].tolist():
        (even,) = struct.unpack("<f", struct.pack("<f", even + value))
    assert memory[0] == np.float32(even)
    assert memory[2] == 0


def test_a_counter_that_all_lanes_increase_gives_each_its_own_number() -> None:
    memory = np.zeros(1, np.uint32)
    old = apply_in_order(
        memory, np.zeros(32_768, np.int64), [np.uint32(9_999)], _find_function("inc.u32"), wants_old=True
    )
    assert old.tolist() == [lane % 10_000 for lane in range(32_768)]
    assert memory[0] == 32_768 % 10_000
