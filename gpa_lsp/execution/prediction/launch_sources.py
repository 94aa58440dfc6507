"""Launches from a description, from a profile with the arguments of a description, or from a report with the code that ran."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import EmbeddedPtx, list_embedded_ptx
from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.binary.model import Cubin
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.launches import DESCRIPTION_SUFFIX
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.pointer_uses import SHAPE
from gpa_lsp.execution.launches.read_launches import Dim3, explain_undescribed, find_launch_file, read_launches
from gpa_lsp.foundation.errors import GpaError, InputError, Problem, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.toml_tables import read_toml_text
from gpa_lsp.kernel.names import demangle, list_named, shorten_name
from gpa_lsp.profile.model import Launch, Profile
from gpa_lsp.profile.read import read_profile

MOST_MEASURED = 64  # Different launches that are taken from a profile
_ASSUMED = Path(f"assumed{DESCRIPTION_SUFFIX}")  # Names launches that stand in no file where they cannot be read
_DYNAMIC_SHARED = "launch__shared_mem_per_block_dynamic"
_MOST_NAMES, _LONGEST_NAME = 10, 120  # Kernels, and characters of a name, in a message

AnyLaunch = TypeVar("AnyLaunch")


class LaunchChoice(Struct, frozen=True, kw_only=True):
    """Choice of launches."""

    path: Path | None = None  # of the description; None for the file beside the source or the build
    # what an editor holds of it; None to read the file. Where there is no file, launches that are assumed.
    text: str | None = None
    number: int | None = None  # only this one of the launches of the kernels that are meant, from 1; None for all
    # a profile whose launches are emulated in place of those that are described; arguments stay those of the description
    profile_path: Path | None = None
    is_single: bool = False  # more than one is refused before any is emulated


EVERY_LAUNCH = LaunchChoice()


def choose_launches(
    matched: Sequence[AnyLaunch], choice: LaunchChoice, described: Path | None, name: Callable[[AnyLaunch], str]
) -> tuple[AnyLaunch, ...]:
    """The chosen ones of the launches of some kernels.

    Args:
        name: gives the mangled name of a launch's kernel.

    Raises:
        InputError: there are not so many, or more than the one that is asked for.
    """
    if choice.number is None:
        if choice.is_single and len(matched) > 1:
            names = list_names(dict.fromkeys(map(name, matched)))
            message = f"{format_count(len(matched))} launches match ({names}), and one is asked for"
            raise InputError(message, path=described, remedy="choose one with --kernel and --launch")
        return tuple(matched)
    if not 1 <= choice.number <= len(matched):
        remedy = f"give a number from 1 to {len(matched)}" if matched else "describe a launch"
        raise InputError(f"there is no launch {choice.number}", path=described, remedy=remedy)
    return (matched[choice.number - 1],)


def list_names(mangled: Iterable[str]) -> str:
    """Names for people of the first of some kernels."""
    return ", ".join(shorten_name(demangle(one)) for one in list(mangled)[:_MOST_NAMES])


def miss_kernel(kernel: str, known: Iterable[str], path: Path | None, place: str | None = None) -> InputError:
    """Error for a name that no kernel has."""
    names = list_names(known)
    message = f"there is no kernel {kernel[:_LONGEST_NAME]}"
    return InputError(message, path=path, place=place, remedy=f"name one of {names}" if names else None)


def explain_mismatch(launch: LaunchDescription, found: Sequence[str], known: Iterable[str]) -> InputError:
    """Error for a launch whose name means no kernel, or several.

    Args:
        found: mangled names of the kernels that it means.
        known: mangled names of all kernels.
    """
    if not found:
        return miss_kernel(launch.kernel, known, launch.path, launch.place)
    message = f"{launch.kernel[:_LONGEST_NAME]} could be any of {list_names(found)}"
    mangled = found[0] if len(found[0]) <= _LONGEST_NAME else f"{found[0][:_LONGEST_NAME]}…"
    return InputError(
        message, path=launch.path, place=launch.place, remedy=f"write its mangled name, such as {mangled}"
    )


class DescriptionText(Struct, frozen=True, kw_only=True):
    """A description of launches, read once for all that use it."""

    path: Path | None  # of the file, in whose folder data files are searched; None for launches that are assumed
    text: str  # what it holds

    def read(self, *, block: Dim3 | None = None, fold: Dim3 | None = None) -> tuple[LaunchDescription, ...]:
        """Launches of the description; *block* and *fold* as for :func:`~gpa_lsp.execution.launches.read_launches.read_launches`."""
        launches = read_launches(self.path or _ASSUMED, text=self.text, block=block, fold=fold)
        return launches if self.path is not None else tuple(replace(one, path=None, line=None) for one in launches)


def require_description(path: Path, choice: LaunchChoice) -> DescriptionText:
    """The description of the launches of a source or a build: the file that is named or that beside it, or launches that are assumed.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    found = choice.path or find_launch_file(path)
    if choice.text is not None:
        return DescriptionText(path=found, text=choice.text)
    if found is None:
        raise explain_undescribed(path)
    return DescriptionText(path=found, text=read_toml_text(found))


