"""A roofline under other roofs than its own: measured ones, or those of another GPU. What was done stays as it was counted."""

from collections.abc import Callable
from dataclasses import replace

from gpa_lsp.analyses.roofline.under_roofs import build_roofline
from gpa_lsp.analyses.roofline.work import Work
from gpa_lsp.analyses.roofline_model import KernelRoofline, Roofline
from gpa_lsp.device.build import TRANSFERS_PER_CLOCK
from gpa_lsp.device.ceilings import HBM_CEILING, find_dram_ceiling
from gpa_lsp.device.model import Machine, MemoryLevel


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
    )
    ceiling = _find_dram_ceiling(line, machine, is_same_gpu=is_same_gpu)
    placed = build_roofline(line.launch_index, work, machine, ceiling)
    # A unit's share of its peak is that of the GPU it ran on.
    return replace(placed, busiest=line.busiest) if is_same_gpu else placed


def _find_dram_ceiling(line: Roofline, machine: Machine, *, is_same_gpu: bool) -> float:
    """What was taken for the GPU itself; for another one by the width of its memory bus, which the bytes of a memory clock tell."""
    if is_same_gpu:
        return next((roof.ceiling_ratio for roof in line.roofs if roof.level is MemoryLevel.DRAM), HBM_CEILING)
    dram = machine.find_bandwidth(MemoryLevel.DRAM)
    if dram is None or dram.bytes_per_cycle is None:
        return HBM_CEILING
    return find_dram_ceiling(dram.bytes_per_cycle * 8 / TRANSFERS_PER_CLOCK)
