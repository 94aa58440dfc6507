"""Joined kernels written as text: ten lines of SASS, with control codes, places and samples, as a reader of a test sees them.

    kernel = write_kernel('''
        B-:R-:W2:-:S02  LDG.E R2, [R4.64]     # saxpy.cu:4 | selected=4
    loop:
        B2:R-:W-:-:S04  FFMA R2, R2, R3, R6   # saxpy.cu:5 | long_scoreboard=60/50 selected=4 | x=100
        B-:R-:W-:-:S05  EXIT
    ''')

The instruction part is the notation of :mod:`tests.binary.listing`. Behind ``#`` come, separated by ``|`` and each optional: the *place*
(``file:line``; several with `` < `` between them for an inline chain, innermost first; ``name@file:line`` names the function whose body
holds the line; ``-`` for no line), *samples* (``reason=all`` or ``reason=all/latency``; where only one number is given all of them are latency
samples, except for ``selected`` and ``not_selected``, which are never), and *counters* of the instruction (``x`` is executions; any other
name is a key of ``FunctionSamples.counters``). ``[name]`` on a line of its own starts the section of another function; a label that starts with
``$`` opens a local function.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.binary.model import Cubin, LineTable
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.foundation.locations import Frame, InlineChain
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.kernel.scatter import index_routines
from gpa_lsp.profile.model import Device, Metric, Module, Sampling, StallSamples
from tests.control_flow.assembly import assemble
from tests.rows.builders import make_cubin, make_launch
from tests.rows.sections import is_instruction

_SECTION = re.compile(r"\[([\w.$]+)\]")
_FRAME = re.compile(r"(?:(?P<function>[^@\s]+)@)?(?P<file>.+):(?P<line>\d+)")
_COUNT = re.compile(r"(?P<name>\w+)=(?P<all>\d+)(?:/(?P<latency>\d+))?")
_NEVER_LATENCY = ("selected", "not_selected")
_FIRST_ADDRESS = 0x10000
_SECTION_STRIDE = 0x1000000


def write_kernel(
    text: str,
    *,
    name: str = "kernel",
    compute_capability: tuple[int, int] = (8, 6),
    sm_count: int = 4,
    grid: tuple[int, int, int] = (64, 1, 1),
    block: tuple[int, int, int] = (128, 1, 1),
    metrics: Mapping[str, float | str] | None = None,
    sources: Mapping[str, str] | None = None,
    registers: int = 32,
    truncated: bool = False,
    duration_ns: float = 1e6,
    split: str = "known",
    launch: str = "known",
    dropped: int | None = None,
    build: str = "optimized",
) -> Kernel:
    """The kernel that a text describes, measured in one launch.

    Args:
        text: in the notation above; the first section is the kernel itself.
        name: of the kernel.
        compute_capability: whose architecture table it gets.
        sm_count: of its device.
        grid: blocks.
        block: threads.
        metrics: aggregates of the launch, e.g. ``gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed``.
        sources: path → text, as embedded in the profile.
        registers: per thread.
        truncated: the sampling buffer was full.
        duration_ns: of the launch.
        split: ``unknown`` where nobody tells latency samples from the others.
        launch: ``unknown`` where nobody knows grid and block.
        dropped: samples that were lost; None where nobody knows.
        build: ``debug`` where the code was compiled for a debugger, ``debug:NAME`` where one of its functions was.
    """
    sections = _split_sections(text, name)
    reasons = tuple(sorted({reason for lines in sections.values() for line in lines for reason in _read_samples(line)}))
    functions = tuple(
        _write_function(section, lines, reasons, registers, is_entry=section == name)
        for section, lines in sections.items()
    )
    if split == "unknown":
        functions = tuple(replace(function, latency_samples=None) for function in functions)
    device = Device(name="Test GPU", compute_capability=compute_capability, sm_count=sm_count, sm_clock_hz=1e9)
    given: dict[str, float | str] = {
        "gpu__time_duration.sum": duration_ns,
        "launch__registers_per_thread": registers,
        "launch__waves_per_multiprocessor": 1.0,
        **(metrics or {}),
    }
    is_seen = launch != "unknown"
    measured = make_launch(
        name,
        grid=grid if is_seen else None,
        block=block if is_seen else None,
        sampling=Sampling(dropped_samples=dropped),
        device=device,
        samples=_gather_samples(functions, reasons),
        metrics={key: Metric(name=key, value=value) for key, value in given.items()},
        samples_truncated=truncated,
    )
    return Kernel(
        mangled_name=name,
        name=name,
        profile_path=None,
        module=Module(module_id=1, image=None, compute_capability=compute_capability, sources=dict(sources or {})),
        cubin=_make_debug_cubin(build.partition(":")[2] or name) if build.startswith("debug") else None,
        device=device,
        architecture=find_architecture(compute_capability),
        launches=(measured,),
        reasons=reasons,
        functions=functions,
    )


def _make_debug_cubin(function: str) -> Cubin:
    return replace(make_cubin([]), debug_functions=frozenset({function}))


def _split_sections(text: str, name: str) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {name: []}
    current = name
    for line in text.splitlines():
        opened = _SECTION.fullmatch(line.strip())
        if opened:
            current = opened[1]
            sections[current] = []
        elif line.strip():
            sections[current].append(line)
    return sections


def _notes(line: str) -> list[str]:
    return [part.strip() for part in line.partition("#")[2].split("|")]


def _read_counts(line: str, *, of_counters: bool) -> dict[str, tuple[int, int | None]]:
    """Samples are the part with reasons; counters the part behind them. A note without a place may start with the samples."""
    notes = _notes(line)
    parts = [note for note in notes if "=" in note]
    if not parts:
        return {}
    if "=" in notes[0] and len(parts) > 1:
        raise ValueError(f"the first note of a line with counters is its place (or -): {line.strip()!r}")
    chosen = parts[1:] if of_counters else parts[:1]
    return {
        found["name"]: (int(found["all"]), None if found["latency"] is None else int(found["latency"]))
        for part in chosen
        for found in _COUNT.finditer(part)
    }


def _read_samples(line: str) -> dict[str, tuple[int, int]]:
    found = {}
    for reason, (every, given) in _read_counts(line, of_counters=False).items():
        if reason == "x":
            raise ValueError(f"x is a counter and stands behind the samples (or behind - for none): {line.strip()!r}")
        usual = 0 if reason in _NEVER_LATENCY else every
        found[reason] = (every, usual if given is None else given)
    return found


def _read_chain(line: str) -> InlineChain | None:
    place = _notes(line)[0]
    if not place or place == "-" or "=" in place:
        return None
    frames = []
    for part in place.split(" < "):
        found = _FRAME.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"no place: {part!r}")
        frames.append(Frame(file=found["file"], line=int(found["line"]), function=found["function"]))
    return tuple(frames)


def _write_function(
    name: str, lines: list[str], reasons: tuple[str, ...], registers: int, *, is_entry: bool
) -> FunctionSamples:
    function, instructions = assemble("\n".join(lines), name, registers=registers, is_entry=is_entry)
    rows = [line for line in lines if is_instruction(line)]
    count = len(rows)
    assert count == len(instructions)
    chains: dict[InlineChain, int] = {}
    chain_index = np.full(count, -1, dtype=np.int32)
    samples = np.zeros((2, count, len(reasons)), dtype=np.int64)
    executions = np.full(count, -1, dtype=np.int64)
    counters: dict[str, Any] = {}
    for row, line in enumerate(rows):
        chain = _read_chain(line)
        if chain is not None:
            chain_index[row] = chains.setdefault(chain, len(chains))
        for reason, pair in _read_samples(line).items():
            samples[:, row, reasons.index(reason)] = pair
        for key, (value, _) in _read_counts(line, of_counters=True).items():
            column = executions if key == "x" else counters.setdefault(key, np.full(count, -1, dtype=np.int64))
            column[row] = value
    table = None
    if chains:
        table = LineTable(row_offsets=instructions.pc_offsets, row_chain=chain_index.copy(), chains=tuple(chains))
    return FunctionSamples(
        name=name,
        function=function,
        instructions=instructions,
        graph=build_flow_graph(function, instructions, table),
        control=instructions.control,
        lines=table,
        chain_index=chain_index,
        routine_index=index_routines(function, instructions.pc_offsets),
        pc_offsets=instructions.pc_offsets,
        all_samples=samples[0],
        latency_samples=samples[1],
        executions=executions,
        counters=counters,
    )


def _gather_samples(functions: tuple[FunctionSamples, ...], reasons: tuple[str, ...]) -> StallSamples:
    addresses = np.concatenate(
        [function.pc_offsets + _FIRST_ADDRESS + number * _SECTION_STRIDE for number, function in enumerate(functions)]
    ).astype(np.uint64)
    latency: list[Any] = [function.latency_samples for function in functions]
    return StallSamples(
        addresses=addresses,
        reasons=reasons,
        all_samples=np.concatenate([function.all_samples for function in functions]),
        latency_samples=None if any(one is None for one in latency) else np.concatenate(latency),
    )
