"""``gpa-lsp roofline calibrate``: measure the ceilings of a GPU of this computer."""

import argparse
from typing import TYPE_CHECKING

import msgspec.structs

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.options import add_output_argument, declare
from gpa_lsp.cli.outputs import refuse_standard_output
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.numbers import format_bytes, format_count_of

if TYPE_CHECKING:
    from gpa_lsp.execution.calibration.calibrate import Calibration
    from gpa_lsp.gpu.device.model import Machine


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, "--device N  which GPU, by the driver's number (default: %(default)s)", device=(int, 0))
    what = "write the ceilings to FILE (default: the user's data folder, where reports of this GPU find them)"
    add_output_argument(parser, what)
    declare(
        parser,
        """
        --quick    shorter and fewer runs: a first impression
        --plan SM  measure nothing: compile the benchmarks for a compute capability and list them; needs no GPU
        """,
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.plan is not None:
        return _show_plan(arguments.plan, terminal)
    from gpa_lsp.document.calibration_view import build_calibration
    from gpa_lsp.execution.calibration.calibrate import calibrate_attached  # loads only when something is measured
    from gpa_lsp.gpu.device.roofs_file import find_roofs_folder, name_roofs_file, write_roofs

    refuse_standard_output(arguments.output, "a table of ceilings")
    found = calibrate_attached(arguments.device, is_quick=arguments.quick, tell=terminal.complain)
    target = arguments.output or find_roofs_folder() / name_roofs_file(found.facts.name)
    write_roofs(found.roofs, target)
    terminal.write_blocks([build_calibration(found, _find_theory(found, arguments.device))])
    terminal.complain(f"written to {target}")
    return 0


def _find_theory(found: "Calibration", device: int) -> "Machine | None":
    """Theoretical ceilings at the measured clock; None where they cannot be looked up."""

    from gpa_lsp.gpu.arch.lookup import find_architecture
    from gpa_lsp.gpu.device.find import find_machine, read_attached_device

    try:
        attached = read_attached_device(device)
        architecture = find_architecture(found.facts.compute_capability)
    except GpaError:
        return None
    if found.roofs.sm_hz is not None:
        clocks = {"device__attribute_clock_rate": found.roofs.sm_hz / 1e3}
        attributes = {**attached.attributes, **clocks}
        attached = msgspec.structs.replace(attached, sm_clock_hz=found.roofs.sm_hz, attributes=attributes)
    return find_machine(attached, architecture, None)


def _show_plan(capability: tuple[int, int], terminal: Terminal) -> int:
    from gpa_lsp.execution.calibration.calibrate import plan_calibration
    from gpa_lsp.gpu.device.model import MemoryLevel

    plan = plan_calibration(capability)
    rows = [
        (
            one.kind.value,
            one.instruction,
            f"{format_count_of(one.ops_per_instruction, 'operation')} per warp instruction",
        )
        for one in plan.arithmetic
    ]
    names = {MemoryLevel.SHARED: "shared memory", MemoryLevel.L1: "L1", MemoryLevel.L2: "L2 and DRAM"}
    rows += [
        (names[one.level], one.instruction, f"{format_bytes(one.bytes_per_thread_and_read)} per thread")
        for one in plan.memory
    ]
    text = [f"{name}: {instruction}, {work}\n" for name, instruction, work in rows]
    text += [f"{skip.what}: not measured: {skip.why}\n" for skip in plan.skipped]
    text.append(
        f"{format_count_of(len(rows), 'benchmark')} compiled by NVRTC {plan.compiler_version}; nothing was run\n"
    )
    terminal.print_safely(lambda: terminal.write_text("".join(text)))
    return 0


COMMAND = Command(
    summary="measure the ceilings of a GPU of this computer",
    description="Measure peaks by type of operation and bandwidths by level of the memory with generated kernels, and keep them as JSON. "
    "Reports of the same GPU then use the measured ceilings. Needs an NVIDIA GPU, its driver and gpa-lsp[cuda].",
    purpose=Purpose.MEASURE,
    examples=(
        ("roofline calibrate", "measure the ceilings of the first GPU"),
        ("roofline calibrate --plan sm_90", "list the benchmarks for an architecture; needs no GPU"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
