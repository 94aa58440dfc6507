"""Judgement of whether advice was taken, by changes of code and counters.

Advice about the launch, the build or the whole kernel is judged by the kernel. Advice about a place is judged at that place: by the
instructions of its lines before, and of the same lines after. Where the lines cannot be followed, what is left in the whole kernel bounds what is
left there.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Advice, Region
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.kernel.scopes import ScopeKind
from gpa_lsp.report.changes import Place
from gpa_lsp.report.differences import Difference, Trait, compare_traits_at, read_opcode
from gpa_lsp.report.line_map import map_edited_texts
from gpa_lsp.report.model import KernelReport


class AdviceFate(Enum):
    """Outcome of earlier advice."""

    TAKEN = "taken"  # Code or counters changed as the advice would have changed them
    PARTLY_TAKEN = "partly_taken"  # They went the same way, but not as far
    OPEN = "open"  # Nothing of what the advice is about has changed
    # It is not seen to be taken: the kernel changed otherwise, or neither code nor counters of the two reports can tell
    UNKNOWN = "unknown"


_FOLLOWED = (AdviceFate.TAKEN, AdviceFate.PARTLY_TAKEN)

_LEAST_POINTS = 0.05  # A share of something that fell by less says nothing of what was changed


class _Way(StrEnum):
    FELL = "fell"
    ROSE = "rose"
    CHANGED = "changed"


class _Sign(Struct, frozen=True, kw_only=True):
    """Effect on a trait of a change that follows advice."""

    trait: Trait  # of the kernel
    way: _Way  # in which it moves
    taken_ratio: float = 1.0  # after / before from which on the advice counts as taken
    partly_ratio: float = 1.0  # the same for partly taken


def _fell(trait: Trait, taken_ratio: float = 0.5, partly_ratio: float = 0.8) -> _Sign:
    return _Sign(trait=trait, way=_Way.FELL, taken_ratio=taken_ratio, partly_ratio=partly_ratio)


def _rose(trait: Trait, taken_ratio: float = 1.2, partly_ratio: float = 1.05) -> _Sign:
    return _Sign(trait=trait, way=_Way.ROSE, taken_ratio=taken_ratio, partly_ratio=partly_ratio)


def _changed(trait: Trait) -> _Sign:
    return _Sign(trait=trait, way=_Way.CHANGED)


# Optimizer → the signs of its advice, any of which is enough. Without signs nobody can tell: there is no edit to look for, or it is elsewhere.
SIGNS: Mapping[str, tuple[_Sign, ...]] = {
    "async_copy": (_rose(Trait.COPIES),),
    "at_the_limit": (),
    "atomic_contention": (_fell(Trait.ATOMICS),),
    "barrier_removal": (_fell(Trait.BARRIERS),),
    "block_increase": (_rose(Trait.BLOCKS),),
    "block_shape": (_changed(Trait.BLOCK),),
    "branch_divergence": (_fell(Trait.IDLE_LANES),),
    "code_reordering": (_rose(Trait.LOAD_DISTANCE),),
    "constant_cache_misses": (_fell(Trait.CONSTANT_LOADS),),
    "data_compression": (_fell(Trait.GLOBAL_SECTORS, 0.75, 0.9),),
    "debug_build": (_changed(Trait.BUILD),),
    "excessive_unrolling": (_fell(Trait.CODE_SIZE, 0.8, 0.95),),
    "fast_math": (_fell(Trait.CALLS), _fell(Trait.FP64), _fell(Trait.CONVERSIONS), _fell(Trait.SPECIAL)),
    "function_inlining": (_fell(Trait.CALLS),),
    "function_split": (_fell(Trait.CODE_SIZE, 0.8, 0.95),),
    "global_coalescing": (_fell(Trait.GLOBAL_EXCESS),),
    "kernel_fusion": (),
    "library_use": (),
    "loop_unrolling": (_rose(Trait.REPEATS, 1.5, 1.2),),
    "lower_precision": (_fell(Trait.GLOBAL_SECTORS, 0.75, 0.9),),
    "memory_transaction_reduction": (_fell(Trait.GLOBAL_ACCESSES, 0.75, 0.9),),
    "partial_last_warp": (_changed(Trait.BLOCK),),
    "register_accumulation": (_fell(Trait.ACCESSES_PER_ARITHMETIC, 0.8, 0.95), _fell(Trait.GLOBAL_ACCESSES, 0.75, 0.9)),
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
    "thread_decrease": (_changed(Trait.BLOCK),),
    "thread_increase": (_rose(Trait.OCCUPANCY),),
    "vector_accesses": (_rose(Trait.ACCESS_BYTES),),
    "warp_balance": (_fell(Trait.BARRIERS),),
}

# Optimizers whose advice is about a place, so that counts of the whole kernel are no evidence of it.
LOCAL_OPTIMIZERS = frozenset(
    {
        "code_reordering",
        "constant_cache_misses",
        "excessive_unrolling",
        "fast_math",
        "function_inlining",
        "function_split",
        "loop_unrolling",
        "strength_reduction",
        "warp_balance",
    }
)

# Of the executions of an unrolled loop's instructions, after / before: below it they were widened or went, and were not copied.
_LEAST_KEPT = 0.7
# Of the turns of all loops: above the first no loop was unrolled, below the second one that took most of them was.
_LEAST_TURNS, _UNROLLED_TURNS = 0.9, 0.5


def judge_advice(optimizer: str, differences: Mapping[Trait, Difference]) -> tuple[AdviceFate, tuple[Difference, ...]]:
    """Fate of an optimizer's advice, and the differences that show it."""
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


