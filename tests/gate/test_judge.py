"""Verdicts on two sides: noise, origins, patterns, kernels without a partner."""

import pytest
from msgspec.structs import replace

from gpa_lsp.document.gate_view import build_gate, describe_row
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.report.gate.judge import describe_kernel, judge_kernels
from gpa_lsp.report.gate.model import (
    DEFAULT_BUDGETS,
    Budget,
    Budgets,
    Figure,
    GateKernel,
    Metric,
    Origin,
    Outcome,
    parse_limit,
)
from tests.report_builder import build_kernel

ROWS = (
    "k.cu:3  LDG.E R2, [R4.64]  ; long_scoreboard=100\nk.cu:4  FADD R2, R2, R2  ; wait={}\nk.cu:5  EXIT  ; selected=1"
)


def measure(*durations_us: float, name: str = "k", waits: int = 100) -> GateKernel:
    """A kernel whose launches took so long, without cycles."""
    kernel = build_kernel(ROWS.format(waits), name=name, durations_ns=[1e3 * duration for duration in durations_us])
    launches = tuple(replace(launch, elapsed_cycles=None) for launch in kernel.launches)
    return describe_kernel(replace(kernel, launches=launches))


def change_code(kernel: GateKernel) -> GateKernel:
    """The same with other instructions."""
    assert kernel.work is not None
    return replace(kernel, work=replace(kernel.work, code_digest="other"))


def limit(metric: Metric, value: object, kernel: str = "*") -> Budget:
    return Budget(metric=metric, limit=parse_limit(value, metric), text=str(value), kernel=kernel)


def judge(base: GateKernel, head: GateKernel, *budgets: Budget) -> list[Outcome]:
    result = judge_kernels([base], [head], Budgets(budgets=budgets or DEFAULT_BUDGETS.budgets))
    return [row.outcome for row in result.rows]


STEADY = (1000.0, 1001.0, 999.0, 1000.0)
NOISY = (700.0, 1500.0, 900.0, 1300.0)


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (STEADY, (1020.0, 1021.0, 1019.0), Outcome.KEPT),  # slower beyond the noise, and within the budget
        (STEADY, (1040.0, 1041.0, 1039.0), Outcome.EXCEEDED),
        (STEADY, NOISY, Outcome.WITHIN_NOISE),
        (NOISY, (1150.0, 1150.0, 1150.0), Outcome.WITHIN_NOISE),
        ((1000.0,), (1030.5,), Outcome.WITHIN_NOISE),  # 3 % and a microsecond are assumed of single launches
        ((1000.0,), (1100.0,), Outcome.EXCEEDED),
        ((1000.0,), (800.0,), Outcome.KEPT),
    ],
)
def test_times_fail_beyond_the_budget_and_the_noise(
    before: tuple[float, ...], after: tuple[float, ...], outcome: Outcome
) -> None:
    assert judge(measure(*before), change_code(measure(*after))) == [outcome]


def test_a_table_of_long_times_fits_a_screen() -> None:
    sides = []
    for cycles in (917_819_375.0, 845_256_957.0):
        kernel = build_kernel(ROWS, name="accumulate_everything_there_is", durations_ns=[4e8])
        launches = tuple(replace(launch, elapsed_cycles=cycles) for launch in kernel.launches)
        sides.append(describe_kernel(replace(kernel, launches=launches)))
    result = judge_kernels(*([change_code(side)] for side in sides), DEFAULT_BUDGETS)
    lines = write_plain([build_gate(result, PlaceNames())], 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("845,256,957 cycles" in line for line in lines)


def test_the_same_code_is_never_slower() -> None:
    assert judge(measure(1000.0), measure(2000.0)) == [Outcome.SAME_CODE]


def scale(kernel: GateKernel, blocks: int, executed: float) -> GateKernel:
    assert kernel.work is not None
    launch = replace(kernel.work.launch, grid=(blocks, 1, 1))
    return replace(kernel, work=replace(kernel.work, launch=launch, executed_instructions=executed))


def test_other_work_is_not_judged_and_says_so() -> None:
    base, head = scale(measure(1000.0), 8, 100.0), scale(measure(9000.0), 80, 1000.0)
    budgets = Budgets(budgets=DEFAULT_BUDGETS.budgets)
    (row,) = judge_kernels([base], [head], budgets).rows
    assert row.outcome is Outcome.UNKNOWN
    assert describe_row(row, "k") == (
        "time per launch of k: not compared (other size: grid 8 → 80, 10.0× the instructions), so the budget of +3 % was not judged"
    )
    assert judge_kernels([base], [head], replace(budgets, fails_on_missing=True)).has_failed


def test_a_budget_exceeded_by_what_may_be_other_work_fails_with_a_word() -> None:
    base, head = scale(measure(1000.0), 8, 100.0), change_code(scale(measure(9000.0), 80, 2000.0))
    (row,) = judge_kernels([base], [head], Budgets(budgets=DEFAULT_BUDGETS.budgets)).rows
    assert row.outcome is Outcome.EXCEEDED
    assert describe_row(row, "k").endswith("; work may differ: grid 8 → 80, 20.0× the instructions")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("+300 us", Outcome.KEPT),
        ("+100 us", Outcome.EXCEEDED),
        ("1.3x", Outcome.KEPT),
        ("1.1x", Outcome.EXCEEDED),
        ("1300 us", Outcome.KEPT),
        ("1190 us", Outcome.WITHIN_NOISE),
        ("1 ms", Outcome.EXCEEDED),
    ],
)
def test_every_kind_of_limit_of_a_time(text: str, outcome: Outcome) -> None:
    budget = limit(Metric.TIME, text)
    assert judge(measure(1000.0), change_code(measure(1200.0)), budget) == [outcome]


