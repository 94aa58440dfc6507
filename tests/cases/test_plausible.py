"""Kernels of cases about advice are what a compiler could have written: results are waited for, by scoreboard or by stall counts."""

from collections.abc import Iterator

import pytest

from gpa_lsp.code.binary.model import NO_BARRIER, Instructions, ResourceKind, name_resource
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.kernel.model import FunctionSamples
from tests.cases.literate import Case, list_cases
from tests.rows.written import write_kernel

CASES = [case for case in list_cases() if any(fence.kind == "advice" for fence in case.fences)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}:{case.fences[0].line}")
def test_the_control_codes_keep_the_order_of_the_registers(case: Case) -> None:
    architecture = case.kernel.architecture
    assert architecture is not None
    assert not [hazard for function in case.kernel.functions for hazard in list_hazards(function, architecture)]


def list_hazards(function: FunctionSamples, architecture: Architecture) -> Iterator[str]:
    """Reads of results that may not be there yet, and writes of registers that may not have been read, within basic blocks."""
    instructions, graph = function.instructions, function.graph
    assert instructions is not None
    for first, last in zip(graph.first_instruction.tolist(), graph.last_instruction.tolist(), strict=True):
        written: dict[int, int] = {}
        reading: dict[int, int] = {}
        for row in range(first, last + 1):
            for resource in instructions.reads.of(row):
                if resource in written:
                    yield from _check_read(instructions, architecture, written[resource], row, resource)
            for resource in instructions.writes.of(row):
                if resource in reading and not _waits(instructions, reading[resource], row):
                    yield f"{_name(instructions, row)} overwrites what {_name(instructions, reading[resource])} reads"
                written[resource] = row
            if architecture.find_producer(_mnemonic(instructions, row)) is not None:
                reading |= dict.fromkeys(instructions.reads.of(row), row)


def _check_read(
    instructions: Instructions, architecture: Architecture, writer: int, reader: int, resource: int
) -> Iterator[str]:
    """Whether a result of ``writer`` is there when ``reader`` reads it."""
    what = f"{_name(instructions, reader)} reads {name_resource(resource)} of {_name(instructions, writer)}"
    if int(instructions.control.write_barrier[writer]) != NO_BARRIER:
        if not _waits(instructions, writer, reader):
            yield f"{what} without waiting"
        return
    names = _mnemonic(instructions, writer), _mnemonic(instructions, reader)
    if architecture.find_producer(names[0]) is not None:
        yield f"{what}, which sets no scoreboard"
    if resource >> 8 == ResourceKind.PREDICATE:
        bounds = architecture.find_predicate_latency(*names, is_guard=resource == instructions.guard[reader])
    else:
        bounds = architecture.find_register_latency(*names)
    cycles = int(instructions.control.stall_cycles[writer:reader].sum())
    if bounds is not None and cycles < bounds.low_cycles:
        yield f"{what} after {cycles} cycles, of which it needs {bounds.low_cycles}"


def _waits(instructions: Instructions, producer: int, reader: int) -> bool:
    """Whether something up to ``reader`` waits for a scoreboard of ``producer``."""
    control = instructions.control
    own = {int(control.write_barrier[producer]), int(control.read_barrier[producer])} - {NO_BARRIER}
    masks = control.wait_mask[producer + 1 : reader + 1].tolist()
    return any(mask >> barrier & 1 for mask in masks for barrier in own)


def _mnemonic(instructions: Instructions, row: int) -> str:
    return instructions.mnemonics[int(instructions.mnemonic_index[row])]


def _name(instructions: Instructions, row: int) -> str:
    return f"{row} {_mnemonic(instructions, row)}"


@pytest.mark.parametrize(
    ("text", "hazard"),
    [
        ("B-:R-:W0:-:S02  LDS R2, [R4]\nB0:R-:W-:-:S04  FADD R3, R2, R2", None),
        ("B-:R-:W0:-:S02  LDS R2, [R4]\nB1:R-:W-:-:S04  FADD R3, R2, R2", "1 FADD reads R2 of 0 LDS without waiting"),
        ("B-:R-:W-:-:S02  LDS R2, [R4]\nFADD R3, R2, R2", "1 FADD reads R2 of 0 LDS, which sets no scoreboard"),
        ("B-:R-:W-:-:S03  FADD R2, R4, R4\nFADD R3, R2, R2", "1 FADD reads R2 of 0 FADD after 3 cycles, of which it needs 4"),
        ("B-:R-:W-:-:S12  ISETP.EQ.AND P0, PT, R4, R5, PT\n@P0 EXIT", "1 EXIT reads P0 of 0 ISETP.EQ.AND after 12 cycles, of which it needs 13"),
        ("B-:R-:W0:-:S02  LDS R2, [R4]\nIADD3 R4, R4, 0x4, RZ", "1 IADD3 overwrites what 0 LDS reads"),
        ("B-:R1:W0:-:S02  LDS R2, [R4]\nB1:R-:W-:-:S04  IADD3 R4, R4, 0x4, RZ", None),
    ],
)  # fmt: skip
def test_what_no_compiler_would_write_is_found(text: str, hazard: str | None) -> None:
    (function,) = write_kernel(f"{text}\nEXIT  # selected=1").functions
    assert list(list_hazards(function, find_architecture((8, 6)))) == ([hazard] if hazard else [])