def judge_local_advice(
    advice: Advice, before: KernelReport, after: KernelReport, differences: Mapping[Trait, Difference]
) -> tuple[AdviceFate, tuple[Difference, ...]]:
    """Fate of advice about a place, and the differences there that show it."""
    build = differences.get(Trait.BUILD)
    if build is not None and build.is_change:  # another compiler's work at every place
        return AdviceFate.UNKNOWN, ()
    every = _judge_regions(advice, advice.regions, before, after, differences)
    if every[0] in _FOLLOWED:
        return every
    first = _judge_regions(advice, advice.regions[:1], before, after, differences)  # the place that the advice names
    return first if first[0] in _FOLLOWED else every


def _judge_regions(
    advice: Advice,
    regions: Sequence[Region],
    before: KernelReport,
    after: KernelReport,
    differences: Mapping[Trait, Difference],
) -> tuple[AdviceFate, tuple[Difference, ...]]:
    rows = [row for region in regions for one in region.hotspots for row in (one.def_row, one.use_row or one.def_row)]
    if not rows:
        return AdviceFate.UNKNOWN, ()
    causes = [before.instructions.texts[one.def_row] for region in regions for one in region.hotspots]
    opcodes = frozenset(read_opcode(text) for text in causes if text)
    lines = _find_lines(before, rows) | _find_scopes(regions)
    chosen = _choose_rows(before, lines) if lines else np.isin(np.arange(len(before.instructions)), rows)
    followed = _follow_lines(before, after, lines)
    now = _choose_rows(after, followed)
    if now.any():
        found = compare_traits_at((before, chosen), (after, now), opcodes)
        return _judge_there(advice.optimizer, _scale(found, before, after), differences)
    nowhere = np.zeros(len(after.instructions), dtype=bool)
    there = compare_traits_at((before, chosen), (after, nowhere), opcodes)
    bounds = {
        sign.trait: replace(there[sign.trait], after=differences[sign.trait].after)
        for sign in SIGNS.get(advice.optimizer, ())
        if sign.way is _Way.FELL and sign.trait in there and sign.trait in differences
    }
    fate, signs = judge_advice(advice.optimizer, _scale(bounds, before, after))
    if fate in _FOLLOWED:
        return fate, signs
    if advice.optimizer == "loop_unrolling":
        return _judge_loops(before, after, opcodes, differences)
    whole, signs = judge_advice(advice.optimizer, differences)
    return (whole, signs) if whole is AdviceFate.OPEN else (AdviceFate.UNKNOWN, ())


def _judge_loops(
    before: KernelReport, after: KernelReport, opcodes: frozenset[str], differences: Mapping[Trait, Difference]
) -> tuple[AdviceFate, tuple[Difference, ...]]:
    """Judge a loop that cannot be followed: unrolled, all loops take fewer turns, and its instructions are executed as often as before."""
    turns = _scale(differences, before, after).get(Trait.ITERATIONS)
    if turns is None or turns.ratio is None:
        return AdviceFate.UNKNOWN, ()
    if turns.ratio >= _LEAST_TURNS:
        return AdviceFate.OPEN, (turns,)
    every = [(kernel, np.ones(len(kernel.instructions), dtype=bool)) for kernel in (before, after)]
    kept = _scale(compare_traits_at(every[0], every[1], opcodes), before, after)[Trait.ITERATIONS].ratio
    is_unrolled = turns.ratio <= _UNROLLED_TURNS and kept is not None and kept >= _LEAST_KEPT
    return (AdviceFate.TAKEN, (turns,)) if is_unrolled else (AdviceFate.UNKNOWN, ())


