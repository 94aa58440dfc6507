"""What could stand between a def and its use."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.kernel.dataflow.reordering.slack import Hold, Slack, SlackFinder, TurnSlack
from gpa_lsp.kernel.model import Kernel
from tests.rows.written import write_kernel


def find(text: str, def_row: int, use_row: int) -> Slack:
    found = SlackFinder(write_kernel(text).rows).find(def_row, use_row)
    assert found is not None
    return found


def find_next_turn(text: str, def_row: int, use_row: int) -> TurnSlack | None:
    return SlackFinder(write_kernel(text).rows).find_next_turn(def_row, use_row)


def rows(slack: Slack) -> tuple[list[int], list[int]]:
    """Rows above the def and below the use."""
    return slack.def_track.rows_of(slack.above).tolist(), slack.use_track.rows_of(slack.below).tolist()


STRAIGHT = """
    MOV R4, c[0x0][0x160]     # selected=1
    MOV R5, c[0x0][0x164]     # selected=1
    FADD R9, R10, R11         # selected=7
    FADD R12, R9, R11         # selected=8
    LDG.E R2, [R4.64]         # selected=1
    FADD R3, R2, R1           # long_scoreboard=100
    FADD R6, R3, R1           # selected=1
    FMUL R7, R10, R11         # selected=3
    EXIT
"""


def test_independent_instructions_before_the_def_and_behind_the_use_count() -> None:
    slack = find(STRAIGHT, 4, 5)
    assert rows(slack) == ([2, 3], [7])
    assert (slack.active_samples, slack.instructions) == (18, 3)
    assert slack.earliest_row == 2
    assert (slack.hold, slack.hold_row) == (Hold.OPERAND, 1)


def test_latency_samples_fill_nothing() -> None:
    slack = find(STRAIGHT.replace("selected=7", "selected=7 wait=50"), 4, 5)
    assert slack.active_samples == 18


def test_an_address_made_at_the_last_moment_moves_up_with_its_load() -> None:
    slack = find(
        """
        FADD R9, R10, R11
        FADD R9, R9, R11
        IADD3 R4, R4, 0x4, RZ
        LDG.E R2, [R4.64]
        FADD R3, R2, R1
        EXIT
        """,
        3,
        4,
    )
    assert rows(slack) == ([0, 1], [])
    assert (slack.earliest_row, slack.hold, slack.hold_row) == (0, Hold.OPERAND, 2)


STORE_BEFORE = """
    FADD R9, R10, R11
    STG.E [R6.64], R9
    FADD R12, R9, R11
    LDG.E R2, [R4.64]
    FADD R3, R2, R1
    EXIT
"""


def test_a_store_that_may_write_what_is_read_stays_before_the_load() -> None:
    slack = find(STORE_BEFORE, 3, 4)
    assert rows(slack) == ([2], [])
    assert (slack.hold, slack.hold_row) == (Hold.STORE, 1)


@pytest.mark.parametrize("store", ["STS [R6], R9", "STL [R6], R9"])
def test_a_store_to_other_memory_does_not(store: str) -> None:
    slack = find(STORE_BEFORE.replace("STG.E [R6.64], R9", store), 3, 4)
    assert rows(slack) == ([0, 1, 2], [])
    assert (slack.hold, slack.hold_row) == (Hold.START, None)


def test_a_generic_store_may_write_any_memory() -> None:
    slack = find(STORE_BEFORE.replace("STG.E", "ST.E"), 3, 4)
    assert rows(slack) == ([2], [])


def test_a_load_of_read_only_memory_passes_every_store() -> None:
    slack = find(STORE_BEFORE.replace("LDG.E", "LDG.E.CONSTANT"), 3, 4)
    assert rows(slack) == ([0, 1, 2], [])


def test_a_store_stays_behind_a_load_that_may_read_what_it_writes() -> None:
    text = """
        LDG.E R2, [R4.64]
        FADD R3, R2, R1
        STG.E [R6.64], R9
        STS [R6], R9
        EXIT
    """
    assert rows(find(text, 0, 1)) == ([], [3])


BARRIER = """
    STS [R6], R9
    FADD R12, R9, R11
    BAR.SYNC 0x0
    FADD R13, R9, R11
    LDS R2, [R4]
    FADD R3, R2, R1
    FADD R14, R9, R11
    BAR.SYNC 0x0
    FADD R15, R9, R11
    EXIT
