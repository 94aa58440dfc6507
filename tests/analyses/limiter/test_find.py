"""Limiter of a kernel: one verdict from counters, each on a kernel written for it."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.limiter import METRICS, find_limiter
from gpa_lsp.diagnosis.analyses.model import Confidence, Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.model import Kernel
from tests.rows.builders import make_cubin
from tests.rows.written import write_kernel

SHARE = ".avg.pct_of_peak_sustained_elapsed"
STALLED = """
B-:R-:W2:-:S02  LDG.E R2, [R4.64]     # k.cu:4 | selected=5 lg_throttle={queued}
B2:R-:W-:-:S04  FFMA R2, R2, R3, R6   # k.cu:5 | long_scoreboard={waiting} selected=5 | x=100
B-:R-:W-:-:S05  EXIT
"""
FEW_ADDRESSES = """
B-:R-:W2:-:S02  LDG.E R2, [R8.64]                        # k.cu:4 | selected=5 | x=100
B2:R-:W-:-:S04  LOP3.LUT R2, R2, {mask}, RZ, 0xc0, !PT   # k.cu:5 | long_scoreboard=9 selected=5 | x=100
B-:R-:W-:-:S04  MOV R3, 0x4                              # k.cu:5 | selected=5 | x=100
B-:R-:W-:-:S04  IMAD.WIDE.U32 R4, R2, R3, c[0x0][0x168]  # k.cu:5 | selected=5 | x=100
B-:R-:W-:-:S04  RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64], R7  # k.cu:5 | lg_throttle=90 selected=5 | x=100
B-:R-:W-:-:S05  EXIT
"""
BY_INDEX = """
B-:R-:W2:-:S02  S2R R2, {index}                          # k.cu:4 | selected=5 | x=100
B2:R-:W-:-:S04  MOV R3, 0x4                              # k.cu:5 | selected=5 | x=100
B-:R-:W-:-:S04  IMAD.WIDE.U32 R4, R2, R3, c[0x0][0x168]  # k.cu:5 | selected=5 | x=100
B-:R-:W-:-:S04  RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64], R7  # k.cu:5 | lg_throttle=90 selected=5 | x=100 global_sectors=100
B-:R-:W-:-:S05  EXIT
"""
COMPUTE = ("sm__issue_active", "sm__inst_executed_pipe_lsu", "sm__pipe_fp64_cycles_active")
MEMORY = ("dram__cycles_active", "lts__t_sectors", "l1tex__data_pipe_lsu_wavefronts", "l1tex__lsuin_requests")


def write(
    queued: int = 0, waiting: int = 90, grid: int = 64, *, time_ns: float = 1e6, **metrics: float | str
) -> Kernel:
    """A kernel on four SMs; a metric ``dram__cycles_active`` is a share of its peak, in percent."""
    named: dict[str, float | str] = {
        f"breakdown:sm__throughput{SHARE}": ",".join(f"{name}{SHARE}" for name in COMPUTE),
        f"breakdown:gpu__compute_memory_throughput{SHARE}": ",".join(f"{name}{SHARE}" for name in MEMORY),
        "sm__cycles_active.avg": 990.0,
        "sm__cycles_active.max": 995.0,
        "sm__cycles_elapsed.max": 1000.0,
    }
    for name, value in metrics.items():
        named[f"{name}{SHARE}" if name in COMPUTE + MEMORY else name.replace("_DOT_", ".")] = value
    return write_kernel(
        STALLED.format(queued=queued, waiting=waiting), grid=(grid, 1, 1), metrics=named, duration_ns=time_ns
    )


def judge(kernel: Kernel) -> Limiter:
    return find_limiter(Subject(kernel))


def test_a_full_unit_is_the_limiter_whatever_the_stalls_say() -> None:
    limiter = judge(write(waiting=900, dram__cycles_active=88.0, sm__issue_active=44.0))
    assert (limiter.kind, limiter.unit, limiter.confidence) == (LimiterKind.UNIT, "dram", Confidence.SURE)
    assert limiter.busy_ratio == pytest.approx(0.88)
    assert limiter.next is not None and limiter.next.unit == "issue"
    assert limiter.next_factor == pytest.approx(0.88 / 0.91 / 0.44)
    assert limiter.sentence == "Limited by DRAM: 88 % of peak (practical maximum 91 %)."


def test_of_l1_s_counters_the_busiest_counts_and_is_named() -> None:
    limiter = judge(
        write(l1tex__lsuin_requests=82.0, l1tex__data_pipe_lsu_wavefronts=49.0, sm__inst_executed_pipe_lsu=82.0)
    )
    assert (limiter.unit, limiter.find("dram")) == ("l1", None)
    assert limiter.sentence == "Limited by L1 load/store: 82 % of peak (practical maximum 97 %)."


def test_wavefronts_that_are_mostly_shared_memory_s_are_its() -> None:
    shared = {"l1tex__data_pipe_lsu_wavefronts_mem_shared_DOT_sum_DOT_pct_of_peak_sustained_elapsed": 60.0}
    limiter = judge(write(l1tex__data_pipe_lsu_wavefronts=87.0, l1tex__lsuin_requests=30.0, **shared))
    assert limiter.unit == "shared"
    assert limiter.next is not None and limiter.next.unit == "l1"


def test_where_no_unit_is_busy_it_is_latency_and_the_stall_is_named() -> None:
    limiter = judge(write(dram__cycles_active=25.0, sm__issue_active=10.0))
    assert (limiter.kind, limiter.unit, limiter.confidence) == (LimiterKind.LATENCY, "long_scoreboard", Confidence.SURE)
    assert (
        limiter.sentence
        == "Latency: no unit is more than 25 % busy (DRAM); 90 % of the samples are stalled on long_scoreboard."
    )
    assert limiter.next_factor == pytest.approx(0.91 / 0.25)


def test_a_full_queue_is_a_unit_that_no_counter_shows() -> None:
    limiter = judge(write(queued=60, waiting=30, dram__cycles_active=45.0))
    assert (limiter.kind, limiter.unit, limiter.confidence) == (LimiterKind.UNIT, "l1", Confidence.LIKELY)
    assert "60 % of the samples are stalled on lg_throttle" in limiter.sentence


def test_a_queue_that_some_samples_stand_in_is_not_full() -> None:
    assert judge(write(queued=20, waiting=70, dram__cycles_active=25.0)).kind is LimiterKind.LATENCY


def test_a_busy_unit_below_the_full_one_is_the_likely_limiter() -> None:
    limiter = judge(write(dram__cycles_active=67.0))
    assert (limiter.unit, limiter.confidence) == ("dram", Confidence.LIKELY)


@pytest.mark.parametrize(
    ("grid", "cycles", "time_ns", "unit", "words"),
    [
        (1, (250.0, 1000.0), 1e6, "grid", "1 block on 4 SMs"),
        (64, (350.0, 400.0), 3_000.0, "launch", "the launch takes 3.00 µs"),
        (64, (500.0, 1000.0), 1e6, "imbalance", "some SMs are done long before the others"),
    ],
)
def test_sms_without_work(grid: int, cycles: tuple[float, float], time_ns: float, unit: str, words: str) -> None:
    active, longest = cycles
    metrics = {"sm__cycles_active_DOT_avg": active, "sm__cycles_active_DOT_max": longest}
    metrics["gpu__time_duration_DOT_sum"] = time_ns
    limiter = judge(write(grid=grid, dram__cycles_active=10.0, time_ns=time_ns, **metrics))
    assert (limiter.kind, limiter.unit) == (LimiterKind.PARALLELISM, unit)
    assert words in limiter.sentence


def test_a_full_unit_comes_before_idle_sms() -> None:
    limiter = judge(write(dram__cycles_active=85.0, sm__cycles_active_DOT_avg=500.0))
    assert limiter.unit == "dram"


def test_atomics_of_one_address_fill_one_slice_of_l2() -> None:
    slices = {
        "lts__t_sectors_DOT_avg": 100.0,
        "lts__t_sectors_DOT_max": 970.0,
        "lts__cycles_active_DOT_max": 3146.0,
        "lts__cycles_elapsed_DOT_max": 3148.0,
        "lts__d_atomic_input_cycles_active_DOT_max_DOT_pct_of_peak_sustained_elapsed": 33.3,
    }
    limiter = judge(write(lts__t_sectors=3.5, dram__cycles_active=1.3, **slices))
    assert (limiter.kind, limiter.unit) == (LimiterKind.UNIT, "l2_slice")
    assert limiter.busy_ratio == pytest.approx(3146 / 3148)
    even = judge(write(lts__t_sectors=3.5, dram__cycles_active=1.3, **{**slices, "lts__t_sectors_DOT_max": 300.0}))
    assert even.kind is LimiterKind.LATENCY


@pytest.mark.parametrize(
    ("mask", "unit"), [("0xf", "l2_slice"), ("0xffff", "grid")], ids=["sixteen words: a line", "many lines"]
)
def test_so_do_those_of_one_line_where_nobody_counted(mask: str, unit: str) -> None:
    metrics = {"sm__cycles_active.avg": 500.0, "sm__cycles_elapsed.max": 1000.0}
    metrics |= {
        f"dram__cycles_active{SHARE}": 1.0,
        f"breakdown:gpu__compute_memory_throughput{SHARE}": f"dram__cycles_active{SHARE}",
    }
    assert judge(write_kernel(FEW_ADDRESSES.format(mask=mask), grid=(1, 1, 1), metrics=metrics)).unit == unit


def test_an_atomic_whose_guard_held_for_no_thread_queues_nowhere() -> None:
    metrics = {
        "sm__cycles_elapsed.max": 2000.0,
        f"dram__cycles_active{SHARE}": 1.0,
        f"breakdown:gpu__compute_memory_throughput{SHARE}": f"dram__cycles_active{SHARE}",
    }
    few = FEW_ADDRESSES.format(mask="0xf")
    never = few.replace(
        "lg_throttle=90 selected=5 | x=100", "lg_throttle=90 selected=5 | x=100 thread_executions_true=0"
    )
    assert judge(write_kernel(few, grid=(1, 1, 1), metrics=metrics)).unit == "l2_slice"
    assert judge(write_kernel(never, grid=(1, 1, 1), metrics=metrics)).unit != "l2_slice"


@pytest.mark.parametrize(("index", "is_full"), [("SR_CTAID.Y", True), ("SR_CTAID.X", False), ("SR_TID.X", False)])
def test_blocks_that_run_at_once_add_to_one_line_where_few_of_their_indices_differ(index: str, is_full: bool) -> None:
    """3,200 additions take 9,600 of 30,000 cycles on one line. The 48 blocks that run at once have one value of y and 48 of x: a line and a half."""
    metrics = {
        "sm__cycles_elapsed.max": 30_000.0,
        f"dram__cycles_active{SHARE}": 1.0,
        f"breakdown:gpu__compute_memory_throughput{SHARE}": f"dram__cycles_active{SHARE}",
    }
    kernel = write_kernel(BY_INDEX.format(index=index), grid=(64, 2, 1), metrics=metrics)
    assert (judge(kernel).unit == "l2_slice") is is_full


def test_a_debug_build_is_said_before_everything_else() -> None:
    kernel = write(dram__cycles_active=95.0)
    limiter = judge(replace(kernel, cubin=replace(make_cubin([]), debug_functions=frozenset({kernel.mangled_name}))))
    assert (limiter.kind, limiter.unit) == (LimiterKind.BUILD, "debug")


def test_without_percentages_it_is_unknown_and_says_what_to_collect() -> None:
    limiter = judge(write_kernel(STALLED.format(queued=0, waiting=9)))
    assert (limiter.kind, limiter.confidence, limiter.missing) == (LimiterKind.UNKNOWN, Confidence.UNKNOWN, METRICS)


def test_throughputs_of_whole_parts_serve_where_their_members_are_not_listed() -> None:
    kernel = write_kernel(
        STALLED.format(queued=0, waiting=9),
        metrics={f"gpu__dram_throughput{SHARE}": 90.0, f"sm__throughput{SHARE}": 20.0},
    )
    limiter = judge(kernel)
    assert (limiter.unit, [limit.unit for limit in limiter.limits]) == ("dram", ["dram", "sm"])


def test_a_full_unit_comes_before_atomics_that_take_a_third_of_the_time() -> None:
    few = FEW_ADDRESSES.format(mask="0xf")
    names = (f"dram__cycles_active{SHARE}", f"sm__pipe_fp64_cycles_active{SHARE}")
    metrics = {
        "sm__cycles_elapsed.max": 2000.0,
        f"breakdown:gpu__compute_memory_throughput{SHARE}": names[0],
        f"breakdown:sm__throughput{SHARE}": names[1],
        names[0]: 1.0,
    }
    assert judge(write_kernel(few, metrics={**metrics, names[1]: 20.0})).unit == "l2_slice"
    assert judge(write_kernel(few, metrics={**metrics, names[1]: 98.0})).unit == "fp64"
