"""Definitions and uses of values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.report.code_index import CodeIndex
from gpa_lsp.report.code_queries import MOST_BLOCKS, MOST_ROWS, FoundRows, find_defs, find_uses, find_web
from gpa_lsp.report.count import build_kernel_code
from gpa_lsp.report.model import KernelCode
from tests.report.code_oracle import find_all_uses
from tests.rows.written import write_kernel

P0 = encode_resource(ResourceKind.PREDICATE, 0)


def build(text: str) -> KernelCode:
    return build_kernel_code(write_kernel(text))


def found(*rows: int, outside: bool = False, past: tuple[int, ...] = ()) -> FoundRows:
    return FoundRows(rows=rows, is_from_outside=outside, past_calls=past, is_complete=True)


LOOP = build("""
        MOV R0, RZ                              // 0
    loop:
        LDG.E R2, [R4.64]                       // 1
        FFMA R0, R2, R3, R0                     // 2
        IADD3 R4, R4, 0x4, RZ                   // 3
        ISETP.LT.AND P0, PT, R4, R8, PT         // 4
        @P0 BRA loop                            // 5
        STG.E [R6.64], R0                       // 6
        EXIT                                    // 7
""")


def test_values_go_around_loops() -> None:
    assert find_defs(LOOP, 2, 0) == found(0, 2)
    assert find_uses(LOOP, 2, 0) == found(2, 6)
    assert find_defs(LOOP, 1, 4) == found(3, outside=True)
    assert find_uses(LOOP, 3, 4) == found(1, 3, 4)
    assert find_defs(LOOP, 5, P0) == found(4)
    assert find_defs(LOOP, 6, 6) == found(outside=True)


def test_a_guarded_write_may_not_happen() -> None:
    code = build("""
        MOV R1, R5          // 0
        @P0 MOV R1, R6      // 1
        IADD3 R2, R1, R1, RZ
        EXIT
    """)
    assert find_defs(code, 2, 1) == found(0, 1)
    assert (find_uses(code, 0, 1), find_uses(code, 1, 1)) == (found(2), found(2))


def test_guards_of_one_predicate_are_told_apart() -> None:
    code = build("""
        MOV R1, R5                              // 0
        @P0 MOV R1, R6                          // 1
        @P0 IADD3 R2, R1, 0x1, RZ               // 2 sees 1 alone
        @!P0 IADD3 R2, R1, 0x1, RZ              // 3 sees 0 alone
        @!P0 MOV R1, R7                         // 4 with 1 covers everything
        IADD3 R3, R1, R2, RZ                    // 5
        ISETP.LT.AND P0, PT, R4, R8, PT         // 6
        @P0 IADD3 R3, R1, R2, RZ                // 7 may be under another P0
        EXIT
    """)
    assert [find_defs(code, row, 1).rows for row in (2, 3, 5, 7)] == [(1,), (0,), (1, 4), (1, 4)]
    assert find_defs(code, 5, 2) == found(2, 3)
    assert [find_uses(code, row, 1).rows for row in (0, 1, 4)] == [(3,), (2, 5, 7), (5, 7)]


def test_local_functions_are_followed_and_left_where_they_were_entered() -> None:
    code = build("""
        MOV R1, R5                          // 0
        CALL.REL.NOINC `($twice)            // 1
        IADD3 R2, R1, R3, RZ                // 2
        MOV R1, R6                          // 3
        CALL.REL.NOINC `($twice)            // 4
        IADD3 R2, R1, R3, RZ                // 5
        EXIT                                // 6
    $twice:
        @P0 IADD3 R1, R1, R1, RZ            // 7
        RET.REL.NODEC R20 0x0               // 8
    """)
    assert find_defs(code, 2, 1) == found(0, 7)
    assert find_defs(code, 5, 1) == found(3, 7)
    assert find_defs(code, 7, 1) == found(0, 3)
    assert find_uses(code, 7, 1) == found(2, 5)
    assert find_uses(code, 0, 1) == found(2, 7)
    assert find_defs(code, 5, 3) == found(outside=True)


def test_calls_elsewhere_are_named() -> None:
    code = build("""
        MOV R1, R5                          // 0
        CALL.REL.NOINC `(helper)            // 1
        IADD3 R2, R1, R3, RZ                // 2
        EXIT                                // 3
    [helper]
        IADD3 R4, R4, 0x1, RZ               // 4
        RET.REL.NODEC R20 0x0               // 5
    """)
    assert find_defs(code, 2, 1) == found(0, past=(1,))
    assert find_uses(code, 0, 1) == found(2, past=(1,))
    assert find_defs(code, 4, 4) == found(outside=True)
    assert find_uses(code, 4, 4) == found(outside=True)


def test_a_web_is_what_one_variable_would_be() -> None:
    web = ((0, 2), (2, 6))
    assert [find_web(LOOP, row, 0, is_written=True) for row in (0, 2)] == [web, web]
    assert [find_web(LOOP, row, 0, is_written=False) for row in (2, 6)] == [web, web]
    assert find_web(LOOP, 3, 4, is_written=False) == ((3,), (1, 3, 4))


def test_large_webs_are_cut() -> None:
    steps = "\n".join(f"@P{number % 7} IADD3 R1, R1, 0x1, RZ" for number in range(2 * MOST_ROWS))
    defs, uses = find_web(build(f"MOV R1, RZ\n{steps}\nEXIT"), 0, 1, is_written=True)
    assert MOST_ROWS <= len(defs) + len(uses) < 2 * MOST_ROWS


def test_questions_about_too_many_blocks_are_cut() -> None:
    arms = "\n".join(f"@P0 BRA l{number}\nMOV R1, R8\nl{number}:" for number in range(2 * MOST_BLOCKS))
    answer = find_uses(build(f"MOV R1, RZ\n{arms}\nSTG.E [R4.64], R1\nEXIT"), 0, 1)
    assert not answer.is_complete and answer.blocks == MOST_BLOCKS


def test_recursion_ends() -> None:
    code = build("""
        MOV R1, R5                          // 0
        CALL.REL.NOINC `($down)             // 1
        STG.E [R6.64], R1                   // 2
        EXIT                                // 3
    $down:
        @P0 IADD3 R1, R1, -0x1, RZ          // 4
        @P1 CALL.REL.NOINC `($down)         // 5
        IADD3 R2, R1, R2, RZ                // 6
        RET.REL.NODEC R20 0x0               // 7
    """)
    assert find_defs(code, 2, 1) == found(0, 4)
    assert find_defs(code, 4, 1) == found(0, 4)
    assert find_uses(code, 0, 1) == found(2, 4, 6)


def test_endless_loops_are_not_passed_over() -> None:
    code = build("""
        MOV R1, R5                          // 0
        @P0 BRA on                          // 1
        @P1 BRA stay                        // 2
    on:
        EXIT                                // 3
    stay:
        IADD3 R2, R2, R1, RZ                // 4
        BRA stay                            // 5
    """)
    assert find_uses(code, 0, 1) == found(4)


def test_code_nothing_leads_to_sees_only_itself() -> None:
    code = build("""
        MOV R1, R5                          // 0
        BRA end                             // 1
        MOV R1, R6                          // 2
        IADD3 R2, R1, RZ, RZ                // 3
    end:
        STG.E [R6.64], R1                   // 4
        EXIT                                // 5
    """)
    assert (find_defs(code, 4, 1), find_defs(code, 3, 1)) == (found(0), found(2))
    assert (find_uses(code, 0, 1), find_uses(code, 2, 1)) == (found(4), found(3))


def test_answers_have_a_limit() -> None:
    arms = "\n".join(f"@P0 BRA l{number}\nMOV R1, R{number % 8 + 2}\nl{number}:" for number in range(2 * MOST_ROWS))
    code = build(f"MOV R1, RZ\n{arms}\nSTG.E [R4.64], R1\nEXIT")
    last = len(code.guard) - 2
    answer = find_defs(code, last, 1)
    assert not answer.is_complete and len(answer.rows) == MOST_ROWS
    assert find_defs(code, last, 4) == found(outside=True)


@st.composite
def programs(draw: st.DrawFn, longest: int = 9) -> str:
    """A kernel and two local functions, of which the kernel and the first may call the later ones; jumps stay inside each."""
    names = ["kernel", "$one", "$two"][: draw(st.integers(1, 3))]
    lines = []
    for place, name in enumerate(names):
        callees = names[place + 1 :]
        lines += [f"{name}:"] if place else []
        count = draw(st.integers(1, longest))
        labels = [f"l{place}_{row}" for row in range(count)]
        for label in labels:
            lines += [f"{label}:", draw(instructions(labels, callees, returns=place > 0))]
        lines.append("RET.REL.NODEC R20 0x0" if place else "EXIT")
    return "\n".join(lines)


@st.composite
def instructions(draw: st.DrawFn, labels: list[str], callees: list[str], *, returns: bool) -> str:
    kinds = ["write"] * 6 + ["compare", "jump", "exit"] + ["call"] * 2 * bool(callees) + ["return"] * returns
    kind = draw(st.sampled_from(kinds))
    guard = draw(st.sampled_from(["", "", "@P0 ", "@!P0 ", "@P1 "]))
    if kind == "jump":
        return f"{guard}BRA {draw(st.sampled_from(labels))}"
    if kind == "exit":
        return "@P0 EXIT"
    if kind == "call":
        return f"{guard}CALL.REL.NOINC `({draw(st.sampled_from(callees))})"
    if kind == "return":
        return f"{guard}RET.REL.NODEC R20 0x0"
    one, other, third = (draw(st.integers(0, 1)) for _ in range(3))
    if kind == "compare":
        return f"{guard}ISETP.LT.AND P{one}, PT, R{other}, R{third}, PT"
    return f"{guard}IADD3 R{one}, R{other}, R{third}, RZ"


