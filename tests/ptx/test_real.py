"""PTX that NVIDIA's compilers wrote: nothing of an instruction is lost, lines are those of the cubins."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import read_ptx_text
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.static_instructions import AccessKind, list_static_instructions
from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerFlags
from gpa_lsp.foundation.errors import MissingToolError
from tests.conftest import ROOT
from tests.ptx.notation import normalise, write_instruction

CUBINS = sorted((ROOT / "fixtures" / "cubins").rglob("*.cubin"))
_UNLIKE = ("bra", "brx", "call")


@cache
def modules() -> tuple[PtxModule, ...]:
    return tuple(_read_modules())


def _read_modules() -> Iterator[PtxModule]:
    for path in CUBINS:
        text = "\n".join(read_ptx_text(read_cubin(path.read_bytes(), path=path)))
        if "huge_body_original" not in path.name or "sm_90" in path.parts:
            yield parse_ptx(text, name=path.name)


def test_every_operand_can_be_written_out_as_it_was_read() -> None:
    count = 0
    for module in modules():
        for function in module.functions.values():
            for instruction in function.instructions:
                if instruction.opcode not in _UNLIKE and "_," not in instruction.text:
                    assert write_instruction(function, instruction) == normalise(instruction.text), module.name
                    count += 1
    assert count > 15_000


def test_no_kernel_reads_a_register_before_it_is_written() -> None:
    """Results are not taken for operands, nor operands for results."""
    count = 0
    for module in modules():
        for function in module.functions.values():
            if function.instructions:
                assert find_blocks(function).live_in[0] == (), (module.name, function.name)
                count += 1
    assert count > 200


def test_loads_and_stores_are_found_with_their_sizes() -> None:
    kinds = set()
    for module in modules():
        for kernel in module.entries:
            static = list_static_instructions(module, kernel.name)
            assert [one.index for one in static] == list(range(len(static)))
            assert static[0].function == kernel.name
            for one in static:
                assert (one.kind is None) == (one.bytes_per_lane == 0), one.text
                kinds.add(one.kind)
    assert kinds >= {AccessKind.LOAD, AccessKind.STORE, None}


@cache
def compile_fixture(path: Path) -> CompiledUnit:
    try:
        return compile_source(path, compute_capability=(8, 0), flags=CompilerFlags(directory=path.parent))
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "name",
    [
        "inline_chain/original",
        "device_calls/improved",
        "async_copy/improved",
        "indirect_call/original",
        "recursion/original",
    ],
)
def test_the_lines_of_ptx_and_cubin_are_the_same(name: str) -> None:
    """Every chain that ptxas keeps was read from the PTX, with the same files and mangled functions."""
    unit = compile_fixture(ROOT / "fixtures" / "kernels" / f"{name}.cu")
    assert unit.ptx is not None
    assert unit.cubin is not None
    module = parse_ptx(unit.ptx, name=name)
    read = {one.chain for function in module.functions.values() for one in function.instructions}
    for kernel in module.entries:
        kept = read_line_table(read_cubin(unit.cubin), kernel.name).chains
        assert kept
        assert set(kept) <= read


def test_a_function_begins_at_its_own_line() -> None:
    unit = compile_fixture(ROOT / "fixtures" / "kernels" / "inline_chain" / "original.cu")
    assert unit.ptx is not None
    (kernel,) = parse_ptx(unit.ptx, name="original.cu").entries
    text = (ROOT / "fixtures" / "kernels" / "inline_chain" / "original.cu").read_text().splitlines()
    assert "__global__" in text[kernel.line[0].line - 1]
