"""Slices: what a use sees through guards, scoreboards, joins and loops; against a walk of one instruction at a time."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.def_use import UNCONDITIONAL, find_def_use, number_scoreboard
from gpa_lsp.diagnosis.blame.paths import ShortestPaths
from gpa_lsp.diagnosis.blame.slicing import MOST_SOURCES, Slicer
from gpa_lsp.diagnosis.blame.view import FunctionView, OutOfWorkError, WorkBudget
from tests.blame.programs import programs
from tests.blame.written_views import view_text
from tests.conftest import examples

P0, P1, UP0, UR4 = 512, 513, 768, 260


def make_slicer(view: FunctionView, *, reach: float = float("inf"), work: int = 10**9) -> Slicer:
    budget = WorkBudget(remaining=work)
    paths = ShortestPaths(view.blocks, budget)
    def_use = find_def_use(view)
    return Slicer(view, def_use, paths=paths, find_reach=lambda row, resource: reach, budget=budget)


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("MOV R2, R3; MOV R2, R4; IADD3 R6, R2, R2, RZ", {2: {1: (2,)}}),
        # a guarded def lets the one before it through to an unguarded use, until the conditions cover the use
        ("MOV R0, R9; @!P0 LDC R0, c[0x0][R4]; @P0 LDG.E R0, [R2.64]; IADD3 R6, R0, R7, RZ", {3: {1: (0,), 2: (0,)}}),
        ("MOV R0, R9; @P1 MOV R0, R8; @P0 MOV R0, R7; IADD3 R6, R0, R5, RZ", {3: {0: (0,), 1: (0,), 2: (0,)}}),
        # a def under the condition of the use ends the search, one under another does not
        ("MOV R0, R9; @P0 MOV R0, R8; @P0 IADD3 R6, R0, R5, RZ", {2: {1: (0,)}}),
        ("MOV R0, R9; @!P0 MOV R0, R8; @P0 IADD3 R6, R0, R5, RZ", {2: {0: (0,), 1: (0,)}}),
        # a predicate written in between is another condition
        (
            "MOV R0, R9; @P0 MOV R0, R8; ISETP.LT.AND P0, PT, R4, R5, PT; @P0 IADD3 R6, R0, R5, RZ",
            {3: {0: (0,), 1: (0,), 2: (P0,)}},
        ),
        (
            "MOV R0, R9; @P0 MOV R0, R8; ISETP.LT.AND P0, PT, R4, R5, PT; @!P0 MOV R0, R7; MOV R6, R0",
            {4: {0: (0,), 1: (0,), 3: (0,)}},
        ),
        # a def that rewrites its own guard was guarded by the value before
        (
            "ISETP.LT.AND P0, PT, R4, R5, PT; @P0 ISETP.LT.AND P0, PT, R6, R7, PT; @P0 MOV R0, R8",
            {2: {0: (P0,), 1: (P0,)}},
        ),
        # a def overwritten under its own condition is not seen
        ("MOV R0, R9; @P0 MOV R0, R8; @P0 MOV R0, R7; IADD3 R6, R0, R5, RZ", {3: {0: (0,), 2: (0,)}}),
        # guards, uniform registers and uniform predicates are used like registers
        (
            "UISETP.LT.AND UP0, UPT, UR6, UR7, UPT; UIADD3 UR4, UR6, 0x1, URZ; ISETP.LT.AND P0, PT, R4, R5, PT; "
            "@P0 IADD3 R6, R2, UR4, RZ; @UP0 UIADD3 UR4, UR4, 0x1, URZ",
            {3: {1: (UR4,), 2: (P0,)}, 4: {0: (UP0,), 1: (UR4,)}},
        ),
        ("R2P PR, R4, 0x3; @P0 MOV R6, R7; @!P1 MOV R6, R7", {1: {0: (P0,)}, 2: {0: (P1,)}}),
        ("LDG.E.64 R2, [R4.64]; DADD R6, R2, R8", {1: {0: (2, 3)}}),
        # a scoreboard is a register that setting defines and waiting uses
        (
            "B-:R-:W0:-:S02 LDG.E R0, [R2.64]; B-:R1:W-:-:S02 STG.E [R4.64], R8; B01:R-:W-:-:S05 BRA 0x0",
            {2: {0: (number_scoreboard(0),), 1: (number_scoreboard(1),)}},
        ),
        ("B-:R-:W3:-:S02 LDGDEPBAR; DEPBAR.LE SB3, 0x1", {1: {0: (number_scoreboard(3),)}}),
        # defs of both arms reach the join, and a loop carries a value round to the instruction itself
        ("@P0 BRA other; MOV R0, R8; BRA join; other:; MOV R0, R7; join:; MOV R6, R0", {4: {1: (0,), 3: (0,)}}),
        ("MOV R0, RZ; top:; IADD3 R0, R0, 0x1, RZ; @P0 BRA top; EXIT", {1: {0: (0,), 1: (0,)}}),
        # calls are stepped over, and entries end the search
        (
            "MOV R0, R9; CALL.REL.NOINC `($kernel$helper); MOV R6, R0; EXIT; $kernel$helper:; MOV R5, R0; "
            "RET.REL.NODEC R20 `(kernel)",
            {2: {0: (0,)}, 4: {}},
        ),
    ],
)
def test_what_a_use_sees(text: str, sources: dict[int, dict[int, tuple[int, ...]]]) -> None:
    slicer = make_slicer(view_text(text.replace("; ", "\n")))
    assert {row: slicer.find_sources(row) for row in sources} == sources


def test_what_many_defs_reach_is_cut_but_for_the_near_ones():
    arms = "\n".join(f"@P0 BRA a{row}\nMOV R0, R9\na{row}:" for row in range(3 * MOST_SOURCES))
    view = view_text(f"{arms}\nMOV R6, R0")
    use = len(view) - 1
    every = [2 * row + 1 for row in range(3 * MOST_SOURCES)]
    assert sorted(make_slicer(view).find_sources(use)) == every
    near = make_slicer(view, reach=5).find_sources(use)
    assert {use - 1, use - 3} <= set(near) <= set(every)
    assert len(near) <= MOST_SOURCES + 2
    straight = view_text("\n".join(["@P0 MOV R0, R9\nISETP.LT.AND P0, PT, R4, R5, PT"] * 60 + ["MOV R6, R0"]))
    assert sorted(make_slicer(straight).find_sources(120)) == list(range(0, 120, 2))
    assert sorted(make_slicer(straight, reach=30).find_sources(120))[-15:] == list(range(90, 120, 2))


def test_a_spent_budget_stops_the_search():
    view = view_text("MOV R0, RZ\ntop:\nIADD3 R0, R0, 0x1, RZ\n@P0 BRA top\nEXIT")
    with pytest.raises(OutOfWorkError):
        make_slicer(view, work=10).find_sources(1)


def walk_back(view: FunctionView, row: int, resource: int, condition: int, reach: float = float("inf")) -> set[int]:
    """The defs that a use sees at most so many instructions before it, by the rules: level by level, one instruction and one path state at a time."""
    def_use = find_def_use(view)
    writes = [set(view.instructions.writes.of(one)) for one in range(len(view))]
    found: set[int] = set()
    level = {(before, condition, frozenset[int]()) for before in view.graph.previous_instructions(row)}
    seen = set(level)
    steps = 0
    while level and steps < reach:
        steps += 1
        following = set()
        for at, asked, covered in level:
            open_condition = UNCONDITIONAL if asked != UNCONDITIONAL and asked >> 1 in writes[at] else asked
            kept = frozenset(one for one in covered if one >> 1 not in writes[at])
            if at in def_use.definitions.get(resource, ()):
                own = def_use.condition[at]
                if own not in kept:
                    found.add(at)
                if own in (UNCONDITIONAL, open_condition) or own ^ 1 in kept:
                    continue
                kept |= {own}
            following |= {(before, open_condition, kept) for before in view.graph.previous_instructions(at)}
        level = following - seen
        seen |= following
    return found


@examples(80)
@given(programs(longest=14), st.booleans())
def test_slices_are_those_of_a_walk_over_single_instructions(text: str, with_frontiers: bool):
    view = view_text(text)
    with pytest.MonkeyPatch.context() as patch:
        if not with_frontiers:
            patch.setattr("gpa_lsp.diagnosis.blame.slicing.MOST_FRONTIER_STEPS_PER_BLOCK", 0)
        compare_slices(view)


def compare_slices(view: FunctionView) -> None:
    def_use = find_def_use(view)
    slicer = make_slicer(view)
    for row in range(len(view)):
        expected: dict[int, set[int]] = {}
        for resource in def_use.uses[row]:
            asked = UNCONDITIONAL if resource == view.flow.guard_of[row] else def_use.condition[row]
            for definition in walk_back(view, row, resource, asked):
                expected.setdefault(definition, set()).add(resource)
        found: dict[int, Collection[int]] = {one: set(used) for one, used in slicer.find_sources(row).items()}
        assert found == expected


@examples(80)
@given(programs(longest=20), st.integers(1, 12))
def test_of_a_crowd_of_defs_all_near_ones_are_seen(text: str, reach: int):
    view = view_text(text)
    def_use = find_def_use(view)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpa_lsp.diagnosis.blame.slicing.MOST_SOURCES", 1)
        slicer = make_slicer(view, reach=reach)
        for row in range(len(view)):
            for resource in def_use.uses[row]:
                asked = UNCONDITIONAL if resource == view.flow.guard_of[row] else def_use.condition[row]
                found = set(slicer.find_definitions(row, resource, asked))
                assert walk_back(view, row, resource, asked, reach) <= found <= walk_back(view, row, resource, asked)


@examples(80)
@given(programs(longest=20))
def test_defs_of_the_own_block_are_known_beforehand(text: str):
    view = view_text(text)
    def_use = find_def_use(view)
    for row, used in enumerate(def_use.uses):
        first = int(view.graph.first_instruction[view.graph.block_of_instruction[row]])
        for resource, near in zip(used, def_use.near[row], strict=True):
            before = [one for one in def_use.definitions.get(resource, ()) if first <= one < row]
            assert near == (before[-1] if before and resource not in def_use.guarded else -1)
