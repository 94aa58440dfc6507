"""Records of a run → a native profile (``gpa-lsp/profile/2``): :func:`make_profile`."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.foundation.errors import GpaError, InputError, Problem
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.profile.collector.choosing import Launches, SampleTotals, Selection, TimedLaunch, add_up
from gpa_lsp.profile.collector.host_lines import find_places
from gpa_lsp.profile.collector.records import (
    NAME,
    CollectedContext,
    CollectedPath,
    CollectedProcess,
    Mode,
    describe_troubles,
    is_buffer_full,
)
from gpa_lsp.profile.model import HostFrame
from gpa_lsp.profile.native import FORMAT

_MOST_EMBEDDED_BYTES = 48 << 20  # Of cubins in the profile itself, which may have 128 MiB; more of them lie beside it


class LoadedModule(Struct, frozen=True, kw_only=True):
    """A cubin of the run."""

    number: int  # in the profile
    image: bytes  # its bytes
    sizes: dict[str, int]  # bytes of each of its functions, by mangled name
    capability: tuple[int, int] | None  # compute capability it is for; None when it cannot be read


class LoadedModules:
    """Modules of a folder with a cubin for each, named by its hash; read on demand."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[int, LoadedModule | None] = {}

    def find(self, digest: int) -> LoadedModule | None:
        """Module with a hash; None if its file is missing."""
        if digest not in self._found:
            number = sum(one is not None for one in self._found.values())
            image = self._read(digest)
            self._found[digest] = None if image is None else _make(number, image)
        return self._found[digest]

    def find_by_name(self, name: str, digests: Iterable[int]) -> LoadedModule | None:
        """The only module of some that has a function; None if several do, as when a kernel was recompiled under its name."""
        mark = b"\0" + name.encode() + b"\0"
        holders = [digest for digest in digests if (image := self._read(digest)) is not None and mark in image]
        return self.find(holders[0]) if len(holders) == 1 else None

    def _read(self, digest: int) -> bytes | None:
        try:
            return (self._folder / f"{digest:016x}.cubin").read_bytes()
        except OSError:
            return None

    def write(self, output: Path) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
        """Modules in the profile's form, and files that go beside it."""
        held = [module for module in self._found.values() if module is not None]
        written, apart, total_bytes = [], {}, 0
        for module in held:
            total_bytes += len(module.image)
            if total_bytes <= _MOST_EMBEDDED_BYTES:
                cubin = {"base64": base64.b64encode(module.image).decode("ascii")}
            else:
                name = f"{output.name}.cubins/{module.number}.cubin"
                apart[name] = module.image
                cubin = {"path": name}
            row: dict[str, Any] = {"id": module.number, "cubin": cubin}
            if module.capability is not None:
                row["compute_capability"] = "{}.{}".format(*module.capability)
            if module.sizes:
                row["functions"] = [{"name": name, "size_bytes": size} for name, size in module.sizes.items()]
            written.append(row)
        return written, apart


def _make(number: int, image: bytes) -> LoadedModule:
    try:
        cubin = read_cubin(image)
    except GpaError:
        return LoadedModule(number=number, image=image, sizes={}, capability=None)
    sizes = {name: one.size_bytes for name, one in cubin.functions.items()}
    return LoadedModule(number=number, image=image, sizes=sizes, capability=divmod(cubin.sm, 10))


# Calling contexts for people: frames of the library and the driver left out, addresses as functions and lines of the host program.
#
# Native frames lead from the launch to the interpreter, if there is one; its Python frames follow, and callers of the interpreter are left out.

MOST_FRAMES = 32
# Names of images between a launch and its caller
_BETWEEN = re.compile(rf"{re.escape(NAME)}|libcupti\.so|libcuda\.so|libcudart|ld-linux|libnvrtc|libpthread")
_INTERPRETER = re.compile(r"(?:lib)?python\d|pypy", re.IGNORECASE)
_SHIM = "<shim>"
_BEGINNING = frozenset({"_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl"})


