"""The decomposition of every kernel of the corpus, against the profiler's own sums."""

import numpy as np
import pytest

from gpa_lsp.diagnosis.analyses.decomposition.load_waits import measure_sample_scale
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import view_memory
from gpa_lsp.diagnosis.analyses.decomposition.stall_split import split_reason
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import read_warp_time
from gpa_lsp.diagnosis.analyses.questions.top_down import build_issue_tree
from tests.analyses.decomposition.test_tree import check_sums
from tests.real_reports import REPORTS, read_subjects

pytestmark = pytest.mark.corpus


@pytest.mark.parametrize("name", REPORTS)
def test_sources_add_up_to_their_reasons_and_nodes_to_their_parents(name):
    for facts in read_subjects(name):
        for reason in facts.kernel.reasons:
            split = split_reason(facts, reason)
            assert sum(source.samples for source in split.sources) == pytest.approx(split.samples)
        tree = build_issue_tree(facts)
        check_sums(tree.nodes)


@pytest.mark.parametrize("name", REPORTS)
def test_states_add_up_to_the_profilers_latency_per_instruction(name):
    for facts in read_subjects(name):
        time = read_warp_time(facts)
        assert sum(one.share_ratio for one in time.states) == pytest.approx(1.0)
        latency = facts.metric("smsp__average_warp_latency_per_inst_issued.ratio")
        issued = facts.metric("smsp__inst_issued.sum") or 0
        if latency is not None and issued > 500_000:
            # In shorter kernels the two, of different passes, differ by up to a seventh.
            assert time.from_counters
            assert sum(one.cycles_per_issue for one in time.states) == pytest.approx(latency, rel=0.02)


def test_what_a_sample_stands_for_agrees_by_counters_and_by_executions():
    """Standard error of the second is one over the root of the samples that issued; passes differ by more."""
    apart = []
    for name in REPORTS:
        for facts in read_subjects(name):
            scale, selected = measure_sample_scale(facts), facts.rows.count_reason("selected")
            if scale is None or selected < 1000:
                continue
            executions = facts.rows.executions
            by_executions = int(executions[executions > 0].sum()) / selected
            if scale != by_executions:  # by counters
                apart.append(abs(scale / by_executions - 1))
    assert len(apart) >= 10
    assert float(np.median(apart)) < 0.02
    assert max(apart) < 0.1


@pytest.mark.parametrize("name", REPORTS)
def test_the_waiting_for_memory_is_shared_out_whole(name):
    for facts in read_subjects(name):
        view = view_memory(facts)
        if view.split is not None:
            assert sum(part.share_ratio for part in view.split.parts) == pytest.approx(1.0)
        if view.waits is not None:
            kinds = sum(samples for samples, _ in view.waits.kinds.values())
            rest = view.waits.operand_samples + view.waits.unknown_samples
            assert kinds + rest == pytest.approx(view.waits.samples)


def test_a_pointer_chase_takes_the_unloaded_latency():
    """One warp walks a list, a sector at a time: what it sees is the latency of the memory, and no queue."""
    facts = max(read_subjects("rtx3090_mergesort_2023.1.ncu-rep"), key=lambda one: one.kernel.total_samples)
    split = view_memory(facts).split
    assert split.wait_cycles + split.passed_cycles == pytest.approx(split.unloaded_cycles, rel=0.15)
