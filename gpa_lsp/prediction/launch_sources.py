"""Where launches come from: a description, or a profile with the arguments of a description."""

from pathlib import Path

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.launches.from_launch import describe_launch
from gpa_lsp.launches.launch import LaunchDescription
from gpa_lsp.launches.read_launches import read_launches
from gpa_lsp.profile.read import read_profile

_MOST_MEASURED = 64
"""Different launches that are taken from a profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchChoice:
    """Which launches are meant.

    Attributes:
        path: of the description; None for the file beside the source or the build.
        text: what an editor holds of it; None to read the file.
        number: only this one of the launches of the kernels that are meant, from 1; None for all.
        profile_path: a profile whose launches are emulated in place of those that are described; arguments stay those of the description.
        is_single: more than one is refused before any is emulated.
    """

    path: Path | None = None
    text: str | None = None
    number: int | None = None
    profile_path: Path | None = None
    is_single: bool = False


EVERY_LAUNCH = LaunchChoice()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLaunches:
    """Launches that are to be emulated.

    Attributes:
        launches: in their order.
        must_match: each is of a kernel of the code at hand; those of a profile are of a whole program.
    """

    launches: tuple[LaunchDescription, ...]
    must_match: bool


def list_launches(described: Path | None, choice: LaunchChoice) -> ListedLaunches:
    """The launches of a description, or of a profile: of its launches that are alike in kernel, block, grid and shared memory the first.

    Args:
        described: the description; None where there is none.
        choice: what an editor holds of it, and the profile.

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
        if len(found) == _MOST_MEASURED:
            break
    if not found:
        message = "it has no launch with a known grid and block"
        raise InputError(message, path=choice.profile_path, remedy="record it again, or describe the launches")
    return ListedLaunches(launches=tuple(found.values()), must_match=False)
