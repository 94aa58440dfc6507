"""Too few resident warps because of what a block asks for."""

from collections.abc import Sequence
from operator import itemgetter

from msgspec import Struct

from gpa_lsp.diagnosis.advice.estimators import estimate_parallel
from gpa_lsp.diagnosis.advice.matches import ParallelMatch
from gpa_lsp.diagnosis.advice.model import Category, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers import NO_ARCHITECTURE, Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.residency import (
    bound_issue_rate,
    describe_block,
    measure_issue_ratio,
    measure_states,
    name_whole,
)
from gpa_lsp.diagnosis.analyses.occupancy import measure_resident_warps
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, list_of, number, percent, say
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, Occupancy, OccupancyLimit, find_occupancy
from gpa_lsp.gpu.arch.occupancy_steps import OccupancyStep, find_next_steps, list_register_steps

# Below this share of the warps that fit, something else than their number is missing: work in the grid, or even blocks. Nsight Compute's rule for the
# tail takes the same figure.
RESIDENT_SHARE = 0.8

# From this share of samples of ready warps that were not picked, schedulers have enough warps. Ours; the profiling guide only says that a high share
# allows fewer warps.
NOT_SELECTED_SHARE = 0.2


class _Room(Struct, frozen=True, kw_only=True):
    """Room for warps on an SM."""

    architecture: Architecture  # whose limits
    block: BlockShape  # what a block asks for
    occupancy: Occupancy  # what fits
    warps: float  # W, measured, or else what fits
    offered_warps: int  # what the grid has for one SM at a time

    def scale(self, resident_warps: int) -> float:
        """W when so many warps fit into an SM: with as large a part of them resident as now, and no more than the grid has."""
        return self.warps * min(resident_warps, self.offered_warps) / self.occupancy.warps_per_sm


def match(subject: Subject) -> Found:
    """An SM with more resident warps finds one that can issue more often.

    Equation 10 without 1 / C_W: more warps of the same size on the same schedulers. Priced is the smallest change of one resource that gains
    most; registers and shared memory give way as little as helps. The bound is the gain with all warps the architecture holds, and no more than the
    schedulers have free cycles.

    Silent where the number of warps is not what is missing: the grid has no more, ready warps already wait for each other; and below a bandwidth
    roof (:mod:`gpa_lsp.diagnosis.advice.gates`).

    Source: GPA section V-A (Thread Increase) and Equations 7 to 10.
    """
    room = _measure_room(subject)
    if not isinstance(room, _Room):
        return room
    obstacle = _find_obstacle(subject, room)
    if obstacle is not None:
        return obstacle
    steps = find_next_steps(room.architecture, room.block)
    if not steps:
        return say("no other block size or smaller use of one resource helps")
    chosen = max(steps, key=lambda step: room.scale(step.occupancy.warps_per_sm))
    return _describe(subject, room, chosen, [step for step in steps if step is not chosen])


