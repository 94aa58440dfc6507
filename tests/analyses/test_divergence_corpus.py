"""Threads per instruction and uniform branches of real reports against Nsight Compute's own averages."""

import pytest

from gpa_lsp.diagnosis.analyses.questions.divergence import read_lanes
from tests.analyses.reports_by_line import every_kernel, launches_of, name_of, runs_alike

pytestmark = pytest.mark.corpus

PART = "smsp__thread_inst_executed_per_inst_executed.ratio"
WORK = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
UNIFORM = "smsp__sass_average_branch_targets_threads_uniform.pct"
PARTED = "smsp__branch_targets_threads_divergent"


@pytest.mark.parametrize("metric", [PART, WORK])
def test_threads_per_instruction(metric):
    exact = 0
    for facts in every_kernel():
        (*others, launch) = launches_of(facts)
        counted = launch.read_number(metric)
        lanes = read_lanes(facts)
        column = lanes.part if metric == PART else lanes.work
        if counted is None or column is None or others:
            continue  # the average of one launch says nothing of all
        ours = int(column.sum()) / int(lanes.executions.sum())
        assert ours == pytest.approx(counted, rel=1e-9 if runs_alike(facts) else 0.02), name_of(facts)
        exact += runs_alike(facts)
    assert exact >= 15


def test_uniform_branches():
    compared = 0
    for facts in every_kernel():
        (*others, launch) = launches_of(facts)
        counted = launch.read_number(UNIFORM)
        uniform = read_lanes(facts).uniform_ratio
        if counted is None or others:
            continue
        if uniform is None:
            assert counted == 0, name_of(facts)  # what the profiler says of code without branches
            continue
        assert 100 * uniform == pytest.approx(counted, rel=1e-9 if runs_alike(facts) else 0.02), name_of(facts)
        compared += uniform < 1
    assert compared >= 5


def test_divergent_branches_are_nvidias():
    for facts in every_kernel():
        totals = [launch.read_number(PARTED) for launch in launches_of(facts)]
        lanes = read_lanes(facts)
        if None not in totals:
            assert int(lanes.divergent.sum()) == sum(totals), name_of(facts)


def test_branches_that_part_are_branches():
    for facts in every_kernel():
        lanes = read_lanes(facts)
        assert not (lanes.divergent > 0)[~lanes.is_branch].any(), name_of(facts)
        assert (lanes.divergent <= lanes.executions).all(), name_of(facts)
