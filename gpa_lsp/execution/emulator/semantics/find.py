"""Finding the meaning of an instruction: :func:`find_meaning`; new values of atomic operations and arrivals at barriers: :func:`find_change`.

Source: PTX ISA 9.0, sections 9.7.13.6 (atom), 9.7.13.7 (red) and 9.7.13.15 (mbarrier).
"""

import inspect
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import gpa_lsp.execution.emulator.semantics.families as catalogue
from gpa_lsp.code.ptx.model import Immediate, Operand, PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics import exchange, floats, words
from gpa_lsp.execution.emulator.semantics.model import Family, Meaning, as_unsigned, flatten
from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.machine_code import types


@cache
def _find_families() -> dict[str, tuple[Family, ...]]:
    """Families by opcode, in alphabetical order of their modules."""
    found: dict[str, tuple[Family, ...]] = {}
    members: dict[str, Family] = load_catalogue(catalogue, "FAMILY", Family)
    for family in members.values():
        for opcode in family.opcodes:
            found[opcode] = (*found.get(opcode, ()), family)
    return found


def find_meaning(instruction: PtxInstruction) -> Meaning | None:
    """Find the meaning of an instruction.

    Returns:
        The meaning; None when the instruction is not computed lane by lane, is not supported, or has operands that do not fit it.
    """
    for family in _find_families().get(instruction.opcode, ()):
        meaning = family.find(instruction)
        if (
            meaning is not None
            and len(flatten(instruction.sources)) == len(meaning.sources)
            and len(flatten(instruction.destinations)) == len(meaning.results)
        ):
            return meaning
    return None


@cache
def find_names() -> dict[str, Any]:
    """Functions and types that the expressions of all families name."""
    members: dict[str, Family] = load_catalogue(catalogue, "FAMILY", Family)
    modules: list[ModuleType | None] = [inspect.getmodule(family.find) for family in members.values()]
    names: dict[str, Any] = {**vars(types), **vars(floats), **vars(words), **vars(exchange)}
    for module in modules:
        own = vars(module)
        names |= {
            name: one
            for name, one in own.items()
            if isinstance(one, FunctionType) and one.__module__ == own["__name__"]
        }
    return names


S = ScalarType
_BITWISE = frozenset({"and", "or", "xor"})
_ORDERED = frozenset({"min", "max"})
_NAMES = _BITWISE | _ORDERED | {"add", "cas", "exch", "inc", "dec"}
_FLOATS = frozenset({S.F32, S.F64, S.F16, S.BF16, S.F16X2, S.BF16X2})


class Change(Struct, frozen=True, kw_only=True):
    """Change of a value in memory, or of each element of a vector there."""

    name: str  # ``add and or xor exch cas inc dec min max``; of a barrier's word ``init arrive arrive_drop expect_tx complete_tx``
    type: ScalarType  # of the value and of every operand; where the sign does not matter the unsigned one of the width
    operands: tuple[Operand, ...]  # what it is changed by; of ``cas`` what it is compared with, then the new one
    # of the old value and the operand, where it is not among the changes of integers and plain sums
    meaning: Meaning | None = None
    expected: Operand | None = None  # bytes that an arrival expects first; None for none


def find_change(instruction: PtxInstruction) -> Change | None:
    """The change that an instruction makes; None for those that make none, and for forms that are not supported."""
    words, sources = instruction.suffixes, instruction.sources
    match instruction.opcode, words[:1]:
        case (("atom" | "red"), _):
            return _find_atomic(instruction)
        case "mbarrier", ("init",):
            return Change(name="init", type=S.U64, operands=sources[1:2])
        case "mbarrier", (("arrive" | "arrive_drop") as name,):
            expected = sources[1] if "expect_tx" in words else None
            count = sources[1] if len(sources) > 1 and expected is None else Immediate(1)
            return Change(name=name, type=S.U64, operands=(count,), expected=expected)
        case "mbarrier", (("expect_tx" | "complete_tx") as name,):
            return Change(name=name, type=S.U64, operands=sources[1:2])
        case "cp", ("reduce",):
            return _find_atomic(instruction)
        case "cp", _ if words[:3] == ("async", "mbarrier", "arrive") and "noinc" in words:
            return Change(name="arrive", type=S.U64, operands=(Immediate(1),))
    return None


def _find_atomic(instruction: PtxInstruction) -> Change | None:
    """``atom`` and ``red``.

    Sums of f32 keep subnormal numbers unless the instruction says ``.ftz``; on a GPU those in global memory do, and those in shared memory follow
    the instruction too.
    """
    name = next((word for word in instruction.suffixes if word in _NAMES), None)
    kind = instruction.types[0] if len(instruction.types) == 1 else S.B128
    operands = instruction.sources[1 : 3 if name == "cas" else 2]
    if name is None or kind in (S.B128, S.PRED) or len(operands) != 1 + (name == "cas"):
        return None
    if name in ("cas", "exch") or (name in ("inc", "dec") and not kind.is_float):
        return Change(name=name, type=as_unsigned(kind), operands=operands)
    if not kind.is_float:
        ordered = kind if name in _ORDERED and kind.is_signed else as_unsigned(kind)
        return Change(name=name, type=ordered, operands=operands)
    is_flushed = kind is S.F32 and "ftz" in instruction.suffixes
    if name == "add" and kind in (S.F32, S.F64) and not is_flushed:
        return Change(name=name, type=kind, operands=operands)
    if kind not in _FLOATS or name not in ("add", "min", "max"):
        return None
    value = Immediate(0)
    alone = replace(
        instruction,
        opcode=name,
        suffixes=("ftz",) if is_flushed else (),
        types=(kind,),
        sources=(value, value),
        destinations=(value,),
    )
    meaning = find_meaning(alone)
    return None if meaning is None else Change(name=name, type=kind, operands=operands, meaning=meaning)