class ListedLaunches(Struct, frozen=True, kw_only=True):
    """Launches that are to be emulated."""

    launches: tuple[LaunchDescription, ...]  # in their order
    must_match: bool  # each must be of a kernel of the code; False for those of a profile, which are of a whole program


def read_described(described: Path | None, text: str | None) -> tuple[LaunchDescription, ...]:
    """The launches of a description, or of a text that stands in no file; none where there is neither."""
    if text is not None:
        return DescriptionText(path=described, text=text).read()
    return () if described is None else read_launches(described)


def list_launches(described: Path | None, choice: LaunchChoice) -> ListedLaunches:
    """The launches of a description, or the first of each kind of a profile: those of a kind have one kernel, block, grid and shared memory.

    Args:
        described: the description; None where there is none.

    Raises:
        InputError: one of them cannot be read, or the profile has no launch with a known grid and block.
    """
    launches = read_described(described, choice.text)
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

    A profile does not keep the arguments of a kernel. Arguments and variables are those of a description of the same kernel, where there is
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
    x, y, z = (launch.read_count(f"launch__cluster_dim_{axis}") or 0 for axis in "xyz")
    cluster = (x, y, z) if x * y * z > 1 else None
    names = {launch.mangled_name, launch.plain_name, launch.demangled_name, find_bare_name(launch.mangled_name)} - {""}
    fitting = [one for one in given if one.kernel in names]
    same = [one for one in fitting if (one.block, one.grid) == (block, grid)]
    known = next(iter((*same, *fitting)), None)
    kernel = launch.mangled_name or launch.plain_name or launch.demangled_name
    if known is None:
        return LaunchDescription(kernel=kernel, block=block, grid=grid, shared_bytes=shared_bytes, cluster=cluster)
    if (known.block, known.grid) != (block, grid):
        known = replace(known, block=block, grid=grid, threads=None, fold=(1, 1, 1))
    guesses = tuple(one for one in known.guesses if one not in SHAPE)
    return replace(known, kernel=kernel, shared_bytes=shared_bytes, cluster=cluster or known.cluster, guesses=guesses)


_REMEDY = "build it with -lineinfo, record the report again, or give the build as SOURCE and the report with --profile"


class MeasuredCode(Struct, frozen=True, kw_only=True):
    """The PTX of a kernel as it was measured."""

    cubin: Cubin  # the image that ran
    unit: EmbeddedPtx  # its PTX
    module: PtxModule  # the same, parsed
    function: PtxFunction  # the kernel


class MeasuredLaunch(Struct, frozen=True, kw_only=True):
    """A launch and its code."""

    launch: Launch  # as it was measured
    description: LaunchDescription  # the same, with the arguments that are described
    code: MeasuredCode  # that ran
    is_described: bool  # a description has its arguments, or it takes none