def build_call_stacks(paths: Mapping[int, CollectedPath]) -> dict[int, tuple[HostFrame, ...]]:
    """Frames of each path, innermost first; debugging information of each image is read once."""
    chosen = {number: _choose_native(path) for number, path in paths.items()}
    wanted: dict[str, set[int]] = {}
    for frames in chosen.values():
        for image, offset in frames:
            wanted.setdefault(image, set()).add(offset - 1)  # of the call, not of what follows it
    places = {image: find_places(Path(image), offsets) for image, offsets in wanted.items() if image}
    return {
        number: (*_describe_native(chosen[number], places), *_describe_python(path))[:MOST_FRAMES]
        for number, path in paths.items()
    }


def _choose_native(path: CollectedPath) -> list[tuple[str, int]]:
    frames = list(path.native)
    while frames and _BETWEEN.match(PurePath(frames[0][0]).name):
        frames.pop(0)
    if path.python:
        inside = [number for number, (image, _) in enumerate(frames) if _INTERPRETER.match(PurePath(image).name)]
        frames = frames[: inside[0]] if inside else frames
    return frames[:MOST_FRAMES]


def _describe_native(
    frames: list[tuple[str, int]], places: Mapping[str, Mapping[int, tuple[HostFrame, ...]]]
) -> Iterator[HostFrame]:
    for image, offset in frames:
        found = places.get(image, {}).get(offset - 1, ())
        if any(place.function in _BEGINNING for place in found):
            return  # what follows begins every program
        module = PurePath(image).name or None
        for place in found or (HostFrame(function=None),):
            yield replace(place, module=module, address=offset)


def _describe_python(path: CollectedPath) -> Iterator[HostFrame]:
    for file, function, line in path.python:
        if file != _SHIM:
            yield HostFrame(function=function or None, file=file or None, line=line or None)


def find_common(stacks: list[tuple[HostFrame, ...]]) -> tuple[HostFrame, ...]:
    """Outermost frames that all stacks share, innermost first."""
    if not stacks:
        return ()
    common: list[HostFrame] = []
    for frames in zip(*(reversed(stack) for stack in stacks), strict=False):
        if len(set(frames)) > 1:
            break
        common.append(frames[0])
    return tuple(reversed(common))


TOOL = "gpa-lsp profile --sampler cupti"


class CollectedProfile(Struct, frozen=True, kw_only=True):
    """A profile made of records."""

    document: dict[str, Any]  # it
    cubins: dict[str, bytes]  # those that are too large to be part of it, by their paths from its folder
    launches: int  # records in it
    problems: tuple[Problem, ...]  # what its reader is told


def write_profile(profile: CollectedProfile, output: Path) -> None:
    """Write a profile, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    try:
        for name, content in profile.cubins.items():
            path = output.parent / name
            path.parent.mkdir(exist_ok=True)
            with atomic_write(path, encoding=None) as stream:
                stream.write(content)
        with atomic_write(output) as stream:
            json.dump(profile.document, stream)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be written ({reason})", path=output, remedy="choose another place with -o") from error


def make_profile(
    processes: Sequence[CollectedProcess], folder: Path, output: Path, selection: Selection
) -> CollectedProfile:
    """Make a profile of the records of a run's processes."""
    modules = LoadedModules(folder)
    problems = describe_troubles(processes)
    launches: list[dict[str, Any]] = []
    dropped = foreign = 0
    for process in processes:
        maker = _LaunchMaker(process, modules, selection)
        launches += maker.make()
        totals = maker.totals
        dropped += totals.dropped
        foreign += totals.foreign + maker.left_out
        if maker.graph_launches and maker.is_serialized:
            message = (
                f"{format_count_of(maker.graph_launches, 'launch')} ran in CUDA graphs: timed, not sampled one by one"
            )
            problems.append(Problem.note(message, "--continuous samples them, too"))
        if totals.missing:
            message = f"{format_count_of(totals.missing, 'sample')} of process {process.process_id} are counted, but in no row"
            problems.append(Problem.warning(message))
    written, cubins = modules.write(output)
    document = {
        "format": FORMAT,
        "tool_version": TOOL,
        "modules": written,
        "launches": launches,
        "problems": [_write_problem(problem) for problem in problems],
        "samples_truncated": is_buffer_full(processes),
        "sampling": {"dropped_samples": dropped, "foreign_samples": foreign},
    }
    return CollectedProfile(document=document, cubins=cubins, launches=len(launches), problems=tuple(problems))