def test_a_demanded_gain_is_not_kept_by_no_gain() -> None:
    budget = limit(Metric.TIME, "0.8x")
    assert judge(measure(1000.0), change_code(measure(1000.0)), budget) == [Outcome.EXCEEDED]
    assert judge(measure(1000.0), change_code(measure(700.0)), budget) == [Outcome.KEPT]


def test_the_line_is_the_one_whose_time_grew_most() -> None:
    result = judge_kernels([measure(1000.0)], [change_code(measure(2000.0, waits=500))], DEFAULT_BUDGETS)
    (row,) = result.exceeded
    assert row.line is not None
    assert (row.line.file, row.line.line) == ("k.cu", 4)


def put(kernel: GateKernel, metric: Metric, **values: float) -> GateKernel:
    """A kernel with figures by the names of their origins."""
    figures = {(metric, Origin[name.upper()]): Figure(value=value) for name, value in values.items()}
    kept = {key: figure for key, figure in kernel.figures.items() if key[0] is not metric}
    return replace(kernel, figures={**kept, **figures})


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ({"measured": 4}, {"static": 32}, Outcome.UNKNOWN),
        ({"measured": 4, "static": 4}, {"static": 32}, Outcome.EXCEEDED),
        ({"measured": 4, "static": 4}, {"measured": 4, "static": 32}, Outcome.KEPT),
        ({}, {"emulated": 4}, Outcome.UNKNOWN),
    ],
)
def test_figures_of_different_origins_are_not_compared(
    before: dict[str, float], after: dict[str, float], outcome: Outcome
) -> None:
    old, new = put(measure(1.0), Metric.SECTORS, **before), put(measure(1.0), Metric.SECTORS, **after)
    assert judge(old, new, limit(Metric.SECTORS, "+3 %")) == [outcome]


def test_a_limit_of_the_value_needs_nothing_before() -> None:
    old, new = put(measure(1.0), Metric.SECTORS), put(measure(1.0), Metric.SECTORS, emulated=9)
    assert judge(old, new, limit(Metric.SECTORS, 8)) == [Outcome.EXCEEDED]
    assert judge(old, new, limit(Metric.SECTORS, 9)) == [Outcome.KEPT]


def test_occupancy_is_worse_when_it_is_lower() -> None:
    old, new = put(measure(1.0), Metric.OCCUPANCY, static=0.5), put(measure(1.0), Metric.OCCUPANCY, static=0.4)
    assert judge(old, new, limit(Metric.OCCUPANCY, "-5 %")) == [Outcome.EXCEEDED]
    assert judge(new, old, limit(Metric.OCCUPANCY, "-5 %")) == [Outcome.KEPT]
    assert judge(old, new, limit(Metric.OCCUPANCY, "40 %")) == [Outcome.KEPT]


def test_the_first_budget_whose_pattern_fits_decides() -> None:
    head = change_code(measure(1200.0, name="relax"))
    loose, tight = limit(Metric.TIME, "+50 %", "rel*"), limit(Metric.TIME, "+3 %")
    assert judge(measure(1000.0, name="relax"), head, loose, tight) == [Outcome.KEPT]
    assert judge(measure(1000.0, name="relax"), head, tight, loose) == [Outcome.EXCEEDED]
    assert judge(measure(1000.0, name="relax"), head, limit(Metric.TIME, "+3 %", "other*")) == []


@pytest.mark.parametrize("fails", [False, True])
def test_kernels_without_a_partner_are_said_and_fail_on_request(fails: bool) -> None:
    budgets = replace(DEFAULT_BUDGETS, fails_on_missing=fails)
    sides = [[measure(1.0, name="stays"), measure(1.0, name=name)] for name in ("leaves", "comes")]
    result = judge_kernels(*sides, budgets)
    assert ([one.name for one in result.gone], [one.name for one in result.new]) == (["leaves"], ["comes"])
    assert result.has_failed is fails
    assert not result.exceeded


def simulate(kernel: GateKernel) -> GateKernel:
    """The same as a model says it."""
    assert kernel.report is not None
    launches = tuple(replace(one, sampling=replace(one.sampling, is_simulated=True)) for one in kernel.report.launches)
    return replace(kernel, report=replace(kernel.report, launches=launches))


def test_simulated_times_are_compared_with_simulated_ones_only() -> None:
    slow = change_code(simulate(measure(2000.0)))
    assert judge(measure(1000.0), slow) == [Outcome.UNKNOWN]
    result = judge_kernels([simulate(measure(1000.0))], [slow], DEFAULT_BUDGETS)
    assert [row.origin for row in result.exceeded] == [Origin.SIMULATED]
