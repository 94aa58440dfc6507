"""Uses of a kernel's pointers, and dependence on unknown arguments, as far as its own instructions show them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import (
    Address,
    Immediate,
    Operand,
    PtxFunction,
    PtxInstruction,
    Register,
    Symbol,
    TextureAddress,
    Vector,
    list_reads,
    list_writes,
)
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.launches.launch import (
    LaunchDescription,
    ScalarArgument,
    TextureArgument,
    list_members,
    list_passed,
)

# Instructions whose result may be the address they were given, or one near it
_PASSING = frozenset({"mov", "cvta", "add", "sub", "mad", "selp", "cvt", "min", "max", "and", "or"})

_READING = frozenset({"ld", "ldu", "atom", "red", "cp", "prefetch"})
_WRITING = frozenset({"st", "atom", "red"})
# Instructions whose result may be computed from an index they were given
INDEXING = _PASSING | {"mul", "shl", "shr", "div", "rem"}
_MOVING = frozenset({"mov", "cvt"})
_SIGNS = frozenset({"lt", "ge"})  # Comparisons with 0 that tell negative numbers from others
_ADDING = frozenset({"add", "sub", "mad"})
_EQUAL = frozenset({"eq", "ne"})
_INNER = frozenset({"shared", "local", "param"})
_TEXTURING = frozenset({"tex", "tld4", "suld", "sust", "sured"})
_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3}
_HELD = frozenset({"const", "global"})
_MOST_ROUNDS = 8
_POINTER_BYTES = 8
_Place = tuple[str, int]  # Name of a parameter and offset in it

_LARGEST_SHIFT = 8  # Of a stride: beyond 256 bytes it is hardly one of elements


class PointerUse(Struct, frozen=True, kw_only=True):
    """Accesses through one pointer."""

    type: ScalarType | None  # most common type of the accesses; None where there are none that can be told
    is_read: bool  # it is loaded from
    is_written: bool  # it is stored to
    stride_bytes: int  # the largest number an index is multiplied by before it is added, up to 256; 0 where none is
    texture_dimensions: int  # 1, 2 or 3 where it is no pointer but the handle of a texture or surface; 0 otherwise
    leads_to_itself: bool = False  # its elements are indices into itself, as in linked lists
    least: int = 0  # the smallest negative literal that its elements are compared with; 0 without any


class _Found(Struct):
    types: Counter[ScalarType] = field(default_factory=Counter)
    is_read: bool = False
    is_written: bool = False
    stride_bytes: int = 0
    texture_dimensions: int = 0


def find_pointer_uses(function: PtxFunction) -> dict[str, PointerUse]:
    """Uses of parameters of eight bytes that are addresses, by name.

    An estimate: registers are followed through copies and additions without regard to the order of control flow, and not into calls. An
    address that may come from several parameters tells of none.
    """
    places = [(one.name, 0) for one in function.parameters if one.size_bytes == _POINTER_BYTES]
    return {name: use for (name, _), use in _find_uses(function, places).items()}


def find_held_uses(function: PtxFunction) -> dict[str, PointerUse]:
    """Uses of pointers in the arrays of parameters, by the parameter's name: of ``float** rows``, the use of each row."""
    pointers = (one.name for one in function.parameters if one.size_bytes == _POINTER_BYTES)
    bits = {(name, 0): 1 << number for number, name in enumerate(pointers)}
    origins = _follow_origins(function, _find_starts(function, bits, _find_bases(function)))
    starts = {
        one.index: origins.get(address, 0)
        for one in function.instructions
        if one.opcode in ("ld", "ldu") and one.types and one.types[-1].bytes == _POINTER_BYTES
        for address in _list_addresses(one)
    }
    return {name: use for (name, _), use in _judge_uses(function, bits, _follow_origins(function, starts)).items()}


def find_texture_variables(function: PtxFunction) -> dict[str, PointerUse]:
    """Uses of module variables that hold the handles of textures and surfaces, by name."""
    places = {place: None for one in function.instructions if (place := _find_held(one)) is not None}
    uses = _find_uses(function, list(places))
    return {name: use for (name, _), use in uses.items() if use.texture_dimensions}


class MemberUse(Struct, frozen=True, kw_only=True):
    """Part of a structure that a kernel loads from its parameters."""

    offset_bytes: int  # in the structure
    type: ScalarType  # it is loaded as
    pointer: PointerUse | None  # what is done through it; None where it is no address


