"""GPA entire, as published: the optimizers of Table II, what each matches, and what Equations 2 to 10 make of it.

The causes are those of the blamer ``paper`` (section IV, Equation 1). T are all samples of a launch context, M the matched ones, M^L those of them
without issue, A those in cycles with an issue. Stall reasons of CUPTI, which the paper speaks of, are told by the table of metrics in Nsight
Compute's documentation ("nvprof metric comparison"). Beside each rule stands why the default mode does otherwise.

Source: GPA (Zhou et al., CGO 2021), section V. Where the text is silent the published code decides, which is then said.
"""

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import MemorySpace
from gpa_lsp.diagnosis.advice.advise import NO_SPLIT, ask
from gpa_lsp.diagnosis.advice.blamed_stalls import build_hotspots, mark_reasons
from gpa_lsp.diagnosis.advice.dependency_stalls import sum_active
from gpa_lsp.diagnosis.advice.estimators import MOST_HIDING, estimate_elimination, estimate_hiding, estimate_parallel
from gpa_lsp.diagnosis.advice.launch_contexts import count_shares
from gpa_lsp.diagnosis.advice.matches import HidingRegion
from gpa_lsp.diagnosis.advice.model import MOST_REGIONS, Advice, Category, KernelAdvice, Silence, SilenceStage, Speedup
from gpa_lsp.diagnosis.advice.optimizers import NO_ARCHITECTURE, NO_GRID, NotApplicable
from gpa_lsp.diagnosis.advice.pricing import share_samples, show_region
from gpa_lsp.diagnosis.advice.residency import describe_block, measure_issue_ratio, measure_states
from gpa_lsp.diagnosis.advice.slow_arithmetic import LONG_LATENCY_CYCLES, find_slowness
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.diagnosis.blame.pruning import StallClass, classify_reason
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, factor, list_of, number, percent, say
from gpa_lsp.gpu.arch.occupancy import OccupancyLimit, find_occupancy
from gpa_lsp.kernel.dataflow.expansions import find_called_routines, recognise_routine
from gpa_lsp.kernel.scopes import ScopeKind

_FETCH = ("no_instructions", "branch_resolving")  # stall_inst_fetch
_MEMORY_THROTTLE = ("lg_throttle", "drain")  # stall_memory_throttle
_PIPE_BUSY = ("math_pipe_throttle", "mio_throttle")  # stall_pipe_busy

# int32[e]: of each blamed pair the number of the scope it is matched in, -1 where it is not matched
_Scopes = npt.NDArray[np.int32]
_Marks = npt.NDArray[np.bool_]


class _Method(Enum):
    """Kind of gain of an optimizer (Table II)."""

    ELIMINATION = "stall elimination"  # Equation 2
    HIDING = "latency hiding"  # Equation 4; Equation 5 for each place
    HIDING_IN_SCOPES = "latency hiding in scopes"  # Equation 5, and all scopes together
    PARALLEL = "parallel"  # Equations 6 to 10


_HIDING = (_Method.HIDING, _Method.HIDING_IN_SCOPES)


class _Warps(Struct, frozen=True, kw_only=True):
    """Change of the warps per scheduler by a parallel optimizer."""

    warps: float  # W
    new_warps: float  # W_new
    scales_warps: bool  # Equation 10 with 1 / C_W; otherwise its f holds C_W, because the work of a scheduler stays
    factor: float  # what else f holds
    hint: Sentence


