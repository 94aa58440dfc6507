"""Traffic that stays when every access is coalesced."""

import numpy as np
import pytest

from gpa_lsp.diagnosis.advice.traffic_floor import (
    TrafficFloor,
    find_least_sectors,
    measure_floor,
    measure_local_traffic,
)
from gpa_lsp.diagnosis.analyses.subject import Subject
from tests.advice.subjects import make_subject
from tests.rows.written import write_kernel


def subject(counters: str, stored: str = "", **metrics: float) -> Subject:
    return make_subject(
        write_kernel(
            f"""
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # k.cu:3 | selected=10 | x=1000 {counters}
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # k.cu:4 | long_scoreboard=90 | x=1000
    B-:R-:W-:-:S02  STG.E [R6.64], R2   # k.cu:5 | selected=10 | x=1000 {stored}
    B-:R-:W-:-:S05  EXIT
    """,
            metrics={name.replace("___", "."): value for name, value in metrics.items()},
        )
    )


def measure(found: Subject) -> TrafficFloor:
    floor = measure_floor(found)
    assert floor is not None
    return floor


LOAD, STORE = (
    "global_sectors=32000 global_sectors_ideal=4000",
    "global_sectors=4000 global_sectors_ideal=4000",
)


def test_the_least_sectors_over_those_touched() -> None:
    floor = measure(subject(LOAD, STORE))
    assert floor.sectors == pytest.approx(8000 / 36000)
    assert (floor.lines, floor.leaves) == (1.0, {"tags": 0.5625, "l1": 0.5625}), (
        "lines were not counted: 7/8 of one access and none of the other"
    )


def test_each_access_takes_at_least_one_pass_and_one_for_four_sectors() -> None:
    """The load takes 32,000 passes where 1,000 would do, the store 1,000."""
    floor = measure(subject(f"{LOAD} global_tag_requests=32000", f"{STORE} global_tag_requests=1000"))
    assert floor.lines == pytest.approx(2000 / 33000)
    assert floor.leaves == pytest.approx({"tags": floor.lines, "l1": floor.lines})
    wide = measure(subject("global_sectors=16000 global_sectors_ideal=16000 global_tag_requests=4000"))
    assert wide.lines == 1.0, "16 bytes a thread are four lines"


def test_a_level_keeps_the_least_bytes_of_all_accesses() -> None:
    """8,000 sectors are 256 kB: half of the 512 kB that L2 is asked for, a quarter of what DRAM moves."""
    floor = measure(
        subject(
            LOAD,
            STORE,
            lts__t_sectors_srcunit_tex___sum=16000.0,
            dram__bytes_read___sum=768e3,
            dram__bytes_write___sum=256e3,
        )
    )
    assert floor.leaves["l2"] == pytest.approx(0.5)
    assert floor.leaves["dram"] == pytest.approx(0.25)


def test_what_caches_answer_already_cannot_get_less() -> None:
    floor = measure(subject(LOAD, STORE, dram__bytes_read___sum=100e3, dram__bytes_write___sum=0.0))
    assert floor.leaves["dram"] == 1.0
    assert "dram" not in measure(subject(LOAD, STORE, dram__bytes_read___sum=100e3)).leaves, "writes are unknown"