def find_member_uses(function: PtxFunction) -> dict[str, tuple[MemberUse, ...]]:
    """Parts of each structure among the parameters that are loaded, by offset; of overlapping ones the widest."""
    structures = {one.name for one in function.parameters if one.count != 1}
    loaded: dict[tuple[str, int], ScalarType] = {}
    bases = _find_bases(function)
    for instruction in function.instructions:
        place = _find_parameter(instruction, bases)
        if place is None or place[0] not in structures or not instruction.types:
            continue
        kind = instruction.types[-1]
        lanes = max((len(one.elements) for one in instruction.destinations if isinstance(one, Vector)), default=1)
        for lane in range(lanes):
            key = (place[0], place[1] + lane * kind.bytes)
            if key not in loaded or loaded[key].bytes < kind.bytes:
                loaded[key] = kind
    return _list_members(
        loaded, _find_uses(function, [key for key, kind in loaded.items() if kind.bytes == _POINTER_BYTES])
    )


def _list_members(
    loaded: Mapping[_Place, ScalarType], pointers: Mapping[_Place, PointerUse]
) -> dict[str, tuple[MemberUse, ...]]:
    found: dict[str, list[MemberUse]] = {}
    for (name, offset), kind in sorted(loaded.items(), key=lambda item: item[0]):
        before = found.setdefault(name, [])
        if not before or before[-1].offset_bytes + before[-1].type.bytes <= offset:
            before.append(MemberUse(offset_bytes=offset, type=kind, pointer=pointers.get((name, offset))))
    return {name: tuple(members) for name, members in found.items()}


def find_record_members(function: PtxFunction) -> dict[str, tuple[MemberUse, ...]]:
    """Parts of the structures that parameters lead to which are loaded, by offset, for structures that hold pointers.

    An estimate, as :func:`find_pointer_uses`: offsets are those behind an index, and structures that a kernel writes to are left out.
    """
    pointers = [one.name for one in function.parameters if one.size_bytes == _POINTER_BYTES]
    bits = {(name, 0): 1 << number for number, name in enumerate(pointers)}
    names = {bit: name for (name, _), bit in bits.items()}
    origins = _follow_origins(function, _find_starts(function, bits, _find_bases(function)))
    shifts = _follow_shifts(function, origins)
    loaded: dict[_Place, ScalarType] = {}
    loading: dict[int, _Place] = {}
    written: set[str] = set()
    for one in function.instructions:
        for address in one.sources:
            if not isinstance(address, Address) or not isinstance(address.base, Register) or not one.types:
                continue
            slot = address.base.slot
            name = names.get(origins.get(slot, 0))
            if name is None:
                continue
            if one.opcode not in ("ld", "ldu"):
                written.add(name)
                continue
            kind = one.types[-1]
            lanes = max((len(each.elements) for each in one.destinations if isinstance(each, Vector)), default=1)
            first = address.offset_bytes + shifts.get(slot, 0)
            loading[one.index] = (name, first)
            for lane in range(lanes):
                place = (name, first + lane * kind.bytes)
                if place not in loaded or loaded[place].bytes < kind.bytes:
                    loaded[place] = kind
    held = {place: 1 << number for number, place in enumerate(loaded)}
    starts = {index: held[place] for index, place in loading.items() if loaded[place].bytes == _POINTER_BYTES}
    uses = _judge_uses(function, held, _follow_origins(function, starts))
    found = _list_members(loaded, uses)
    return {
        name: members
        for name, members in found.items()
        if name not in written and any(one.pointer is not None for one in members)
    }


def _find_uses(function: PtxFunction, places: Sequence[_Place]) -> dict[_Place, PointerUse]:
    bits = {place: 1 << number for number, place in enumerate(places)}
    starts = _find_starts(function, bits, _find_bases(function))
    return _judge_uses(function, bits, _follow_origins(function, starts))


def _judge_uses(
    function: PtxFunction, bits: Mapping[_Place, int], origins: Mapping[int, int]
) -> dict[_Place, PointerUse]:
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
    loads = {
        one.index: _join(origins, _list_addresses(one))
        for one in function.instructions
        if one.opcode in ("ld", "ldu") and "param" not in one.suffixes
    }
    chains, least = _find_chains(function, loads), _find_least(function, loads)
    return {
        place: _judge(found[bit], leads_to_itself=bool(bit & chains), least=least.get(bit, 0))
        for place, bit in bits.items()
        if found[bit].is_read or found[bit].is_written
    }


