"""What is free before warps are lost: all of it, and not one unit more."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.gpu.arch.occupancy_steps import find_free_registers, find_free_shared
from tests.arch.occupancy_strategies import architectures, pick_carveout, shapes

numbers = st.integers(0, 100)


def test_free_registers_end_where_the_next_one_costs_warps():
    block = BlockShape(threads=128, registers_per_thread=108, shared_bytes=24576)
    room = find_free_registers(find_architecture((8, 0)), block, 102400)
    assert room is not None and room.after is not None
    assert (room.spare, room.most, room.after.warps_per_sm) == (20, 128, 12)


def test_the_last_block_has_all_registers_free():
    room = find_free_registers(
        find_architecture((9, 0)), BlockShape(threads=128, registers_per_thread=130, shared_bytes=150_000)
    )
    assert (room.most, room.after) == (255, None)


def test_nothing_is_free_where_nothing_fits():
    block = BlockShape(threads=1024, registers_per_thread=128, shared_bytes=0)
    assert find_free_registers(find_architecture((8, 0)), block) is None
    assert find_free_shared(find_architecture((8, 0)), block) is None


@given(architectures, shapes, numbers)
def test_what_is_free_costs_nothing_and_one_more_does(architecture: Architecture, shape: BlockShape, number: int):
    carveout = pick_carveout(architecture, number)
    now = find_occupancy(architecture, shape, carveout).warps_per_sm
    for room, field in (
        (find_free_registers(architecture, shape, carveout), "registers_per_thread"),
        (find_free_shared(architecture, shape, carveout), "shared_bytes"),
    ):
        if room is None:
            assert now == 0
            continue
        assert room.spare >= 0
        assert find_occupancy(architecture, replace(shape, **{field: room.most}), carveout).warps_per_sm == now
        if room.after is None:
            continue
        one_more = find_occupancy(architecture, replace(shape, **{field: room.most + 1}), carveout)
        assert one_more == room.after
        assert one_more.warps_per_sm < now