"""


def test_nothing_crosses_a_barrier() -> None:
    slack = find(BARRIER, 4, 5)
    assert rows(slack) == ([3], [6])
    assert (slack.hold, slack.hold_row) == (Hold.BARRIER, 2)


def test_a_block_barrier_without_a_store_before_it_holds_no_load() -> None:
    slack = find(BARRIER.replace("LDS R2", "LDG.E R2"), 4, 5)
    assert rows(slack)[0] == [0, 1, 3]
    slack = find(BARRIER.replace("LDS R2", "LDG.E R2").replace("BAR.SYNC 0x0", "MEMBAR.SC.GPU"), 4, 5)
    assert rows(slack)[0] == [3]


def test_a_call_holds_everything() -> None:
    slack = find(
        """
        FADD R12, R9, R11
        CALL.REL.NOINC `($kernel$helper)
        FADD R13, R9, R11
        LDG.E.CONSTANT R2, [R4]
        FADD R3, R2, R1
        EXIT
    $kernel$helper:
        RET.REL.NODEC R20 `(kernel)
        """,
        3,
        4,
    )
    assert rows(slack) == ([2], [])


def test_an_exit_is_not_passed() -> None:
    slack = find(
        """
        FADD R12, R9, R11
        @P0 EXIT
        FADD R13, R9, R11
        LDG.E.CONSTANT R2, [R4]
        FADD R3, R2, R1
        EXIT
        """,
        3,
        4,
    )
    assert rows(slack) == ([2], [])


def test_a_guarded_write_keeps_what_was_there_before() -> None:
    text = """
        FADD R4, R9, R11
        @P0 FADD R4, R9, R12
        FADD R13, R9, R11
        LDG.E R2, [R4]
        FADD R3, R2, R1
        EXIT
    """
    assert rows(find(text, 3, 4)) == ([2], [])


def test_a_guarded_load_does_not_need_the_one_of_the_turn_before() -> None:
    turn = find_next_turn(TURN.replace("LDG.E", "@P3 LDG.E"), 1, 4)
    assert turn is not None
    assert not turn.is_recurrent
    assert turn.track.rows_of(turn.steps).tolist() == [5, 6, 7]


def test_many_conditional_writers_are_all_needed() -> None:
    guarded = "\n".join("@P0 FADD R4, R9, R12" for _ in range(12))
    text = f"FADD R4, R9, R11\n{guarded}\nFADD R13, R9, R11\nLDG.E R2, [R4]\nFADD R3, R2, R1\nEXIT"
    assert rows(find(text, 14, 15)) == ([13], [])


def test_a_use_in_another_block_can_let_pass_what_needs_neither_it_nor_the_def() -> None:
    slack = find(
        """
        FADD R12, R9, R11
        LDG.E R2, [R4]
        @P0 BRA over
        FADD R5, R9, R11
    over:
        BRA 0x50
        MUFU.RCP R6, R2
        FADD R7, R6, R11
        FADD R8, R2, R11
        FADD R9, R10, R11
        EXIT
        """,
        1,
        5,
    )
    assert rows(slack) == ([0], [8])


TURN = """
    MOV R8, RZ
loop:
    LDG.E.CONSTANT R0, [R4.64]        # selected=1
    IADD3 R8, R8, 0x1, RZ             # selected=1
    IADD3 R4, R4, 0x4, RZ             # selected=1
    FFMA R0, R11, R12, R0             # long_scoreboard=90 selected=1
    FMUL R11, R0, R0                  # selected=10
    ISETP.GE.AND P0, PT, R8, R9, PT   # selected=1
    @!P0 BRA loop                     # selected=1
    EXIT