def _find_chains(function: PtxFunction, loads: Mapping[int, int]) -> int:
    """Bits of the pointers through which elements are loaded at indices that were loaded through the same; *loads* has those of each load."""
    values = _follow_origins(function, loads, passing=INDEXING)
    chains = 0
    for one in function.instructions:
        chains |= loads.get(one.index, 0) & _join(values, _list_addresses(one))
    return chains


def _find_least(function: PtxFunction, loads: Mapping[int, int]) -> dict[int, int]:
    """Bit of a pointer → the smallest negative literal that loaded elements are compared with; -1 where their sign is tested."""
    values = _follow_origins(function, loads, passing=_MOVING)
    least: dict[int, int] = {}
    for one in function.instructions:
        literals = [each.value for each in one.sources if isinstance(each, Immediate) and isinstance(each.value, int)]
        if one.opcode != "setp" or not literals or not one.types or not one.types[-1].is_integer:
            continue
        bits = 8 * one.types[-1].bytes
        told = min(value - (1 << bits if value >> bits - 1 > 0 else 0) for value in literals)
        told = -1 if told == 0 and not _SIGNS.isdisjoint(one.suffixes) else told
        pointers = _join(values, _list_slots(one.sources))
        for bit in (1 << number for number in range(pointers.bit_length()) if pointers >> number & 1):
            least[bit] = min(told, least.get(bit, 0))
    return least


def find_read_parameters(function: PtxFunction) -> frozenset[str]:
    """Parameters that an instruction of the kernel names."""
    symbols = (
        operand.base if isinstance(operand, Address) else operand
        for instruction in function.instructions
        for operand in instruction.sources
    )
    return frozenset(symbol.name for symbol in symbols if isinstance(symbol, Symbol))


def find_loaded_parameters(function: PtxFunction) -> dict[int, _Place]:
    """Index of each instruction that loads from the parameters → the parameter's name and the offset in it."""
    bases = _find_bases(function)
    places = ((one.index, _find_parameter(one, bases)) for one in function.instructions)
    return {index: place for index, place in places if place is not None}


def find_modes(function: PtxFunction) -> dict[str, int]:
    """Smallest number that a parameter is told apart by, by its name: parameters that are compared with literals, one of them not 0, and no more."""
    owners = {
        slot: name
        for index, (name, offset) in find_loaded_parameters(function).items()
        for slot in _list_slots(function.instructions[index].destinations)
        if not offset
    }
    equal: dict[str, set[int]] = {}
    others: set[str] = set()
    for one in function.instructions:
        slots = [slot for slot in list_reads(one) if slot in owners]
        if one.opcode in ("mov", "cvt"):
            owners.update((slot, owners[slots[0]]) for slot in (_list_slots(one.destinations) if slots else ()))
            continue
        literals = [each.value for each in one.sources if isinstance(each, Immediate) and isinstance(each.value, int)]
        for slot in slots:
            if one.opcode != "setp" or not literals:
                others.add(owners[slot])
            elif not _EQUAL.isdisjoint(one.suffixes):
                equal.setdefault(owners[slot], set()).update(literals)
    return {name: min(found) for name, found in equal.items() if name not in others and max(found) > 0 <= min(found)}


def stores_globally(function: PtxFunction) -> bool:
    """Whether instructions of a kernel itself write to memory that is there after it."""
    return any(
        one.opcode in _WRITING and _INNER.isdisjoint(one.suffixes) and _list_addresses(one)
        for one in function.instructions
    )


def _follow_origins(
    function: PtxFunction, starts: Mapping[int, int], *, passing: frozenset[str] | None = None
) -> dict[int, int]:
    """Slot → bits of the pointers that its value may come from; *passing* names what passes on numbers of any size in place of addresses."""
    origins: dict[int, int] = {}
    for _ in range(_MOST_ROUNDS):
        has_changed = False
        for instruction in function.instructions:
            coming = starts.get(instruction.index, 0) or _pass_on(instruction, origins, passing)
            for slot in _list_slots(instruction.destinations) if coming else ():
                if origins.get(slot, 0) | coming != origins.get(slot, 0):
                    origins[slot] = origins.get(slot, 0) | coming
                    has_changed = True
        if not has_changed:
            break
    return origins


def _follow_shifts(function: PtxFunction, origins: Mapping[int, int]) -> dict[int, int]:
    """Slot of a pointer → literal bytes that were added to it, wherever an index was added as well."""
    shifts: dict[int, int] = {}
    for instruction in function.instructions:
        if instruction.opcode not in _PASSING:
            continue
        pointers = [slot for slot in _list_slots(instruction.sources) if origins.get(slot)]
        added = sum(
            one.value
            for one in (instruction.sources if instruction.opcode == "add" else ())
            if isinstance(one, Immediate) and isinstance(one.value, int)
        )
        for slot in _list_slots(instruction.destinations) if pointers else ():
            shifts[slot] = shifts.get(pointers[0], 0) + added
    return shifts


