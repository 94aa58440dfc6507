"""``mov``: copies, packing and unpacking of vectors; ``cvta`` of addresses.

Source: PTX ISA 9.0, section 9.7.9.
"""

from gpa_lsp.code.ptx.model import Operand, PtxInstruction, SpecialRegister, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import (
    LOCAL_WINDOW,
    SHARED_WINDOW,
    Family,
    Meaning,
    as_unsigned,
    find_type,
    name_bits,
    of_one,
)

S = ScalarType
_PARTS = {1: S.U8, 2: S.U16, 4: S.U32}


_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def find(instruction: PtxInstruction) -> Meaning | None:
    """A move between registers, or an address of another space."""
    if instruction.opcode != "mov":
        return _find_address(instruction)
    kind = find_type(instruction)
    if kind is None or kind is S.B128 or len(instruction.sources) != 1 or len(instruction.destinations) != 1:
        return None
    source, result = instruction.sources[0], instruction.destinations[0]
    kept = kind if kind in (S.F32, S.F64) else as_unsigned(kind)
    if not {"v2", "v4"}.isdisjoint(instruction.suffixes):
        return _find_elements(kept, source, result)
    if isinstance(source, Vector) and any(isinstance(one, SpecialRegister) for one in source.elements):
        return None  # such as %tid, which is no number
    if isinstance(source, Vector):
        return _find_pack(as_unsigned(kind), len(source.elements))
    if isinstance(result, Vector):
        return _find_unpack(as_unsigned(kind), len(result.elements))
    return of_one(kept, 1, f"a({name_bits(kept)})")


def _find_elements(kind: ScalarType, source: Operand, result: Operand) -> Meaning | None:
    """``mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid``: each element by itself."""
    if not isinstance(source, Vector) or not isinstance(result, Vector):
        return None
    count = len(source.elements)
    if count != len(result.elements):
        return None
    values = tuple(f"{one}({name_bits(kind)})" for one in "abcd"[:count])
    return Meaning(sources=(kind,) * count, results=(kind,) * count, values=values)


def _find_part(kind: ScalarType, count: int) -> ScalarType | None:
    return None if count not in (2, 4) or kind.bytes % count else _PARTS.get(kind.bytes // count)


def _find_pack(kind: ScalarType, count: int) -> Meaning | None:
    part = _find_part(kind, count)
    if part is None:
        return None
    bits, size = name_bits(kind), 8 * part.bytes
    parts = [f"{bits}({one}({part.value})) << {size * place}" for place, one in enumerate("abcd"[:count])]
    sources = (part,) * count
    if count == 2:
        return Meaning(sources=sources, results=(kind,), values=(" | ".join(parts),))
    steps = (("x", 8 * kind.bytes, " | ".join(parts[:2])),)
    return Meaning(sources=sources, results=(kind,), steps=steps, values=(f"x({bits}) | {' | '.join(parts[2:])}",))


def _find_unpack(kind: ScalarType, count: int) -> Meaning | None:
    part = _find_part(kind, count)
    if part is None:
        return None
    values = tuple(f"{part.value}(a({name_bits(kind)}) >> {8 * part.bytes * place})" for place in range(count))
    return Meaning(sources=(kind,), results=(part,) * count, values=values)


def _find_address(instruction: PtxInstruction) -> Meaning | None:
    """Shared and local memory have windows in generic addresses, all else is the same."""
    kind = find_type(instruction)
    if kind not in (S.U32, S.U64):
        return None
    bits = name_bits(kind)
    spaces = [word.partition("::")[0] for word in instruction.suffixes]
    window = next((_WINDOWS[space] for space in spaces if space in _WINDOWS), 0)
    distance = (-window if "to" in instruction.suffixes else window) % (1 << 8 * kind.bytes)
    return of_one(kind, 1, f"a({bits}) + {bits}({distance})" if distance else f"a({bits})")


FAMILY = Family(opcodes=("mov", "cvta"), find=find)
