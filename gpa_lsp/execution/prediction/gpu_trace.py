"""A launch on a GPU of this computer, traced by instrumented PTX: :func:`trace_on_gpu`.

The trace has the format of the emulator's, so that all readers of one read the other.
"""

import re
from collections.abc import Iterable
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.execution.compiler.ptx_files import assemble_ptx
from gpa_lsp.execution.emulator.emulate import check_launch, find_static_shared_bytes
from gpa_lsp.execution.emulator.model import MOST_BLOCKS, Buffer, Sampling, SamplingKind, TraceSink, choose_blocks
from gpa_lsp.execution.instrumentation.code import (
    MOST_WORDS,
    PLACES,
    STATE,
    STATE_WORDS,
    VARIABLES,
    WORD_BYTES,
    InstrumentedKernel,
    StateWord,
)
from gpa_lsp.execution.instrumentation.decode import TracedLaunch, Written, decode_records
from gpa_lsp.execution.instrumentation.instrument import instrument
from gpa_lsp.execution.launches.build import build_inputs
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.model import LaunchInputs
from gpa_lsp.execution.local_gpu.local_gpu import LocalGpu, PlacedLaunch
from gpa_lsp.execution.prediction.input_kinds import InputKind, find_kind
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.launched_code import CodeChoice, KernelLaunch, explain_no_launch, read_launched
from gpa_lsp.execution.prediction.static_source import Capability
from gpa_lsp.foundation.errors import InputError, Problem, ToolError, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.names import demangle, shorten_name