def _measure_room(subject: Subject) -> _Room | Sentence | NotApplicable:
    launch, architecture, block = subject.launch, subject.kernel.architecture, describe_block(subject)
    if architecture is None:
        return NotApplicable(SilenceStage.NO_CODE, NO_ARCHITECTURE)
    if launch is None or subject.sm_count is None or block is None:
        return NotApplicable(
            SilenceStage.NO_METRICS,
            say("the profile lacks the launch's registers, shared memory or number of SMs"),
        )
    occupancy = find_occupancy(architecture, block)
    if not occupancy.warps_per_sm:
        return say("by the tables, no block of this size fits on an SM")
    schedulers = architecture.sm.sub_partitions_per_sm.value
    offered = -(-launch.blocks // subject.sm_count) * launch.warps_per_block
    resident = min(occupancy.warps_per_sm, offered) / schedulers
    measured = measure_resident_warps(subject, architecture)
    return _Room(
        architecture=architecture,
        block=block,
        occupancy=occupancy,
        warps=resident if measured is None else measured,
        offered_warps=offered,
    )


def _find_obstacle(subject: Subject, room: _Room) -> Sentence | NotApplicable | None:
    """Reason why more resident warps are impossible, or would not help; None without one."""
    held, most = room.occupancy.warps_per_sm, room.occupancy.max_warps_per_sm
    if held >= most:
        return say("all {most} that an SM holds can be resident", most=count(most, "warp"))
    if room.offered_warps <= held:
        warps = count(room.offered_warps, "warp")
        return say("the grid has only {warps} per SM, and {held} fit", warps=warps, held=count(held))
    resident = room.warps * room.architecture.sm.sub_partitions_per_sm.value
    if resident < RESIDENT_SHARE * held:
        return say(
            "of {held} that fit on an SM, only {resident} are resident on average",
            held=count(held, "warp"),
            resident=number(resident),
        )
    not_selected = measure_states(subject, ("not_selected",))
    if not_selected >= NOT_SELECTED_SHARE:
        return NotApplicable(
            SilenceStage.GATED,
            say(
                "{limiters} limit an SM to {held} of {most}, but {ready} of the {whole} are ready warps that were not selected: there are enough",
                limiters=list_of(room.occupancy.limiters),
                held=count(held),
                most=count(most, "warp"),
                ready=percent(not_selected),
                whole=name_whole(subject),
            ),
        )
    return None


def _describe(subject: Subject, room: _Room, chosen: OccupancyStep, others: Sequence[OccupancyStep]) -> ParallelMatch:
    bound, bound_reason = min(_list_bounds(subject, room), key=itemgetter(0))
    return ParallelMatch(
        warps_per_scheduler=room.warps,
        new_warps_per_scheduler=room.scale(chosen.occupancy.warps_per_sm),
        issue_ratio=measure_issue_ratio(subject),
        bound=bound,
        bound_reason=bound_reason,
        hint=_write_hint(room, chosen, others),
        caveats=_list_caveats(chosen),
        reasons=(say("warps are assumed to be independent"),),
    )


def _write_hint(room: _Room, chosen: OccupancyStep, others: Sequence[OccupancyStep]) -> Sentence:
    """Write the limits of resident warps, and each step that raises them, the chosen one first."""
    first, *more = (
        say("{step} ({gain})", step=_say_step(room, step), gain=_say_gain(step)) for step in (chosen, *others)
    )
    also = say("; also with {steps}", steps=list_of(more, "or")) if more else NOTHING
    ladder = list_register_steps(room.architecture, room.block)
    last = NOTHING
    if OccupancyLimit.REGISTERS in chosen.resources and len(ladder) > 1:
        registers = count(ladder[-1].block.registers_per_thread, "register")
        last = say("; the most fit with {registers} ({gain})", registers=registers, gain=_say_gain(ladder[-1]))
    return say(
        "More warps fit with {first}: an SM holds {held} of {most}, limited by {limiters}{also}{last}.",
        held=count(room.occupancy.warps_per_sm),
        most=count(room.occupancy.max_warps_per_sm, "warp"),
        limiters=list_of(room.occupancy.limiters),
        first=first,
        also=also,
        last=last,
    )


def _list_bounds(subject: Subject, room: _Room) -> list[tuple[float, Sentence]]:
    """List upper bounds of the gain by more warps, with their reasons."""
    most = room.occupancy.max_warps_per_sm
    all_resident = estimate_parallel(
        issue_ratio=measure_issue_ratio(subject), warps=room.warps, new_warps=room.scale(most), scales_warps=False
    )
    warps = count(min(most, room.offered_warps), "warp")
    bounds = [(all_resident, say("an SM holds at most {warps} of this grid", warps=warps))]
    issue_rate, most_issued = bound_issue_rate(subject)
    if issue_rate > 0:
        least = "" if issue_rate == most_issued else "at least "
        rate = percent(issue_rate)
        reason = say("the schedulers already issue in {least}{rate} of their cycles", least=least, rate=rate)
        bounds.append((1 / issue_rate, reason))
    return bounds


def _say_step(room: _Room, step: OccupancyStep) -> Sentence:
    if OccupancyLimit.WARPS in step.resources:
        threads = count(step.block.threads, "thread")
        return say("blocks of {threads} instead of {now}", threads=threads, now=count(room.block.threads))
    parts = []
    if OccupancyLimit.REGISTERS in step.resources:
        parts.append(
            say(
                "{registers} per thread instead of {now}",
                registers=count(step.block.registers_per_thread, "register"),
                now=count(room.block.registers_per_thread),
            )
        )
    if OccupancyLimit.SHARED_MEMORY in step.resources:
        parts.append(
            say(
                "{shared} of shared memory per block instead of {now}",
                shared=count(step.block.shared_bytes, "byte"),
                now=count(room.block.shared_bytes),
            )
        )
    return list_of(parts)


def _say_gain(step: OccupancyStep) -> Sentence:
    return say(
        "{warps}, {gained} more", warps=count(step.occupancy.warps_per_sm, "warp"), gained=count(step.gained_warps)
    )


def _list_caveats(step: OccupancyStep) -> tuple[Sentence, ...]:
    if OccupancyLimit.REGISTERS in step.resources:
        return (
            say(
                "Fewer registers ({bounds}, {option}) may spill to local memory, which can cost more than the warps gain.",
                bounds=Code(text="__launch_bounds__"),
                option=Code(text="-maxrregcount"),
            ),
        )
    if OccupancyLimit.SHARED_MEMORY in step.resources:
        return (say("Smaller tiles in shared memory may read global memory more often."),)
    return (say("Another block size changes which threads share a block's memory and barriers."),)


OPTIMIZER = Optimizer(
    name="thread_increase",
    title="Raise occupancy",
    category=Category.PARALLEL,
    group="parallelism",
    needs_samples=False,
    needs_grid=True,
    needs_states=True,
    needs_code=False,
    find=match,
)
