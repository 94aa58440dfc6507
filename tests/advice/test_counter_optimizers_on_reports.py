"""The optimizers that rest on counters, on real reports: against the profiler's own rules, and against themselves."""

import re
from collections.abc import Iterator

import pytest

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.advise import find_obstacle
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice
from gpa_lsp.diagnosis.advice.optimizers import Optimizer
from gpa_lsp.diagnosis.advice.optimizers.atomic_contention import OPTIMIZER as ATOMICS
from gpa_lsp.diagnosis.advice.optimizers.branch_divergence import OPTIMIZER as DIVERGENCE
from gpa_lsp.diagnosis.advice.optimizers.constant_cache_misses import OPTIMIZER as CONSTANTS
from gpa_lsp.diagnosis.advice.optimizers.global_coalescing import OPTIMIZER as COALESCING
from gpa_lsp.diagnosis.advice.optimizers.memory_transaction_reduction import OPTIMIZER as TRANSACTIONS
from gpa_lsp.diagnosis.advice.optimizers.shared_bank_conflicts import OPTIMIZER as CONFLICTS
from gpa_lsp.diagnosis.advice.optimizers.shared_tiling import OPTIMIZER as TILING
from gpa_lsp.diagnosis.advice.optimizers.store_drain import OPTIMIZER as DRAIN
from gpa_lsp.diagnosis.advice.optimizers.warp_balance import OPTIMIZER as BARRIERS
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, mark_accesses
from gpa_lsp.profile.model import Launch
from tests.real_reports import REPORTS, read_subjects

OPTIMIZERS: tuple[Optimizer, ...] = (
    COALESCING, CONFLICTS, TRANSACTIONS, DIVERGENCE, CONSTANTS, BARRIERS, ATOMICS, DRAIN,
)  # fmt: skip
WITH_EXCESS = {
    "a40_julia_relative_2022.4.ncu-rep": 1,
    "v100_miniweather_baseline_2022.2.ncu-rep": 5,
    "v100_miniweather_divtomult_2022.2.ncu-rep": 5,
}
"""Reports in which the profiler's rule gives totals, and how many kernels of one launch it does so for."""
WITH_STALLS_AT = {BARRIERS: ("barrier", "membar", "warpgroup_arrive"), DRAIN: ("drain",)}

pytestmark = pytest.mark.corpus


def find_rule(launch: Launch, rule: str) -> str:
    """Text of one of the profiler's rules; empty when the rule has nothing to say."""
    found = [one for one in launch.rules if one.identifier == rule]
    return " ".join(message.text for one in found for message in one.messages if message.kind == "warning")


@pytest.mark.parametrize("name", REPORTS)
def test_every_answer_is_sound(name):
    for subject in read_subjects(name):
        for optimizer in OPTIMIZERS:
            if find_obstacle(optimizer, subject) is not None:
                continue
            found = optimizer.match(subject)
            if not isinstance(found, EliminationMatch):
                assert found.message
                continue
            matched = sum(region.samples for region in found.regions)
            assert 0 < matched <= subject.total_samples
            for region in found.regions:
                assert 0 <= region.latency_samples <= region.samples
                assert region.hotspots
                assert sum(hotspot.samples for hotspot in region.hotspots) <= region.samples * (1 + 1e-9)
            reasons = WITH_STALLS_AT.get(optimizer)
            if reasons is not None and not found.work:
                assert matched <= sum(subject.rows.count_reason(reason) for reason in reasons) * (1 + 1e-9)


@pytest.mark.parametrize("name", REPORTS)
def test_the_excess_is_the_one_the_profilers_rule_names(name):
    """``… 16384 excessive sectors (33% of the total 49152 sectors)``; the rule counts atomics, too."""
    checked = 0
    for subject, launch in single_launches(name):
        text = find_rule(launch, "UncoalescedGlobalAccess")
        found = re.search(r"total of (\d+) excessive sectors \(\d+% of the total (\d+) sectors\)", text)
        sectors, ideal = subject.rows.counter("global_sectors"), subject.rows.counter("global_sectors_ideal")
        if found is None:
            continue
        assert ideal is not None
        assert int(sectors.clip(min=0).sum()) == int(found[2])
        assert int((sectors - ideal).sum()) == int(found[1])
        assert isinstance(COALESCING.match(subject), EliminationMatch)
        checked += 1
    assert checked == WITH_EXCESS.get(name, 0)