def list_measured_launches(
    profile: Profile, kernel: str | None, given: Sequence[LaunchDescription], problems: list[Problem]
) -> tuple[MeasuredLaunch, ...]:
    """The first of a report's launches that are alike in kernel, block, grid and shared memory.

    Args:
        kernel: only the kernel of this name, or else those whose name contains it; None for all.

    Raises:
        InputError: no kernel has the name.
    """
    wanted = _list_wanted(profile, kernel)
    codes = _Codes(profile)
    found: dict[tuple[object, ...], MeasuredLaunch] = {}
    for launch in wanted:
        try:
            description = describe_launch(launch, given=given)
        except InputError:
            continue  # it failed while it was measured; others did not
        key = (launch.mangled_name, launch.module_id, description.block, description.grid, description.shared_bytes)
        if key in found:
            continue
        code = codes.find(launch, problems)
        if code is None:
            continue
        is_described = description.path is not None or not code.function.parameters
        found[key] = MeasuredLaunch(launch=launch, description=description, code=code, is_described=is_described)
        if len(found) == MOST_MEASURED:
            break
    return tuple(found.values())


def explain_no_code(path: Path, problems: Sequence[Problem]) -> InputError:
    """Error for a report without a launch that can be emulated: the first of the problems, or that none has a size."""
    if problems:
        return UnsupportedInputError(problems[0].message, path=path, remedy=problems[0].remedy)
    return InputError("it has no launch with a known grid and block", path=path, remedy="record it again")


def _list_wanted(profile: Profile, kernel: str | None) -> Sequence[Launch]:
    if kernel is None:
        return profile.launches
    names = {
        one.mangled_name: [name for name in (one.mangled_name, one.demangled_name, one.plain_name) if name]
        for one in profile.launches
    }
    meant = set(list_named(kernel, names, lambda name: names[name]))
    if not meant:
        message = f"no kernel in it has {kernel!r} in its name"
        raise InputError(message, path=profile.path, remedy="leave out --kernel to see all of them")
    return [one for one in profile.launches if one.mangled_name in meant]


class _Codes:
    """The code of each kernel, looked up once."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._units: dict[int, tuple[Cubin, tuple[EmbeddedPtx, ...]]] = {}
        self._modules: dict[tuple[int, str], PtxModule] = {}
        self._found: dict[tuple[str, int | None], MeasuredCode | None] = {}

    def find(self, launch: Launch, problems: list[Problem]) -> MeasuredCode | None:
        """The code of a launch; None where there is none, which is a problem of its kernel."""
        key = (launch.mangled_name, launch.module_id)
        if key not in self._found:
            self._found[key] = None
            try:
                self._found[key] = self._find(launch)
            except GpaError as error:
                problems.append(Problem.from_error(error, kernel=launch.mangled_name))
        return self._found[key]

    def _find(self, launch: Launch) -> MeasuredCode:
        name = launch.display_name[:200]
        module = None if launch.module_id is None else self._profile.modules.get(launch.module_id)
        if module is None or module.image is None:
            raise UnsupportedInputError(f"it does not hold the code of {name}", remedy=_REMEDY)
        if module.module_id not in self._units:
            cubin = read_cubin(module.image, path=self._profile.path)
            self._units[module.module_id] = (cubin, list_embedded_ptx(cubin))
        cubin, units = self._units[module.module_id]
        for unit in units:
            parsed = self._parse(module.module_id, unit)
            function = parsed.functions.get(launch.mangled_name)
            if function is not None and function.is_entry and function.instructions:
                return MeasuredCode(cubin=cubin, unit=unit, module=parsed, function=function)
        raise UnsupportedInputError(f"it does not hold the PTX of {name}, so that cannot be emulated", remedy=_REMEDY)

    def _parse(self, module_id: int, unit: EmbeddedPtx) -> PtxModule:
        key = (module_id, unit.section)
        if key not in self._modules:
            path = self._profile.path
            self._modules[key] = parse_ptx(unit.text, name=f"the PTX of {'the report' if path is None else path.name}")
        return self._modules[key]
