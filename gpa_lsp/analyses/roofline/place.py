"""Place a kernel under its machine's roofs: :func:`place_kernel`.

Every launch stands under the roofs at its own clocks. All launches together are total work over total time, so that each counts by how long it
took, under the roofs of the longest launch: launches of one kernel in one session run at clocks a percent or two apart, short ones at lower ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpa_lsp.analyses.roofline.instructions import count_launch
from gpa_lsp.analyses.roofline.totals import Span, read_span
from gpa_lsp.analyses.roofline.under_roofs import build_roofline
from gpa_lsp.analyses.roofline.work import Work, measure_work, sum_work
from gpa_lsp.analyses.roofline_model import MOST_LAUNCHES, KernelRoofline, Roofline
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.machine.ceilings import find_dram_ceiling
from gpa_lsp.machine.find import find_machine
from gpa_lsp.machine.model import Machine
from gpa_lsp.profile.model import Launch

_BUS_WIDTH = "device__attribute_global_memory_bus_width"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    launch: Launch
    span: Span


def place_kernel(kernel: Kernel) -> KernelRoofline | None:
    """Where a kernel's launches, and all of them together, stand.

    Args:
        kernel: joined.

    Returns:
        None when nothing is known of the machine, or no launch has a time.
    """
    timed = sorted(_list_timed(kernel), key=lambda one: -one.span.duration_s)
    if not timed:
        return None
    machine = _find_machine(kernel, timed[0].launch)
    if machine is None:
        return None
    ceiling = find_dram_ceiling(kernel.device.attributes.get(_BUS_WIDTH))
    works: list[Work] = []
    placed: list[Roofline] = []
    for number, one in enumerate(timed):
        is_shown = number < MOST_LAUNCHES
        own = (_find_machine(kernel, one.launch) if is_shown and number else None) or machine
        work = measure_work(one.launch, one.span, count_launch(kernel, one.launch, len(timed)), own)
        works.append(work)
        if is_shown:
            placed.append(build_roofline(one.launch.index, work, own, ceiling))
    return KernelRoofline(
        machine=machine,
        whole=_place_whole(works, placed, machine, ceiling),
        launches=tuple(placed),
        left_out=len(timed) - len(placed),
    )


def _list_timed(kernel: Kernel) -> Iterator[_Timed]:
    for launch in kernel.launches:
        span = read_span(launch)
        if span is not None:
            yield _Timed(launch=launch, span=span)


def _find_machine(kernel: Kernel, launch: Launch) -> Machine | None:
    return find_machine(launch.device, kernel.architecture, launch)


def _place_whole(
    works: Sequence[Work], placed: Sequence[Roofline], machine: Machine, ceiling: float
) -> Roofline | None:
    work = sum_work(works)
    return None if work is None else build_roofline(None, work, machine, ceiling)