class _Row(Struct, frozen=True, kw_only=True):
    """A row of Table II."""

    name: str  # as the optimizer of the default mode that has the same purpose
    title: str  # as in the table
    method: _Method
    match: Callable[[Subject], _Scopes | _Warps | Sentence | NotApplicable]  # a sentence says why nothing matches
    hint: Sentence = NOTHING  # what to do; parallel optimizers write their own
    ours: Sentence  # what the default mode does otherwise, and why; one clause

    def advise(self, subject: Subject) -> Advice | Silence:
        """Match and price."""
        found = self._find(subject)
        if isinstance(found, Sentence):
            found = NotApplicable(SilenceStage.NOT_MATCHED, found)
        if isinstance(found, NotApplicable):
            return Silence(optimizer=self.name, stage=found.stage, message=found.message)
        return found

    def _find(self, subject: Subject) -> Advice | Sentence | NotApplicable:
        if not subject.total_samples:
            return NotApplicable(SilenceStage.NO_SAMPLES, say("the report has no stall samples of this kernel"))
        if self.method in _HIDING and not subject.kernel.is_split:
            return NotApplicable(SilenceStage.NOT_KNOWN, NO_SPLIT)
        found = self.match(subject)
        if isinstance(found, _Warps):
            return _price_warps(subject, self, found)
        return _price_scopes(subject, self, found) if isinstance(found, np.ndarray) else found


def advise_as_published(subject: Subject) -> tuple[KernelAdvice, tuple[Problem, ...]]:
    """Advise on one launch context as GPA does: an estimate for each optimizer that matches, the largest first.

    Args:
        subject: with the blame of ``paper``.

    Returns:
        The advice, and a problem for each optimizer that failed.

    Source: GPA section V, and section VII-A for the report.
    """
    found: list[Advice] = []
    silences: list[Silence] = []
    problems: list[Problem] = []
    for row in TABLE_II:
        answer = ask(row.name, row.advise, subject, problems)
        if isinstance(answer, Silence):
            silences.append(answer)
        else:
            found.append(answer)
    found.sort(key=lambda one: (-one.speedup.estimate, one.optimizer))
    return KernelAdvice(advice=tuple(found), silences=tuple(silences), refusals=()), tuple(problems)


def join_contexts(parts: Sequence[KernelAdvice], subject: Subject) -> KernelAdvice:
    """The advice on the launch contexts of a kernel one after the other, heaviest first: each stands for itself (section III).

    The default mode pools them by their time, because one change of the code changes all of them.
    """
    advice = [
        replace(
            count_shares(one, subject),
            title=f"{one.title}, launch context {position + 1}",
            group=f"{one.group} {position + 1}",
            contexts=(position,),
        )
        for position, part in enumerate(parts)
        for one in part.advice
    ]
    given = {one.optimizer for one in advice}
    silences = tuple(one for one in parts[0].silences if one.optimizer not in given)
    return KernelAdvice(advice=tuple(advice), silences=silences, refusals=())


def _price_scopes(subject: Subject, row: _Row, places: _Scopes) -> Advice | Sentence:
    """Equations 2 to 5."""
    hides = row.method in _HIDING
    samples = subject.known_edge_latency_samples if hides else subject.edges.all_samples
    places = np.where(samples > 0, places, -1)
    if not (places >= 0).any():
        return say("none of the {what} match", what="not-issued samples" if hides else "samples")
    scopes = np.unique(places[places >= 0]).tolist()
    regions = [_build_region(subject, row, places, scope) for scope in scopes]
    regions.sort(key=lambda one: (-one.samples, one.scope.row))
    matched = sum(one.samples for one in regions)
    value, formula = _estimate_whole(subject, row.method, regions, scopes)
    shown = tuple(
        show_region(subject, one, _tell(row.method, _estimate(subject, row.method, one)))
        for one in regions[:MOST_REGIONS]
    )
    return Advice(
        optimizer=row.name,
        title=row.title,
        category=Category.CODE,
        group=row.name,
        speedup=_tell(row.method, value),
        share=share_samples(subject, matched),
        matched_samples=matched,
        matched_latency_samples=sum(one.latency_samples for one in regions) if subject.kernel.is_split else None,
        scope=shown[0].scope,
        regions=shown,
        hint=row.hint,
        caveats=(),
        reasons=(formula, row.ours),
    )


