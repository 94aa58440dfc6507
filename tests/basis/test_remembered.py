"""Remembered facts of a function or module belong to that very object, and go with it."""

import gc
import weakref

import numpy as np
import pytest

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import list_reachable, list_static_instructions
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.engine.layout import find_lives
from gpa_lsp.execution.emulator.model import TraceSettings
from gpa_lsp.execution.launches.launch import ArrayArgument, LaunchDescription, ScalarArgument
from gpa_lsp.foundation.records import remembered
from tests.emulator.engine.running import GLOBAL_THREAD, build_module

BODY = f"""{GLOBAL_THREAD}
setp.ge.u32 %p1, %r59, %r0; @%p1 exit;
mov.u32 %r1, 0; mov.u32 %r2, %r59;
AGAIN: add.u32 %r2, %r2, 3; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, %r52; @%p2 bra AGAIN;
st.global.u32 [%d32], %r2; ld.global.u32 %r3, [%d31];
"""


def build() -> PtxModule:
    return build_module(BODY, ("d", "d", "r"))


def test_what_is_known_is_not_found_again():
    calls = []

    @remembered
    def count(module: PtxModule, step: int) -> int:
        calls.append(step)
        return step * len(module.functions)

    first, second = build(), build()
    assert [count(first, 2), count(first, 2), count(first, 3), count(second, 2), count(first, 3)] == [2, 2, 3, 2, 3]
    assert calls == [2, 3, 2]


def test_what_fails_is_tried_again():
    @remembered
    def fail(module: PtxModule) -> int:
        raise KeyError(module.name)

    module = build()
    for _ in range(2):
        with pytest.raises(KeyError):
            fail(module)


def test_modules_of_one_text_share_nothing_and_changed_ones_neither():
    one, same = build(), build()
    other = build_module(BODY + "add.u32 %r4, %r3, 1;", ("d", "d", "r"))
    assert find_blocks(one.functions["k"]) is find_blocks(one.functions["k"])
    assert find_lives(one.functions["k"]) is find_lives(one.functions["k"])
    assert list_reachable(one, "k")[0] is one.functions["k"]
    assert list_reachable(same, "k")[0] is same.functions["k"]
    assert list_static_instructions(one, "k") == list_static_instructions(same, "k")
    assert len(list_static_instructions(other, "k")) == len(list_static_instructions(one, "k")) + 1


def test_what_is_known_goes_with_its_module():
    module = build()
    watched = weakref.ref(module), weakref.ref(module.functions["k"])
    list_static_instructions(module, "k")
    list_reachable(module, "k")
    find_lives(module.functions["k"])
    del module
    gc.collect()
    assert [one() for one in watched] == [None, None]


@pytest.mark.parametrize("block", [(32, 1, 1), (48, 1, 1), (8, 4, 1), (96, 1, 1)])
def test_launches_of_one_module_are_as_those_of_modules_of_their_own(block):
    """Blocks and numbers differ from launch to launch; all that is kept of a module is for all of them."""
    shared = build()
    for limit in (100, 37):
        launch = LaunchDescription(
            kernel="k",
            block=block,
            grid=(3, 1, 1),
            arguments=(
                ArrayArgument(name="a", type=ScalarType.U32, count=288),
                ArrayArgument(name="b", type=ScalarType.U32, count=288),
                ScalarArgument(name="n", type=ScalarType.U32, value=limit),
            ),
        )
        emulate(shared, LaunchDescription(kernel="k", block=(64, 1, 1), grid=(2, 1, 1), arguments=launch.arguments))
        again, fresh = (emulate(module, launch, trace=TraceSettings()) for module in (shared, build()))
        assert again.trace is not None
        assert fresh.trace is not None
        for name in again.trace.accesses.__slots__:
            assert np.array_equal(getattr(again.trace.accesses, name), getattr(fresh.trace.accesses, name)), name
        assert np.array_equal(again.counts.lane_executions, fresh.counts.lane_executions)
        assert np.array_equal(again.arrays["b"], fresh.arrays["b"])
        assert (again.faults, again.instructions) == (fresh.faults, fresh.instructions)
