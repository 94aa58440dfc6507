"""``gpa-lsp calibrate``: measure the ceilings of a GPU of this computer."""

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.basis.errors import GpaError, InputError
from gpa_lsp.basis.numbers import format_bytes, format_count_of
from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpa_lsp.device.calibration.calibrate import Calibration
    from gpa_lsp.device.model import Machine

_QUICK_SECONDS, _QUICK_REPETITIONS = 0.005, 3
_REMEDY = "name one such as 8.6 or 9.0"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="N", type=int, default=0, help="which GPU, by the driver's number (default: 0)"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="write the ceilings to FILE (default: the user's data folder, where reports of this GPU find them)",
    )
    parser.add_argument("--quick", action="store_true", help="shorter and fewer runs: a first impression")
    parser.add_argument(
        "--plan",
        metavar="CC",
        help="measure nothing: compile the benchmarks for a compute capability and list them; needs no GPU",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.plan is not None:
        return _show_plan(_parse_capability(arguments.plan), terminal)
    from gpa_lsp.cli.calibration_text import render_calibration
    from gpa_lsp.device.calibration.calibrate import calibrate  # these load only when something is measured
    from gpa_lsp.device.calibration.compile import compile_source
    from gpa_lsp.device.calibration.gpu import CudaGpu
    from gpa_lsp.device.calibration.measure import Patience
    from gpa_lsp.device.roofs_file import find_roofs_folder, name_roofs_file, write_roofs

    patience = Patience(least_seconds=_QUICK_SECONDS, repetitions=_QUICK_REPETITIONS) if arguments.quick else Patience()
    with CudaGpu(arguments.device) as gpu:
        compile_for = partial(compile_source, compute_capability=gpu.facts.compute_capability)
        found = calibrate(gpu, compile_for, patience=patience, tell=terminal.complain)
    target = arguments.output or find_roofs_folder() / name_roofs_file(found.facts.name)
    _make_folder(target)
    write_roofs(found.roofs, target)
    lines = render_calibration(found, _find_theory(found, arguments.device), terminal.width)
    terminal.print_safely(lambda: terminal.write_lines(lines))
    terminal.complain(f"written to {target}")
    return 0


def _make_folder(target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder cannot be created: {error.strerror or error}"
        raise InputError(message, path=target.parent, remedy="choose another place with -o") from error


def _find_theory(found: "Calibration", device: int) -> "Machine | None":
    """The theoretical ceilings at the clock that was measured; None where they cannot be looked up."""
    import dataclasses

    from gpa_lsp.arch.lookup import find_architecture
    from gpa_lsp.device.attached import read_attached_device
    from gpa_lsp.device.find import find_machine

    try:
        attached = read_attached_device(device)
        architecture = find_architecture(found.facts.compute_capability)
    except GpaError:
        return None
    if found.roofs.sm_hz is not None:
        clocks = {"device__attribute_clock_rate": found.roofs.sm_hz / 1e3}
        attributes = {**attached.attributes, **clocks}
        attached = dataclasses.replace(attached, sm_clock_hz=found.roofs.sm_hz, attributes=attributes)
    return find_machine(attached, architecture, None)


def _parse_capability(text: str) -> tuple[int, int]:
    major, dot, minor = text.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal() and len(text) < 8):
        raise InputError(f"{text[:20]!r} is not a compute capability", remedy=_REMEDY)
    return int(major), int(minor)


def _show_plan(capability: tuple[int, int], terminal: Terminal) -> int:
    from gpa_lsp.device.calibration.arithmetic_sources import list_arithmetic_benchmarks
    from gpa_lsp.device.calibration.compile import compile_source, find_compiler_version
    from gpa_lsp.device.calibration.memory_sources import (
        make_common_benchmark,
        make_l1_benchmark,
        make_shared_benchmark,
    )
    from gpa_lsp.device.model import MemoryLevel

    version = find_compiler_version()
    arithmetic, skipped = list_arithmetic_benchmarks(capability)
    memory = (make_shared_benchmark(), make_l1_benchmark(), make_common_benchmark(MemoryLevel.L2))
    rows = [
        (
            one.kind.value,
            one.instruction,
            f"{format_count_of(one.ops_per_instruction, 'operation')} per warp instruction",
            one.source,
        )
        for one in arithmetic
    ]
    names = {MemoryLevel.SHARED: "shared memory", MemoryLevel.L1: "L1", MemoryLevel.L2: "L2 and DRAM"}
    rows += [
        (names[one.level], one.instruction, f"{format_bytes(one.bytes_per_thread_and_read)} per thread", one.source)
        for one in memory
    ]
    for _, _, _, source in rows:
        compile_source(source, capability)
    text = [f"{name}: {instruction}, {work}\n" for name, instruction, work, _ in rows]
    text += [f"{skip.what}: not measured: {skip.why}\n" for skip in skipped]
    text.append(f"{format_count_of(len(rows), 'benchmark')} compiled by NVRTC {version}; nothing was run\n")
    terminal.print_safely(lambda: terminal.write_text("".join(text)))
    return 0


COMMAND = Command(
    summary="measure the ceilings of a GPU of this computer",
    description="Measure peaks by type of operation and bandwidths by level of the memory with generated kernels, and keep them as JSON. "
    "Reports of the same GPU then use the measured ceilings. Needs an NVIDIA GPU, its driver and gpa-lsp[cuda].",
    add_arguments=_add_arguments,
    run=_run,
)
