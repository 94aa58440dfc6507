"""Opcodes and pipes of real reports against Nsight Compute's own tables and counters."""

from collections import Counter

import numpy as np
import pytest

from gpa_lsp.diagnosis.analyses.mix import CLASSES, WorkClass, assign_pipes, classify_rows, list_pipes
from gpa_lsp.diagnosis.analyses.questions.instruction_mix import count_opcodes
from tests.analyses.reports_by_line import every_kernel, launches_of, name_of, runs_alike

pytestmark = pytest.mark.corpus

OPCODES = "sass__inst_executed_per_opcode"
REPEATS_CONSTANTS = "adu"
"""Constant loads that miss are executed again, which only the counter sees."""


def test_executions_by_opcode_are_nvidias_table():
    compared = 0
    for facts in every_kernel():
        table: Counter[str] = Counter()
        for launch in launches_of(facts):
            metric = launch.metrics[OPCODES]
            table.update(
                {str(name): int(count) for name, count in zip(metric.instance_ids, metric.instance_values, strict=True)}
            )
        counts = count_opcodes(facts, facts.read_executions())
        assert {name: count for name, count in counts.items() if count} == {
            name: count for name, count in table.items() if count
        }
        compared += 1
    assert compared >= 30


def count_by_counter(facts, pipe) -> float | None:
    """Warp instructions by the counter of a pipe: percent of its rate, times rate, SMs and active cycles, over all launches."""
    rate = pipe.find_rate(facts.architecture)
    total = 0.0
    for launch in launches_of(facts):
        percent = launch.read_number(f"sm__inst_executed_pipe_{pipe.name}.avg.pct_of_peak_sustained_active")
        cycles = launch.read_number("sm__cycles_active.avg")
        if percent is None or cycles is None or rate is None:
            return None
        total += percent / 100 * rate * cycles * facts.kernel.device.sm_count
    return total


def test_pipes_execute_what_their_counters_say():
    exact: Counter[str] = Counter()
    for facts in every_kernel():
        pipes = assign_pipes(facts, facts.architecture.name)
        executions = facts.read_executions()
        for number, pipe in enumerate(list_pipes()):
            counted = count_by_counter(facts, pipe)
            if counted is None or not runs_alike(facts):
                continue
            ours = int(executions[pipes == number].sum())
            if pipe.name == REPEATS_CONSTANTS:
                assert ours == pytest.approx(counted, rel=0.02), (name_of(facts), pipe.name)
            else:
                assert ours == pytest.approx(counted, abs=1, rel=1e-6), (name_of(facts), pipe.name)
            exact[pipe.name] += ours > 0
    assert set(exact) >= {"alu", "fma", "xu", "lsu", "adu", "cbu", "uniform", "fp64"}
    assert exact["alu"] >= 10
    assert exact["lsu"] >= 20


def test_v100_has_only_cycles_for_alu_and_fma_and_they_agree():
    # One instruction holds these pipes for one turn on 7.0, so cycles over rate are instructions. Powers and divisions go slightly different ways
    # in different passes.
    compared = 0
    for facts in every_kernel():
        if facts.architecture.name != "sm_70":
            continue
        pipes = assign_pipes(facts, "sm_70")
        executions = facts.read_executions()
        (launch,) = launches_of(facts)
        for number, pipe in enumerate(list_pipes()):
            if pipe.name not in ("alu", "fma"):
                continue
            percent = launch.read_number(f"sm__pipe_{pipe.name}_cycles_active.avg.pct_of_peak_sustained_active")
            cycles = launch.read_number("sm__cycles_active.avg") * facts.kernel.device.sm_count
            ours = int(executions[pipes == number].sum())
            assert ours == pytest.approx(percent / 100 * 2 * cycles, rel=1e-4), (name_of(facts), pipe.name)
            compared += 1
    assert compared == 20


def test_conversions_to_doubles_on_8_6_are_the_fp64_pipes():
    (facts,) = (one for one in every_kernel() if "init_data" in one.kernel.mangled_name)
    (launch,) = launches_of(facts)
    pipes = {pipe.name: number for number, pipe in enumerate(list_pipes())}
    executions, assigned = facts.read_executions(), assign_pipes(facts, facts.architecture.name)
    assert launch.read_number("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed") == 0
    assert executions[assigned == pipes["xu"]].sum() == 0
    assert executions[assigned == pipes["fp64"]].sum() == count_opcodes(facts, executions)["I2F"] > 0


def test_pipes_of_12_0_are_nvidias_own_table():
    (facts,) = (one for one in every_kernel() if one.architecture.name == "sm_120")
    (launch,) = launches_of(facts)
    metric = launch.metrics["sass__inst_executed_per_opcode_pipeline"]
    table = dict(zip(metric.instance_ids, metric.instance_values, strict=True))
    pipes = {pipe.name: number for number, pipe in enumerate(list_pipes())}
    executions, assigned = facts.read_executions(), assign_pipes(facts, "sm_120")
    ours = {name: int(executions[assigned == number].sum()) for name, number in pipes.items()}
    assert ours["lsu"] == table["LSU"]
    assert ours["adu"] == table["ADU"]
    assert ours["alu"] == table["ALUHEAVY"]
    assert ours["cbu"] + ours["branch"] == table["CBU"]
    # The table counts UMOV, which the counter of the pipe does not.
    assert ours["uniform"] == table["UNIFORM"] - count_opcodes(facts, executions)["UMOV"]


def test_classes_of_12_0_are_nvidias_categories():
    (facts,) = (one for one in every_kernel() if one.architecture.name == "sm_120")
    (launch,) = launches_of(facts)
    metric = launch.metrics["sass__inst_executed_per_opcode_category"]
    table = dict(zip(metric.instance_ids, metric.instance_values, strict=True))
    classes, executions = classify_rows(facts), facts.read_executions()
    ours = {one: int(executions[classes == number].sum()) for number, one in enumerate(CLASSES)}
    # Constants that HFMA2 loads are moves to us; comparisons of the loop's end are integers to both.
    moves = count_opcodes(facts, executions)["HFMA2"]
    assert ours[WorkClass.FP32] + ours[WorkClass.FP16] == table["Floating Point"] - moves
    assert ours[WorkClass.INTEGER] + ours[WorkClass.ADDRESS] + _count_constants(facts) == table["Integer"]
    assert ours[WorkClass.GLOBAL] + ours[WorkClass.CONSTANT] == table["Load/Store"]
    assert ours[WorkClass.CONTROL] == table["Control"]
    assert ours[WorkClass.UNIFORM] == table["Uniform Datapath"] - count_opcodes(facts, executions)["S2UR"]


def _count_constants(facts) -> int:
    """Executions of integer instructions that load a constant, which are moves to us."""
    moves = classify_rows(facts) == CLASSES.index(WorkClass.MOVE)
    names = [facts.rows.opcode(row).name for row in range(len(facts.rows))]
    is_integer = np.isin(names, ("IMAD", "IADD", "LEA", "ISETP"))
    return int(facts.read_executions()[moves & is_integer].sum())
