"""Bytes by level, from whichever counters a launch has."""

import pytest

from gpa_lsp.diagnosis.analyses.roofline.counts import Executions, read_span
from gpa_lsp.diagnosis.analyses.roofline.work import measure_traffic, measure_work
from gpa_lsp.diagnosis.analyses.roofline_model import Traffic
from gpa_lsp.gpu.device.model import MemoryLevel
from tests.analyses.roofline.launches import write_launch, write_machine

DRAM, L2, L1, SHARED = MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.L1, MemoryLevel.SHARED
MACHINE = write_machine({}, {DRAM: 64e9, L2: 256e9, SHARED: 512e9})
SECTORS = "l1tex__t_sectors_pipe_{}.sum"
GLOBAL, LOCAL = ("lsu_mem_global_op_ld", "lsu_mem_global_op_st"), ("lsu_mem_local_op_ld", "lsu_mem_local_op_st")
ATOMIC = ("lsu_mem_global_op_atom", "lsu_mem_global_op_red")
TEXTURE = (
    "tex_mem_texture",
    "tex_mem_surface_op_ld",
    "tex_mem_surface_op_st",
    "tex_mem_surface_op_atom",
    "tex_mem_surface_op_red",
)


def measure(metrics: dict[str, float | str]) -> dict[MemoryLevel, Traffic]:
    launch = write_launch(metrics)
    span = read_span(launch)
    assert span is not None
    return measure_traffic(launch, span, MACHINE)


@pytest.mark.parametrize(
    ("metrics", "level", "moved"),
    [
        ({"dram__bytes_read.sum": 100.0, "dram__bytes_write.sum": 20.0}, DRAM, 120),
        ({"dram__bytes_op_read.sum": 100.0, "dram__bytes_op_write.sum": 20.0}, DRAM, 120),
        ({"dram__bytes.sum.per_second": 120e3}, DRAM, 120),
        ({"dram__sectors_read.sum": 3.0, "dram__sectors_write.sum": 1.0}, DRAM, 128),
        ({"lts__t_sectors_srcunit_tex.sum": 2.0, "lts__t_sectors.sum": 9.0}, L2, 64),
        ({"lts__t_sectors.sum": 9.0}, L2, 288),
        ({"lts__t_bytes.sum": 7.0}, L2, 7),
        ({"l1tex__t_sectors.sum": 2.0, SECTORS.format(GLOBAL[0]): 9.0}, L1, 64),
        ({SECTORS.format(name): 1.0 for name in (*GLOBAL, *LOCAL, *ATOMIC, *TEXTURE)}, L1, 11 * 32),
        ({"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 2.0}, SHARED, 256),
    ],
)
def test_bytes_of_a_level(metrics, level, moved):
    found = measure(metrics)[level]
    assert found.bytes == pytest.approx(moved)
    assert found.is_exact
    assert found.transactions == pytest.approx(moved / (128 if level is SHARED else 32))


@pytest.mark.parametrize("parts", [GLOBAL, (*GLOBAL, *LOCAL, *ATOMIC)])
def test_a_part_of_the_accesses_to_l1_is_said_to_be_a_part(parts):
    found = measure({SECTORS.format(name): 1.0 for name in parts})[L1]
    assert (found.bytes, found.is_exact) == (32 * len(parts), False)


def test_half_of_the_counters_of_dram_are_none():
    assert DRAM not in measure({"dram__bytes_read.sum": 100.0})


@pytest.mark.parametrize(
    ("metric", "level", "moved"),
    [
        ("dram__cycles_active.avg.pct_of_peak_sustained_elapsed", DRAM, 32e6),
        ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", DRAM, 32e6),
        ("lts__t_sectors.avg.pct_of_peak_sustained_elapsed", L2, 128e6),
    ],
)
def test_a_share_of_the_peak_gives_bytes_that_are_not_exact(metric, level, moved):
    found = measure({metric: 50.0})[level]
    assert (found.bytes, found.is_exact) == (pytest.approx(moved), False)


def test_zero_bytes_are_known_to_be_zero():
    assert measure({"dram__bytes_read.sum": 0.0, "dram__bytes_write.sum": 0.0})[DRAM].bytes == 0


def test_nothing_is_invented():
    assert (
        measure({"dram__bytes_read.sum": float("nan"), "lts__t_sectors.sum": -1.0, "l1tex__t_bytes.sum": "text"}) == {}
    )


@pytest.mark.parametrize(
    ("mnemonics", "is_unused"),
    [
        (("FFMA", "LDG.E"), True),
        (("FFMA", "LDS.128"), False),
        (("LDGSTS.E.BYPASS.128",), False),
        (("HMMA.16816.F32",), False),
        (("LD.E",), False),
        ((), False),
    ],
    ids=["none", "loads", "copies", "tensor cores", "generic", "unknown"],
)
def test_shared_memory_is_unused_where_no_instruction_goes_there(mnemonics, is_unused):
    launch = write_launch({"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 2.0})
    span = read_span(launch)
    assert span is not None
    warps = dict.fromkeys(mnemonics, 10.0)
    executions = Executions(warps=warps, threads=warps, source="the test", are_threads_exact=False) if warps else None
    work = measure_work(launch, span, executions, MACHINE)
    assert (SHARED in work.unused_levels) is is_unused
    assert work.traffic[SHARED].bytes == 256, "what was counted stays"
