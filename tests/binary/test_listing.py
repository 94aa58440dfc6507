"""The notation tests and documents are written in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.model import ControlCodes, Flow
from gpa_lsp.foundation.errors import InputError
from tests.binary.listing import parse_listing

LOOP = """
# adds up a list
B-:R-:W2:-:S02   /*0000*/   LDG.E R2, [R4.64] ;
loop:
B2:R-:W-:-:S04   /*0010*/   IADD3 R2, R2, 0x1, RZ ;     // waits for the load
                            ISETP.LT.AND P0, PT, R2.reuse, R6, PT
B-:R-:W-:Y:S05              @!P0 BRA loop
B0134:R3:W-:-:S15           @P1 BRA `(.L_x_1)
.L_x_1:
                            EXIT
"""

control_rows = st.tuples(
    st.integers(0, 15),
    st.integers(0, 1),
    st.sampled_from([*range(6), 7]),
    st.sampled_from([*range(6), 7]),
    st.integers(0, 63),
)
bodies = st.sampled_from(
    [
        "IADD3 R6, R2, 0x1, RZ",
        "@!P0 LDG.E.64 R2, desc[UR4][R4.64+0x10]",
        "BRA 0x10",
        "@P1 BRA P2, 0x0",
        "NOP",
        "EXIT",
        "MUFU.RCP R3, R3",
    ]
)


def test_a_loop() -> None:
    listing = parse_listing(LOOP)
    assert listing.pc_offsets.tolist() == [0, 16, 32, 48, 64, 80]
    assert listing.texts[4] == "@P1 BRA 0x50"
    assert listing.target.tolist() == [-1, -1, -1, 16, 80, -1]
    assert [Flow(one) for one in listing.flow.tolist()] == [Flow.NONE] * 3 + [Flow.BRANCH] * 2 + [Flow.EXIT]
    control = listing.control
    assert control.write_barrier.tolist() == [2, 7, 7, 7, 7, 7]
    assert control.read_barrier.tolist() == [7, 7, 7, 7, 3, 7]
    assert control.stall_cycles.tolist() == [2, 4, 1, 5, 15, 1]
    assert control.yield_flag.tolist() == [0, 0, 0, 1, 0, 0]
    assert control.wait_mask.tolist() == [0, 0b100, 0, 0, 0b11011, 0]
    assert control.reuse.tolist() == [0, 0, 0b1, 0, 0, 0]


def test_dashes_hold_the_place_of_scoreboards() -> None:
    assert parse_listing("B0-2---:R-:W-:-:S01 NOP").control.wait_mask.tolist() == [0b101]


def test_an_empty_listing() -> None:
    assert len(parse_listing("\n  # nothing\n")) == 0


def test_a_call_of_another_function_keeps_its_name() -> None:
    listing = parse_listing("CALL.REL.NOINC `($_Z4kernPf$_Z3recfi)")
    assert listing.texts[0] == "CALL.REL.NOINC `($_Z4kernPf$_Z3recfi)"
    assert (listing.target[0], Flow(int(listing.flow[0]))) == (-1, Flow.CALL)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("NOP\nB01:R9:W2:Y:S04 NOP", "line 2"),
        ("B01:R-:W2:S04 NOP", "line 1"),
        ("B-:R-:W-:-:S16 NOP", "line 1"),
        ("/*0010*/ NOP", "line 1"),
        ("NOP\n\n/*0000*/ NOP", "line 3"),
        ("B-:R-:W-:-:S01", "line 1"),
        ("BRA nowhere", "line 1"),
    ],
)
def test_a_slip_is_reported_with_its_line(text: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_listing(text)
    assert caught.value.place == place
    assert caught.value.remedy


@given(st.lists(st.tuples(control_rows, bodies), max_size=20))
def test_what_is_written_is_read_back(rows: list[tuple[tuple[int, int, int, int, int], str]]) -> None:
    listing = parse_listing("\n".join(f"{write_control(*control)} {body}" for control, body in rows))
    columns = [getattr(listing.control, name).tolist() for name in ControlCodes.__struct_fields__ if name != "reuse"]
    assert list(zip(*columns, strict=True)) == [control for control, _ in rows]
    assert [body for _, body in rows] == list(listing.texts)


@given(st.text(alphabet="B01R-:WSY4 /*#`().;@P!,\nLDGE[]x_", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        listing = parse_listing(text)
    except InputError as error:
        assert error.place is not None
        return
    assert len(listing.control.stall_cycles) == len(listing)


def write_control(stall: int, may_yield: int, write: int, read: int, mask: int) -> str:
    waits = "".join(str(barrier) for barrier in range(6) if mask >> barrier & 1) or "-"
    return f"B{waits}:R{read}:W{write}:{'Y' if may_yield else '-'}:S{stall:02d}".replace("7:", "-:")