def test_lanes_that_data_choose_lie_anywhere() -> None:
    """Half of the threads go on: of the eight lanes of a sector one at least does in 255 of 256, so that the ideal, two sectors, is out of reach."""
    text = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]               # k.cu:3 | selected=10 | x=1000 ALL global_sectors=4000 global_sectors_ideal=4000
    B2:R-:W-:-:S13  ISETP.GT.AND P0, PT, R2, RZ, PT # k.cu:3 | selected=10 | x=1000 ALL
    B-:R-:W-:-:S05  @P0 BRA `(out)                  # k.cu:3 | selected=10 | x=1000 thread_executions=32000 HALF
    B-:R-:W2:-:S02  LDG.E R6, [R8.64]               # k.cu:4 | selected=10 | x=1000 SOME global_sectors=16000 global_sectors_ideal=2000
out:
    B-:R-:W-:-:S05  EXIT                            # k.cu:5 | selected=10 | x=1000 ALL
    """
    text = text.replace("ALL", "thread_executions=32000 thread_executions_true=32000")
    text = text.replace("SOME", "thread_executions=16000 HALF").replace("HALF", "thread_executions_true=16000")
    least = find_least_sectors(make_subject(write_kernel(text)))
    assert least is not None
    assert least[0] == 4000
    assert least[3] == int(4000 * (1 - 0.5**8))


def test_without_counted_sectors_there_is_no_floor() -> None:
    assert measure_floor(subject("global_sectors=32000")) is None
    assert measure_floor(subject("global_sectors=0 global_sectors_ideal=0")) is None


@pytest.mark.parametrize(
    ("between", "sectors"), [("", 4000), ("IMAD.WIDE R4, R9, R8, R10  # k.cu:3 | selected=1 | x=1000", 8000)]
)
def test_without_local_memory_dram_keeps_neighbours_of_one_address_once(between: str, sectors: int) -> None:
    """Two loads read an array of 4,000 sectors, one word apart, or one array each; DRAM moves 36,000."""
    text = f"""
    LDG.E R2, [R4.64]         # k.cu:3 | selected=10 | x=1000 global_sectors=4000 global_sectors_ideal=4000 local_sectors=0
    {between}
    LDG.E R3, [R4.64+0x4]     # k.cu:3 | selected=10 | x=1000 global_sectors=4000 global_sectors_ideal=4000 local_sectors=0
    LDL R6, [R7]              # k.cu:4 | selected=10 | x=1000 local_sectors=32000
    EXIT
    """
    moved = {"lts__t_sectors_srcunit_tex.sum": 40000.0, "dram__bytes.sum": 36000.0 * 32}
    found = make_subject(write_kernel(text, metrics=moved))
    local = np.array([found.rows.opcode(row).name == "LDL" for row in range(len(found.rows))])
    left = measure_local_traffic(found, local)
    assert left is not None
    assert left["dram"] == pytest.approx(sectors / 36000)


@pytest.mark.parametrize(
    ("index", "is_shared"),
    [
        ("B-:R-:W0:-:S02  S2R R0, SR_TID.X", True),
        ("B-:R-:W0:-:S02  LDS R0, [R9]", False),  # what another block reads may come from elsewhere
    ],
)
def test_what_all_blocks_read_comes_from_dram_once(index: str, is_shared: bool) -> None:
    """One load by the thread's index alone, or by a value from memory, in a grid of some blocks, and a store by both."""
    text = f"""
    B-:R-:W-:-:S04  IMAD.MOV.U32 R8, RZ, RZ, 0x4       # k.cu:2 | selected=1 | x=1000
    B-:R-:W3:-:S02  S2R R9, SR_TID.X                   # k.cu:2 | selected=1 | x=1000
    {index}                                            # k.cu:2 | selected=1 | x=1000
    B-:R-:W1:-:S02  S2R R1, SR_CTAID.X                 # k.cu:2 | selected=1 | x=1000
    B0:R-:W-:-:S04  IMAD.WIDE R4, R0, R8, c[0x0][0x160] # k.cu:2 | selected=1 | x=1000
    B1:R-:W-:-:S04  IMAD.WIDE R6, R1, R8, R4           # k.cu:2 | selected=1 | x=1000
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]                  # k.cu:3 | selected=10 | x=1000 {LOAD}
    B2:R-:W-:-:S02  STG.E [R6.64], R2                  # k.cu:5 | long_scoreboard=90 | x=1000 {STORE}
    B-:R-:W-:-:S05  EXIT
    """
    moved = {"lts__t_sectors_srcunit_tex.sum": 16000.0, "dram__bytes_read.sum": 768e3, "dram__bytes_write.sum": 256e3}
    found = make_subject(write_kernel(text, metrics=moved))
    assert found.launch is not None
    blocks = found.launch.grid[0]
    assert blocks > 1
    leaves = measure(found).leaves
    assert leaves["l2"] == pytest.approx(0.5), "each block asks L2 for it"
    assert leaves["dram"] == pytest.approx((4000 / (blocks if is_shared else 1) + 4000) * 32 / 1024e3)
