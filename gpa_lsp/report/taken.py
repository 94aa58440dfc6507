"""Whether advice was taken: what the change would have to do to code and counters, and whether it did."""

from collections.abc import Mapping
from enum import Enum, StrEnum

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import Quantity
from gpa_lsp.report.differences import Difference, Trait


class AdviceFate(Enum):
    """What became of a piece of advice given before."""

    TAKEN = "taken"
    """Code or counters changed as the advice would have changed them."""
    PARTLY_TAKEN = "partly_taken"
    """They went the same way, but not as far."""
    OPEN = "open"
    """Nothing of what the advice is about has changed."""
    UNKNOWN = "unknown"
    """Neither code nor counters of the two reports can tell."""


_LEAST_POINTS = 0.05
"""A share of something that fell by less says nothing of what was changed."""


class _Way(StrEnum):
    FELL = "fell"
    ROSE = "rose"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sign:
    """What a change that follows advice does to a trait.

    Attributes:
        trait: of the kernel.
        way: in which it moves.
        taken_ratio: after / before from which on the advice counts as taken.
        partly_ratio: the same for partly taken.
    """

    trait: Trait
    way: _Way
    taken_ratio: float = 1.0
    partly_ratio: float = 1.0


def _fell(trait: Trait, taken_ratio: float = 0.5, partly_ratio: float = 0.8) -> _Sign:
    return _Sign(trait=trait, way=_Way.FELL, taken_ratio=taken_ratio, partly_ratio=partly_ratio)


def _rose(trait: Trait, taken_ratio: float = 1.2, partly_ratio: float = 1.05) -> _Sign:
    return _Sign(trait=trait, way=_Way.ROSE, taken_ratio=taken_ratio, partly_ratio=partly_ratio)


def _changed(trait: Trait) -> _Sign:
    return _Sign(trait=trait, way=_Way.CHANGED)


SIGNS: Mapping[str, tuple[_Sign, ...]] = {
    "async_copy": (_rose(Trait.COPIES),),
    "at_the_limit": (),
    "atomic_contention": (_fell(Trait.ATOMICS),),
    "block_increase": (_rose(Trait.BLOCKS),),
    "block_shape": (_changed(Trait.BLOCK),),
    "branch_divergence": (_fell(Trait.IDLE_LANES),),
    "code_reordering": (_rose(Trait.LOAD_DISTANCE),),
    "constant_cache_misses": (_fell(Trait.CONSTANT_LOADS),),
    "debug_build": (_changed(Trait.BUILD),),
    "excessive_unrolling": (_fell(Trait.CODE_SIZE, 0.8, 0.95),),
    "fast_math": (_fell(Trait.CALLS), _fell(Trait.FP64), _fell(Trait.CONVERSIONS), _fell(Trait.SPECIAL)),
    "function_inlining": (_fell(Trait.CALLS),),
    "function_split": (_fell(Trait.CODE_SIZE, 0.8, 0.95),),
    "global_coalescing": (_fell(Trait.GLOBAL_EXCESS),),
    "instruction_diet": (_fell(Trait.EXECUTED, 0.8, 0.95),),
    "kernel_fusion": (),
    "loop_unrolling": (_fell(Trait.ITERATIONS, 0.75, 0.9),),
    "memory_transaction_reduction": (_fell(Trait.GLOBAL_ACCESSES, 0.75, 0.9),),
    "partial_last_warp": (_changed(Trait.BLOCK),),
    "register_reuse": (_fell(Trait.LOCAL_ACCESSES), _fell(Trait.LOCAL_SECTORS)),
    "register_tiling": (_fell(Trait.ACCESSES_PER_ARITHMETIC, 0.75, 0.9),),
    "shared_bank_conflicts": (_fell(Trait.SHARED_EXCESS),),
    "shared_tiling": (_rose(Trait.SHARED_MOVED), _rose(Trait.SHARED_ACCESSES)),
    "sm_imbalance": (_fell(Trait.IDLE_SMS),),
    "small_grid": (_rose(Trait.BLOCKS),),
    "store_drain": (_fell(Trait.BLOCKS),),
    "strength_reduction": (_fell(Trait.SPECIAL), _fell(Trait.CONVERSIONS), _fell(Trait.FP64), _fell(Trait.CALLS)),
    "tail_effect": (_fell(Trait.UNFILLED_WAVES),),
    "tensor_cores": (_rose(Trait.TENSOR),),
    "thread_increase": (_rose(Trait.OCCUPANCY),),
    "vector_accesses": (_rose(Trait.ACCESS_BYTES),),
    "warp_balance": (_fell(Trait.BARRIER_DENSITY),),
}
"""Optimizer → the signs of its advice, any of which is enough. Without signs nobody can tell: there is no edit to look for, or it is elsewhere."""


def judge_advice(optimizer: str, differences: Mapping[Trait, Difference]) -> tuple[AdviceFate, tuple[Difference, ...]]:
    """What became of an optimizer's advice, and the differences that tell.

    Args:
        optimizer: name in the catalogue.
        differences: of every trait that is known of both kernels.
    """
    fates: dict[AdviceFate, list[Difference]] = {}
    for sign in SIGNS.get(optimizer, ()):
        difference = differences.get(sign.trait)
        if difference is not None and not (sign.way is _Way.FELL and not difference.before):
            fates.setdefault(_judge(sign, difference), []).append(difference)
    for fate in (AdviceFate.TAKEN, AdviceFate.PARTLY_TAKEN, AdviceFate.OPEN):
        if fate in fates:
            return fate, tuple(fates[fate])
    return AdviceFate.UNKNOWN, ()


def _judge(sign: _Sign, difference: Difference) -> AdviceFate:
    if sign.way is _Way.CHANGED:
        return AdviceFate.TAKEN if difference.is_change else AdviceFate.OPEN
    ratio = difference.ratio
    if sign.way is _Way.FELL and difference.quantity is Quantity.RATIO and _measure_fall(difference) < _LEAST_POINTS:
        return AdviceFate.OPEN
    if ratio is None:  # there was none before, and whatever is there now has risen
        return AdviceFate.TAKEN if difference.after else AdviceFate.OPEN
    for fate, limit in ((AdviceFate.TAKEN, sign.taken_ratio), (AdviceFate.PARTLY_TAKEN, sign.partly_ratio)):
        if ratio <= limit if sign.way is _Way.FELL else ratio >= limit:
            return fate
    return AdviceFate.OPEN


def _measure_fall(difference: Difference) -> float:
    old, new = difference.before, difference.after
    assert isinstance(old, int | float)
    assert isinstance(new, int | float)
    return old - new
