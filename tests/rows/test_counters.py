"""Counters per instruction: which metric, which row, summed over launches; and what real reports hold."""

from typing import Any

import numpy as np
import pytest

from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.place import COUNTERS, read_counters
from gpa_lsp.profile.model import Metric, Profile
from gpa_lsp.profile.ncu.samples import read_instruction_counts
from gpa_lsp.profile.read import read_profile
from tests.profile.native_writing import write_native
from tests.real_reports import REPORTS
from tests.real_reports import join as join_report
from tests.rows.builders import BASE, KERNEL, make_launch, make_profile, make_samples

FIRST, SECOND = 0x110, 0x150


def count(name: str, values: dict[int, int | float | str], **overrides: Any) -> dict[str, Metric]:
    ids = tuple(BASE + offset for offset in values)
    return {name: Metric(name=name, value=None, instance_ids=ids, instance_values=tuple(values.values()), **overrides)}


def measure(image: bytes, *metrics: dict[str, Metric]) -> Profile:
    """A profile with a launch for each set of metrics."""
    samples = make_samples({BASE + SECOND: {"wait": (4, 3)}})
    launches = (make_launch(KERNEL, index=at, samples=samples, metrics=one) for at, one in enumerate(metrics))
    return make_profile(image, *launches)


def join(profile: Profile) -> Kernel:
    (kernel,), problems = join_profile(profile, with_text=False)
    assert problems == ()
    return kernel


def values_of(kernel: Kernel, counter: str) -> dict[int, int]:
    """Offset → value of the rows that have one."""
    column = kernel.functions[0].counters[counter]
    return {16 * row: int(column[row]) for row in np.flatnonzero(column >= 0).tolist()}


def test_counters_are_summed_over_launches_and_other_rows_have_none(image):
    name = "memory_l2_theoretical_sectors_global"
    kernel = join(measure(image, count(name, {FIRST: 32, SECOND: 0}), count(name, {FIRST: 4})))
    assert values_of(kernel, "global_sectors") == {FIRST: 36, SECOND: 0}
    assert kernel.functions[0].counters["global_sectors"].dtype == np.int64
    assert set(kernel.functions[0].counters) == {"global_sectors"}


def test_a_launch_without_a_metric_adds_nothing(image):
    kernel = join(measure(image, {}, count("thread_inst_executed", {SECOND: 640})))
    assert values_of(kernel, "thread_executions") == {SECOND: 640}


def test_a_metric_that_counted_nothing_is_a_counter_all_the_same(image):
    kernel = join(measure(image, count("memory_l1_wavefronts_shared", {})))
    assert values_of(kernel, "shared_wavefronts") == {}
    assert (kernel.functions[0].counters["shared_wavefronts"] == -1).all()


def test_counts_outside_the_function_or_between_instructions_are_left_out(image):
    kernel = join(measure(image, count("thread_inst_executed", {-16: 5, SECOND: 7, 0x100000: 9, FIRST + 8: 1})))
    assert values_of(kernel, "thread_executions") == {SECOND: 7}


@pytest.mark.parametrize(
    "values", [{FIRST: 1, SECOND: "many"}, {FIRST: 0.5}, {FIRST: -1}, {FIRST: float("nan")}, {FIRST: 1 << 53}]
)
def test_what_is_no_count_is_no_counter(image, values):
    assert join(measure(image, count("thread_inst_executed", values))).functions[0].counters == {}


def test_time_series_and_scalars_that_repeat_their_value_count_no_instruction():
    series = count("thread_inst_executed", {FIRST: 1}, over_time=True)
    scalar = Metric(name="thread_inst_executed", value=9, instance_ids=(0,), instance_values=(9,))
    assert read_counters(series) == {}
    columns = read_instruction_counts({"thread_inst_executed": scalar}, "thread_inst_executed")
    assert len(columns[0]) == len(columns[1]) == 0


def test_the_newest_name_wins():
    newest, oldest = COUNTERS["global_sectors"]
    found = read_counters(count(oldest, {FIRST: 1}) | count(newest, {FIRST: 2}))
    assert found["global_sectors"][1].tolist() == [2]
    assert read_counters(count(oldest, {FIRST: 1}))["global_sectors"][1].tolist() == [1]


