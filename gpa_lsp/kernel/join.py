"""Lay samples over instructions; or list the kernels of an image without any.

One pass per profile, so that everything that must be disassembled is known before the disassembler is started once.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.disassembler import disassemble, read_ahead
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin, Instructions
from gpa_lsp.foundation.errors import ConservationError, GpaError, InputError, Problem
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.place import PlacedKernel, list_reachable_functions, place_kernel
from gpa_lsp.kernel.scatter import scatter_function, scatter_outside, split_kernel
from gpa_lsp.profile.model import Device, Launch, Module, Profile

Progress = Callable[[str, int, int], None]

# A few seconds of the disassembler's time, during which nothing new is shown
_MOST_AHEAD_BYTES = 400_000 * INSTRUCTION_BYTES

GroupKey = tuple[str, int | None, str | None, tuple[int, int] | None]


def join_profile(
    profile: Profile,
    *,
    kernel_filter: Callable[[Launch], bool] | None = None,
    with_text: bool = True,
    progress: Progress | None = None,
) -> tuple[tuple[Kernel, ...], tuple[Problem, ...]]:
    """All kernels of a profile, joined with their code.

    Args:
        profile: as read.
        kernel_filter: launches to keep; None keeps all.
        with_text: disassemble; without it kernels have control codes and lines, but no instruction texts.
        progress: told (what, done, total).

    Returns:
        Kernels in order of first launch, and the problems met. A kernel that cannot be joined is left out and has a problem (also one whose
        samples do not add up, which would be a bug of ours); samples that fall outside its module are kept under :data:`OUTSIDE_MODULE`.
    """
    problems: list[Problem] = []
    cubins = _read_cubins(profile, problems)
    placed: list[PlacedKernel] = []
    launches = [launch for launch in profile.launches if kernel_filter is None or kernel_filter(launch)]
    for group in group_launches(launches):
        try:
            placed.append(place_kernel(group, profile, cubins))
        except GpaError as error:
            problems.append(_locate(error, profile, group[0]))
    texts = _disassemble_all(placed, problems, progress) if with_text else {}
    kernels: list[Kernel] = []
    for number, candidate in enumerate(placed):
        if progress is not None:
            progress("joining kernels", number, len(placed))
        try:
            kernel = split_kernel(_join(candidate, profile, texts, problems), candidate)
            for checked in (kernel, *kernel.contexts):
                check_kernel(checked)
        except GpaError as error:
            problems.append(_locate(error, profile, candidate.launches[0].launch))
            continue
        kernels.append(kernel)
    return tuple(kernels), tuple(problems)


def check_kernel(kernel: Kernel) -> None:
    """Check conservation: samples on the instructions add up to those of the launches, per reason, issued or not.

    Raises:
        ConservationError: samples were lost or invented.
    """
    kinds = [("all_samples", "samples")]
    if kernel.is_split:
        kinds.append(("latency_samples", "not-issued samples"))
    for reason_index, reason in enumerate(kernel.reasons):
        for kind, words in kinds:
            joined = sum(int(getattr(function, kind)[:, reason_index].sum()) for function in kernel.functions)
            sampled = sum(
                int(getattr(launch.samples, kind)[:, launch.samples.reasons.index(reason)].sum())
                for launch in kernel.launches
                if launch.samples is not None and launch.samples.total_samples and reason in launch.samples.reasons
            )
            if joined != sampled:
                raise ConservationError(f"{kernel.mangled_name}: {sampled} {words} of {reason} became {joined}")


def _locate(error: GpaError, profile: Profile, launch: Launch) -> Problem:
    if isinstance(error, InputError) and profile.path is not None:
        error.at(profile.path)
    return Problem.from_error(error, kernel=launch.mangled_name)


def _read_cubins(profile: Profile, problems: list[Problem]) -> dict[int, Cubin]:
    cubins: dict[int, Cubin] = {}
    wanted = {launch.module_id for launch in profile.launches}
    for module in profile.modules.values():
        if module.image is None or module.module_id not in wanted:
            continue
        try:
            cubins[module.module_id] = _read_image(module, module.image, profile.path)
        except InputError as error:
            if profile.path is not None:
                error.at(profile.path)
            problems.append(Problem.from_error(error))
    return cubins


def disassemble_ahead(profile: Profile, names: Iterable[str]) -> None:
    """Disassemble kernels that will be joined a few at a time, with as few runs of the disassembler as possible.

    Errors are reported when the kernels are joined.

    Args:
        profile: with their modules; its launches are not looked at.
        names: mangled, most important first; those beyond the limit are disassembled later.
    """
    wanted = list(names)
    for module in profile.modules.values():
        if module.image is None:
            continue
        with suppress(GpaError):
            cubin = _read_image(module, module.image, profile.path)
            read_ahead(cubin, _choose_ahead(cubin, wanted))


def _choose_ahead(cubin: Cubin, names: Iterable[str]) -> list[str]:
    left = _MOST_AHEAD_BYTES
    chosen = []
    for name in names:
        function = cubin.functions.get(name)
        if function is not None and function.size_bytes <= left:
            left -= function.size_bytes
            chosen.append(name)
    return chosen


def _read_image(module: Module, image: bytes, path: Path | None) -> Cubin:
    """The image of a module, decoded once although the module's launches may be joined a few at a time."""
    known = module.once(_hold_cubins)
    if path not in known:
        known[path] = read_cubin(image, path=path)
    return known[path]


