"""Finding the meaning of an instruction: :func:`find_meaning`."""

import inspect
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import gpa_lsp.execution.emulator.semantics.families as catalogue
from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.execution.emulator.semantics import exchange, floats, words
from gpa_lsp.execution.emulator.semantics.model import Family, Meaning, flatten
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