NEEDED_FOR = "tracing on a GPU"
_SPARED_SHARE = 0.9  # Of the free memory of a GPU that records may take
_LEAST_RECORD_BYTES = 1 << 16
_MOST_WAYS_BYTES = 1 << 30
_TARGET = re.compile(r"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_BITS = 32


class GpuTraceSettings(Struct, frozen=True, kw_only=True):
    """Blocks to trace, and limits."""

    blocks: tuple[int, ...] = ()  # traced ones, by linear index; empty for all. All are executed.
    entries: bool = False  # entries into basic blocks are recorded, too
    record_bytes: int = 1 << 30  # room for records on the GPU
    memory_bytes: int = 8 << 30  # of all arrays
    seconds: float = 60.0  # that the kernel may take


class GpuTrace(ColumnRecord, frozen=True, kw_only=True):
    """Outcome of a traced launch."""

    mangled_name: str  # of the kernel
    launch: LaunchDescription  # that was executed
    gpu: str  # name of the product
    traced_blocks: int  # of the grid
    records: int  # that were kept
    dropped: int  # records there was no room for
    record_bytes: int  # the room there was
    seconds: float  # that the instrumented kernel took
    unrecorded: tuple[str, ...]  # instructions that access memory and are not recorded
    arrays: dict[str, npt.NDArray[np.generic]]  # what they held afterwards, by name

    @property
    def name(self) -> str:
        """Name of the kernel for people, short enough for a line."""
        return shorten_name(demangle(self.mangled_name))


def trace_on_gpu(
    path: Path,
    gpu: LocalGpu,
    *,
    kernel: str | None,
    launches: LaunchChoice,
    compute_capability: Capability | None = None,
    settings: GpuTraceSettings,
    sinks: Iterable[TraceSink],
) -> GpuTrace:
    """Compile a source for a GPU, or take the PTX out of what was built, and trace one described launch there.

    Raises:
        InputError: the source does not compile; no launch, or more than one, is meant; it cannot be launched.
        MissingToolError: no compiler is installed.
        ToolError: the driver refuses, or the kernel does not end.
    """
    is_source = find_kind(path) is InputKind.SOURCE
    problems: list[Problem] = []
    choice = CodeChoice(
        kernel=kernel,
        launches=launches,
        compute_capability=compute_capability or (gpu.facts.compute_capability if is_source else None),
        assembles=False,
    )
    code = read_launched(path, choice, problems)
    if not code.launches:
        raise explain_no_launch(path, code, problems, kernel)
    (one,) = code.launches
    return _trace(one, gpu, settings, sinks)


def _trace(one: KernelLaunch, gpu: LocalGpu, settings: GpuTraceSettings, sinks: Iterable[TraceSink]) -> GpuTrace:
    module, function, launch = one.code.module, one.function, one.launch
    problem = check_launch(function, launch, find_static_shared_bytes(module, function))
    if problem is not None:
        raise InputError(problem, path=launch.path, remedy="correct the launch")
    if prod(launch.grid) > MOST_BLOCKS:
        raise UnsupportedInputError(f"a grid of {format_count(prod(launch.grid))} blocks", path=launch.path)
    inputs = build_inputs(module, function, launch, memory_limit_bytes=settings.memory_bytes)
    written = instrument(module, function.name, entries=settings.entries)
    loaded = gpu.load(_assemble(written.text, gpu))
    placed = PlacedLaunch(gpu, loaded, function, launch, inputs)
    traced = _list_traced(launch, settings.blocks)
    recording = _Recording(gpu, loaded, written)
    recording.make_room(launch, traced, settings)
    placed.start()
    seconds = gpu.wait(settings.seconds)
    words = recording.read()
    buffers = _list_buffers(gpu, loaded, module, inputs, placed)
    facts = TracedLaunch(
        grid=launch.grid,
        block_threads=launch.block,
        buffers=buffers,
        traced_blocks=traced,
        origin=f"recorded on the {gpu.facts.name}",
    )
    records = 0
    held = tuple(sinks)
    for piece in decode_records(written, words, facts):
        records += len(piece.accesses) + len(piece.branches) + len(piece.entries)
        for sink in held:
            sink.add(piece)
    return GpuTrace(
        mangled_name=function.name,
        launch=launch,
        gpu=gpu.facts.name,
        traced_blocks=len(traced),
        records=records,
        dropped=words.dropped,
        record_bytes=recording.capacity_words * WORD_BYTES,
        seconds=seconds,
        unrecorded=written.unrecorded,
        arrays=placed.read_arrays(),
    )


def _assemble(text: str, gpu: LocalGpu) -> bytes:
    """A cubin where ptxas is at hand, which newer than the driver may be; else the PTX, which the driver assembles."""
    major, minor = gpu.facts.compute_capability
    found = _TARGET.search(text)
    own, suffix = (int(found[1]), found[2]) if found else (0, "")
    image, _ = assemble_ptx(text, f"sm_{major}{minor}{suffix if own == major * 10 + minor else ''}")
    return image if image is not None else text.encode()


def _list_traced(launch: LaunchDescription, blocks: tuple[int, ...]) -> npt.NDArray[np.uint32]:
    kind = SamplingKind.CHOSEN if blocks else SamplingKind.ALL
    return np.asarray(choose_blocks(prod(launch.grid), Sampling(kind=kind, blocks=blocks)), np.uint32)


class _Recording:
    """Room for records on the GPU, and the words of state that tell the kernel of it."""

    def __init__(self, gpu: LocalGpu, loaded: object, written: InstrumentedKernel) -> None:
        self._gpu = gpu
        self._written = written
        self._state = gpu.find_variable(loaded, STATE)[0]
        self._places = gpu.find_variable(loaded, PLACES)
        self._rows = 0
        self.capacity_words = 0

    def make_room(self, launch: LaunchDescription, traced: npt.NDArray[np.uint32], settings: GpuTraceSettings) -> None:
        """Take the memory, and tell the kernel of it."""
        gpu = self._gpu
        state = np.zeros(STATE_WORDS, np.uint64)
        total = prod(launch.grid)
        bits = np.ones(1, np.uint32)
        if len(traced) < total:
            size = 1 << max(total - 1, 1).bit_length()
            state[StateWord.BLOCK_MASK] = size - 1
            bits = np.zeros(max(size // _BITS, 1), np.uint32)
            np.bitwise_or.at(bits, traced // _BITS, np.uint32(1) << (traced % np.uint32(_BITS)))
        state[StateWord.BLOCKS] = gpu.allocate(bits.nbytes)
        gpu.write(int(state[StateWord.BLOCKS]), bits)
        if self._written.has_calls:
            ways_bytes = 4 * total * prod(launch.block)
            if ways_bytes > _MOST_WAYS_BYTES:
                message = f"{format_count(total)} blocks of a kernel that calls functions are too many to be traced"
                raise UnsupportedInputError(message, path=launch.path, remedy="launch fewer blocks")
            state[StateWord.PATHS] = gpu.allocate(ways_bytes)
        room = max(_LEAST_RECORD_BYTES, min(settings.record_bytes, int(gpu.read_free_bytes() * _SPARED_SHARE)))
        self.capacity_words = min(room // WORD_BYTES, MOST_WORDS)
        state[StateWord.ROWS] = gpu.allocate(self.capacity_words * WORD_BYTES)
        state[StateWord.CAPACITY] = self.capacity_words
        self._rows = int(state[StateWord.ROWS])
        gpu.write(self._state, state)

    def read(self) -> Written:
        """Read the records that the kernel wrote."""
        state = self._gpu.read(self._state, STATE_WORDS * WORD_BYTES).view(np.uint64)
        reserved = int(state[StateWord.NEXT])
        kept = min(reserved, self.capacity_words)
        return Written(
            words=self._gpu.read(self._rows, kept * WORD_BYTES).view(np.uint64),
            reserved_words=reserved,
            dropped=int(state[StateWord.DROPPED]),
            places=self._gpu.read(self._places[0], self._places[1]).view(np.uint64)[: len(self._written.places)],
        )


def _list_buffers(
    gpu: LocalGpu, loaded: object, module: PtxModule, inputs: LaunchInputs, placed: PlacedLaunch
) -> tuple[Buffer, ...]:
    """Arrays and variables of the launch, where they lie on the GPU; what the driver does not name is left out."""
    found = [
        Buffer(
            name=one.name,
            space=Space.GLOBAL,
            base=address,
            size_bytes=one.data.nbytes,
            element_bytes=one.element.bytes,
            argument=one.argument,
        )
        for address, one in zip(placed.addresses, inputs.buffers, strict=True)
    ]
    for name, variable in module.variables.items():
        if variable.space not in (Space.GLOBAL, Space.CONST) or variable.is_texture or name in VARIABLES:
            continue
        if name.startswith(("$", "__unnamed")):
            continue
        try:
            address, size = gpu.find_variable(loaded, name)
        except ToolError:
            continue
        found.append(
            Buffer(
                name=name,
                space=variable.space,
                base=address,
                size_bytes=size,
                element_bytes=variable.type.bytes,
                argument=None,
            )
        )
    return tuple(sorted(found, key=lambda one: one.base))
