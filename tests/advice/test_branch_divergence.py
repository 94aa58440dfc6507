"""Divergence: the work behind a branch times the part of its threads that is missing, shared out among nested branches."""

import numpy as np
import pytest

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.branch_divergence import OPTIMIZER
from gpa_lsp.kernel.dataflow.divergent_branches import Parting, find_divergent_branches
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import blame_by_hand, forget_code, write_subject
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel

IF_ELSE = """
BSSY B0, join     # d.cu:10 | selected=2                 | x=100 thread_executions=3200 thread_executions_true=3200
@P0 BRA other     # d.cu:11 | selected=2                 | x=100 thread_executions=3200 thread_executions_true={true} {divergent}
FADD R5, R5, R6   # d.cu:18 | wait=80/70 selected=20     | x=100 thread_executions={first} thread_executions_true={first}
BRA wait          # d.cu:18 | selected=20                | x=100 thread_executions={first} thread_executions_true={first}
other:
FMUL R5, R5, R6   # d.cu:14 | wait=80/70 not_selected=50 | x=100 thread_executions={second} thread_executions_true={second}
wait:
BSYNC B0          # d.cu:17 | selected=2                 | x=100 thread_executions=3200 thread_executions_true=3200
join:
STG.E [R2.64], R5 # d.cu:20 | selected=8                 | x=100 thread_executions=3200 thread_executions_true=3200
EXIT              # d.cu:21 | selected=8                 | x=100 thread_executions=3200 thread_executions_true=3200
"""


def render(first: int = 1600, second: int = 1600, divergent: int = 100) -> str:
    return IF_ELSE.format(true=second, first=first, second=second, divergent=f"divergent_branch_targets={divergent}")


def write(first: int = 1600, second: int = 1600, divergent: int = 100, **kernel):
    return write_subject(render(first, second, divergent), {}, **kernel)


def match(subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch), found
    return found


def silence(subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence), found
    return found


def test_half_the_work_of_both_sides_would_go():
    (region,) = match(write()).regions
    # Both sides but for not_selected, at 16 of 32 threads; what comes after the join is whole.
    assert region.samples == pytest.approx((100 + 20 + 80) / 2)
    assert region.latency_samples == pytest.approx((70 + 70) / 2)
    assert (region.scope.kind, region.scope.line, region.scope.row) == (ScopeKind.LINE, 11, 1)
    assert {hotspot.def_row for hotspot in region.hotspots} == {1}
    assert [hotspot.use_row for hotspot in region.hotspots] == [2, 4, 3]
    assert region.hotspots[0].reason == "wait"
    assert region.hint == "The branch at line 11 of d.cu diverges: of 32 threads, 16 and 16 execute the code behind it."


def test_unequal_sides_lose_unequally():
    (region,) = match(write(first=2400, second=800)).regions
    assert region.samples == pytest.approx(120 * 8 / 32 + 80 * 24 / 32)


def test_a_branch_that_whole_warps_take_is_no_match():
    found = silence(write(first=3200, second=3200, divergent=0))
    assert found.message == "no branch diverges; 32 of 32 threads active on average"


def test_fewer_threads_without_divergence_are_somebody_elses():
    """Both sides run with 16 threads, but the branch parted no warp: the threads were missing before."""
    assert silence(write(divergent=0)).stage is SilenceStage.NOT_MATCHED


def test_divergence_without_samples_is_no_match():
    text = render()
    for samples in ("wait=80/70 selected=20", "wait=80/70 not_selected=50", "selected=20"):
        text = text.replace(samples, "selected=0")
    assert silence(write_subject(text, {})).message.startswith("no samples in the code of 1 divergent branch")


NESTED = """
BSSY B0, out_wait      # n.cu:1 | selected=1  | x=100 thread_executions=3200
@P0 BRA out_wait       # n.cu:2 | selected=1  | x=100 thread_executions=3200 divergent_branch_targets=100
FADD R5, R5, R6        # n.cu:3 | wait=64     | x=100 thread_executions=1600
@P1 BRA out_wait       # n.cu:4 | selected=64 | x=100 thread_executions=1600 divergent_branch_targets=100
FMUL R5, R5, R6        # n.cu:5 | wait=64     | x=100 thread_executions=400
out_wait:
BSYNC B0               # n.cu:6 | selected=1  | x=100 thread_executions=3200
EXIT                   # n.cu:7 | selected=1  | x=100 thread_executions=3200
"""


def test_work_that_each_thread_costs_by_itself_stays():
    """Whole warps of threads with a sector each ask for as many sectors, and as many atomics, as before."""
    text = render().replace(
        "FMUL R5, R5, R6   # d.cu:14 | wait=80/70", "FMUL R5, R5, R6   # d.cu:14 | long_scoreboard=80/70"
    )
    load = "LDG.E R6, [R8.64] # d.cu:9  | selected=1  | x=100 thread_executions_true=3200 global_sectors={sectors}"
    scattered, together = (
        match(write_subject(f"{load.format(sectors=sectors)}\n{text}", {(5, "long_scoreboard"): (0,)}))
        for sectors in (3200, 400)
    )
    assert together.regions[0].samples == pytest.approx(200 / 2)
    assert scattered.regions[0].samples == pytest.approx(120 / 2)
    assert "without 80 samples stalled on scattered accesses and atomics" in scattered.reasons[0]


