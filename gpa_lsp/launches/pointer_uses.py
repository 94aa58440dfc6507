"""What a kernel does through each pointer it is given, as far as its own instructions show it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import field

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.ptx.model import (
    Address,
    Immediate,
    Operand,
    PtxFunction,
    PtxInstruction,
    Register,
    Symbol,
    TextureAddress,
    Vector,
)
from gpa_lsp.ptx.scalar_types import ScalarType

_PASSING = frozenset({"mov", "cvta", "add", "sub", "mad", "selp", "cvt", "min", "max", "and", "or"})
"""Instructions whose result may be the address they were given, or one near it."""

_READING = frozenset({"ld", "ldu", "atom", "red", "cp", "prefetch"})
_WRITING = frozenset({"st", "atom", "red"})
_ADDING = frozenset({"add", "sub", "mad"})
_TEXTURING = frozenset({"tex", "tld4", "suld", "sust", "sured"})
_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3}
_MOST_ROUNDS = 8
_LARGEST_SHIFT = 8
"""Of a stride: beyond 256 bytes it is hardly one of elements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerUse:
    """What is done through one pointer.

    Attributes:
        type: most common type of the accesses; None where there are none that can be told.
        is_read: it is loaded from.
        is_written: it is stored to.
        stride_bytes: the largest number an index is multiplied by before it is added, up to 256; 0 where none is.
        texture_dimensions: 1, 2 or 3 where it is no pointer but the handle of a texture or surface; 0 otherwise.
    """

    type: ScalarType | None
    is_read: bool
    is_written: bool
    stride_bytes: int
    texture_dimensions: int


@dataclass(slots=True)
class _Found:
    types: Counter[ScalarType] = field(default_factory=Counter)
    is_read: bool = False
    is_written: bool = False
    stride_bytes: int = 0
    texture_dimensions: int = 0


def find_pointer_uses(function: PtxFunction) -> dict[str, PointerUse]:
    """Parameters of eight bytes that are used as addresses, by name.

    An estimate: registers are followed through copies and additions without regard to the order of control flow, and not into calls. An
    address that may come from several parameters tells of none.
    """
    bits = {one.name: 1 << number for number, one in enumerate(function.parameters) if one.size_bytes == 8}
    origins = _find_origins(function, bits)
    found = {bit: _Found() for bit in bits.values()}
    strides: dict[int, int] = {}
    for instruction in function.instructions:
        for address in _list_addresses(instruction):
            use = found.get(origins.get(address, 0))
            if use is not None:
                _add_use(use, instruction)
        _follow_stride(instruction, strides)
        if instruction.opcode in _ADDING:
            slots = _list_slots(instruction.sources)
            stride = max((strides.get(slot, 0) for slot in slots), default=0) or _find_factor(instruction)
            for slot in slots:
                use = found.get(origins.get(slot, 0))
                if use is not None:
                    use.stride_bytes = max(use.stride_bytes, stride)
    return {name: _judge(found[bit]) for name, bit in bits.items() if found[bit].is_read or found[bit].is_written}


def find_read_parameters(function: PtxFunction) -> frozenset[str]:
    """Parameters that an instruction of the kernel names, be it for their address."""
    symbols = (
        operand.base if isinstance(operand, Address) else operand
        for instruction in function.instructions
        for operand in instruction.sources
    )
    return frozenset(symbol.name for symbol in symbols if isinstance(symbol, Symbol))


def _find_origins(function: PtxFunction, bits: dict[str, int]) -> dict[int, int]:
    """Slot → bits of the parameters its value may come from."""
    origins: dict[int, int] = {}
    for _ in range(_MOST_ROUNDS):
        has_changed = False
        for instruction in function.instructions:
            coming = _find_coming(instruction, origins, bits)
            for slot in _list_slots(instruction.destinations) if coming else ():
                if origins.get(slot, 0) | coming != origins.get(slot, 0):
                    origins[slot] = origins.get(slot, 0) | coming
                    has_changed = True
        if not has_changed:
            break
    return origins


def _find_coming(instruction: PtxInstruction, origins: dict[int, int], bits: dict[str, int]) -> int:
    if instruction.opcode == "ld" and "param" in instruction.suffixes:
        address = instruction.sources[0] if instruction.sources else None
        base = address.base if isinstance(address, Address) else None
        return bits.get(base.name, 0) if isinstance(base, Symbol) else 0
    if instruction.opcode not in _PASSING or not instruction.types or instruction.types[-1].bytes != 8:
        return 0
    coming = 0
    for slot in _list_slots(instruction.sources):
        coming |= origins.get(slot, 0)
    return coming


def _list_slots(operands: "Iterable[Operand]") -> list[int]:
    found = []
    for operand in operands:
        if isinstance(operand, Register):
            found.append(operand.slot)
        elif isinstance(operand, Vector):
            found.extend(one.slot for one in operand.elements if isinstance(one, Register))
    return found


def _list_addresses(instruction: PtxInstruction) -> list[int]:
    addresses = [operand.base for operand in instruction.sources if isinstance(operand, Address)]
    addresses.extend(operand.handle for operand in instruction.sources if isinstance(operand, TextureAddress))
    return [base.slot for base in addresses if isinstance(base, Register)]


def _add_use(use: _Found, instruction: PtxInstruction) -> None:
    if instruction.opcode in _TEXTURING:
        use.texture_dimensions = next((_DIMENSIONS[word] for word in instruction.suffixes if word in _DIMENSIONS), 1)
        use.is_read = True
        use.types.update(instruction.types[:1])
    use.is_read |= instruction.opcode in _READING
    use.is_written |= instruction.opcode in _WRITING
    if instruction.types and instruction.opcode in _READING | _WRITING:
        use.types[instruction.types[-1]] += 1


def _judge(use: _Found) -> PointerUse:
    kind = use.types.most_common(1)[0][0] if use.types else None
    return PointerUse(
        type=kind,
        is_read=use.is_read,
        is_written=use.is_written,
        stride_bytes=use.stride_bytes,
        texture_dimensions=use.texture_dimensions,
    )


def _follow_stride(instruction: PtxInstruction, strides: dict[int, int]) -> None:
    """Remember what an index was multiplied by: ``mul.wide.s32 %rd1, %r1, 16`` or ``shl.b64 %rd1, %rd2, 4``."""
    factor = _find_factor(instruction)
    if factor and instruction.opcode in ("mul", "shl"):
        for slot in _list_slots(instruction.destinations):
            strides[slot] = factor


def _find_factor(instruction: PtxInstruction) -> int:
    """The literal that a product has; 0 for none."""
    factors = [one.value for one in instruction.sources[1:2] if isinstance(one, Immediate)]
    if not factors or isinstance(factors[0], float) or instruction.opcode not in ("mul", "shl", "mad"):
        return 0
    factor = factors[0]
    if instruction.opcode == "shl":
        return 1 << factor if 0 <= factor <= _LARGEST_SHIFT else 0
    return factor if 0 < factor <= 1 << _LARGEST_SHIFT else 0