def _find_bases(function: PtxFunction) -> dict[int, _Place]:
    """Slots that hold the address of a parameter: compilers give each value a slot of its own."""
    names = {one.name for one in function.parameters}
    found: dict[int, _Place] = {}
    for instruction in function.instructions:
        place = _find_base(instruction, names, found)
        if place is not None:
            found.update(dict.fromkeys(_list_slots(instruction.destinations), place))
    return found


def _find_base(instruction: PtxInstruction, names: Collection[str], known: Mapping[int, _Place]) -> _Place | None:
    """Place in a parameter whose address an instruction computes."""
    if instruction.opcode not in ("mov", "add") or not instruction.sources:
        return None
    source = instruction.sources[0]
    if isinstance(source, Symbol) and source.name in names:
        return source.name, source.offset_bytes
    base = known.get(source.slot) if isinstance(source, Register) else None
    added = instruction.sources[1] if len(instruction.sources) > 1 else Immediate(value=0)
    if base is None or not isinstance(added, Immediate) or not isinstance(added.value, int):
        return None
    return base[0], base[1] + added.value


def _find_parameter(instruction: PtxInstruction, bases: dict[int, _Place]) -> _Place | None:
    """Place in the parameters that a load reads; None for other instructions."""
    if instruction.opcode != "ld" or "param" not in instruction.suffixes:
        return None
    address = instruction.sources[0] if instruction.sources else None
    if not isinstance(address, Address):
        return None
    if isinstance(address.base, Register) and address.base.slot in bases:
        name, offset = bases[address.base.slot]
        return name, offset + address.offset_bytes
    if not isinstance(address.base, Symbol):
        return None
    return address.base.name, address.base.offset_bytes + address.offset_bytes


def _find_held(instruction: PtxInstruction) -> _Place | None:
    """Module variable whose eight bytes an instruction loads; None for other instructions."""
    if instruction.opcode != "ld" or _HELD.isdisjoint(instruction.suffixes) or not instruction.sources:
        return None
    address = instruction.sources[0]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol) or not instruction.types:
        return None
    if instruction.types[-1].bytes != _POINTER_BYTES or address.offset_bytes or address.base.offset_bytes:
        return None
    return address.base.name, 0


def _find_starts(function: PtxFunction, bits: Mapping[_Place, int], bases: dict[int, _Place]) -> dict[int, int]:
    """Indices of instructions that load a parameter, or a variable with a handle → its bit."""
    found = {}
    for one in function.instructions:
        if one.opcode == "ld":
            place = _find_parameter(one, bases) if "param" in one.suffixes else _find_held(one)
            if place is not None and place in bits:
                found[one.index] = bits[place]
    return found


def _pass_on(instruction: PtxInstruction, origins: Mapping[int, int], passing: frozenset[str] | None) -> int:
    if passing is not None:
        return _join(origins, _list_slots(instruction.sources)) if instruction.opcode in passing else 0
    if instruction.opcode not in _PASSING or not instruction.types or instruction.types[-1].bytes != 8:
        return 0
    return _join(origins, _list_slots(instruction.sources))


def _join(bits: Mapping[int, int], slots: Iterable[int]) -> int:
    joined = 0
    for slot in slots:
        joined |= bits.get(slot, 0)
    return joined


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


def _judge(use: _Found, *, leads_to_itself: bool, least: int) -> PointerUse:
    return PointerUse(
        type=use.types.most_common(1)[0][0] if use.types else None,
        is_read=use.is_read,
        is_written=use.is_written,
        stride_bytes=use.stride_bytes,
        texture_dimensions=use.texture_dimensions,
        leads_to_itself=leads_to_itself,
        least=least,
    )


def _follow_stride(instruction: PtxInstruction, strides: dict[int, int]) -> None:
    """Note the factor of an index: ``mul.wide.s32 %rd1, %r1, 16`` or ``shl.b64 %rd1, %rd2, 4``."""
    factor = _find_factor(instruction)
    if factor and instruction.opcode in ("mul", "shl"):
        for slot in _list_slots(instruction.destinations):
            strides[slot] = factor