def test_nested_branches_share_the_loss_out():
    """Of the innermost code 28 of 32 threads are missing: 16 since the outer branch, 12 since the inner one."""
    subject = write_subject(NESTED.replace("thread_executions=", "thread_executions_true=1 thread_executions="), {})
    regions = {region.scope.line: region.samples for region in match(subject).regions}
    assert regions == {2: pytest.approx(64 / 2 + 64 / 2 + 64 * 16 / 32), 4: pytest.approx(64 * 12 / 32)}


LOOP = """
MOV R4, RZ           # l.cu:3 | selected=1   | x=100 {name}=3200
turn:
FADD R5, R5, R6      # l.cu:5 | wait=400     | x=400 {name}=6400
@P0 BRA turn         # l.cu:4 | selected=200 | x=400 {name}={branch} divergent_branch_targets=90
STG.E [R2.64], R5    # l.cu:7 | selected=1   | x=100 {name}=3200
EXIT                 # l.cu:8 | selected=1   | x=100 {name}=3200
"""


@pytest.mark.parametrize(("name", "branch"), [("thread_executions", 6400), ("thread_executions_true", 3300)])
def test_loops_of_different_length_run_with_the_threads_that_are_left(name, branch):
    """As older profilers count, too: only threads whose guard holds."""
    subject = write_subject(LOOP.format(name=name, branch=branch), {})
    (branch_found,) = find_divergent_branches(subject.rows)
    assert (branch_found.kind, branch_found.threads) == (Parting.TURNS, 32.0)
    assert branch_found.rows.tolist() == [1, 2]
    assert branch_found.loss.tolist() == [0.5, 0.5]


def test_the_remedy_of_loops_is_another_than_that_of_sides():
    text = LOOP.format(name="thread_executions", branch=6400).replace("x=100", "x=100 thread_executions_true=1", 1)
    turns, sides = match(write_subject(text, {})), match(write())
    assert "loops of similar length" in turns.hint
    assert "whole warps take one side" in sides.hint
    assert turns.regions[0].hint.startswith(
        "Threads leave the loop at line 4 of l.cu after different iterations: of 32 that enter, 16"
    )


def test_threads_that_end_early_leave_the_rest_alone():
    text = """
    ISETP.NE P0, PT, R0, RZ, PT # e.cu:1 | selected=1 | x=100 thread_executions=3200 thread_executions_true=3200
    @P0 EXIT                    # e.cu:2 | selected=1 | x=100 thread_executions=3200 thread_executions_true=2400
    FADD R5, R5, R6             # e.cu:3 | wait=80    | x=100 thread_executions=800 thread_executions_true=800
    EXIT                        # e.cu:4 | selected=20 | x=100 thread_executions=800 thread_executions_true=800
    """
    (region,) = match(write_subject(text, {})).regions
    assert region.samples == pytest.approx(100 * 24 / 32)
    assert region.hint == "Some threads exit at line 2 of e.cu; the warp continues with 8 of 32."


def test_partly_filled_blocks_are_no_divergence():
    text = render(800, 800).replace("3200", "1600")
    (region,) = match(write_subject(text, {})).regions
    assert region.samples == pytest.approx(200 / 2), "half of the 16 threads there are, not three quarters of 32"


def test_the_profilers_closed_form_is_told():
    metrics = {
        "smsp__thread_inst_executed_per_inst_executed.ratio": 24.0,
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": 20.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
    }
    assert "38 % idle threads × 40 % busy SMs = 15 % of the run time" in match(write(metrics=metrics)).reasons[-1]


def test_without_executions_or_code_it_is_silent():
    text = render().replace("x=100", "")
    assert silence(write_subject(text, {})).stage is SilenceStage.NO_METRICS
    assert silence(forget_code(write())).stage is SilenceStage.NO_CODE


def test_the_advice_is_priced_by_equation_2():
    subject = write()
    advice = OPTIMIZER.advise(subject)
    assert isinstance(advice, Advice)
    assert advice.speedup.uncapped == pytest.approx(subject.total_samples / (subject.total_samples - 100))


def test_losses_of_a_row_never_add_up_to_more_than_its_work():
    """Many branches in a row and in each other, threads falling."""
    blocks = "\n".join(
        f"@P0 BRA out  # m.cu:{number} | wait=9 | x=100 thread_executions={threads} divergent_branch_targets=50"
        for number, threads in enumerate(range(3200, 100, -100), start=1)
    )
    subject = write_subject(f"{blocks}\nout:\nEXIT  # m.cu:99 | wait=1 | x=100 thread_executions=3200", {})
    total = np.zeros(len(subject.rows))
    branches = find_divergent_branches(subject.rows)
    for branch in branches:
        assert (branch.loss > 0).all()
        total[branch.rows] += branch.loss
    assert len(branches) > 20
    assert 0.9 < total.max() <= 1.0


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_in_real_code_the_sides_are_what_lies_between_the_branch_and_the_meeting_point(architecture):
    path = FIXTURES / "cubins" / architecture / "branch_divergence_original.cubin"
    subject = blame_by_hand(make_up_kernel(path, Circumstances(lanes=16)), {})
    found = match(subject)
    graph = subject.rows.functions[0].graph
    assert graph is not None
    (meeting,) = graph.divergence_regions
    inside = {use for region in found.regions for hotspot in region.hotspots if (use := hotspot.use_row) is not None}
    assert inside
    assert all(meeting.set_instruction < row < graph.first_instruction[meeting.target_block] for row in inside)
    assert all(
        set(graph.blocks_of_loop(loop)) <= set(graph.block_of_instruction[sorted(inside)])
        for loop in range(len(graph.loops))
    )
    assert "line 11" in found.regions[0].hint