def _build_region(subject: Subject, row: _Row, places: _Scopes, scope: int) -> HidingRegion:
    """Build the region matched in one scope; its A is that of the scope and all scopes in it (Equation 5)."""
    edges = np.flatnonzero(places == scope)
    latency = subject.edges.latency_samples
    region = HidingRegion(
        scope=subject.scopes.scopes[scope],
        samples=float(subject.edges.all_samples[edges].sum()),
        latency_samples=0.0 if latency is None else float(latency[edges].sum()),
        active_samples=float(subject.scopes.active_samples[scope]),
        hotspots=build_hotspots(subject, edges, most=MOST_REGIONS),
    )
    hotspots = []
    for spot in region.hotspots:
        pair = replace(region, samples=spot.samples, latency_samples=spot.latency_samples or 0.0, hotspots=())
        alone = _estimate(subject, row.method, pair)
        hotspots.append(replace(spot, note=say("speedup {alone} alone", alone=factor(alone))))
    return replace(region, hotspots=tuple(hotspots))


def _estimate(subject: Subject, method: _Method, part: HidingRegion) -> float:
    """Equation 2 or 5 for one place or one pair in it."""
    total = subject.total_samples
    if method is _Method.ELIMINATION:
        return estimate_elimination(total, min(part.samples, total - 1))
    return estimate_hiding(total, part.active_samples, part.latency_samples)


def _estimate_whole(
    subject: Subject, method: _Method, regions: Sequence[HidingRegion], scopes: Sequence[int]
) -> tuple[float, Sentence]:
    """Equations 2, 4 and 5 for all that was matched in some scopes, and in words what was put in.

    All scopes of Equation 5 together hide what each of them can, and no more than the active samples of all of them, as the published code has it.
    """
    total = subject.total_samples
    if method is _Method.ELIMINATION:
        matched = sum(one.samples for one in regions)
        value = estimate_elimination(total, min(matched, total - 1))
        return value, say("Equation 2: T {t}, M {m}", t=count(total), m=count(matched))
    if method is _Method.HIDING:
        equation, active = "Equation 4", float(subject.scopes.active_samples[0])
        latency = sum(one.latency_samples for one in regions)
    else:
        equation = "Equation 5"
        active = sum_active(subject.scopes, scopes)
        latency = sum(min(one.active_samples, one.latency_samples) for one in regions)
    formula = say(
        "{equation}: T {t}, A {a}, M^L {m}", equation=equation, t=count(total), a=count(active), m=count(latency)
    )
    return estimate_hiding(total, active, latency), formula


def _tell(method: _Method, value: float) -> Speedup:
    """An estimate without a range, which the paper does not give."""
    bound, reason = value, say("all matched stalls go")
    if method is _Method.PARALLEL:
        bound, reason = np.inf, say("the equations have no bound")
    elif method in _HIDING:
        bound, reason = max(value, MOST_HIDING), say("an issued sample hides one that is not (Theorem V.1)")
    return Speedup(estimate=value, low=value, high=value, bound=bound, bound_reason=reason, uncapped=value)


def _price_warps(subject: Subject, row: _Row, found: _Warps) -> Advice:
    """Equations 6 to 10."""
    issue_ratio = measure_issue_ratio(subject)
    value = estimate_parallel(
        issue_ratio=issue_ratio,
        warps=found.warps,
        new_warps=found.new_warps,
        scales_warps=found.scales_warps,
        factor=found.factor,
    )
    formula = say(
        "Equations 6 to 10: W {old}, W_new {new}, R_I {ratio}, f {factor}",
        old=number(found.warps),
        new=number(found.new_warps),
        ratio=percent(issue_ratio),
        factor=number(found.factor if found.scales_warps else found.factor * found.new_warps / found.warps),
    )
    return Advice(
        optimizer=row.name,
        title=row.title,
        category=Category.PARALLEL,
        group=row.name,
        speedup=_tell(row.method, value),
        share=share_samples(subject, 0),
        matched_samples=0,
        matched_latency_samples=0,
        scope=subject.scopes.scopes[0],
        regions=(),
        hint=found.hint,
        caveats=(),
        reasons=(formula, row.ours),
    )


# What the rows of Table II match.


def _mark_class(subject: Subject, wanted: StallClass) -> _Marks:
    """bool[e]: pairs that were sampled under a dependency of the paper."""
    return mark_reasons(subject, [one for one in subject.kernel.reasons if classify_reason(one) is wanted])


