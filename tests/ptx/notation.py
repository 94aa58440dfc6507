"""Short PTX for tests, and operands written out again."""

import re
import struct

from gpa_lsp.code.ptx.model import (
    Address,
    Immediate,
    Operand,
    Pair,
    PtxFunction,
    PtxInstruction,
    PtxModule,
    Register,
    SpecialRegister,
    Symbol,
    TextureAddress,
    Vector,
)
from gpa_lsp.code.ptx.parse import parse_ptx

HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"


def parse(text: str) -> PtxModule:
    """A module from what stands behind its first three lines."""
    return parse_ptx(HEAD + text, name="test.ptx")


def parse_body(body: str, before: str = "") -> PtxFunction:
    """A kernel ``k`` with a few registers declared."""
    registers = (
        ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<99>; .reg .f32 %f<99>; .reg .b64 %rd<99>; .reg .f64 %fd<9>;"
    )
    return parse(
        f"{before}\n.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)\n{{ {registers}\n{body}\n}}"
    ).functions["k"]


def parse_one(text: str, before: str = "") -> tuple[PtxFunction, PtxInstruction]:
    """One instruction and the function it stands in."""
    function = parse_body(text + " ret;", before)
    return function, function.instructions[0]


def write_operand(function: PtxFunction, operand: "Operand | None") -> str:  # noqa: PLR0911 - one for each kind
    """The operand in PTX's own notation."""
    if operand is None:
        return "_"
    if isinstance(operand, Register):
        name = function.register_names[operand.slot]
        sign = "" if not operand.is_negated else "!" if function.registers[operand.slot].value == "pred" else "-"
        return sign + name + (f".{operand.selector}" if operand.selector else "")
    if isinstance(operand, Immediate):
        return write_number(operand)
    if isinstance(operand, SpecialRegister):
        return f"%{operand.name}" + (f".{operand.component}" if operand.component else "")
    if isinstance(operand, Symbol):
        return operand.name + (f"+{operand.offset_bytes}" if operand.offset_bytes else "")
    if isinstance(operand, Address):
        if operand.base is None:
            return f"[{operand.offset_bytes}]"
        return f"[{write_operand(function, operand.base)}{_write_offset(operand.offset_bytes)}]"
    if isinstance(operand, Vector):
        return "{" + ",".join(write_operand(function, one) for one in operand.elements) + "}"
    if isinstance(operand, Pair):
        return f"{write_operand(function, operand.first)}|{write_operand(function, operand.second)}"
    assert isinstance(operand, TextureAddress)
    inner = "{" + ",".join(write_operand(function, one) for one in operand.coordinates) + "}"
    sampler = "" if operand.sampler is None else write_operand(function, operand.sampler) + ","
    return f"[{write_operand(function, operand.handle)},{sampler}{inner}]"


def write_number(number: Immediate) -> str:
    """Integers in decimal, floating-point literals by their bits."""
    if isinstance(number.value, int):
        return str(number.value)
    if number.bits is not None:
        return f"0{'f' if number.width_bits == 32 else 'd'}{number.bits:0{(number.width_bits or 64) // 4}X}"
    return f"0d{struct.unpack('<Q', struct.pack('<d', number.value))[0]:016X}"


def _write_offset(offset: int) -> str:
    return "" if offset == 0 else f"{offset:+d}"


def write_instruction(function: PtxFunction, instruction: PtxInstruction) -> str:
    """Name and operands, without blanks; not for branches and calls."""
    name = ".".join((instruction.opcode, *instruction.suffixes))
    operands = (*instruction.destinations, *instruction.sources)
    return name + ",".join(write_operand(function, operand) for operand in operands)


def normalise(text: str) -> str:
    """The text of an instruction without blanks, ``#2`` marks aside, and with its numbers as :func:`write_number` writes them."""
    name, _, rest = text.partition(" ")
    rest = re.sub(r"\s", "", rest)
    rest = re.sub(r"\+-", "-", rest)
    rest = re.sub(r"[+-]0(?=\])", "", rest)
    rest = re.sub(r"(?<![\w$%.])0[fF]([0-9a-fA-F]{8})\b", lambda match: f"0f{match[1].upper()}", rest)
    return name + re.sub(r"(?<![\w$%.])0[dD]([0-9a-fA-F]{16})\b", lambda match: f"0d{match[1].upper()}", rest)
