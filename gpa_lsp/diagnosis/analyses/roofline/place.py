"""Place a kernel under its machine's roofs: :func:`place_kernel`; or under other ones, measured or of another GPU: :func:`place_under`.

Every launch stands under the roofs at its own clocks. All launches together are total work over total time, so that each counts by how long it
took, under the roofs of the longest launch: launches of one kernel in one session run at clocks a percent or two apart, short ones at lower ones.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.roofline.instructions import count_launch
from gpa_lsp.diagnosis.analyses.roofline.totals import Span, read_span
from gpa_lsp.diagnosis.analyses.roofline.under_roofs import build_roofline
from gpa_lsp.diagnosis.analyses.roofline.work import Work, measure_work, sum_work
from gpa_lsp.diagnosis.analyses.roofline_model import MOST_LAUNCHES, KernelRoofline, Roofline
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.device.empirical import apply_roofs
from gpa_lsp.gpu.device.empirical_model import EmpiricalRoofs
from gpa_lsp.gpu.device.find import find_machine
from gpa_lsp.gpu.device.model import HBM_CEILING, TRANSFERS_PER_CLOCK, Machine, MemoryLevel, find_dram_ceiling
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.model import Launch

_BUS_WIDTH = "device__attribute_global_memory_bus_width"


class _Timed(Struct, frozen=True, kw_only=True):
    launch: Launch
    span: Span


class _Machines(Struct, frozen=True, kw_only=True):
    """Of one launch."""

    theoretical: Machine  # what stored shares of peaks are of
    shown: Machine  # what the launch stands under; has measured roofs where they were given


def place_kernel(kernel: Kernel, roofs: EmpiricalRoofs | None = None) -> KernelRoofline | None:
    """Where a kernel's launches, and all of them together, stand.

    Args:
        kernel: joined.
        roofs: measured ones, to stand in place of the theoretical. Those of another GPU are not used, and the machine's doubts say so.

    Returns:
        None when nothing is known of the machine, or no launch has a time.
    """
    timed = sorted(_list_timed(kernel), key=lambda one: -one.span.duration_s)
    longest = _find_machines(kernel, timed[0].launch, roofs) if timed else None
    if longest is None:
        return None
    ceiling = find_dram_ceiling(kernel.device.attributes.get(_BUS_WIDTH))
    works: list[Work] = []
    placed: list[Roofline] = []
    for number, one in enumerate(timed):
        is_shown = number < MOST_LAUNCHES
        own = (_find_machines(kernel, one.launch, roofs) if is_shown and number else None) or longest
        executions = count_launch(kernel, one.launch, len(timed))
        works.append(measure_work(one.launch, one.span, executions, own.theoretical))
        if is_shown:
            placed.append(build_roofline(one.launch.index, works[-1], own.shown, ceiling))
    together = None if kernel.has_mixed_launches else sum_work(works)
    return KernelRoofline(
        machine=longest.shown,
        whole=None if together is None else build_roofline(None, together, longest.shown, ceiling),
        launches=tuple(placed),
        left_out=len(timed) - len(placed),
    )


def _list_timed(kernel: Kernel) -> Iterator[_Timed]:
    for launch in kernel.launches:
        span = read_span(launch)
        if span is not None:
            yield _Timed(launch=launch, span=span)


def _find_machines(kernel: Kernel, launch: Launch, roofs: EmpiricalRoofs | None) -> _Machines | None:
    machine = find_machine(launch.device, kernel.architecture, launch)
    if machine is None:
        return None
    return _Machines(theoretical=machine, shown=machine if roofs is None else _apply(machine, roofs))


def _apply(machine: Machine, roofs: EmpiricalRoofs) -> Machine:
    try:
        return apply_roofs(machine, roofs)
    except InputError as error:
        return replace(machine, doubts=(*machine.doubts, f"The measured ceilings are not used: {error.message}."))


def place_under(roofline: KernelRoofline, choose_machine: Callable[[Machine], Machine]) -> KernelRoofline:
    """The same work under other roofs.

    Args:
        roofline: of a kernel; all its launches go under the roofs of its longest one, since the clocks of the others are not kept.
        choose_machine: from its machine to the one whose roofs are wanted.

    Raises:
        InputError: what ``choose_machine`` raises.
    """
    machine = choose_machine(roofline.machine)
    is_same_gpu = machine.name == roofline.machine.name
    return KernelRoofline(
        machine=machine,
        whole=None if roofline.whole is None else _place(roofline.whole, machine, is_same_gpu=is_same_gpu),
        launches=tuple(_place(launch, machine, is_same_gpu=is_same_gpu) for launch in roofline.launches),
        left_out=roofline.left_out,
    )


def _place(line: Roofline, machine: Machine, *, is_same_gpu: bool) -> Roofline:
    work = Work(
        duration_s=line.duration_s,
        operations={count.kind: count for count in line.operations},
        traffic={traffic.level: traffic for traffic in line.traffic},
        warp_instructions=line.warp_instructions,
        unused_levels=_find_undrawn(line),
    )
    ceiling = _find_dram_ceiling(line, machine, is_same_gpu=is_same_gpu)
    placed = build_roofline(line.launch_index, work, machine, ceiling)
    # A unit's share of its peak is that of the GPU it ran on.
    return replace(placed, busiest=line.busiest) if is_same_gpu else placed


def _find_undrawn(line: Roofline) -> frozenset[MemoryLevel]:
    """Levels with bytes of which nothing was drawn: no instruction goes there."""
    drawn = {point.level for point in line.points} | {point.level for point in line.instruction_points}
    return frozenset(one.level for one in line.traffic if drawn and one.bytes > 0 and one.level not in drawn)


def _find_dram_ceiling(line: Roofline, machine: Machine, *, is_same_gpu: bool) -> float:
    """What was taken for the GPU itself; for another one by the width of its memory bus, which the bytes of a memory clock tell."""
    if is_same_gpu:
        return next((roof.ceiling_ratio for roof in line.roofs if roof.level is MemoryLevel.DRAM), HBM_CEILING)
    dram = machine.find_bandwidth(MemoryLevel.DRAM)
    if dram is None or dram.bytes_per_cycle is None:
        return HBM_CEILING
    return find_dram_ceiling(dram.bytes_per_cycle * 8 / TRANSFERS_PER_CLOCK)