def _place(subject: Subject, matched: _Marks) -> _Scopes:
    """Each pair in the innermost scope of its def."""
    return np.where(matched, subject.scopes.innermost[subject.edges.def_row], np.int32(-1))


def _match_local_memory(subject: Subject) -> _Scopes:
    """Register Reuse: "memory dependency stalls of local memory read/write instructions"."""
    is_local = subject.rows.mark_by_opcode(lambda one: one.memory is MemorySpace.LOCAL)
    return _place(subject, _mark_class(subject, StallClass.MEMORY) & is_local[subject.edges.def_row])


def _match_slow_arithmetic(subject: Subject) -> _Scopes:
    """Strength Reduction: "execution dependency stalls of long latency arithmetic instructions".

    Long is from ten cycles on, as in the published code.
    """
    architecture = subject.architecture

    def is_long(mnemonic: str) -> int:
        slowness = None if architecture is None else find_slowness(architecture, mnemonic)
        return int(slowness is not None and (slowness.latency_cycles or 0) >= LONG_LATENCY_CYCLES)

    is_slow = subject.rows.spread_by_mnemonic(is_long, unknown=0) > 0
    return _place(subject, _mark_class(subject, StallClass.EXECUTION) & is_slow[subject.edges.def_row])


def _match_math_functions(subject: Subject) -> _Scopes:
    """Fast Math: "stalls in CUDA math functions", called or inlined, told by their names."""
    rows, scopes = subject.rows, subject.scopes
    is_math = np.array([recognise_routine(scope.function) is not None for scope in scopes.scopes])
    named = [any(recognise_routine(frame.function or "") is not None for frame in chain) for chain in rows.chains]
    is_inlined = np.array([*named, False])[rows.chain_index]  # the last one is that of -1
    is_inside = is_math[scopes.innermost] | is_inlined
    return _place(subject, is_inside[subject.edges.def_row] & ~mark_reasons(subject, ("selected", "not_selected")))


def _match_loops(subject: Subject) -> _Scopes:
    """Loop Unrolling: "a memory dependency stall or an execution dependency stall, and the def and the use instructions are within the same loop".

    Each pair counts in the innermost loop around both. The table says global memory; the words are those of section V-A.
    """
    edges, scopes = subject.edges, subject.scopes
    matched = _mark_class(subject, StallClass.MEMORY) | _mark_class(subject, StallClass.EXECUTION)
    loop = np.full(len(edges), -1, dtype=np.int32)
    pairs = zip(scopes.innermost[edges.def_row].tolist(), scopes.innermost[edges.use_row].tolist(), strict=True)
    for edge, (of_def, of_use) in enumerate(pairs):
        if matched[edge]:
            around = set(scopes.around(of_use))
            loop[edge] = next((one for one in scopes.around(of_def) if one in around and scopes.is_loop[one]), -1)
    return loop


def _match_dependencies(subject: Subject) -> _Scopes:
    """Code Reordering: "global memory and execution dependency stalls", in the innermost loop of the def or its function."""
    is_global = subject.edges.category == BlameCategory.MEMORY_GLOBAL
    memory = _mark_class(subject, StallClass.MEMORY) & is_global
    return _place(subject, memory | _mark_class(subject, StallClass.EXECUTION))


