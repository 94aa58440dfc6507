"""Sectors, wavefronts and widths of real reports against what Nsight Compute summed up: exact."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.access import count_widths, read_accesses
from gpa_lsp.diagnosis.analyses.line_sums import index_lines
from gpa_lsp.diagnosis.analyses.questions.memory_access import ANALYSIS
from gpa_lsp.diagnosis.analyses.subject import Subject
from tests.analyses.reports_by_line import every_kernel, launches_of, name_of, runs_alike, sum_over_launches

pytestmark = pytest.mark.corpus

EXCESS = {
    "global_transfers": (
        "derived__memory_l2_theoretical_sectors_global_excessive",
        "derived__memory_l2_sectors_global_excessive",
    ),
    "shared_transfers": (
        "derived__memory_l1_wavefronts_shared_excessive",
        "derived__memory_l1_sectors_shared_excessive",
    ),
}
GLOBAL = tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{kind}.sum" for kind in ("ld", "st", "atom", "red"))
WIDTHS = {bits // 8: f"smsp__sass_inst_executed_op_memory_{bits}b.sum" for bits in (8, 16, 32, 64, 128)}


@pytest.mark.parametrize("which", EXCESS)
def test_the_excess_is_nvidias(which):
    compared = 0
    for facts in every_kernel():
        counted = sum_over_launches(facts, *EXCESS[which])
        transfers = getattr(read_accesses(facts), which)
        if counted is not None:
            assert int(transfers.excess.sum()) == counted, name_of(facts)
            compared += counted > 0
    assert compared >= 1


def test_excess_by_line_is_the_whole_excess():
    for facts in every_kernel():
        transfers = read_accesses(facts).global_transfers
        assert index_lines(facts).sum_by_line(transfers.excess).sum() == transfers.excess.sum(), name_of(facts)


def test_sectors_are_those_of_l1_from_8_0_on():
    # Copies that bypass L1 are not among the four aggregates, and what spins does so differently in every pass.
    compared = 0
    for facts in every_kernel():
        totals = [sum_over_launches(facts, name) for name in GLOBAL]
        copies = sum_over_launches(facts, "smsp__inst_executed_op_ldgsts.sum")
        capability = facts.kernel.device.compute_capability
        if None in totals or copies or capability < (8, 0) or not runs_alike(facts):
            continue
        assert int(read_accesses(facts).global_transfers.actual.sum()) == sum(totals), name_of(facts)
        compared += 1
    assert compared >= 9


def test_local_sectors_are_nvidias():
    for facts in every_kernel():
        counted = sum_over_launches(facts, "memory_l2_theoretical_sectors_local")
        if counted is not None:
            assert int(read_accesses(facts).local_sectors.sum()) == counted, name_of(facts)


def test_widths_are_nvidias():
    compared = 0
    for facts in every_kernel():
        counted = {width: sum_over_launches(facts, name) for width, name in WIDTHS.items()}
        if None not in counted.values():
            assert count_widths(read_accesses(facts)) == {width: count for width, count in counted.items() if count}
            compared += 1
    assert compared >= 15


def test_a_kernel_whose_launches_were_lost_has_nothing_but_its_code():
    facts = every_kernel()[0]
    assert launches_of(facts)
    empty = Subject(_forget(facts.kernel))
    answer = ANALYSIS.ask(empty)
    assert not answer.is_known
    assert len(answer.missing) == 6


def _forget(kernel):
    functions = tuple(
        replace(
            function,
            counters={},
            executions=np.full_like(function.executions, -1),
            all_samples=np.zeros_like(function.all_samples),
        )
        for function in kernel.functions
    )
    return replace(kernel, launches=(), functions=functions)