"""


def test_within_a_turn_a_load_that_opens_it_has_no_room() -> None:
    slack = find(TURN, 1, 4)
    assert rows(slack) == ([], [6])
    assert (slack.hold, slack.hold_row) == (Hold.START, None)


def test_a_load_of_the_next_turn_runs_beside_the_rest_of_this_one() -> None:
    turn = find_next_turn(TURN, 1, 4)
    assert turn is not None
    assert turn.track.rows_of(turn.steps).tolist() == [5, 6, 7]
    assert turn.active_samples == 12
    assert not turn.is_recurrent
    assert not turn.needs_use
    assert (turn.hold, turn.hold_row) == (Hold.OPERAND, 3)


def test_a_list_that_is_walked_cannot_be_fetched_ahead_of_itself() -> None:
    turn = find_next_turn(TURN.replace("IADD3 R4, R4, 0x4, RZ", "IADD3 R4, R0, 0x4, RZ"), 1, 3)
    assert turn is not None
    assert turn.is_recurrent
    assert turn.needs_use
    assert turn.track.rows_of(turn.steps).tolist() == [4, 5, 6, 7]


def test_a_store_in_the_turn_keeps_the_next_load_behind_it() -> None:
    text = TURN.replace("FMUL R11, R0, R0 ", "STG.E [R6.64], R0 ")
    turn = find_next_turn(text.replace(".CONSTANT", ""), 1, 4)
    assert turn is not None
    assert not turn.is_recurrent
    assert turn.needs_use
    assert (turn.order, turn.order_row) == (Hold.STORE, 5)
    assert (turn.hold, turn.hold_row) == (Hold.STORE, 5)
    assert turn.track.rows_of(turn.steps).tolist() == [6, 7]
    free = find_next_turn(text, 1, 4)
    assert free is not None
    assert not free.needs_use


def test_a_barrier_holds_the_next_turns_load_of_what_is_stored() -> None:
    text = TURN.replace("FMUL R11, R0, R0 ", "BAR.SYNC 0x0 ").replace("LDG.E.CONSTANT", "LDS")
    stored = text.replace("IADD3 R8, R8, 0x1, RZ ", "STS [R20], R21 ")
    assert find_hold(text) == Hold.OPERAND
    assert find_hold(stored) == Hold.BARRIER


def find_hold(text: str) -> Hold:
    turn = find_next_turn(text, 1, 4)
    assert turn is not None
    return turn.hold


def test_a_use_of_the_turn_before_has_what_lies_outside_between_them() -> None:
    text = """
    loop:
        FFMA R0, R11, R12, R7             # selected=1
        IADD3 R8, R8, 0x1, RZ             # selected=2
        FADD R20, R21, R22                # selected=3
        IADD3 R4, R4, 0x4, RZ             # selected=4
        LDG.E.CONSTANT R7, [R4.64]        # selected=5
        FMUL R11, R0, R0                  # selected=10
        @!P0 BRA loop                     # selected=1
        EXIT
    """
    # Not the FMUL: it is between the load and the next turn's FFMA already.
    assert rows(find(text, 4, 0)) == ([1, 2], [3])
    turn = find_next_turn(text, 4, 0)
    assert turn is not None
    assert turn.track.rows_of(turn.steps).tolist() == [1, 2]


BRANCHES = """
loop:
    FADD R20, R21, R22
    @P1 BRA skip
    FADD R23, R24, R25
skip:
    LDG.E.CONSTANT R0, [R4.64]
    FFMA R0, R11, R12, R0
    @!P0 BRA loop
    EXIT
