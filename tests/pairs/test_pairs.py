"""Each pair of fixture kernels: the original gets the advice its pattern is about, the improved twin does not.

The samples are made up (:mod:`tests.pairs.made_up_profile`); what differs between the twins is their real code, and what
:data:`PAIRS` says that only a GPU could have counted.
"""

from dataclasses import dataclass, field, replace
from functools import cache

import pytest

from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.advice.model import Advice, KernelAdvice
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel, check_conservation
from tests.fixtures_manifest.manifest import FIXTURES, read_recipes
from tests.pairs.made_up_profile import TURNS, WARPS, Circumstances, make_up_kernel

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Optimizer and circumstances of a pair.

    Attributes:
        optimizer: whose advice the original gets and the twin does not.
        original: what a GPU would have counted for the original.
        improved: and for its twin.
        architectures: where the original has the pattern.
    """

    optimizer: str
    original: Circumstances = field(default_factory=Circumstances)
    improved: Circumstances = field(default_factory=Circumstances)
    architectures: tuple[str, ...] = ARCHITECTURES


def go_round_once(_row: int, times: int) -> int:
    """Loops in loops are not hot: on sm_75 one waits for threads that are late, within the loop over the values."""
    return min(times, WARPS * TURNS)


PAIRS: dict[str, tuple[Pair, ...]] = {
    "async_copy": (Pair(optimizer="async_copy", architectures=("sm_80", "sm_90", "sm_120")),),
    "bank_conflict": (Pair(optimizer="shared_bank_conflicts", original=Circumstances(wavefronts=(32, 1))),),
    "barrier_imbalance": (Pair(optimizer="warp_balance", original=Circumstances(imbalance=400.0)),),
    "branch_divergence": (Pair(optimizer="branch_divergence", original=Circumstances(lanes=16)),),
    "constant_indexed": (Pair(optimizer="constant_cache_misses"),),
    "device_calls": (Pair(optimizer="function_inlining"),),
    "double_constant": (Pair(optimizer="strength_reduction"),),
    "few_blocks": (Pair(optimizer="block_increase"),),
    "fp64_heavy": (Pair(optimizer="strength_reduction", architectures=("sm_75", "sm_120")),),
    "global_atomics": (
        Pair(optimizer="atomic_contention", original=Circumstances(sectors=(8, 4), executes=go_round_once)),
    ),
    "huge_body": (Pair(optimizer="excessive_unrolling"),),
    "integer_division": (Pair(optimizer="strength_reduction"),),
    "local_array": (Pair(optimizer="register_reuse"),),
    "loop_not_unrolled": (Pair(optimizer="loop_unrolling", original=Circumstances(turns=16)),),
    "low_occupancy": (Pair(optimizer="thread_increase"),),
    "math_functions": (Pair(optimizer="fast_math"),),
    "narrow_loads": (Pair(optimizer="memory_transaction_reduction", original=Circumstances(sectors=(16, 4))),),
    "register_spill": (Pair(optimizer="register_reuse"),),
    "shared_reduction": (Pair(optimizer="warp_balance", original=Circumstances(imbalance=20.0)),),
    "short_def_use": (Pair(optimizer="code_reordering"),),
    "strided_access": (Pair(optimizer="global_coalescing", original=Circumstances(sectors=(32, 4))),),
    "tiny_blocks": (Pair(optimizer="thread_increase"),),
}

CASES = [(pattern, pair, sm) for pattern, pairs in PAIRS.items() for pair in pairs for sm in pair.architectures]


@cache
def advise(pattern: str, role: str, sm: str, circumstances: Circumstances) -> KernelAdvice:
    recipe = read_recipes()[pattern][role]
    launched = replace(circumstances, grid=tuple(recipe["grid"]), block=tuple(recipe["block"]))
    kernel = make_up_kernel(FIXTURES / "cubins" / sm / f"{pattern}_{role}.cubin", launched)
    blame = blame_kernel(kernel)
    check_conservation(kernel, blame)
    advice, problems = advise_kernel(Subject(kernel, blame))
    assert not problems
    return advice


def find(advice: KernelAdvice, optimizer: str) -> Advice | None:
    return next((one for one in advice.advice if one.optimizer == optimizer), None)


@pytest.mark.parametrize(("pattern", "pair", "sm"), CASES, ids=[f"{case[0]}-{case[2]}" for case in CASES])
def test_the_twin_loses_the_advice_its_original_got(pattern: str, pair: Pair, sm: str) -> None:
    before = find(advise(pattern, "original", sm, pair.original), pair.optimizer)
    after = find(advise(pattern, "improved", sm, pair.improved), pair.optimizer)
    assert before.speedup.estimate > 1.01
    assert before.hint
    assert after is None or after.speedup.estimate - 1 < 0.25 * (before.speedup.estimate - 1)


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_every_fixture_is_advised_without_a_problem(sm: str) -> None:
    for path in sorted((FIXTURES / "cubins" / sm).glob("*.cubin")):
        pattern, _, role = path.stem.rpartition("_")
        found = advise(pattern, role, sm, Circumstances())
        assert len(found.advice) + len(found.silences) >= 20
        assert all(1.01 <= one.speedup.estimate <= one.speedup.bound for one in found.advice)
