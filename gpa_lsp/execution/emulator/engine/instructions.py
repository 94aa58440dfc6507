"""What numpy does of an instruction, :func:`bind_instruction`, beside what it is in the core."""

import numpy as np

from gpa_lsp.code.ptx.model import Address, Immediate, PtxInstruction, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.binder import Binder, flatten, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment, guarded_mask
from gpa_lsp.execution.emulator.engine.texture_steps import TEXTURES, bind_texture
from gpa_lsp.execution.emulator.engine.warp_group_steps import bind_warp_group, is_warp_group_product
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.find import find_meaning


def bind_instruction(binder: Binder) -> None:
    """Add the steps of the instruction a binder stands at, which ends no segment, and note the parts of parameters that it accesses.

    Raises:
        UnsupportedInstruction: they are not emulated.
    """
    instruction = binder.instruction
    if instruction.opcode == "wgmma":
        bind_warp_group(binder)
    elif instruction.opcode in TEXTURES:
        bind_texture(binder)
    elif instruction.opcode in ("ld", "ldu", "st"):
        _note_parameter(binder)
    else:
        meaning = find_meaning(instruction)
        if meaning is not None and meaning.divides:
            _bind_divisor(binder, meaning.sources[1])
    binder.finish()


def _bind_divisor(binder: Binder, kind: ScalarType) -> None:
    """Say that a divisor is 0, for which the core stops."""
    faults, static, guard = binder.machine.faults, binder.static, binder.guard
    source = binder.read(flatten(binder.instruction.sources)[1], kind)

    def step(fragment: Fragment) -> None:
        wrong = guarded_mask(fragment, guard) & (read_as(fragment, source, kind.natural_dtype) == 0)
        message = "the divisor is 0; the quotient is not defined"
        faults.add_lanes(FaultKind.DIVISION_BY_ZERO, message, fragment.warps, np.flatnonzero(wrong), instruction=static)

    binder.steps.append(step)


def _note_parameter(binder: Binder) -> None:
    """Note the parts of a parameter of a function, or of one that it hands over, that are loaded or stored."""
    instruction, operand = binder.instruction, binder.instruction.sources[0]
    if find_space(instruction.suffixes) is not Space.PARAM or not isinstance(operand, Address):
        return
    base, size = operand.base, instruction.types[-1].natural_dtype.itemsize
    if not isinstance(base, Symbol) or (binder.function.is_entry and binder.machine.is_kernel_parameter(base.name)):
        return
    is_store = instruction.opcode == "st"
    elements = flatten(instruction.sources[1:2] if is_store else instruction.destinations)
    note = binder.store_piece if is_store else binder.load_piece
    for place in range(len(elements) or 1):
        note(base.name, base.offset_bytes + operand.offset_bytes + place * size, size)


_SPACES = {
    "global": Space.GLOBAL,
    "shared": Space.SHARED,
    "local": Space.LOCAL,
    "const": Space.CONST,
    "param": Space.PARAM,
}


def find_space(suffixes: tuple[str, ...]) -> Space:
    """The state space an instruction names; GENERIC when it names none."""
    for suffix in suffixes:
        found = _SPACES.get(suffix.partition("::")[0])
        if found is not None:
            return found
    return Space.GENERIC


def is_by_steps(instruction: PtxInstruction) -> bool:
    """Whether numpy does all of an instruction."""
    return instruction.opcode in ("tex", "tld4", "wgmma")


def find_gate(binder: Binder) -> int | None:
    """The slot of the member mask of an instruction whose lanes wait for each other; None when they do not."""
    instruction = binder.instruction
    if "sync" not in instruction.suffixes or (instruction.opcode == "wgmma" and not is_warp_group_product(instruction)):
        return None
    meaning = find_meaning(instruction)
    if meaning is not None and meaning.members is not None:
        return binder.read(flatten(instruction.sources)[meaning.members], ScalarType.U32)
    return binder.read(Immediate(0xFFFFFFFF), ScalarType.U32)
