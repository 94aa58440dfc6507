"""Origins and uses of values, compared with plain walks over the same rows on random code."""

from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.kernel.dataflow.reordering.course import SIDE_CODE, find_steps
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow
from tests.blame.programs import programs
from tests.rows.written import write_kernel

_LATER_READERS = 60


def build(text: str) -> FunctionFlow:
    flow = build_flow(write_kernel(text).rows, 0)
    assert flow is not None
    return flow


def list_dominated(flow: FunctionFlow, row: int, limit: int) -> list[int]:
    """Rows that one comes before on every path: by the blocks of the graph, one row after the other."""
    found = []
    home = flow.block_of[row]
    for other in range(row + 1, min(row + 1 + limit, len(flow))):
        block = flow.block_of[other]
        if flow.graph.procedure_of_block[block] != flow.graph.procedure_of_block[home]:
            break
        if block == home or home in flow.graph.dominators_of(block):
            found.append(other)
    return found


def list_feeders(flow: FunctionFlow, members: Collection[int], window: Sequence[int], accepted: set[int]) -> set[int]:
    """Rows that only members read: by the readers of each row, forwards, and then backwards until nothing is left."""
    rows = sorted({*window, *members, *list_dominated(flow, max(members), _LATER_READERS)})
    writer: dict[int, int] = {}
    readers: dict[int, set[int]] = {}
    for row in rows:
        for resource in flow.reads_of[row]:
            if resource in writer:
                readers.setdefault(writer[resource], set()).add(row)
        writer.update(dict.fromkeys(flow.writes_of[row], row))
    inside = set(members)
    for row in reversed(window):
        users = readers.get(row, set())
        if users and users <= inside and row in accepted:
            inside.add(row)
    return inside.difference(members)


@given(programs(longest=20), st.data())
def test_feeders_are_the_rows_that_only_members_read(text: str, data: st.DataObject):
    flow = build(text)
    every = range(len(flow))
    rows = st.sets(st.sampled_from(every))
    members = data.draw(st.sets(st.sampled_from(every), min_size=1, max_size=3))
    window = sorted(data.draw(st.just(set(every)) | rows))
    accepted = data.draw(st.just(set(every)) | rows)
    found = flow.find_feeders(members, window, accepted.__contains__)
    assert found == list_feeders(flow, members, window, accepted)


@given(programs(longest=20), st.integers(1, 25))
def test_rows_after_one_are_those_its_block_dominates(text: str, limit: int):
    flow = build(text)
    for row in range(len(flow)):
        assert flow.rows_after(row, limit) == list_dominated(flow, row, limit)


def test_a_flow_is_built_once():
    kernel = write_kernel("MOV R2, R3\nEXIT").rows
    assert build_flow(kernel, 0) is build_flow(kernel, 0)
    assert build_flow(write_kernel("MOV R2, R3\nEXIT").rows, 0) is not build_flow(kernel, 0)


@given(programs(longest=20), st.integers(0, 31))
def test_steps_state_what_each_instruction_does(text: str, stored_elsewhere: int):
    function = write_kernel(text).functions[0]
    instructions, graph = function.instructions, function.graph
    assert instructions is not None and graph is not None
    steps = find_steps(instructions, graph, stored_elsewhere)
    assert [step.instruction for step in steps] == list(range(len(instructions)))
    for row, step in enumerate(steps):
        mnemonic = instructions.mnemonics[int(instructions.mnemonic_index[row])]
        name, flow = describe_mnemonic(mnemonic).name, Flow(step.flow)
        is_order = name in ("BAR", "MEMBAR")
        assert (step.reads, step.writes) == (instructions.reads.of(row), instructions.writes.of(row))
        assert flow == instructions.flow[row]
        assert step.is_partial is (int(instructions.guard[row]) >= 0)
        assert (step.is_order, step.is_load) == (is_order, name == "LDG")
        assert (step.is_call, step.may_leave) == (False, flow is Flow.EXIT)
        assert step.is_movable is (flow is Flow.NONE and not is_order)
        assert (bool(step.loads), bool(step.stores)) == {
            "LDG": (True, False),
            "STG": (False, True),
            "MEMBAR": (True, True),
        }.get(name, (bool(step.loads) and name == "BAR",) * 2)
        assert step.blocks == () and step.instruction != SIDE_CODE


@pytest.mark.parametrize(("stored", "mask"), [(0, 0), (2, 2), (31, 31)])
def test_a_block_barrier_orders_what_others_stored(stored: int, mask: int):
    function = write_kernel("BAR.SYNC 0x0\nEXIT").functions[0]
    assert function.instructions is not None and function.graph is not None
    step = find_steps(function.instructions, function.graph, stored)[0]
    assert (step.loads, step.stores) == (mask, mask)
