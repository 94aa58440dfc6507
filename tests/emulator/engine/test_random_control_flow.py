"""Programs whose lanes jump wherever they like give what each lane gives by itself."""

import random

import numpy as np
import pytest

from gpa_lsp.execution.emulator.model import Trace, TraceSettings
from tests.emulator.engine.one_lane import Lane
from tests.emulator.engine.running import GLOBAL_THREAD, build_module, run_text

_WORDS_PER_LANE = 4
_BEGIN = f"""{GLOBAL_THREAD} ld.global.u32 %r1, [%d31]; mul.wide.u32 %d33, %r59, {4 * _WORDS_PER_LANE}; add.u64 %d20, %d1, %d33;
mov.u32 %r2, %r59; mov.u32 %r3, 7; mov.u32 %r4, 0; mov.u32 %r5, 1; mov.u32 %r20, FUEL;
"""


class ProgramMaker:
    """Makes a program of blocks that jump to any other block, until a counter has run down."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._blocks = self._random.randint(3, 10)
        self._tables: list[str] = []

    def make(self) -> str:
        blocks = [self._make_block(number) for number in range(self._blocks)]
        stores = " ".join(f"st.global.u32 [%d20+{4 * k}], %r{k + 1};" for k in range(_WORDS_PER_LANE))
        text = "\n".join((*self._tables, _BEGIN, *blocks, "END:", stores))
        return text.replace("FUEL", str(self._random.randint(8, 40)))

    def _register(self) -> str:
        return f"%r{self._random.randint(1, 5)}"

    def _source(self) -> str:
        return self._random.choice((self._register(), self._register(), str(self._random.randint(0, 9))))

    def _guard(self) -> str:
        return self._random.choice(("", "", "", "@%p1 ", "@!%p2 "))

    def _make_instruction(self) -> str:
        guard, choice = self._guard(), self._random.randint(0, 9)
        if choice == 0:
            return f"setp.{self._compare()}.u32 %p{self._random.randint(1, 3)}, {self._register()}, {self._source()};"
        if choice == 1:
            return f"{guard}selp.u32 {self._register()}, {self._register()}, {self._source()}, %p{self._random.randint(1, 3)};"
        if choice == 2:
            return f"{guard}st.global.u32 [%d20+{4 * self._random.randint(0, 3)}], {self._register()};"
        if choice == 3:
            return f"{guard}ld.global.u32 {self._register()}, [%d20+{4 * self._random.randint(0, 3)}];"
        if choice == 4:
            return f"{guard}mul.lo.u32 {self._register()}, {self._register()}, {self._source()};"
        name = self._random.choice(("add", "sub", "and", "or", "xor"))
        kind = "b32" if name in ("and", "or", "xor") else "u32"
        return f"{guard}{name}.{kind} {self._register()}, {self._register()}, {self._source()};"

    def _compare(self) -> str:
        return self._random.choice(("lt", "ge", "eq", "ne"))

    def _label(self) -> str:
        return self._random.choice(("END", *(f"B{number}" for number in range(self._blocks))))

    def _make_block(self, number: int) -> str:
        lines = [f"B{number}:", "sub.u32 %r20, %r20, 1;", "setp.eq.u32 %p9, %r20, 0;", "@%p9 bra END;"]
        lines += [self._make_instruction() for _ in range(self._random.randint(0, 5))]
        lines.append(f"and.b32 %r21, {self._register()}, {self._random.choice((1, 3, 7, 16))};")
        lines.append("setp.eq.u32 %p8, %r21, 0;")
        end = self._random.randint(0, 9)
        if end < 6:
            lines.append(f"@{self._random.choice(('', '!'))}%p8 bra {self._label()};")
        elif end == 6:
            lines.append(f"bra {self._label()};")
        elif end == 7:
            lines.append("@%p8 ret;")
        elif end == 8:
            self._tables.append(f"T{number}: .branchtargets {', '.join(self._label() for _ in range(4))};")
            lines.append(f"and.b32 %r22, {self._register()}, 3; @%p8 brx.idx %r22, T{number};")
        return "\n".join(lines)


@pytest.mark.parametrize("seed", range(60))
def test_lanes_that_jump_at_random_compute_what_each_computes_alone(seed: int) -> None:
    body = ProgramMaker(seed).make()
    grid, block = random.Random(seed).choice(((4, 64), (3, 100), (12, 32), (12, 32), (1, 7)))
    count = grid * block
    given = np.random.Generator(np.random.PCG64(seed)).integers(0, 64, count, dtype=np.uint32)
    if seed % 2:
        # Whole warps go the same way, so that few are left together and compacted; a lane here and there goes its own.
        body = body.replace("mov.u32 %r2, %r59;", "shr.u32 %r2, %r59, 5;")
        alone = np.arange(count) % 37 == (0 if seed % 3 else 99)
        given = np.where(alone, given, given[np.arange(count) % block // 32 + np.arange(count) // block])
    emulation = run_text(
        body,
        {"in": given, "out": np.zeros(count * _WORDS_PER_LANE, np.uint32)},
        grid=grid,
        block=block,
        trace=TraceSettings(),
    )
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == _compute_alone(body, given)
    assert emulation.trace is not None
    _check_trace(emulation.trace)


def _compute_alone(body: str, given: "np.ndarray[tuple[int], np.dtype[np.uint32]]") -> list[int]:
    function = build_module(body, ("d", "d")).functions["k"]
    slots = {name: slot for slot, name in enumerate(function.register_names)}
    start = next(
        one.index for one in function.instructions if one.text.startswith(("mov.u32 %r2, %r59", "shr.u32 %r2, %r59"))
    )
    out = []
    for lane, value in enumerate(given.tolist()):
        memory: dict[int, int] = {}
        registers = {slots["%r1"]: value, slots["%r59"]: lane, slots["%d20"]: 1 << 20}
        Lane(function, registers, memory).run(start)
        out += [memory.get((1 << 20) + 4 * k, 0) for k in range(_WORDS_PER_LANE)]
    return out


def _check_trace(trace: Trace) -> None:
    """Each execution of an instruction by a warp has one row with at least one lane, and as many addresses as lanes."""
    accesses = trace.accesses
    assert (accesses.lane_mask != 0).all()
    assert np.bitwise_count(accesses.lane_mask).sum() == len(accesses.addresses)
    keys = np.stack([accesses.block, accesses.warp, accesses.instruction, accesses.execution], axis=1)
    assert len(np.unique(keys, axis=0)) == len(keys)
    branches = trace.branches
    assert (branches.taken_mask & ~branches.active_mask == 0).all()
