"""First descriptions of launches, for the kernels of a source, a build or a report that have none: :func:`write_templates`."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, Space
from gpa_lsp.code.sources.assumed_launches import USUAL_THREADS, find_assumed_launches, find_place
from gpa_lsp.code.sources.host_values import HostLaunch
from gpa_lsp.code.sources.template_arguments import list_instance_arguments, match_arguments
from gpa_lsp.execution.compiler.included_files import include_with_search
from gpa_lsp.execution.compiler.job import read_source
from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompilerFlags, CompileSettings
from gpa_lsp.execution.emulator.model import Fault
from gpa_lsp.execution.launches import DESCRIPTION_SUFFIX
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.pointer_uses import find_read_parameters, stores_globally
from gpa_lsp.execution.launches.read_launches import find_launch_file, read_launches
from gpa_lsp.execution.launches.template import ToldSizes, write_template
from gpa_lsp.execution.launches.told_sizes import check_told_sizes, describe_sizes, list_guessed_sizes, read_told_sizes
from gpa_lsp.execution.prediction.fault_answer import believe
from gpa_lsp.execution.prediction.fitting import (
    LIMITS,
    MOST_VARIANTS,
    SHAPES,
    empty_guessed,
    fit_sizes,
    grow_arrays,
    list_variants,
    shape_by_axes,
)
from gpa_lsp.execution.prediction.input_kinds import InputKind, find_kind
from gpa_lsp.execution.prediction.launch_sources import (
    LaunchChoice,
    explain_no_code,
    list_launches,
    list_measured_launches,
    list_names,
)
from gpa_lsp.execution.prediction.launched_code import CodeChoice, CodeModule, KernelLaunch, match_launches, read_code
from gpa_lsp.execution.prediction.model import KernelPrediction, PredictionSettings
from gpa_lsp.execution.prediction.predict import predict_launches
from gpa_lsp.execution.prediction.static_source import SourceStatics
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.foundation.errors import GpaError, InputError, Problem
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.foundation.work_time import work_time
from gpa_lsp.kernel.names import demangle, list_named, shorten_name
from gpa_lsp.profile.read import read_profile

_MOST_NAMES = 8
_MOST_SAID = 8  # Launches of one kernel that are written down

# Threads of a grid, or another measure of its work, tried in this order: work that grows with their square shrinks by 16 at each
_SIZES = (USUAL_THREADS, 65536, 16384, 4096, 1024, 256, 64, 16)

# Part of the emulation's limits, 1 in this, that each try may take: what fits it fits on a slower machine too, and the user waits
_SHARE = 4

_COPIED = re.compile(r"\bcudaMemcpyToSymbol(?:Async)?\s*\(\s*[&\"]?(\w{1,200})")
_POINTER_BYTES = 8
_GRID_WORDS = "# the grid is"
_THREADS_WORD = "\nthreads = "
_ROUNDS = 8
_READ_AS = "fitting.launch.toml"
_TOO_LARGE = 1000  # In place of a number of faults


def write_templates(
    path: Path,
    *,
    text: str | None = None,
    kernel: str | None = None,
    launches_path: Path | None = None,
    profile_path: Path | None = None,
    launches_text: str | None = None,
    compute_capability: tuple[int, int] | None = None,
    settings: CompileSettings = DEFAULT_SETTINGS,
    fits: PredictionSettings | None = None,
    told: str = "",
    is_single: bool = False,
) -> str:
    """Text of a description, or of what to append to the existing one.

    Args:
        path: of a source; of what was built, where the PTX alone says what the parameters are; or of a report, whose kernels get block, grid and
            shared memory as they were measured, and arguments that are left to be corrected.
        text: what an editor holds of a source; None to read the file.
        kernel: only the kernel of this name, or else those whose name contains it; None for all.
        launches_path: the description; None for the file beside the source.
        profile_path: a profile whose launches give block, grid and shared memory; None for guesses. Kernels that it does not have are told.
        launches_text: what an editor holds of it, empty for one that is to be begun; None to read the file.
        compute_capability: to compile for, or to take out of a build; None leaves it to the compile command, or takes the newest.
        settings: of the compiler.
        fits: sizes of a source are such that emulation by these ends within its limits; None for the usual sizes.
        told: sizes of a source that are known, such as ``n = 4096, threads = 64x64``.
        is_single: several kernels of a source or a build are refused.

    Raises:
        InputError: there is no PTX of it, there is no such kernel, every one has a launch already, the profile has none of them, what is told is
            no size of it, or one kernel is asked for and several are meant.
        MissingToolError: no compiler is installed, or a build needs NVIDIA's cuobjdump, which is not.
        ToolError: one of them failed, or did not end in time.
    """
    kind = InputKind.SOURCE if text is not None else find_kind(path)
    described = launches_path or find_launch_file(path.absolute() if kind is InputKind.SOURCE else path)
    if kind is InputKind.REPORT:
        return _write_measured(path, kernel, described)
    choice = CodeChoice(text=text, compute_capability=compute_capability, compile_settings=settings, assembles=False)
    modules = read_code(path, choice, [])
    measured = _list_measured(profile_path)
    sizes = read_told_sizes(told)
    write: Callable[[PtxFunction, Collection[str]], str] = partial(_write_built, measured)
    if kind is InputKind.SOURCE:
        write = _write_from_source(modules[0], measured, sizes, fits)
    launches = _read_known(described, launches_text)
    every = _list_entries(modules)
    known = {one.function.name for one in match_launches(modules, launches, None)[0]}
    wanted = _choose_wanted(every, known, kernel, path, described)
    if is_single and len(wanted) > 1:
        names = list_names(one.name for one in wanted)
        message = f"{format_count(len(wanted))} kernels match ({names}), and one is asked for"
        raise InputError(message, path=path, remedy="choose one with --kernel")
    measured.check(wanted)
    found = "\n".join(measured.explain(one) + write(one, every) for one in wanted)
    read_launches(described or path.with_suffix(DESCRIPTION_SUFFIX), text=found)  # all that is printed can be read
    if told:
        check_told_sizes(sizes, found, read_host_code(modules[0].statics).launches)
    return found


def _write_built(measured: "_Measured", function: PtxFunction, names: Collection[str]) -> str:
    launch = measured.find(function)
    text = write_template(function, names, measured=launch)
    return text if launch is not None else shape_by_axes(function, text)


def _write_from_source(
    code: CodeModule, measured: "_Measured", sizes: ToldSizes, fits: PredictionSettings | None
) -> Callable[[PtxFunction, Collection[str]], str]:
    """Function that writes the launches of a kernel, with the sizes that the host code tells."""
    host_code = read_host_code(code.statics, sizes.numbers)
    filled = tuple(_list_filled(code.module, host_code.texts))
    work = None if fits is None else _plan_fitting(fits, code)

    def write(function: PtxFunction, names: Collection[str]) -> str:
        launch = measured.find(function)
        begin = partial(
            write_template, function, names, texts=host_code.texts, filled=filled, measured=launch, told=sizes
        )
        said = _find_said(host_code.launches, function, names)
        if launch is not None:
            return _write_readable(begin, _find_same(said, launch))
        if work is None:
            return "\n".join(
                _write_readable(begin, one) if one else shape_by_axes(function, begin()) for one in said or (None,)
            )
        return "\n".join(_write_fitting(work, function, begin, host_code, one) for one in said or (None,))

    return write


def _write_measured(path: Path, kernel: str | None, described: Path | None) -> str:
    problems: list[Problem] = []
    known = _read_known(described, None)
    found = list_measured_launches(read_profile(path), kernel, known, problems)
    if not found:
        raise explain_no_code(path, problems)
    wanted = {one.code.function.name: one for one in reversed(found) if not one.is_described}
    if not wanted:
        message = "every kernel has a launch already"
        raise InputError(message, path=described or path, remedy="edit the description that is there")
    names = {one.code.function.name for one in found}
    return "\n".join(
        write_template(one.code.function, names, measured=one.description) for one in reversed(wanted.values())
    )


def describe_guesses(text: str) -> str:
    """Sizes that a description guesses, as they are told; empty for none."""
    return describe_sizes(list_guessed_sizes(text))


def _list_filled(module: PtxModule, texts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Variables that the host or another kernel fills.

    Constants without initial values, variables that are copied to, and those that several functions of the module name.
    """
    copied = {found[1] for _, text in texts for found in _COPIED.finditer(text)}
    named = Counter(itertools.chain.from_iterable(map(find_read_parameters, module.functions.values())))
    for name, variable in module.variables.items():
        is_bare = variable.initial is None and not variable.initial_symbols and not variable.is_texture
        if is_bare and (variable.space is Space.CONST or find_bare_name(name) in copied or named[name] > 1):
            yield name