@pytest.mark.parametrize("name", REPORTS)
def test_where_the_profilers_rule_is_silent_nothing_is_promised(name):
    for subject, launch in single_launches(name):
        has_rule = any(one.identifier == "UncoalescedGlobalAccess" for one in launch.rules)
        if not has_rule or launch.failure or find_rule(launch, "UncoalescedGlobalAccess"):
            continue
        assert not isinstance(COALESCING.advise(subject), Advice)


def single_launches(name: str) -> Iterator[tuple[Subject, Launch]]:
    for subject in read_subjects(name):
        if len(subject.kernel.launches) == 1:
            yield subject, subject.kernel.launches[0]


def find_subject(name: str, kernel: str) -> Subject:
    (found,) = [subject for subject in read_subjects(name) if kernel in subject.kernel.name]
    return found


def test_the_reference_product_reads_rows_byte_by_byte():
    """Sixteen one-byte loads a row stand side by side; the counters call that uncoalesced, one wide load is the remedy."""
    subject = find_subject("a100_cutlass_s8_2024.1.ncu-rep", "ReferenceGemm")
    found = TRANSACTIONS.match(subject)
    assert isinstance(found, EliminationMatch)
    (region,) = found.regions
    assert "can be one access of 16 bytes" in region.hint
    assert region.samples > 0.5 * subject.total_samples
    assert "merging adjacent accesses" in str(getattr(COALESCING.match(subject), "message", ""))


def test_one_warp_looks_back_while_the_block_waits():
    """A scan with decoupled look-back: the barrier behind it waits for one warp of sixteen."""
    (subject,) = read_subjects("rtx3070_scan_2020.3.ncu-rep")
    found = BARRIERS.match(subject)
    assert isinstance(found, EliminationMatch)
    cause = found.regions[0].hotspots[0]
    assert cause.note == "5.8 % of the warps execute it before the barrier"
    assert subject.rows.mnemonic(cause.def_row).startswith("LDG.E.64.STRONG")
    assert subject.rows.mnemonic(cause.use_row or 0).startswith("BAR")
    assert cause.samples > 0.3 * subject.total_samples


def test_half_empty_warps_of_the_self_join():
    (subject,) = read_subjects("a100_selfjoin_saturated_2020.3.ncu-rep")
    found = DIVERGENCE.match(subject)
    assert isinstance(found, EliminationMatch)
    # The profiler counts 17.5 of 32 threads: regrouped perfectly, all instructions would take 0.55 of the time.
    matched = sum(region.samples for region in found.regions) / subject.total_samples
    assert matched == pytest.approx(1 - 17.5 / 32, abs=0.05)
    assert subject.rows.opcode(found.regions[0].hotspots[0].def_row).name == "BRA"
    atomics = ATOMICS.match(subject)
    assert isinstance(atomics, EliminationMatch)
    assert mark_accesses(subject.rows, GLOBAL_SPACES, (Access.ATOMIC,))[atomics.regions[0].hotspots[0].def_row]


def test_first_constants_of_tiny_launches_are_no_advice():
    for subject in read_subjects("rtx3090_mergesort_2023.1.ncu-rep"):
        if "findPartitions" in subject.kernel.name:
            assert not isinstance(CONSTANTS.advise(subject), Advice)
            assert subject.rows.count_reason("imc_miss") > 0.5 * subject.total_samples


def test_tiles_that_l2_holds_are_not_waited_for_as_long_as_dram():
    """A block waits for the slowest of the 8 lines of a tile: 352 cycles of L2, and in 1 − 0.97⁸ of the rounds 512 more for DRAM, in place of 864."""
    subject = find_subject("rtx5090_matmul_2026.2.ncu-rep", "matmul_naive")
    found = TILING.match(subject)
    assert isinstance(found, EliminationMatch)
    # With 864 cycles in each round the wait would add 0.619 of the warps' time
    assert found.added == pytest.approx(0.619 * (352 + (1 - 0.9688**8) * 512 + 2 * 7) / 864, rel=0.01)
    advice = TILING.advise(subject)
    assert isinstance(advice, Advice) and 1.1 < advice.speedup.estimate < 1.4
