"""A measured launch → :class:`~gpa_lsp.launches.launch.LaunchDescription`."""

from collections.abc import Sequence
from dataclasses import replace

from gpa_lsp.basis.errors import InputError
from gpa_lsp.launches.launch import LaunchDescription
from gpa_lsp.launches.source_parameters import find_bare_name
from gpa_lsp.profile.model import Launch

_DYNAMIC_SHARED = "launch__shared_mem_per_block_dynamic"


def describe_launch(launch: Launch, *, given: Sequence[LaunchDescription] = ()) -> LaunchDescription:
    """The launch as it was measured: its kernel, grid, block and dynamic shared memory.

    A profile does not keep what was passed to a kernel. Arguments and variables are those of a description of the same kernel, where there is
    one: of several the one with the same block and grid, else the first.

    Args:
        launch: as it was measured.
        given: descriptions to take arguments from.

    Raises:
        InputError: the size of the launch is not known: it was not measured to its end, or the collector did not see it.
    """
    grid, block = launch.grid, launch.block
    if grid is None or block is None or not all(size > 0 for size in (*grid, *block)):
        raise InputError(
            f"the size of launch {launch.index} of {launch.display_name[:200]} is unknown",
            remedy="choose another launch",
        )
    shared_bytes = launch.read_count(_DYNAMIC_SHARED) or 0
    names = {launch.mangled_name, launch.plain_name, launch.demangled_name, find_bare_name(launch.mangled_name)} - {""}
    fitting = [one for one in given if one.kernel in names]
    same = [one for one in fitting if (one.block, one.grid) == (block, grid)]
    known = next(iter((*same, *fitting)), None)
    kernel = launch.mangled_name or launch.plain_name or launch.demangled_name
    if known is None:
        return LaunchDescription(kernel=kernel, block=block, grid=grid, shared_bytes=shared_bytes)
    threads = known.threads if (known.block, known.grid) == (block, grid) else None
    return replace(known, kernel=kernel, block=block, grid=grid, threads=threads, shared_bytes=shared_bytes)
