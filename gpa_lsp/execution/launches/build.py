"""A launch's arguments, checked against the kernel's parameters → :class:`LaunchInputs`."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, PtxVariable, Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.launches.files import load_array_file
from gpa_lsp.execution.launches.launch import (
    Argument,
    ArrayArgument,
    Generator,
    LaunchDescription,
    ScalarArgument,
    StructArgument,
    TextureArgument,
    list_arrays,
    list_members,
    list_passed,
)
from gpa_lsp.execution.launches.model import BufferInput, LaunchInputs, PointerSlot, TextureInput
from gpa_lsp.execution.launches.type_names import pack_scalar, round_floats
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_bytes

# What fills an array: the same description gives the same bytes, everywhere and always.
#
# Random numbers are the raw output of PCG64, which numpy promises never to change, brought into form by additions and multiplications alone;
# numpy's own distributions may give other numbers in another version.

_CHUNK = 1 << 18  # Elements made at a time: what is needed beside the array itself stays small

_SUMMANDS = 12  # Uniform numbers whose sum is nearly normal, with deviation 1


def generate_array(array: ArrayArgument) -> npt.NDArray[np.generic]:
    """Elements of an array that is no alias: one dimension, natural dtype, writable.

    Floats that do not fit become infinite; integers are cut to the type's range, but those of a sequence wrap around.

    Raises:
        InputError: its file cannot be used, or there is not enough memory.

    >>> generate_array(ArrayArgument(name="x", type=ScalarType.S16, count=4, generator=Generator.SEQUENCE, low=5, step=-2)).tolist()
    [5, 3, 1, -1]
    """
    try:
        with np.errstate(all="ignore"):
            return _generate(array)
    except MemoryError:
        raise InputError(f"there is no memory for {array.name!r}", remedy="make the arrays smaller") from None


def _generate(array: ArrayArgument) -> npt.NDArray[np.generic]:
    if array.generator == Generator.FILE:
        if array.file is None:
            raise InputError(f"the array {array.name!r} names no file", remedy="give file = …")
        return load_array_file(array.file, array.type, array.count)
    if array.generator == Generator.ZEROS or array.count == 0:
        return np.zeros(array.count, dtype=array.type.natural_dtype)
    if array.generator == Generator.PERMUTATION:
        return _convert(_permute(array), array)
    elements = np.empty(array.count, dtype=array.type.natural_dtype)
    place = 0
    for chunk in _MAKERS[array.generator](array):
        elements[place : place + len(chunk)] = chunk
        place += len(chunk)
    return elements


def _convert(numbers: npt.NDArray[np.float64] | npt.NDArray[np.int64], array: ArrayArgument) -> npt.NDArray[np.generic]:
    """Numbers in the array's dtype."""
    kind = array.type
    if kind.is_float:
        return round_floats(numbers.astype(np.float64), kind)
    if numbers.dtype.kind in "iu":
        return numbers.astype(kind.natural_dtype)
    bits = 8 * kind.bytes
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind.is_signed else (0, (1 << bits) - 1)
    whole = np.clip(np.nan_to_num(np.floor(numbers)), float(least), float(most))
    # The largest integers have no double of their own; what would be beyond them is set by hand.
    is_most = whole >= float(most)
    found = (
        np.where(is_most, 0.0, whole)
        .astype(np.int64 if least < 0 else np.uint64)
        .astype(f"{'i' if least < 0 else 'u'}{kind.bytes}")
    )
    found[is_most] = most
    return found


def _split(count: int) -> Iterator[tuple[int, int]]:
    """(start, length) of chunks."""
    for start in range(0, count, _CHUNK):
        yield start, min(_CHUNK, count - start)