def _match_device_functions(subject: Subject) -> _Scopes:
    """Function Inlining: "stalls in device functions and their call sites", for each function; a site is the block with the call."""
    scopes, edges, rows = subject.scopes, subject.edges, subject.rows
    routine = np.arange(len(scopes.scopes), dtype=np.int32)
    for scope, (parent, is_loop) in enumerate(zip(scopes.parent.tolist(), scopes.is_loop.tolist(), strict=True)):
        routine[scope] = routine[parent] if is_loop else scope
    of_row = routine[scopes.innermost]
    is_function = np.array([one.kind is ScopeKind.FUNCTION for one in scopes.scopes])
    is_function[scopes.routine_of(0)] = False  # the kernel's own body
    device = np.where(is_function[of_row], of_row, np.int32(-1))
    site = np.full(len(rows), -1, dtype=np.int32)
    for called in find_called_routines(rows):
        for row in called.sites:
            graph, index = rows.function_of(row).graph, rows.index_of(row)
            if graph is not None:
                block = graph.block_of_instruction[index]
                first, last = (int(one[block]) for one in (graph.first_instruction, graph.last_instruction))
                site[row - index + first : row - index + last + 1] = called.scope
    found = np.where(device[edges.def_row] >= 0, device[edges.def_row], site[edges.use_row])
    return np.where(mark_reasons(subject, ("selected", "not_selected")), np.int32(-1), found)


def _match_blocks(subject: Subject) -> _Warps | Sentence | NotApplicable:
    """Block Increase: "the number of blocks is less than the number of SMs".

    Blocks get smaller until each scheduler has one warp of one, as the published code has it; then no pipe is busy, no memory throttles and no ready
    warp waits for another (the factor f under Equation 10).
    """
    launch, architecture = subject.launch, subject.architecture
    if launch is None or subject.sm_count is None or launch.blocks < 1:
        return NotApplicable(SilenceStage.NO_METRICS, NO_GRID)
    if architecture is None:
        return NotApplicable(SilenceStage.NO_CODE, NO_ARCHITECTURE)
    blocks, sms = count(launch.blocks, "block"), count(subject.sm_count, "SM")
    if launch.blocks >= subject.sm_count:
        return say("the grid of {blocks} reaches all {sms}", blocks=blocks, sms=sms)
    schedulers = architecture.sm.sub_partitions_per_sm.value
    if launch.warps_per_block <= schedulers:
        return say("each scheduler has one warp of a block at most")
    gone = measure_states(subject, (*_PIPE_BUSY, *_MEMORY_THROTTLE, "not_selected"))
    return _Warps(
        warps=launch.warps_per_block / schedulers,
        new_warps=1.0,
        scales_warps=True,
        factor=1 / (1 - min(gone, 1 - 1 / subject.total_samples)),
        hint=say(
            "{blocks} are fewer than {sms}: launch more blocks, of {threads} each.",
            blocks=blocks,
            sms=sms,
            threads=count(schedulers * 32, "thread"),
        ),
    )