"""


def test_code_that_a_turn_may_skip_can_be_passed_as_a_whole() -> None:
    assert rows(find(BRANCHES, 3, 4)) == ([0, 2], [])


def test_unless_it_makes_the_address() -> None:
    assert rows(find(BRANCHES.replace("FADD R23,", "FADD R4,"), 3, 4)) == ([0], [])


def test_a_way_out_of_the_loop_is_passed_only_to_anticipate_a_turn() -> None:
    text = BRANCHES.replace("@P1 BRA skip", "@P1 BRA out").replace("    EXIT", "out:\n    EXIT")
    assert rows(find(text, 3, 4)) == ([2], [])
    turn = find_next_turn(text, 3, 4)
    assert turn is not None
    assert turn.track.rows_of(turn.steps).tolist() == [0, 1, 2, 5]


def test_an_inner_loop_is_one_step() -> None:
    text = """
    outer:
        FADD R20, R21, R22
    inner:
        FADD R23, R24, R25
        @P1 BRA inner
        LDG.E.CONSTANT R0, [R4.64]
        FFMA R0, R11, R12, R0
        @!P0 BRA outer
        EXIT
    """
    slack = find(text, 3, 4)
    assert rows(slack) == ([0, 1, 2], [])
    assert slack.instructions == 3


def test_what_a_loop_may_not_reach_has_a_place_of_its_own() -> None:
    text = BRANCHES.replace("FADD R23, R24, R25", "LDG.E R23, [R24]\n FADD R26, R23, R25\n FADD R27, R25, R25")
    assert rows(find(text, 2, 3)) == ([], [4])
    assert find_next_turn(text, 2, 3) is None


def test_regions_are_covered_once() -> None:
    finder = SlackFinder(write_kernel(STRAIGHT).rows)
    one, other = finder.find(4, 5), finder.find(4, 6)
    assert one is not None
    assert other is not None
    assert finder.cover([one, other]).nonzero()[0].tolist() == [2, 3, 7]


def test_without_a_disassembly_nothing_is_known() -> None:
    kernel = write_kernel(STRAIGHT)
    bare = without_text(kernel)
    assert SlackFinder(bare.rows).find(4, 5) is None


def without_text(kernel: Kernel) -> Kernel:
    functions = tuple(replace(one, instructions=None, graph=None) for one in kernel.functions)
    return replace(kernel, functions=functions)


@st.composite
def straight_code(draw: st.DrawFn) -> list[tuple[int, int, int, str]]:
    register = st.sampled_from([2, 4, 6, 8, 10, 12])  # even: an address takes a pair
    kind = st.sampled_from(["FADD", "LDG.E", "STG.E", "LDS", "STS"])
    return draw(st.lists(st.tuples(register, register, register, kind), min_size=3, max_size=30))


def write(code: list[tuple[int, int, int, str]]) -> str:
    forms = {
        "FADD": "FADD R{0}, R{1}, R{2}",
        "LDG.E": "LDG.E R{0}, [R{1}]",
        "STG.E": "STG.E [R{1}], R{2}",
        "LDS": "LDS R{0}, [R{1}]",
        "STS": "STS [R{1}], R{2}",
    }
    return "\n".join(forms[kind].format(*registers) for *registers, kind in code) + "\nEXIT"


def depend_directly(code: list[tuple[int, int, int, str]]) -> list[set[int]]:
    """Row → rows it needs, straight from the definition."""
    found = []
    for row, (_, first, second, kind) in enumerate(code):
        needed = set()
        sources = {first} if kind in ("LDG.E", "LDS") else {first, second}
        for source in sources:
            writers = [w for w in range(row) if code[w][0] == source and code[w][3] in ("FADD", "LDG.E", "LDS")]
            needed.update(writers[-1:])
        for other in range(row):
            kinds = {kind, code[other][3]}
            needed.update({other} if kinds in ({"LDG.E", "STG.E"}, {"STG.E"}, {"LDS", "STS"}, {"STS"}) else ())
        found.append(needed)
    return found


@given(straight_code(), st.data())
def test_what_can_stand_between_is_what_neither_needs(
    code: list[tuple[int, int, int, str]], data: st.DataObject
) -> None:
    direct = depend_directly(code)
    needs: list[set[int]] = []
    for needed in direct:
        needs.append(needed.union(*(needs[other] for other in needed)))
    def_row = data.draw(st.integers(0, len(code) - 2))
    use_row = data.draw(st.integers(def_row + 1, len(code) - 1))
    above, below = rows(find(write(code), def_row, use_row))
    assert above == [row for row in range(def_row) if row not in needs[def_row]]
    assert below == [row for row in range(use_row + 1, len(code)) if not needs[row] & {def_row, use_row}]


def test_large_functions_take_time_in_proportion() -> None:
    """Masks stay within the window, so the work per instruction is bounded; a far dependence is simply not seen."""
    chooser = random.Random(1)
    count = 3000
    lines = [
        f"FADD R{chooser.randrange(200)}, R{chooser.randrange(200)}, R{chooser.randrange(200)}" for _ in range(count)
    ]
    finder = SlackFinder(write_kernel("\n".join([*lines, "EXIT"])).rows)
    slacks = [finder.find(first, second) for first, second in pairwise(range(0, count, 100))]
    assert all(slack is not None and len(slack.above) <= 512 and len(slack.below) <= 512 for slack in slacks)
    last = slacks[-1]
    assert last is not None
    assert max(mask.bit_length() for mask in last.def_track.dependences.ancestors) <= 512


DIVISION = """
loop:
    LDG.E.CONSTANT R0, [R4.64]
    IADD3 R4, R4, 0x4, RZ
    FADD R1, R0, R2
    @!P1 BRA over
    CALL.REL.NOINC `($kernel${name})
over:
    FADD R9, R1, R3
    @!P0 BRA loop
    EXIT
$kernel${name}:
    FMUL R3, R1, R1
    RET.REL.NODEC R20 `(kernel)