def _hold_cubins(module: Module) -> dict[Path | None, Cubin]:
    del module
    return {}


def _disassemble_all(
    placed: Iterable[PlacedKernel], problems: list[Problem], progress: Progress | None
) -> dict[tuple[str, str], Instructions]:
    """Instructions by (cubin digest, function name), one disassembler call per image."""
    wanted: dict[str, tuple[Cubin, set[str]]] = {}
    for candidate in placed:
        if candidate.cubin is None:
            continue
        present = {name for name in candidate.needed if name in candidate.cubin.functions}
        wanted.setdefault(candidate.cubin.sha256, (candidate.cubin, set()))[1].update(present)
    decoded: dict[tuple[str, str], Instructions] = {}
    for number, (digest, (cubin, names)) in enumerate(wanted.items()):
        if progress is not None:
            progress("disassembling", number, len(wanted))
        try:
            found = disassemble(cubin, sorted(names))
        except GpaError as error:
            problem = Problem.from_error(error)
            if problem not in problems:
                problems.append(problem)
            continue
        decoded.update({(digest, name): instructions for name, instructions in found.items()})
    return decoded


def _join(
    placed: PlacedKernel, profile: Profile, texts: Mapping[tuple[str, str], Instructions], problems: list[Problem]
) -> Kernel:
    first = placed.launches[0].launch
    sampled = [launch.launch.samples for launch in placed.launches if launch.launch.samples is not None]
    reasons = tuple(sorted({reason for samples in sampled for reason in samples.reasons}))
    kernel_first = sorted(placed.needed, key=lambda name: (name != first.mangled_name, name))
    functions = [
        scatter_function(
            name, placed, reasons, texts.get((placed.cubin.sha256, name)) if placed.cubin else None, problems
        )
        for name in kernel_first
    ]
    outside = scatter_outside(placed, reasons)
    if outside is not None:
        functions.append(outside)
    return Kernel(
        mangled_name=first.mangled_name,
        name=first.display_name,
        profile_path=profile.path,
        module=placed.module,
        cubin=placed.cubin,
        device=first.device,
        architecture=_find_architecture(first, placed, problems),
        launches=tuple(launch.launch for launch in placed.launches),
        reasons=reasons,
        functions=tuple(functions),
    )


def _find_architecture(launch: Launch, placed: PlacedKernel, problems: list[Problem]) -> Architecture | None:
    capability = launch.device.compute_capability
    if capability is None and placed.module is not None:
        capability = placed.module.compute_capability
    if capability is None:
        message = "the profile does not give the compute capability of the GPU"
        problems.append(Problem.warning(message, kernel=launch.mangled_name))
        return None
    try:
        return find_architecture(capability)
    except GpaError as error:
        problem = Problem.from_error(error)
        if problem not in problems:
            problems.append(problem)
        return None


def group_launches(launches: Iterable[Launch]) -> tuple[tuple[Launch, ...], ...]:
    """Launches by kernel: same linkage name, same loaded module, same kind of GPU.

    Launch configurations may differ within a group: the code is the same, and so are the lines. What depends on the configuration is asked per
    launch context (:mod:`gpa_lsp.kernel.scatter`).
    """
    groups: dict[GroupKey, list[Launch]] = {}
    for launch in launches:
        key = (launch.mangled_name, launch.module_id, launch.device.name, launch.device.compute_capability)
        groups.setdefault(key, []).append(launch)
    return tuple(tuple(group) for group in groups.values())


def list_unmeasured_kernels(
    cubin: Cubin, *, choose: Callable[[list[str]], list[str]] | None = None, with_text: bool = True
) -> tuple[tuple[Kernel, ...], tuple[Problem, ...]]:
    """Every kernel of an image with the device functions it can call, and zero samples.

    Args:
        cubin: the image; an image without kernels (device functions only) gives one entry per function instead.
        choose: of the mangled names of all kernels, those to keep; None keeps all.
        with_text: disassemble.

    Returns:
        Kernels in image order, and the problems met.
    """
    problems: list[Problem] = []
    entries = [name for name, function in cubin.functions.items() if function.is_entry] or list(cubin.functions)
    chosen = entries if choose is None else choose(entries)
    needed = {name: tuple(list_reachable_functions(cubin, name)) for name in chosen}
    texts = {}
    if with_text and chosen:
        try:
            texts = dict(disassemble(cubin, sorted({name for names in needed.values() for name in names})))
        except GpaError as error:
            problems.append(Problem.from_error(error))
    capability = divmod(cubin.sm, 10) if cubin.sm else None
    try:
        architecture = find_architecture(capability) if capability is not None else None
    except GpaError:
        architecture = None  # nothing was measured, so nothing is lost; a profile of this image would say so
    kernels = []
    for name in chosen:
        placed = PlacedKernel(launches=(), module=None, cubin=cubin, needed=needed[name])
        order = sorted(needed[name], key=lambda other, own=name: (other != own, other))  # type: ignore[misc]
        kernels.append(
            Kernel(
                mangled_name=name,
                name=name,
                profile_path=cubin.path,
                module=None,
                cubin=cubin,
                device=Device(name=None, compute_capability=capability, sm_count=None, sm_clock_hz=None),
                architecture=architecture,
                launches=(),
                reasons=(),
                functions=tuple(scatter_function(other, placed, (), texts.get(other), problems) for other in order),
            )
        )
    return tuple(kernels), tuple(problems)