def _make_constants(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    one = _listed((array.value,), array.type)
    for _, length in _split(array.count):
        yield np.broadcast_to(one, (length,))


def _make_values(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    values = _listed(array.values or (0,), array.type)
    for start, length in _split(array.count):
        yield values[np.arange(start, start + length) % len(values)]


def _listed(values: tuple[int | float, ...], kind: ScalarType) -> npt.NDArray[np.generic]:
    if kind.is_float:
        return round_floats(np.array(values, dtype=np.float64), kind)
    mask = (1 << (8 * kind.bytes)) - 1
    return (
        np.array([int(value) & mask for value in values], dtype=np.uint64)
        .astype(f"<u{kind.bytes}")
        .view(kind.natural_dtype)
    )


def _make_sequence(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    is_whole = float(array.low).is_integer() and float(array.step).is_integer() and array.type.is_integer
    for start, length in _split(array.count):
        places = np.arange(start, start + length, dtype=np.int64)
        if is_whole:
            low, step = (np.uint64(int(number) & 0xFFFFFFFFFFFFFFFF) for number in (array.low, array.step))
            yield (low + step * places.astype(np.uint64)).astype(array.type.natural_dtype)
        else:
            yield _convert(array.low + array.step * places.astype(np.float64), array)


def _make_uniform(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    source = np.random.PCG64(array.seed)
    for _, length in _split(array.count):
        yield _convert(array.low + (array.high - array.low) * _draw(source, length), array)


def _make_normal(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    source = np.random.PCG64(array.seed)
    for _, length in _split(array.count):
        total = np.full(length, -_SUMMANDS / 2)
        for _ in range(_SUMMANDS):
            total += _draw(source, length)
        numbers = array.low + array.high * total
        yield _convert(numbers if array.type.is_float else np.rint(numbers), array)


def _permute(array: ArrayArgument) -> npt.NDArray[np.int64]:
    """The numbers 0 … count-1, sorted by random keys; equal keys, which are very rare, keep their order."""
    return np.argsort(np.random.PCG64(array.seed).random_raw(array.count), kind="stable")


def _draw(source: np.random.PCG64, count: int) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1): the upper 53 bits of each raw number."""
    raw: npt.NDArray[np.uint64] = source.random_raw(count)
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


_MAKERS: dict[Generator, Callable[[ArrayArgument], Iterator[npt.NDArray[np.generic]]]] = {
    Generator.CONSTANT: _make_constants,
    Generator.VALUES: _make_values,
    Generator.SEQUENCE: _make_sequence,
    Generator.UNIFORM: _make_uniform,
    Generator.NORMAL: _make_normal,
}


_ADDRESS_BYTES = 8
_LARGEST_PARAMETERS = 32764
_KEY_BYTES = 16


def build_inputs(
    module: PtxModule, function: PtxFunction, launch: LaunchDescription, *, memory_limit_bytes: int
) -> LaunchInputs:
    """Make the parameters and buffers of a launch.

    Everything is checked before anything is allocated.

    Raises:
        InputError: an argument is missing, too many or of another size than its parameter; the arrays need more memory than there may be; a
            file cannot be used; there is no such variable. Says the description's file and the line of the launch.
    """
    try:
        return _Builder(module=module, launch=launch).build(function, memory_limit_bytes)
    except InputError as error:
        if error.path is None and launch.path is not None:
            error.path = launch.path
            error.place = error.place or launch.place
        raise


class _Builder(Struct, kw_only=True):
    module: PtxModule
    launch: LaunchDescription
    parameters: bytearray = field(default_factory=bytearray)
    buffers: list[BufferInput] = field(default_factory=list)
    pointers: list[PointerSlot] = field(default_factory=list)
    textures: list[TextureInput] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)  # Array's name → its buffer

    def build(self, function: PtxFunction, memory_limit_bytes: int) -> LaunchInputs:
        arguments = check_arguments(self.module, function, self.launch)
        references, _ = _split_references(self.module, self.launch)
        for texture in (*references, *_list_textures(self.launch)):
            _check_texture(texture)
        variables = [(self._find_variable(array), array) for array in self.launch.variables]
        _check_memory(_list_arrays(self.launch), memory_limit_bytes)
        end = max((one.offset_bytes + one.size_bytes for one in function.parameters), default=0)
        self.parameters = bytearray(end)
        for number, (parameter, argument) in enumerate(zip(function.parameters, arguments, strict=True)):
            self._place(argument, parameter.offset_bytes, number)
        for texture in references:
            self._add_texture(texture, None, None)
        for one in self.launch.memory:
            if isinstance(one, TextureArgument):
                self._add_texture(one, None, None)
            else:
                self._add_buffer(one, Space.GLOBAL, None)
        return LaunchInputs(
            parameters=bytes(self.parameters),
            buffers=tuple(self.buffers),
            pointers=tuple(self.pointers),
            textures=tuple(self.textures),
            variables={variable.name: generate_array(array) for variable, array in variables},
            variable_addresses={
                one.name: one.base_address for one in self.launch.variables if one.base_address is not None
            },
        )

    def _place(self, argument: Argument, offset: int, number: int) -> None:
        for at, one in list_members(argument):
            if isinstance(one, ScalarArgument):
                content = pack_scalar(one.value, one.type)
                self.parameters[offset + at : offset + at + len(content)] = content
            elif isinstance(one, ArrayArgument):
                self._add_pointer(one, offset + at, number)
            else:
                self._add_texture(one, offset + at, number)

    def _add_pointer(self, array: ArrayArgument, offset: int, number: int) -> None:
        if array.alias_of is None:
            buffer = self._add_buffer(array, Space.GLOBAL, number)
        else:
            buffer = self.places[array.alias_of]
        slot = PointerSlot(
            parameter_offset_bytes=offset, buffer=buffer, offset_bytes=array.offset_elements * array.type.bytes
        )
        self.pointers.append(slot)

    def _add_buffer(self, array: ArrayArgument, space: Space, number: int | None) -> int:
        self.buffers.append(
            BufferInput(
                name=array.name,
                space=space,
                element=array.type,
                data=generate_array(array),
                argument=number,
                is_zero=array.generator == Generator.ZEROS,
                base_address=array.base_address,
            )
        )
        self.places[array.name] = len(self.buffers) - 1
        return len(self.buffers) - 1

    def _add_texture(self, texture: TextureArgument, offset: int | None, number: int | None) -> None:
        buffer = self._add_buffer(texture.array, Space.TEXTURE, number)
        shape = _find_shape(texture)
        self.textures.append(
            TextureInput(
                name=texture.name,
                buffer=buffer,
                texels=self.buffers[buffer].data.reshape(shape),
                element=texture.array.type,
                dimensions=3 if texture.depth else 2 if texture.height else 1,
                is_linear_filter=texture.is_linear_filter,
                address_mode=texture.address_mode,
                is_normalized=texture.is_normalized,
                reads_normalized=texture.reads_normalized,
                parameter_offset_bytes=offset,
                handle=texture.handle,
            )
        )

    def _find_variable(self, array: ArrayArgument) -> PtxVariable:
        variable = self.module.variables.get(array.name)
        known = [name for name, one in self.module.variables.items() if _is_fillable(one)]
        if variable is None or not _is_fillable(variable):
            shown = ", ".join(known[:10]) or "none"
            raise InputError(f"the module has no variable {array.name[:200]!r}", remedy=f"those it has: {shown}")
        size_bytes = array.count * array.type.bytes
        if size_bytes > variable.size_bytes:
            raise InputError(
                f"{array.name[:200]!r} has {variable.size_bytes} bytes, but {size_bytes} are given",
                remedy="correct the count or the type",
            )
        return variable


def _find_shape(texture: TextureArgument) -> tuple[int, int, int, int]:
    return max(texture.depth, texture.layers, 1), max(texture.height, 1), texture.width, texture.channels


def _list_textures(launch: LaunchDescription) -> list[TextureArgument]:
    """Textures of arguments, of structures among them, and of memory."""
    return [one for one in (*list_passed(launch), *launch.memory) if isinstance(one, TextureArgument)]


def _is_fillable(variable: PtxVariable) -> bool:
    return variable.space in (Space.GLOBAL, Space.CONST) and not variable.is_texture and not variable.is_extern


def check_arguments(module: PtxModule, function: PtxFunction, launch: LaunchDescription) -> list[Argument]:
    """Arguments of the parameters, in order, checked against them.

    Raises:
        InputError: an argument is missing, too many or of another size than its parameter, or shares memory that is not declared before it.
    """
    _, arguments = _split_references(module, launch)
    _check_count(function, arguments)
    known: set[str] = set()
    for number, (parameter, argument) in enumerate(zip(function.parameters, arguments, strict=True)):
        _check_argument(number, parameter, argument)
        for _, one in list_members(argument):
            alias_of = one.alias_of if isinstance(one, ArrayArgument) else None
            if alias_of is not None and alias_of not in known:
                message = f"{one.name!r} shares the memory of {alias_of!r}, which is not declared before it"
                raise InputError(message, remedy="correct alias_of")
            if isinstance(one, ArrayArgument | TextureArgument) and alias_of is None:
                known.add(one.array.name if isinstance(one, TextureArgument) else one.name)
    return arguments


def _split_references(module: PtxModule, launch: LaunchDescription) -> tuple[list[TextureArgument], list[Argument]]:
    """Textures that are variables of the module, and arguments of the parameters."""
    references: list[TextureArgument] = []
    arguments: list[Argument] = []
    for argument in launch.arguments:
        variable = module.variables.get(argument.name)
        if isinstance(argument, TextureArgument) and variable is not None and _is_reference(variable):
            references.append(argument)
        else:
            arguments.append(argument)
    return references, arguments


def _is_reference(variable: PtxVariable) -> bool:
    """Whether a variable is a texture reference, or holds a texture's handle."""
    return variable.is_texture or (_is_fillable(variable) and variable.size_bytes == _ADDRESS_BYTES)


def _check_count(function: PtxFunction, arguments: Sequence[Argument]) -> None:
    wanted, given = function.parameters, len(arguments)
    if given < len(wanted):
        raise InputError(
            f"{_name(function)} takes {len(wanted)} arguments, and {given} are given: "
            f"parameter {given} ({describe_parameter(wanted[given])}) has none",
            remedy=f"add {suggest_argument(wanted[given], given)}",
        )
    if given > len(wanted):
        raise InputError(
            f"{_name(function)} takes {len(wanted)} arguments, but {given} are given",
            remedy=f"remove {arguments[len(wanted)].name!r}",
        )
    size = sum(one.size_bytes for one in wanted)
    if size > _LARGEST_PARAMETERS:
        raise InputError(f"{_name(function)} takes {size} bytes of parameters", remedy="no GPU takes that many")


def _name(function: PtxFunction) -> str:
    return f"kernel {function.name[:200]}"


def describe_parameter(parameter: PtxVariable) -> str:
    """Size and type of a parameter, in words."""
    if parameter.is_pointer:
        return "8 bytes, a pointer"
    if parameter.count > 1:
        return f"{parameter.size_bytes} bytes, a structure"
    return f"{parameter.size_bytes} bytes, {parameter.type.value}"


def suggest_argument(parameter: PtxVariable, number: int) -> str:
    """TOML that describes an argument of a parameter."""
    name = f'name = "argument{number}"'
    if parameter.count > 1:
        return f"{{ {name}, size = {parameter.size_bytes}, members = [ … ] }}"
    if parameter.is_pointer or parameter.size_bytes == _ADDRESS_BYTES:
        return f'{{ {name}, type = "float", count = … }} for an array, or type = "int64", value = … for a number'
    return f'{{ {name}, type = "{parameter.type.value}", value = … }}'


def _check_argument(number: int, parameter: PtxVariable, argument: Argument) -> None:
    size, what = _ADDRESS_BYTES, "is an address"
    if isinstance(argument, ScalarArgument):
        size, what = argument.type.bytes, f"is {argument.type.value}"
    elif isinstance(argument, StructArgument):
        size, what = argument.size_bytes, "is a structure"
        _check_members(argument)
    elif isinstance(argument, TextureArgument):
        what = "is a handle"
    if size != parameter.size_bytes:
        raise InputError(
            f"argument {number} ({argument.name!r}) {what} of {size} bytes, but the parameter has {describe_parameter(parameter)}",
            remedy=f"write {suggest_argument(parameter, number)}",
        )


def _check_texture(texture: TextureArgument) -> None:
    texels = math.prod(_find_shape(texture))
    if texels != texture.array.count or texture.array.alias_of is not None:
        raise InputError(
            f"the texture {texture.name!r} has {texels} numbers, but its array {texture.array.count}",
            remedy="correct its sizes",
        )


def _check_members(struct: StructArgument) -> None:
    for at, member in struct.members:
        end = at + (member.type.bytes if isinstance(member, ScalarArgument) else _ADDRESS_BYTES)
        if at < 0 or end > struct.size_bytes:
            raise InputError(
                f"{member.name!r} ends at byte {end} of {struct.name!r}, which has {struct.size_bytes}",
                remedy="correct its place",
            )


def _list_arrays(launch: LaunchDescription) -> list[ArrayArgument]:
    """All arrays that need memory."""
    found = [*list_arrays(launch), *(one.array for one in _list_textures(launch))]
    return [array for array in found if array.alias_of is None]


def _count_bytes(array: ArrayArgument) -> int:
    """Bytes an array needs: emulated memory, a copy of its content unless it is zeros, and a permutation's sort keys."""
    copies = 1 if array.generator == Generator.ZEROS else 2
    return array.count * (array.type.bytes * copies + (_KEY_BYTES if array.generator == Generator.PERMUTATION else 0))


def _check_memory(arrays: Sequence[ArrayArgument], limit_bytes: int) -> None:
    needed = sum(_count_bytes(array) for array in arrays)
    if needed > limit_bytes:
        largest = max(arrays, key=_count_bytes)
        raise InputError(
            f"the arrays need {format_bytes(needed)}, but only {format_bytes(limit_bytes)} may be used; {largest.name!r} alone needs "
            f"{format_bytes(_count_bytes(largest))}",
            remedy="make the launch smaller, or raise the memory limit",
        )