def _write_problem(problem: Problem) -> dict[str, Any]:
    remedy = {} if problem.remedy is None else {"remedy": problem.remedy}
    return {"severity": problem.severity.value, "message": problem.message, **remedy}


class _LaunchMaker:
    """Makes the launches of one process."""

    def __init__(self, process: CollectedProcess, modules: LoadedModules, selection: Selection) -> None:
        self._process = process
        self._modules = modules
        self._selection = selection
        self._launches = Launches(process)
        self._stacks: dict[int, tuple[HostFrame, ...]] = {}
        self.totals: SampleTotals  # of its samples
        self.left_out = 0  # samples that belong to no instruction of a known module
        self.graph_launches = 0  # chosen launches that graphs made
        # one kernel ran at a time, and samples know their launch
        self.is_serialized = self._launches.mode is Mode.SERIALIZED

    def make(self) -> Iterator[dict[str, Any]]:
        if self._launches.mode is Mode.CONTINUOUS:
            return self._make_aggregates()
        return self._make_launches()

    def _make_launches(self) -> Iterator[dict[str, Any]]:
        chosen = [self._launches.build(number) for number in self._launches.choose(self._selection)]
        self.graph_launches = sum(not one.correlations for one in chosen)
        self._read_stacks(chosen)
        self.totals = add_up(self._process, {number for one in chosen for number in one.correlations})
        order = np.argsort(self.totals.rows["correlation"], kind="stable")
        rows = self.totals.rows[order]
        numbers = rows["correlation"]
        for one in chosen:
            spans = [
                rows[np.searchsorted(numbers, number) : np.searchsorted(numbers, number, "right")]
                for number in one.correlations
            ]
            own = np.concatenate(spans) if spans else rows[:0]
            holder, samples = self._write_samples(own)
            module = holder or self._modules.find_by_name(one.kernel, self._process.modules)
            yield self._write_launch(one, module, samples)

    def _make_aggregates(self) -> Iterator[dict[str, Any]]:
        """One record for each kernel: continuous sampling does not tell launches apart."""
        self.totals = add_up(self._process, None)
        by_kernel: dict[str, list[TimedLaunch]] = {}
        for number in range(len(self._launches)):
            launch = self._launches.build(number)
            by_kernel.setdefault(launch.kernel, []).append(launch)
        self._read_stacks([one for launches in by_kernel.values() for one in launches])
        rows_of: dict[str, list[npt.NDArray[np.void]]] = {name: [] for name in by_kernel}
        for number in np.unique(self.totals.rows["function"]).tolist():
            own = self.totals.rows[self.totals.rows["function"] == number]
            rows_of.setdefault(self._find_kernel(number, by_kernel), []).append(own)
        for name, pieces in rows_of.items():
            rows = np.concatenate(pieces) if pieces else self.totals.rows[:0]
            if self._selection.matches(name):
                yield self._write_aggregate(name, by_kernel.get(name, []), rows)

    def _find_kernel(self, number: int, by_kernel: dict[str, list[TimedLaunch]]) -> str:
        """Kernel that a function's samples belong to: itself, or the only launched one of its module."""
        function = self._process.functions.get(number)
        if function is None:
            return ""
        own, image = function
        if own in by_kernel:
            return own
        module = self._modules.find(image)
        callers = [name for name in by_kernel if module is not None and name in module.sizes]
        return callers[0] if len(callers) == 1 else own

    def _write_aggregate(self, name: str, launches: list[TimedLaunch], rows: npt.NDArray[np.void]) -> dict[str, Any]:
        holder, samples = self._write_samples(rows)
        sampled = [one for one in launches if one.is_sampled] or launches
        times = [one.duration_ns for one in sampled if one.duration_ns is not None]
        shapes = {(one.grid, one.block) for one in sampled}
        found: dict[str, Any] = {"kernel": name}
        if sampled:
            module = holder or self._modules.find_by_name(name, self._process.modules)
            found = self._write_launch(sampled[0], module, samples)
            if len(shapes) > 1:
                del found["grid"], found["block"]
        else:
            found["module"] = None if holder is None else holder.number
            found["samples"] = samples
        found.pop("duration_ns", None)
        found["aggregate"] = {"launches": len(sampled)} if sampled else {}
        if times and len(times) == len(sampled):
            found["duration_ns"] = sum(times) / len(times)
        stack = find_common([self._stacks.get(one.path, ()) for one in sampled])
        found.pop("call_stack", None)
        return {**found, **_write_stack(stack)}

    def _read_stacks(self, launches: list[TimedLaunch]) -> None:
        wanted = {one.path for one in launches}
        paths = {number: path for number, path in self._process.paths.items() if number in wanted}
        self._stacks = build_call_stacks(paths)

    def _write_samples(self, rows: npt.NDArray[np.void]) -> tuple[LoadedModule | None, list[dict[str, Any]]]:
        """Module of most of the rows, and the rows in the profile's form."""
        found = list(self.totals.list_places(rows))
        functions = [self._process.functions.get(number) for (number, _), _ in found]
        holders = [None if one is None else self._modules.find(one[1]) for one in functions]
        known = [holder for holder in holders if holder is not None]
        own = max(known, key=known.count, default=None)
        samples = []
        for ((_, offset), by_reason), function, holder in zip(found, functions, holders, strict=True):
            if function is None or holder is None or (holder.sizes and offset >= holder.sizes.get(function[0], 0)):
                self.left_out += sum(counts["all"] for counts in by_reason.values())
                continue
            row: dict[str, Any] = {"function": function[0], "pc_offset": offset, "by_reason": by_reason}
            if holder is not own:
                row["module"] = holder.number
            samples.append(row)
        return own, samples

    def _write_launch(
        self, launch: TimedLaunch, module: LoadedModule | None, samples: list[dict[str, Any]]
    ) -> dict[str, Any]:
        context = self._process.contexts.get(launch.context)
        found: dict[str, Any] = {
            "kernel": launch.kernel,
            "module": None if module is None else module.number,
            "grid": list(launch.grid),
            "block": list(launch.block),
            "context_id": launch.context,
            "metrics": _write_metrics(launch),
            **_write_stack(self._stacks.get(launch.path, ())),
        }
        if self._process.unix_ns:
            found["created_unix_s"] = self._process.unix_ns // 1_000_000_000
        if launch.stream is not None:
            found["stream_id"] = launch.stream
        if launch.duration_ns is not None:
            found["duration_ns"] = launch.duration_ns
        if context is not None:
            found["device"] = _write_device(context)
            if context.period_exponent and launch.is_sampled:
                found["sampling"] = {"period_cycles": 1 << context.period_exponent}
                found["samples"] = samples
                found["stall_reasons"] = sorted({name for name, _ in self.totals.reasons})
        if samples and "samples" not in found:
            found["samples"] = samples  # of a context that could not be sampled later on
        return found


def _write_device(context: CollectedContext) -> dict[str, Any]:
    device: dict[str, Any] = {"name": context.device}
    if context.capability is not None:
        device["compute_capability"] = "{}.{}".format(*context.capability)
    if context.sm_count:
        device["sm_count"] = context.sm_count
    if context.clock_khz:
        device["sm_clock_hz"] = context.clock_khz * 1000
    return device


def _write_metrics(launch: TimedLaunch) -> dict[str, int]:
    metrics = {"launch__shared_mem_per_block_dynamic": launch.dynamic_bytes}
    if launch.registers is not None:
        metrics["launch__registers_per_thread"] = launch.registers
    if launch.static_bytes is not None:
        metrics["launch__shared_mem_per_block_static"] = launch.static_bytes
    return metrics


def _write_stack(frames: tuple[HostFrame, ...]) -> dict[str, Any]:
    return {"call_stack": [_write_frame(frame) for frame in frames]} if frames else {}


def _write_frame(frame: HostFrame) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: value for name in ("function", "module", "file", "line") if (value := getattr(frame, name)) is not None
    }
    if frame.address is not None:
        found["address"] = f"{frame.address:#x}"
    return found