"""


def test_the_compilers_own_routines_are_passed_like_the_operations_they_stand_for() -> None:
    turn = find_next_turn(DIVISION.replace("{name}", "__cuda_sm20_div_rn_f64_full"), 0, 2)
    assert turn is not None
    assert turn.order is None
    assert turn.track.rows_of(turn.steps).tolist() == [3, 4, 5, 6]
    other = find_next_turn(DIVISION.replace("{name}", "_Z5blendf"), 0, 2)
    assert other is not None
    assert (other.order, other.order_row) == (Hold.CALL, 4)


def test_what_such_a_routine_writes_makes_the_address_wait_for_it() -> None:
    text = DIVISION.replace("{name}", "__cuda_sm20_div_rn_f64_full").replace("    IADD3 R4, R4, 0x4, RZ\n", "")
    text = text.replace("over:\n", "over:\n    IADD3 R4, R3, 0x4, RZ\n")
    turn = find_next_turn(text, 0, 1)
    assert turn is not None
    assert turn.is_recurrent  # R0 to R1 to R3, by way of the routine, to the address


def test_a_loop_that_goes_on_as_a_loaded_value_says_is_a_guess() -> None:
    counted = find_next_turn(TURN, 1, 4)
    assert counted is not None
    assert counted.exit_row is None
    searching = find_next_turn(TURN.replace("ISETP.GE.AND P0, PT, R8, R9, PT", "ISETP.GE.AND P0, PT, R0, R9, PT"), 1, 4)
    assert searching is not None
    assert searching.exit_row == 7


def test_what_waits_for_a_later_result_cannot_fill_an_earlier_wait() -> None:
    text = """
        LDG.E R2, [R4]
        LDG.E R3, [R6]
        FADD R10, R2, R1
        FADD R11, R3, R1
        FADD R12, R11, R1
        FADD R13, R1, R1
        EXIT
    """
    kernel = write_kernel(text).rows
    alone = SlackFinder(kernel).find(0, 2)
    assert alone is not None
    assert rows(alone)[1] == [3, 4, 5]
    among_others = SlackFinder(kernel, [(0, 2), (1, 3)]).find(0, 2)
    assert among_others is not None
    assert rows(among_others)[1] == [5]


def test_deep_nests_are_looked_at_block_by_block() -> None:
    depth = 60
    opened = "".join(f"l{level}:\n    FADD R{level}, R100, R101\n    LDG.E R102, [R104]\n" for level in range(depth))
    closed = "".join(f"    FADD R103, R102, R101\n    @P0 BRA l{level}\n" for level in reversed(range(depth)))
    finder = SlackFinder(write_kernel(f"{opened}{closed}    EXIT").rows)
    pairs = [(2 * level + 1, 4 * depth - 2 * level - 2) for level in range(depth)]
    found = [finder.find_next_turn(*pair) for pair in pairs]
    # Each level holds all the levels inside it; only so many are looked at as a whole.
    assert 0 < sum(turn is not None for turn in found) < depth
    assert all(finder.find(*pair) is not None for pair in pairs)