def _match_threads(subject: Subject) -> _Warps | Sentence | NotApplicable:
    """Thread Increase: "occupancy is limited by the number of threads per block".

    The factor f holds C_W, because a scheduler gets more warps at a time and no more work, and the lanes that the last warp of a block leaves empty:
    so Gaussian's blocks of 16 threads get the 3.32 of Table III.
    """
    architecture, block, launch = subject.architecture, describe_block(subject), subject.launch
    if architecture is None:
        return NotApplicable(SilenceStage.NO_CODE, NO_ARCHITECTURE)
    if block is None or launch is None or subject.sm_count is None:
        return NotApplicable(
            SilenceStage.NO_METRICS, say("the profile lacks the launch's registers, shared memory or number of SMs")
        )
    occupancy = find_occupancy(architecture, block)
    held = count(occupancy.warps_per_sm, "warp")
    if not occupancy.warps_per_sm or not set(occupancy.limiters) & {OccupancyLimit.BLOCKS, OccupancyLimit.WARPS}:
        limiters = list_of(occupancy.limiters) if occupancy.limiters else say("nothing")
        return say("an SM holds {held}, limited by {limiters}", held=held, limiters=limiters)
    schedulers = architecture.sm.sub_partitions_per_sm.value
    offered = -(-launch.blocks // subject.sm_count) * launch.warps_per_block
    if offered < occupancy.warps_per_sm:
        return say("the grid has {warps} per SM, and {held} fit", warps=count(offered, "warp"), held=held)
    return _Warps(
        warps=occupancy.warps_per_sm / schedulers,
        new_warps=occupancy.max_warps_per_sm / schedulers,
        scales_warps=False,
        factor=launch.warps_per_block * 32 / launch.threads_per_block,
        hint=say(
            "Launch blocks of more than {threads}: an SM holds {held} of {most}.",
            threads=count(launch.threads_per_block, "thread"),
            held=held,
            most=count(occupancy.max_warps_per_sm),
        ),
    )


TABLE_II = (
    _Row(
        name="register_reuse",
        title="Register Reuse",
        method=_Method.ELIMINATION,
        match=_match_local_memory,
        hint=say("Keep values in registers: split loops, shorten the life of values, raise the register limit."),
        ours=say("the default mode leaves out registers that are saved for a caller: only inlining helps those"),
    ),
    _Row(
        name="strength_reduction",
        title="Strength Reduction",
        method=_Method.ELIMINATION,
        match=_match_slow_arithmetic,
        hint=say("Replace integer divisions, conversions and double constants by cheaper arithmetic of equal result."),
        ours=say("the default mode counts whole divisions, because their quick instructions go with the slow ones"),
    ),
    _Row(
        name="function_split",
        title="Function Split",
        method=_Method.ELIMINATION,
        match=lambda subject: _place(subject, mark_reasons(subject, _FETCH)),  # "instruction fetch stalls"
        hint=say("Split large functions and loops, and move rarely executed code out of them."),
        ours=say(
            "the default mode counts inlined functions with rare code alone, because other code is fetched anyway"
        ),
    ),
    _Row(
        name="fast_math",
        title="Fast Math",
        method=_Method.ELIMINATION,
        match=_match_math_functions,
        hint=say("Use intrinsics or a fast-math option where less precise results will do."),
        ours=say("the default mode also finds the chains of instructions that the compiler writes in place of a call"),
    ),
    _Row(
        name="warp_balance",
        title="Warp Balance",
        method=_Method.ELIMINATION,
        # "warp synchronization stalls"
        match=lambda subject: _place(subject, _mark_class(subject, StallClass.SYNCHRONISATION)),
        hint=say("Give the warps of a block equal work before they synchronize, or let fewer of them synchronize."),
        ours=say("the default mode matches the same, and names the code that some warps are late by"),
    ),
    _Row(
        name="memory_transaction_reduction",
        title="Memory Transaction Reduction",
        method=_Method.ELIMINATION,
        # "global memory throttling stalls"
        match=lambda subject: _place(subject, mark_reasons(subject, _MEMORY_THROTTLE)),
        hint=say("Access global memory less often: wider accesses, constant memory for what threads share."),
        ours=say("the default mode lets only accesses go that a wider one replaces, because the others still queue"),
    ),
    _Row(
        name="loop_unrolling",
        title="Loop Unrolling",
        method=_Method.HIDING_IN_SCOPES,
        match=_match_loops,
        hint=say("Unroll loops that the compiler leaves as they are, by pragma or by hand."),
        ours=say(
            "the default mode leaves one wait of N iterations, and refuses loops whose iterations depend on each other"
        ),
    ),
    _Row(
        name="code_reordering",
        title="Code Reordering",
        method=_Method.HIDING,
        match=_match_dependencies,
        hint=say("Move loads and other slow instructions away from the first use of their results."),
        ours=say("the default mode hides behind instructions alone that no dependence and no barrier keeps in place"),
    ),
    _Row(
        name="function_inlining",
        title="Function Inlining",
        method=_Method.HIDING_IN_SCOPES,
        match=_match_device_functions,
        hint=say("Inline small device functions, so that their instructions mix with the caller's."),
        ours=say("the default mode leaves out what cannot be inlined: recursive, large and compiler routines"),
    ),
    _Row(
        name="block_increase",
        title="Block Increase",
        method=_Method.PARALLEL,
        match=_match_blocks,
        ours=say("the default mode goes no further than the busiest SM has less to do"),
    ),
    _Row(
        name="thread_increase",
        title="Thread Increase",
        method=_Method.PARALLEL,
        match=_match_threads,
        ours=say("the default mode takes the smallest step that gains, and reports half-empty warps apart"),
    ),
)
