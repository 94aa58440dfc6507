"""Launch contexts: the launches of a kernel, by configuration and by the host path that launched them.

Source: GPA, section III: "We analyze each GPU kernel's launch context separately."
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.place import PlacedKernel
from gpa_lsp.kernel.scatter import narrow_function
from gpa_lsp.profile.model import HostFrame, Launch

# Contexts of a kernel that are judged by themselves: each costs as much as a kernel of its own, and nobody reads more.
MOST_CONTEXTS = 8

_ContextKey = tuple[object, ...]


def group_contexts(launches: Iterable[Launch]) -> tuple[tuple[tuple[Launch, ...], float], ...]:
    """Launches that have numbers by context, with each context's part of the whole, the largest first whatever the order of the launches.

    The parts are those of the time where every context has one, else of the samples, else of the number of launches.
    """
    groups: dict[_ContextKey, list[Launch]] = {}
    for launch in launches:
        if launch.failure is None:
            groups.setdefault(_identify(launch), []).append(launch)
    for measure in (_measure_time, _count_samples, len):
        weights = [float(measure(group)) for group in groups.values()]
        if all(weights):
            break
    whole = sum(weights) or 1.0
    ranked = sorted(zip(groups, groups.values(), weights, strict=True), key=lambda one: (-one[2], repr(one[0])))
    return tuple((tuple(group), weight / whole) for _, group, weight in ranked)


def _identify(launch: Launch) -> _ContextKey:
    """What launches of one context have in common. Addresses of the host differ from run to run."""
    counts = (
        "launch__registers_per_thread",
        "launch__shared_mem_per_block_static",
        "launch__shared_mem_per_block_dynamic",
        "launch__cluster_size",
    )
    return (launch.grid, launch.block, *map(launch.read_count, counts), *map(_identify_frame, launch.call_stack))


def _identify_frame(frame: HostFrame) -> tuple[str | int | None, ...]:
    return (frame.function, frame.module, frame.file, frame.line)


def _measure_time(launches: Sequence[Launch]) -> float:
    return sum((one.read_number("gpu__time_duration.sum") or 0.0) * (one.launch_count or 1) for one in launches)


def _count_samples(launches: Sequence[Launch]) -> int:
    return sum(one.samples.total_samples for one in launches if one.samples is not None)


def split_kernel(kernel: Kernel, placed: PlacedKernel) -> Kernel:
    """A kernel with its heaviest launch contexts, where there are several, on the same rows."""
    groups = group_contexts(kernel.launches)
    if len(groups) < 2:
        return kernel
    contexts = tuple(_narrow(kernel, placed, group) for group, _ in groups[:MOST_CONTEXTS])
    return replace(kernel, contexts=contexts)


def _narrow(kernel: Kernel, placed: PlacedKernel, launches: Sequence[Launch]) -> Kernel:
    numbers = {one.index for one in launches}
    part = replace(placed, launches=tuple(one for one in placed.launches if one.launch.index in numbers))
    functions = tuple(narrow_function(function, part, kernel.reasons) for function in kernel.functions)
    return replace(kernel, launches=tuple(launches), functions=functions)
