"""The instructions that could stand between a def and its use."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.kernel.dataflow.reordering.slack import Slack, SlackFinder, TurnSlack
from gpa_lsp.kernel.model import Kernel
from tests.rows.sections import list_sections
from tests.rows.written import write_kernel


def rows(slack: Slack) -> tuple[list[int], list[int]]:
    """Rows above the def and below the use."""
    return slack.def_track.rows_of(slack.above).tolist(), slack.use_track.rows_of(slack.below).tolist()


def describe(slack: Slack) -> dict[str, str]:
    above, below = rows(slack)
    return {
        "above": join(above),
        "below": join(below),
        "active": f"{slack.active_samples:g}",
        "instructions": str(slack.instructions),
        "earliest": str(slack.earliest_row),
        "hold": f"{slack.hold.name} {slack.hold_row}",
    }


def describe_turn(turn: TurnSlack) -> dict[str, str]:
    return {
        "rows": join(turn.track.rows_of(turn.steps).tolist()),
        "active": f"{turn.active_samples:g}",
        "hold": f"{turn.hold.name} {turn.hold_row}",
        "order": "None" if turn.order is None else f"{turn.order.name} {turn.order_row}",
        "recurrent": str(turn.is_recurrent),
        "needs": str(turn.needs_use),
        "exit": str(turn.exit_row),
    }


def join(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


@pytest.mark.parametrize(("name", "text", "options", "sources", "expected"), [*list_sections(Path(__file__).parent)])
def test_what_stands_between(name: str, text: str, options: str, sources: dict[str, str], expected: str) -> None:
    """A table for ``def to use``, in one turn of a loop and in the next; the named facts must hold."""
    assert (name, options, sources) == ("slack", "", {})
    finder = SlackFinder(write_kernel(text).rows)
    for line in expected.strip().removeprefix("- ").split("\n- "):
        what, _, words = line.partition(": ")
        first, last = (int(one) for one in what.removeprefix("next ").split(" to "))
        turn, slack = finder.find_next_turn(first, last), finder.find(first, last)
        if words == "nothing":
            assert turn is None
            continue
        if what.startswith("next"):
            assert turn is not None
            said = describe_turn(turn)
        else:
            assert slack is not None
            said = describe(slack)
        wanted = {one.partition(" ")[0]: one.partition(" ")[2] for one in words.strip().split(", ")}
        assert {name: said[name] for name in wanted} == wanted


STRAIGHT = """
    MOV R4, c[0x0][0x160]
    MOV R5, c[0x0][0x164]
    FADD R9, R10, R11
    FADD R12, R9, R11
    LDG.E R2, [R4.64]
    FADD R3, R2, R1
    FADD R6, R3, R1
    FMUL R7, R10, R11
    EXIT
"""


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
    slack = SlackFinder(write_kernel(write(code)).rows).find(def_row, use_row)
    assert slack is not None
    above, below = rows(slack)
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
    assert max(mask.bit_length() for mask in last.def_track.dependences.ancestors) <= 512


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