class _Fitting(ColumnRecord, frozen=True, kw_only=True):
    """The code whose launches are tried, and how much that may cost."""

    code: CodeModule
    settings: PredictionSettings


def _plan_fitting(fits: PredictionSettings, code: CodeModule) -> _Fitting:
    """The code, and limits of each try that are a part of the emulation's."""
    budget = replace(
        fits.budget,
        seconds=fits.budget.seconds / _SHARE,
        warp_instructions=fits.budget.warp_instructions // _SHARE,
    )
    tried = replace(fits, budget=budget, traced_warp_instructions=fits.traced_warp_instructions // _SHARE)
    return _Fitting(code=code, settings=tried)


class HostCode(Struct, frozen=True, kw_only=True):
    """Launches in host code, and the texts they were read from."""

    # in the order the program would come to them; what depends on what it reads is marked as a guess
    launches: tuple[HostLaunch, ...]
    # (path, text) of the source, then of what includes it, then of the project's headers
    texts: tuple[tuple[str, str], ...]
    # the launches again, those that depend on what is read no larger than ``most_threads``
    read: "partial[tuple[HostLaunch, ...]]"

    def shrink(self, launch: HostLaunch, threads: int) -> HostLaunch:
        """A launch with no more threads than that, where what the program reads decides it; else the launch as it is."""
        if not launch.inputs:
            return launch
        place = find_place(launch), launch.template_arguments
        alike = [one for one in self.launches if (find_place(one), one.template_arguments) == place]
        smaller = [one for one in self.read(most_threads=threads) if (find_place(one), one.template_arguments) == place]
        found = smaller[alike.index(launch)] if launch in alike and len(smaller) == len(alike) else launch
        is_nothing_left = found.grid is None and launch.grid is not None
        return launch if is_nothing_left else found


def _write_fitting(
    work: _Fitting, function: PtxFunction, begin: "partial[str]", host_code: HostCode, host: HostLaunch | None
) -> str:
    """Description with the largest size that is emulated within the limits, or else with the fewest faults; arrays as large as touched."""
    deadline = work_time() + work.settings.budget.seconds * _SHARE
    block_axes = 3 if host is None else 0 if host.block is not None else host.block_axes
    best: _Fitted | None = None

    def write(threads: int) -> str:
        return _write_readable(begin, None if host is None else host_code.shrink(host, threads), threads)

    for place in range(MOST_VARIANTS):
        found = _fit_variant(work, function, write, place, block_axes=block_axes, deadline=deadline)
        if found is not None and (best is None or found.rank[:3] < best.rank[:3]):
            best = found
        if found is None or not best or not best.is_useless or work_time() > deadline:
            break
    if best is None:
        return write(_SIZES[-1])
    if best.threads == USUAL_THREADS or _THREADS_WORD not in best.text:
        return best.text
    return best.text.replace(_GRID_WORDS, f"# {format_count(USUAL_THREADS)} {best.unfit}; {_GRID_WORDS[2:]}")


def _write_readable(begin: "partial[str]", host: HostLaunch | None, threads: int = USUAL_THREADS) -> str:
    """Description of a launch, without values of the host code that no launch can have, such as an empty grid."""
    if host is not None:
        unknown = tuple(replace(one, value=None, size_bytes=None, members=()) for one in host.arguments)
        for less in (host, replace(host, grid=None), replace(host, grid=None, block=None, arguments=unknown)):
            text = begin(host=less, threads=threads)
            try:
                read_launches(Path(_READ_AS), text=text)
            except InputError:
                continue
            return text
    return begin(threads=threads)


class _Fitted(Struct, frozen=True, kw_only=True):
    """A description that was tried."""

    text: str  # of it
    threads: int  # of its grid, where they were unknown
    wrong: int  # faults that other sizes and numbers may avoid
    is_cut_off: bool  # it did not end within the limits
    # it was cut off so early that no volumes were predicted; of several such the smallest comes furthest
    has_nothing: bool
    is_idle: bool = False  # it ended without a store of the kernel
    unfit: str = ""  # why it is smaller than usual, a clause

    @property
    def rank(self) -> tuple[int, bool, bool, bool]:
        """Sort key, smaller for a better description."""
        return self.wrong, self.has_nothing, self.is_idle, self.is_cut_off

    @property
    def is_useless(self) -> bool:
        """Whether other numbers may do better, other sizes aside."""
        return any(self.rank[:3])


def _fit_variant(
    work: _Fitting,
    function: PtxFunction,
    write: Callable[[int], str],
    place: int,
    *,
    block_axes: int,
    deadline: float,
) -> _Fitted | None:
    """The best of some sizes with one choice of the unknown numbers; None where there is no such choice."""
    best: _Fitted | None = None
    before: _Fitted | None = None
    unfit = ""
    tries_zeros = True
    for threads in _SIZES:
        text = next(itertools.islice(list_variants(write(threads)), place, None), None)
        if text is None or (work_time() > deadline and threads != _SIZES[-1]):
            continue  # the smallest ends soon, and what was cut off is no beginning
        found = _fit_size(work, function, text, threads, block_axes=block_axes, deadline=deadline)
        empty = empty_guessed(text)
        if any(found.rank[:2]) and empty != text and (tries_zeros or threads == _SIZES[-1]):
            # what is read may be how long a loop is: zeros end most of them
            zeros = _fit_size(work, function, empty, threads, block_axes=block_axes, deadline=deadline)
            tries_zeros = zeros.rank < found.rank
            found = zeros if tries_zeros else found
        if best is None or found.rank < best.rank or (found.rank == best.rank and found.has_nothing):
            best = replace(found, unfit=unfit)
        unfit = unfit or _explain_unfit(found)
        is_as_before = before is not None and before.wrong == found.wrong and not found.is_cut_off
        if not (best.wrong or best.is_cut_off) or is_as_before:
            break
        if write(_SIZES[-1]) == write(threads):
            break  # the user, or the host code, gives the size
        before = found
    return best


def _explain_unfit(found: _Fitted) -> str:
    if found.wrong >= _TOO_LARGE:
        return "would need too much memory"
    return "would take too long to emulate" if found.is_cut_off else "would reach out of its arrays"


def _fit_size(
    work: _Fitting, function: PtxFunction, text: str, threads: int, *, block_axes: int, deadline: float
) -> _Fitted:
    memory_bytes = work.settings.budget.memory_bytes
    fitted = fit_sizes(
        work.code.module, function, text, block_axes=block_axes, deadline=deadline, memory_bytes=memory_bytes
    )
    if fitted is None:  # arrays of that many elements would be too large
        return _Fitted(text=text, threads=threads, wrong=_TOO_LARGE, is_cut_off=True, has_nothing=True)
    faults: tuple[Fault, ...] = ()
    for _ in range(_ROUNDS):
        launch = believe(read_launches(Path(_READ_AS), text=fitted)[0])  # faults are looked for
        problems: list[Problem] = []
        found = predict_launches(
            (KernelLaunch(launch=launch, function=function, code=work.code),), work.settings, problems
        )
        faults = tuple(fault for one in found for fault in one.faults)
        grown = grow_arrays(fitted, faults)
        fitted = grown or fitted
        if grown is None or work_time() > deadline:
            break
    is_cut_off = any(fault.kind in LIMITS for fault in faults)
    return _Fitted(
        text=fitted,
        threads=threads,
        wrong=sum(fault.kind in SHAPES for fault in faults) if found else _TOO_LARGE,
        is_cut_off=is_cut_off,
        has_nothing=is_cut_off and all(one.volumes is None for one in found),
        is_idle=not is_cut_off and stores_globally(function) and not any(map(_stores, found)),
    )


def _stores(prediction: KernelPrediction) -> bool:
    kinds = {one.kind for one in prediction.accesses if one.space is Space.GLOBAL}
    return bool(kinds - {AccessGroupKind.LOADS})


class _Measured(Struct, frozen=True, kw_only=True):
    """The launches of a profile."""

    path: Path | None  # of the profile; None for none
    launches: tuple[LaunchDescription, ...]  # of all its kernels

    def find(self, function: PtxFunction) -> LaunchDescription | None:
        """The first launch of a kernel."""
        readable = demangle(function.name)
        names = (function.name, readable, shorten_name(readable))
        return next((one for one in self.launches if one.kernel in names), None)

    def explain(self, function: PtxFunction) -> str:
        """A comment for a kernel that was not measured; empty where it was, and where nothing was."""
        if self.path is None or self.find(function) is not None:
            return ""
        return f"# {self.path.name} has no launch of this kernel.\n"

    def check(self, wanted: Sequence[PtxFunction]) -> None:
        """Refuse a profile of other kernels.

        Raises:
            InputError: it has a launch of none of those that are wanted.
        """
        if self.path is None or any(self.find(one) is not None for one in wanted):
            return
        listed = list(dict.fromkeys(shorten_name(demangle(one.kernel)) for one in self.launches))[:_MOST_NAMES]
        message = f"it has no launch of {', '.join(shorten_name(demangle(one.name)) for one in wanted[:_MOST_NAMES])}"
        remedy = f"it has launches of {', '.join(listed)}; without a profile sizes are guessed"
        raise InputError(message, path=self.path, remedy=remedy)


def _list_measured(profile_path: Path | None) -> _Measured:
    choice = LaunchChoice(profile_path=profile_path)
    return _Measured(path=profile_path, launches=() if profile_path is None else list_launches(None, choice).launches)


def _find_said(read: Sequence[HostLaunch], function: PtxFunction, names: Collection[str]) -> list[HostLaunch]:
    """Different launches of a kernel with a size in the host code.

    For a template, those of this instance; where that cannot be told, those that fit it and surely no other instance.
    """
    name = find_bare_name(function.name)
    others = [list_instance_arguments(demangle(one)) for one in names if find_bare_name(one) == name]
    own = list_instance_arguments(demangle(function.name))
    found: dict[tuple[object, ...], HostLaunch] = {}
    for one in sorted(read, key=lambda one: one.is_assumed):
        knows = one.block is not None or one.grid is not None or any(item.size_bytes for item in one.arguments)
        if one.kernel != name or not knows or not _fits(one, function):
            continue
        matched = match_arguments(one.template_arguments, own)
        is_elsewhere = any(match_arguments(one.template_arguments, other) for other in others)
        if matched is False or (matched is None and is_elsewhere):
            continue
        rivals = sum(match_arguments(one.template_arguments, other) is not False for other in others)
        values = tuple((item.value, item.size_bytes) for item in one.arguments)
        told = one if rivals <= 1 or matched else replace(one, is_of_other=True)
        found.setdefault((one.grid, one.block, one.shared_bytes, values), told)
    return list(found.values())[:_MOST_SAID]


def _fits(launch: HostLaunch, function: PtxFunction) -> bool:
    """Whether a kernel can be launched so: arrays for its pointers, and no more threads than it allows."""
    if len(launch.arguments) != len(function.parameters):
        return False
    pairs = zip(launch.arguments, function.parameters, strict=True)
    if any(one.is_array and parameter.size_bytes < _POINTER_BYTES for one, parameter in pairs):
        return False
    if launch.block is None:
        return True
    threads = prod(launch.block)
    return function.required_threads in (None, launch.block) and threads <= (function.max_threads or threads)


def _find_same(said: Sequence[HostLaunch], measured: LaunchDescription) -> HostLaunch | None:
    """The launch in the host code that was measured, as far as its sizes are known; None where there is none."""
    shape = (measured.grid, measured.block)
    return next((one for one in said if (one.grid or measured.grid, one.block or measured.block) == shape), None)


def _read_known(described: Path | None, text: str | None) -> tuple[LaunchDescription, ...]:
    """Launches of a description; none of an empty file, which the shell has just made for the output."""
    if described is None:
        return ()
    has_text = described.is_file() and described.stat().st_size > 0 if text is None else bool(text.strip())
    return read_launches(described, text=text) if has_text else ()


def _list_entries(modules: Sequence[CodeModule]) -> dict[str, PtxFunction]:
    """The kernels of some modules by name, the first of each name."""
    every: dict[str, PtxFunction] = {}
    for one in modules:
        for entry in one.module.entries:
            every.setdefault(entry.name, entry)
    return every


def _choose_wanted(
    every: Mapping[str, PtxFunction], known: Collection[str], kernel: str | None, path: Path, described: Path | None
) -> list[PtxFunction]:
    """Kernels of some modules that are meant and have no launch.

    Raises:
        InputError: there is no such kernel, or every one has a launch.
    """
    named = list(every.values()) if kernel is None else list_named(kernel, every.values(), lambda one: (one.name,))
    if not every:
        raise InputError("has no kernel", path=path, remedy="give a file with a __global__ function in it")
    if not named:
        listed = ", ".join(shorten_name(demangle(name)) for name in list(every)[:_MOST_NAMES])
        raise InputError(f"no kernel is named {kernel}", path=path, remedy=f"there are: {listed}")
    wanted = [one for one in named if one.name not in known]
    if not wanted:
        message = "every kernel has a launch already"
        raise InputError(message, path=described or path, remedy="edit the description that is there")
    return wanted


def read_host_code(statics: SourceStatics, told: Mapping[str, int] = MappingProxyType({})) -> HostCode:
    """Read the host code of a source, with its headers; of a fragment that of the file it was compiled through.

    Args:
        told: values of inputs that the user gives, by variable.
    """
    known = tuple(told.items())
    own = (str(statics.path), statics.text)
    path = statics.unit.source or statics.path
    flags = statics.flags or CompilerFlags(directory=path.parent)
    try:
        text = statics.text if path == statics.path else read_source(path, None).decode("utf-8", "replace")
        included = include_with_search(path, text.encode(), flags)[1].headers
    except GpaError:
        read = partial(_read_launches, own[0], own[1], (), (), "", told=known)
        return HostCode(launches=read(), texts=(own,), read=read)
    texts = {str(file): content.decode("utf-8", "replace") for file, content in included.items()}
    texts |= {own[0]: own[1]} if own[0] in texts else {}
    macros = tuple(one for one in flags.macros if not one.startswith("-"))
    file = "" if path == statics.path else str(path)
    read = partial(_read_launches, str(path), text, tuple(texts.items()), macros, file, told=known)
    others = {str(path): text, **texts}
    return HostCode(launches=read(), texts=(own, *(one for one in others.items() if one[0] != own[0])), read=read)


def _read_launches(
    path: str,
    text: str,
    included: tuple[tuple[str, str], ...],
    macros: tuple[str, ...],
    file: str,
    *,
    most_threads: int = USUAL_THREADS,
    told: tuple[tuple[str, int], ...] = (),
) -> tuple[HostLaunch, ...]:
    """Launches of a text; those of another file than the source name it."""
    launches = find_assumed_launches(path, text, included, macros, most_threads=most_threads, told=told)
    return tuple(_name_file(one, file) for one in launches) if file else launches


def _name_file(launch: HostLaunch, file: str) -> HostLaunch:
    """The launch with the file that its lines are of, for readers of another."""
    arguments = tuple(replace(one, file=one.file or file) for one in launch.arguments)
    return replace(launch, file=launch.file or file, arguments=arguments)