@given(programs())
def test_answers_are_those_of_trying_every_run(text: str) -> None:
    code = build(text)
    resources = (0, 1, P0, P0 + 1)
    every = range(len(code.guard))
    seen_by: dict[tuple[int, int], set[int]] = {}
    for resource in resources:
        for row in every:
            if resource not in code.writes.of(row):
                continue
            uses, leaves = find_all_uses(code, row, resource)
            answer = find_uses(code, row, resource)
            assert (set(answer.rows), answer.is_from_outside) == (uses, leaves), (row, resource)
            for use in uses:
                seen_by.setdefault((use, resource), set()).add(row)
        for row in every:
            if resource in code.reads.of(row):
                assert set(find_defs(code, row, resource).rows) == seen_by.get((row, resource), set()), (row, resource)


@given(programs(longest=25))
def test_passing_over_blocks_changes_nothing(text: str) -> None:
    code = build(text)
    questions = [
        (ask, row, resource)
        for resource in (0, 1, P0)
        for row in range(len(code.guard))
        for ask, lists in ((find_defs, code.reads), (find_uses, code.writes))
        if resource in lists.of(row)
    ]
    quick = [ask(code, row, resource) for ask, row, resource in questions]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("climb_back", "climb_on"):
            patch.setattr(CodeIndex, name, lambda self, block, resource: block)
        assert [ask(code, row, resource) for ask, row, resource in questions] == quick