def _find_factor(instruction: PtxInstruction) -> int:
    """Literal factor of a product; 0 for none."""
    factors = [one.value for one in instruction.sources[1:2] if isinstance(one, Immediate)]
    if not factors or isinstance(factors[0], float) or instruction.opcode not in ("mul", "shl", "mad"):
        return 0
    factor = factors[0]
    if instruction.opcode == "shl":
        return 1 << factor if 0 <= factor <= _LARGEST_SHIFT else 0
    return factor if 0 < factor <= 1 << _LARGEST_SHIFT else 0


SHAPE = frozenset({"block", "grid", "threads"})  # Guesses that everything depends on

_READING_DATA = frozenset({"ld", "ldu", "atom", "tex", "tld4", "suld", "shfl"})
_BOUNDED = frozenset({"suld", "sust", "sured"})  # Instructions that the size of a surface bounds
_MOST_SPREADING_ROUNDS = 32


class GuessDependence:
    """Whether what an instruction does, or that it is executed at all, depends on a guess.

    An estimate, more rather than less: registers are followed without regard to the order of control flow, and whatever is loaded from memory
    depends on the contents of every array, texture and variable.

    Args:
        function: the kernel.
        launch: of it, with what of it are guesses.
    """

    def __init__(self, function: PtxFunction, launch: LaunchDescription) -> None:
        self._instructions = function.instructions
        self._parameters = {one.name for one in function.parameters}
        self._has_guesses = bool(launch.guesses)
        self._is_everything = not SHAPE.isdisjoint(launch.guesses)
        self._loaded = find_loaded_parameters(function)
        self._numbers = frozenset(_list_guessed_numbers(function, launch))
        self._knows_data = SHAPE.union(_list_names(launch, ScalarArgument)).issuperset(launch.guesses)
        self._guesses_sizes = not set(launch.guesses).isdisjoint(_list_names(launch, TextureArgument))
        self._slots = self._follow() if self._has_guesses and not self._is_everything else set()
        self._regions = tuple(self._find_regions()) if self._slots else ()

    def depends(self, instruction: int | None) -> bool:
        """Whether an instruction depends on a guess; None and unknown indices do if anything is guessed."""
        if self._is_everything or not self._has_guesses:
            return self._is_everything
        if instruction is None or instruction >= len(self._instructions):
            return True
        if any(first <= instruction < last for first, last in self._regions):
            return True
        one = self._instructions[instruction]
        if one.opcode in _WRITING:  # where it writes matters, not what
            one = replace(one, sources=tuple(part for part in one.sources if isinstance(part, Address)))
        return self._is_touched(one) or (self._guesses_sizes and one.opcode in _BOUNDED)

    def _follow(self) -> set[int]:
        slots: set[int] = set()
        for _ in range(_MOST_SPREADING_ROUNDS):
            before = len(slots)
            for one in self._instructions:
                if self._is_guessed(one) or self._is_touched(one, slots):
                    slots.update(list_writes(one))
            if len(slots) == before:
                break
        return slots

    def _is_guessed(self, one: PtxInstruction) -> bool:
        """Whether an instruction reads a guess itself."""
        if one.opcode not in _READING_DATA:
            return False
        if "param" not in one.suffixes:
            return not self._knows_data and one.opcode != "shfl"
        place = self._loaded.get(one.index)
        return (
            place is None or place in self._numbers or place[0] not in self._parameters
        )  # others are results of calls

    def _is_touched(self, one: PtxInstruction, slots: "set[int] | None" = None) -> bool:
        known = self._slots if slots is None else slots
        return not known.isdisjoint(list_reads(one))

    def _find_regions(self) -> "Iterable[tuple[int, int]]":
        """Instructions that a jump on a guess skips or repeats: (first, behind the last)."""
        for one in self._instructions:
            if one.target is None or one.guard is None or one.guard.slot not in self._slots:
                continue
            if one.target <= one.index:
                yield one.target, one.index
                continue
            yield one.index, one.target
            last = self._instructions[one.target - 1] if one.target else one
            if last.target is not None and last.guard is None and last.target > one.target:
                yield one.target, last.target


def _list_names(launch: LaunchDescription, kind: type[ScalarArgument] | type[TextureArgument]) -> Iterator[str]:
    """Names of the arguments of one kind, those in structures included."""
    return (one.name for one in list_passed(launch) if isinstance(one, kind))


def _list_guessed_numbers(function: PtxFunction, launch: LaunchDescription) -> "Iterable[tuple[str, int]]":
    """Parameter and offset in it of each guessed number."""
    for parameter, argument in zip(function.parameters, launch.arguments, strict=False):
        for at, one in list_members(argument):
            if isinstance(one, ScalarArgument) and one.name in launch.guesses:
                yield parameter.name, at
