"""Whole programs of ours, each of which checks its own results; their predictions, and their launches as they are read from host code.

Each program runs once, recorded and watched."""

import struct
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.sources.host_launches import find_host_launches
from gpa_lsp.code.sources.host_values import HostArgument, HostLaunch
from gpa_lsp.execution.emulator.resident import ResidentMemory
from gpa_lsp.execution.programs.examine import examine_recorded
from gpa_lsp.execution.programs.messages import LaunchRequest
from gpa_lsp.execution.programs.model import ProgramRun
from gpa_lsp.execution.programs.recording import Recorder
from gpa_lsp.execution.programs.session import KernelTally
from gpa_lsp.foundation.processes.watched_command import Ending
from tests.programs.built import MACHINE, SOURCES, build, run
from tests.programs.test_predicted_programs import SETTINGS

PROGRAMS = sorted(SOURCES.glob("*.cu"))
_NEWER = ("-cudart", "shared", "-gencode", "arch=compute_90,code=compute_90")
_FORMATS = {"f32": "<f", "f64": "<d", "s32": "<i", "s64": "<q"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A launch of a program that ran: of each argument its number, or the bytes of the allocation it points to."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[tuple[object, int | None], ...]


def note(tally: KernelTally, request: LaunchRequest, memory: ResidentMemory) -> Ran:
    arguments: list[tuple[object, int | None]] = []
    for one in tally.facts.kernel.parameters:
        content = request.parameters[one.offset_bytes :][: one.size_bytes]
        number = int.from_bytes(content, "little", signed=True)
        region = memory.find(number) if one.size_bytes == 8 else None
        kind = _FORMATS.get(one.type.value)
        value = struct.unpack(kind, content)[0] if kind and struct.calcsize(kind) == len(content) else number
        arguments.append((value, None if region is None else region.size_bytes))
    return Ran(grid=request.grid, block=request.block, shared_bytes=request.shared_bytes, arguments=tuple(arguments))


def agrees(read: HostLaunch, ran: Ran) -> bool:
    """Whether nothing that was read differs from what ran."""
    if len(read.arguments) != len(ran.arguments):
        return False
    shapes = ((read.grid, ran.grid), (read.block, ran.block), (read.shared_bytes, ran.shared_bytes))
    return all(said in (None, done) for said, done in shapes) and all(
        (said.size_bytes in (None, size) if said.is_array else said.value is None or said.value == pytest.approx(value))
        and all(holds_member(offset, one, value) for offset, one in said.members)
        for said, (value, size) in zip(read.arguments, ran.arguments, strict=True)
    )


def holds_member(offset: int, said: HostArgument, value: object) -> bool:
    """Whether a whole number that was read of a structure's member stands there in what was passed."""
    if said.is_array or not isinstance(said.value, int) or not isinstance(value, int):
        return True
    return said.value in {(value >> 8 * offset) & ((1 << bits) - 1) for bits in (8, 16, 32, 64)}


def knows_all(read: HostLaunch) -> bool:
    numbers = all(one.size_bytes is not None if one.is_array else one.value is not None for one in read.arguments)
    return read.grid is not None and read.block is not None and numbers


Watched = tuple[ProgramRun, str, dict[str, list[Ran]]]
"""A run, what it printed, and its launches by bare name of the kernel."""


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Watched]:
    """Runs a program, once."""

    @cache
    def run_watched(source: Path) -> Watched:
        folder, original = tmp_path_factory.mktemp(source.stem), Recorder.watch
        launches: dict[str, list[Ran]] = defaultdict(list)

        def watch(
            recorder: Recorder, tally: KernelTally, request: LaunchRequest, memory: ResidentMemory
        ) -> Callable[[int], None] | None:
            launches[find_bare_name(tally.facts.kernel.name)].append(note(tally, request, memory))
            return original(recorder, tally, request, memory)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Recorder, "watch", watch)
            newer = _NEWER if source.stem == "clusters" else ()
            program, machine = build(source, folder, *newer), "H100 PCIe" if newer else MACHINE
            return *run(program, machine=machine, records=folder / "records"), launches

    return run_watched


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_computes_what_it_should(source: Path, watch: Callable[[Path], Watched]) -> None:
    found, printed, _ = watch(source)
    assert f"{source.stem}: right" in printed
    assert (found.end.ending, found.end.status) == (Ending.ENDED, 0)
    assert found.kernels and all(one.emulated == one.launches for one in found.kernels)
    assert found.has_faults == (source.stem == "out_of_bounds")


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_no_recorded_launch_is_predicted_against_itself(source: Path, watch: Callable[[Path], Watched]) -> None:
    """Predicted traffic agrees with itself and with the counts of the same run."""
    predicted = [one.prediction for one in examine_recorded(watch(source)[0], SETTINGS) if one.prediction is not None]
    assert predicted
    assert {one.name: one.contradictions for one in predicted if one.contradictions} == {}


def test_nothing_that_is_read_differs_from_what_ran(
    watch: Callable[[Path], Watched], record_property: Callable[[str, object], None]
) -> None:
    kernels = derived = 0
    wrong: list[str] = []
    for source in PROGRAMS:
        said: dict[str, list[HostLaunch]] = defaultdict(list)
        for one in find_host_launches(source.name, source.read_text()):
            said[one.kernel].append(one)
        for name, ran in watch(source)[2].items():
            kernels += 1
            derived += bool(said[name]) and all(knows_all(one) for one in said[name])
            wrong += [f"{source.name}: {one}" for one in said[name] if not any(agrees(one, real) for real in ran)]
    record_property("kernels_with_everything_derived", f"{derived} of {kernels}")
    print(f"everything is derived of {derived} of {kernels} kernels ({derived / kernels:.0%})")
    assert wrong == [] and derived >= kernels * 9 // 20