def _judge_there(
    optimizer: str, there: Mapping[Trait, Difference], whole: Mapping[Trait, Difference]
) -> tuple[AdviceFate, tuple[Difference, ...]]:
    """Judge what changed at a place; what only moved from there to another place of the kernel did not go."""
    fate, signs = judge_advice(optimizer, there)
    if fate not in _FOLLOWED:
        return fate, signs
    for sign in signs:
        ratio = whole[sign.trait].ratio if sign.trait in whole else None
        has_moved = sign.ratio is not None and sign.ratio < 1 and ratio is not None and ratio >= 1
        kept = there[Trait.ITERATIONS].ratio if sign.trait is Trait.REPEATS and Trait.ITERATIONS in there else None
        if has_moved or (kept is not None and kept < _LEAST_KEPT):
            return AdviceFate.UNKNOWN, ()
    return fate, signs


def _scale(found: Mapping[Trait, Difference], before: KernelReport, after: KernelReport) -> Mapping[Trait, Difference]:
    """Barriers and turns of loops as often as each thread comes to them: fewer threads come to fewer."""
    old, new = (one.configuration.all_threads for one in (before, after))
    if not old or not new:
        return found
    scaled: dict[Trait, Difference] = {
        trait: replace(one, after=one.after * old / new)
        for trait, one in found.items()
        if trait in (Trait.BARRIERS, Trait.ITERATIONS) and not one.is_static and isinstance(one.after, int | float)
    }
    return {**found, **scaled}


def _find_lines(kernel: KernelReport, rows: list[int]) -> set[SourceLine]:
    """The lines of some instructions where they are written, without what is inlined into them."""
    columns = kernel.instructions
    chains = [columns.chains[index] for index in columns.chain_index[rows].tolist() if index >= 0]
    return {chain[-1].source_line for chain in chains if chain and chain[-1].line}


def _find_scopes(regions: Sequence[Region]) -> set[SourceLine]:
    """The lines that regions are named by: what a line costs may lie in routines that it calls."""
    scopes = [region.scope for region in regions if region.scope.kind is ScopeKind.LINE]
    return {SourceLine(file=one.file, line=one.line) for one in scopes if one.file and one.line}


def _choose_rows(kernel: KernelReport, lines: set[SourceLine]) -> npt.NDArray[np.bool_]:
    """Whether each instruction is of one of the lines, or inlined into one."""
    columns = kernel.instructions
    of_chain = [any(frame.source_line in lines for frame in chain) for chain in columns.chains]
    return np.array([*of_chain, False])[columns.chain_index]


def _follow_lines(before: KernelReport, after: KernelReport, lines: set[SourceLine]) -> set[SourceLine]:
    """The same lines after; none where one of them is gone, or where nobody can tell."""
    known = {frame.file for chain in after.instructions.chains for frame in chain}
    for file in {line.file for line in lines}:
        has_texts = [file in kernel.embedded_sources for kernel in (before, after)]
        is_same_kernel = any(has_texts) or before.mangled_name == after.mangled_name
        if file not in known or has_texts[0] is not has_texts[1] or not is_same_kernel:
            return set()
    partners = pair_lines(before, after, [(line.file, line.line) for line in lines])
    found = {SourceLine(file=file, line=partner) for (file, _), partner in partners.items() if partner}
    return found if all(partners.values()) else set()


def pair_lines(before: KernelReport, after: KernelReport, wanted: Sequence[Place]) -> dict[Place, int | None]:
    """Follow lines from one source to the next: (file, line) → the line after; None for one that is gone."""
    maps: dict[str, tuple[int, ...] | None] = {}
    found: dict[Place, int | None] = {}
    for file, line in wanted:
        if file not in maps:
            old, new = before.embedded_sources.get(file), after.embedded_sources.get(file)
            maps[file] = None if old is None or new is None or old == new else map_edited_texts(old, new)
        table = maps[file]
        found[(file, line)] = line if table is None or not 0 < line <= len(table) else table[line - 1] or None
    return found
