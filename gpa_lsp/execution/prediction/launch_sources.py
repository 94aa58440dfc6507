"""Where launches come from: a description, or a profile with the arguments of a description."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.execution.launches.guess_dependence import SHAPE
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import read_profile

MOST_MEASURED = 64  # Different launches that are taken from a profile
_DYNAMIC_SHARED = "launch__shared_mem_per_block_dynamic"


class LaunchChoice(Struct, frozen=True, kw_only=True):
    """Which launches are meant."""

    path: Path | None = None  # of the description; None for the file beside the source or the build
    text: str | None = None  # what an editor holds of it; None to read the file
    number: int | None = None  # only this one of the launches of the kernels that are meant, from 1; None for all
    # a profile whose launches are emulated in place of those that are described; arguments stay those of the description
    profile_path: Path | None = None
    is_single: bool = False  # more than one is refused before any is emulated


EVERY_LAUNCH = LaunchChoice()


class ListedLaunches(Struct, frozen=True, kw_only=True):
    """Launches that are to be emulated."""

    launches: tuple[LaunchDescription, ...]  # in their order
    must_match: bool  # each is of a kernel of the code at hand; those of a profile are of a whole program


def list_launches(described: Path | None, choice: LaunchChoice) -> ListedLaunches:
    """The launches of a description, or of a profile: of its launches that are alike in kernel, block, grid and shared memory the first.

    Args:
        described: the description; None where there is none.

    Raises:
        InputError: one of them cannot be read, or of no launch of the profile grid and block are known.
    """
    launches = () if described is None else read_launches(described, text=choice.text)
    if choice.profile_path is None:
        return ListedLaunches(launches=launches, must_match=True)
    found: dict[tuple[object, ...], LaunchDescription] = {}
    for one in read_profile(choice.profile_path).launches:
        try:
            launch = describe_launch(one, given=launches)
        except InputError:
            continue  # it failed while it was measured; others did not
        found.setdefault((launch.kernel, launch.block, launch.grid, launch.shared_bytes), launch)
        if len(found) == MOST_MEASURED:
            break
    if not found:
        message = "it has no launch with a known grid and block"
        raise InputError(message, path=choice.profile_path, remedy="record it again, or describe the launches")
    return ListedLaunches(launches=tuple(found.values()), must_match=False)


def describe_launch(launch: Launch, *, given: Sequence[LaunchDescription] = ()) -> LaunchDescription:
    """The launch as it was measured: its kernel, grid, block and dynamic shared memory.

    A profile does not keep what was passed to a kernel. Arguments and variables are those of a description of the same kernel, where there is
    one: of several the one with the same block and grid, else the first.

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
    guesses = tuple(one for one in known.guesses if one not in SHAPE)
    return replace(
        known, kernel=kernel, block=block, grid=grid, threads=threads, shared_bytes=shared_bytes, guesses=guesses
    )
