"""The scheduling bits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.sass import decode_control_codes

FIRST_BIT = 105


def encode(row: tuple[int, int, int, int, int, int], noise: int) -> bytes:
    stall, no_yield, write, read, wait, reuse = row
    bits = stall | no_yield << 4 | write << 5 | read << 8 | wait << 11 | reuse << 17
    return (bits << FIRST_BIT | noise & (1 << FIRST_BIT) - 1).to_bytes(16, "little")


def test_an_instruction_of_a_real_kernel() -> None:
    """``LDG.E R2, [R2.64]`` as ptxas 13.0 encodes it for sm_80: sets scoreboard 2, stalls for 4 cycles."""
    control = decode_control_codes(bytes.fromhex("8179020204000000" + "00191e0c00a80e00"))
    assert control.stall_cycles.tolist() == [4]
    assert control.write_barrier.tolist() == [2]
    assert control.read_barrier.tolist() == [7]
    assert control.wait_mask.tolist() == [0]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 15),
            st.integers(0, 1),
            st.integers(0, 7),
            st.integers(0, 7),
            st.integers(0, 63),
            st.integers(0, 15),
        ),
        max_size=30,
    ),
    st.integers(0, (1 << 128) - 1),
    st.binary(max_size=15),
)
def test_every_field_is_found(rows: list[tuple[int, int, int, int, int, int]], noise: int, tail: bytes) -> None:
    control = decode_control_codes(b"".join(encode(row, noise) for row in rows) + tail)
    columns = [
        control.stall_cycles,
        1 - control.yield_flag,
        control.write_barrier,
        control.read_barrier,
        control.wait_mask,
        control.reuse,
    ]
    assert all(column.dtype == np.uint8 for column in columns)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows


def test_a_ragged_tail_is_left_out() -> None:
    assert len(decode_control_codes(bytes(31)).stall_cycles) == 1
    assert len(decode_control_codes(b"").stall_cycles) == 0