def test_a_native_profile_carries_counters(image, tmp_path):
    profile = measure(image, count("memory_l1_wavefronts_shared", {SECOND: 64}))
    path = tmp_path / "p.gpa-profile.json"
    write_native(profile, path)
    assert values_of(join(read_profile(path)), "shared_wavefronts") == {SECOND: 64}


OPERATIONS = ("ld", "st", "atom", "red")


def add_up(kernel: Kernel, counter: str) -> int | None:
    columns = [function.counters[counter] for function in kernel.functions if counter in function.counters]
    return sum(int(column[column >= 0].sum()) for column in columns) if columns else None


def add_aggregates(kernel: Kernel, *names: str) -> float | None:
    """Sum over launches of some aggregates; None when a launch lacks one."""
    values = [launch.read_number(name) for launch in kernel.launches if launch.failure is None for name in names]
    return None if None in values else sum(value for value in values if value is not None)


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_rows_add_up_to_the_metric_of_the_report(name):
    for kernel in join_report(name):
        for counter, aliases in COUNTERS.items():
            stored = [
                sum(metric.instance_values)  # type: ignore[arg-type]
                for launch in kernel.launches
                for metric in [next((launch.metrics[alias] for alias in aliases if alias in launch.metrics), None)]
                if metric is not None
            ]
            assert add_up(kernel, counter) == (sum(stored) if stored else None), (kernel.name, counter)


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_counters_agree_with_each_other(name):
    for function in (function for kernel in join_report(name) for function in kernel.functions):
        counters = function.counters
        for actual, ideal in (
            ("global_sectors", "global_sectors_ideal"),
            ("shared_wavefronts", "shared_wavefronts_ideal"),
        ):
            if actual in counters:
                assert (counters[actual] >= counters[ideal]).all()
        if "thread_executions" in counters:
            assert (counters["thread_executions"] >= counters["thread_executions_true"]).all()
            counted = (function.executions >= 0) & (counters["thread_executions"] >= 0)
            assert (counters["thread_executions"] <= 32 * function.executions)[counted].all()


# Programs that do not do the same in every pass of the profiler.
SPINNING = {"a100_selfjoin_saturated_2020.3.ncu-rep", "rtx3070_scan_2020.3.ncu-rep"}
# Kernels of one thread a warp whose other threads are still counted by the hardware (0.02 % of the sectors).
ONE_BY_ONE = {"rtx3090_mergesort_2023.1.ncu-rep"}


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_sectors_add_up_to_what_the_caches_counted(name):
    """Exactly on newer GPUs; compute capability 7.0, copies to shared memory and programs that spin count a little differently."""
    is_loose = name.startswith(("v100", "a100_cutlass_sm80")) or name in SPINNING | ONE_BY_ONE
    for kernel in join_report(name):
        counted = add_up(kernel, "global_sectors")
        names = [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{operation}.sum" for operation in OPERATIONS]
        cached = add_aggregates(kernel, *names)
        if counted is None or cached is None:
            continue
        assert counted == pytest.approx(cached, rel=0.12 if is_loose else 0), kernel.name


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_threads_and_divergent_branches_add_up_to_the_aggregates(name):
    for kernel in join_report(name):
        threads = add_up(kernel, "thread_executions")
        executed = sum(int(function.executions.clip(min=0).sum()) for function in kernel.functions)
        ratios = {
            launch.read_number("smsp__thread_inst_executed_per_inst_executed.ratio") for launch in kernel.launches
        }
        if threads is not None and len(kernel.launches) == 1 and None not in ratios:
            (ratio,) = ratios
            assert ratio is not None
            assert threads / executed == pytest.approx(ratio, rel=1e-6)
        divergent = add_aggregates(kernel, "smsp__sass_branch_targets_threads_divergent.sum")
        if divergent is not None:
            assert (add_up(kernel, "divergent_branch_targets") or 0) == divergent
