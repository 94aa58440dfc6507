"""Races on shared memory are found where they are, and only there."""

import random

import numpy as np
import pytest

from gpa_lsp.execution.emulator.model import FaultKind
from tests.emulator.engine.running import run_text, zeros

_THREADS = 64
_WORDS = 8


class _Program:
    """Loads and stores of words that tables name, with barriers between; and what races among them, found pair by pair."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.table: list[int] = []
        self.steps = [self._make_step() for _ in range(self._random.randint(2, 7))]

    def _make_step(self) -> tuple[str, tuple[int, ...], tuple[bool, ...]]:
        kind = self._random.choice(("read", "read", "write", "write", "strong", "barrier"))
        if kind == "barrier":
            return kind, (), ()
        style = self._random.randint(0, 3)
        if style == 0:
            places = tuple(self._random.randrange(_WORDS) for _ in range(_THREADS))
        elif style == 1:
            places = (self._random.randrange(_WORDS),) * _THREADS
        else:
            places = tuple(thread // (_THREADS // _WORDS) for thread in range(_THREADS))
        least = self._random.choice((0, 0, 32, 60))
        return kind, places, tuple(thread >= least for thread in range(_THREADS))

    def render(self) -> str:
        lines = [
            f""".shared .align 4 .b8 tile[{4 * _WORDS}]; mov.u32 %r52, %tid.x; mov.u32 %r53, tile; mul.wide.u32 %d30, %r52, 4;
    setp.lt.u32 %p1, %r52, {_WORDS};""",
            "mad.lo.u32 %r54, %r52, 4, %r53; @%p1 st.shared.u32 [%r54], 0; bar.sync 0;",
        ]
        for number, (kind, places, active) in enumerate(self.steps):
            if kind == "barrier":
                lines.append("bar.sync 0;")
                continue
            offset = 4 * len(self.table)
            self.table += [place if on else 99 for place, on in zip(places, active, strict=True)]
            lines.append(
                f"add.u64 %d31, %d0, %d30; ld.global.u32 %r1, [%d31+{offset}]; setp.ne.u32 %p2, %r1, 99; mad.lo.u32 %r2, %r1, 4, %r53;"
            )
            access = {
                "read": "ld.shared.u32 %r3, [%r2];",
                "write": "st.shared.u32 [%r2], 7;",
                "strong": "ld.volatile.shared.u32 %r3, [%r2];" if number % 2 else "st.volatile.shared.u32 [%r2], 7;",
            }[kind]
            lines.append(f"@%p2 {access}")
        return "\n".join(lines)

    def find_races(self) -> set[int]:
        """Numbers of the steps that race with an earlier one, thread of one warp against thread of another."""
        found, interval = set(), []
        for number, (kind, places, active) in enumerate(self.steps):
            if kind == "barrier":
                interval = []
                continue
            writes = kind == "write" or (kind == "strong" and not number % 2)
            mine = [(thread, place) for thread, (place, on) in enumerate(zip(places, active, strict=True)) if on]
            for other_kind, other_writes, others in interval:
                if not (writes or other_writes) or kind == other_kind == "strong":
                    continue
                if any(
                    place == other and thread >> 5 != before >> 5 for thread, place in mine for before, other in others
                ):
                    found.add(number)
            interval.append((kind, writes, mine))
        return found


@pytest.mark.parametrize("seed", range(20))
def test_races_between_warps_are_those_found_pair_by_pair(seed: int) -> None:
    program = _Program(seed)
    body = program.render()
    expected = program.find_races()
    table = np.array(program.table or [0], np.uint32)
    emulation = run_text(body, {"table": table}, block=_THREADS, grid=3)
    accesses = [
        one.index
        for one in emulation.instructions
        if ".shared" in one.text and one.kind is not None and one.text[-3:] != " 0;"
    ]
    numbered = dict(zip(accesses[1:], (n for n, step in enumerate(program.steps) if step[0] != "barrier"), strict=True))
    races = {numbered[fault.instruction] for fault in emulation.faults if fault.kind is FaultKind.SHARED_RACE}
    others = {fault.kind for fault in emulation.faults} - {FaultKind.SHARED_RACE, FaultKind.WARP_RACE}
    assert others == set()
    # Only the last access of a word is remembered with each kind, so of several races at one step at least one is found.
    assert races <= expected
    assert bool(races) == bool(expected)
    assert not expected or min(expected) in races


def _find_kinds(body: str, **options: object) -> set[FaultKind]:
    return {fault.kind for fault in run_text(body, {"out": zeros(1)}, block=64, **options).faults}


_TILE = """.shared .align 8 .b8 tile[512]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; xor.b32 %r4, %r1, 1;
    mad.lo.u32 %r5, %r4, 4, %r2;"""


@pytest.mark.parametrize(
    ("between", "expected"), [("", {FaultKind.WARP_RACE}), ("bar.warp.sync 0xffffffff;", set()), ("bar.sync 0;", set())]
)
def test_lanes_of_a_warp_need_a_warp_barrier(between: str, expected: set[FaultKind]) -> None:
    assert _find_kinds(f"{_TILE} st.shared.u32 [%r3], %r1; {between} ld.shared.u32 %r6, [%r5];") == expected


def test_bytes_of_one_word_are_apart() -> None:
    body = f"{_TILE} add.u32 %r6, %r2, %r1; st.shared.u8 [%r6], %r1; ld.shared.u8 %r7, [%r6];"
    assert _find_kinds(body) == set()
    assert _find_kinds(body.replace("ld.shared.u8 %r7, [%r6]", "xor.b32 %r6, %r6, 63; ld.shared.u8 %r7, [%r6]")) == {
        FaultKind.SHARED_RACE
    }


def test_two_halves_of_a_wide_access_are_both_watched() -> None:
    body = f"""{_TILE} mad.lo.u32 %r6, %r1, 8, %r2; st.shared.v2.u32 [%r6], {{%r1, %r1}}; xor.b32 %r7, %r1, 32;
    mad.lo.u32 %r7, %r7, 8, %r2; ld.shared.u32 %r8, [%r7+4];"""
    assert _find_kinds(body) == {FaultKind.SHARED_RACE}


def test_atomic_operations_do_not_race_with_each_other() -> None:
    body = f"""{_TILE} setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], 0; bar.sync 0; atom.shared.add.u32 %r6, [%r2], 1;
    red.shared.max.u32 [%r2], 5;"""
    assert _find_kinds(body) == set()
    assert _find_kinds(body + "ld.shared.u32 %r7, [%r2];") == {FaultKind.SHARED_RACE, FaultKind.WARP_RACE}


def test_reading_what_nobody_wrote_is_said_once() -> None:
    body = f"""{_TILE} setp.lt.u32 %p1, %r1, 40; @%p1 st.shared.u32 [%r3], 1; bar.sync 0; mov.u32 %r9, 0; LOOP: ld.shared.u32 %r6, [%r3];
    add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 3; @%p2 bra LOOP;"""
    emulation = run_text(body, {"out": zeros(1)}, block=64, grid=2)
    (fault,) = emulation.faults
    assert fault.kind is FaultKind.UNINITIALISED
    assert fault.thread == (40, 0, 0)


def test_lanes_that_copy_other_words_to_one_place_race() -> None:
    body = """.shared .align 4 .b8 tile[64]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 7; shl.b32 %r3, %r2, 2; mov.u32 %r4, tile; add.u32 %r3, %r3, %r4;
    shr.u32 %r5, %r1, PART; mul.wide.u32 %d5, %r5, 4; add.u64 %d6, %d0, %d5; cp.async.ca.shared.global [%r3], [%d6], 4; cp.async.wait_all;"""
    given = np.repeat(np.arange(2, dtype=np.uint32), 32)
    for part, kinds in ((6, set()), (0, {FaultKind.SHARED_RACE})):
        emulation = run_text(body.replace("PART", str(part)), {"in": given}, block=64)
        assert {fault.kind for fault in emulation.faults} == kinds


def test_checks_can_be_switched_off() -> None:
    assert _find_kinds(f"{_TILE} st.shared.u32 [%r2], %r1; ld.shared.u32 %r6, [%r5];", check_races=False) == set()


def test_programs_of_the_oracle_differ() -> None:
    found = [bool(_Program(seed).find_races()) for seed in range(40)]
    assert any(found)
    assert not all(found)
