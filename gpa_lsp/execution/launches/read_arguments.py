"""Arguments of a launch, from their TOML tables; members of structures are laid out as in C++."""

import math
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from gpa_lsp.code.ptx.scalar_types import ScalarType, align_up
from gpa_lsp.execution.launches.files import read_array_file, resolve_file
from gpa_lsp.execution.launches.launch import (
    Argument,
    ArrayArgument,
    Generator,
    ScalarArgument,
    StructArgument,
    TextureArgument,
)
from gpa_lsp.execution.launches.type_names import ElementType, check_scalar, read_type
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.number_expressions import Names
from gpa_lsp.foundation.numbers import format_number
from gpa_lsp.foundation.toml_tables import Table

SCALAR_KEYS = frozenset({"name", "type", "value"})  # Keys of a scalar's table

# Keys of a structure's table; its members have those of scalars, arrays or structures, and ``at``
STRUCT_KEYS = frozenset({"name", "members", "size"})

# Keys of an array's table
ARRAY_KEYS = frozenset({
    "name", "type", "count", "shape", "fill", "value", "values", "low", "high", "step", "seed", "file", "offset",
    "alias_of", "base_address", "guessed",
})  # fmt: skip

# Keys of a texture's table
TEXTURE_KEYS = (ARRAY_KEYS - {"count", "shape", "offset", "alias_of", "base_address", "guessed"}) | {
    "width", "height", "depth", "layers", "channels", "filter", "address", "normalized", "reads_normalized", "handle",
}  # fmt: skip

ADDRESS_MODES = ("clamp", "border", "wrap", "mirror")
FILTERS = ("nearest", "linear")
_LARGEST_STRUCT = 32764  # Bytes of parameters that a kernel can have, from CUDA 12.1 on; and of members
_DEEPEST = 8
_POINTER = ElementType(scalar=ScalarType.B64)


class ArrayReader(Struct, kw_only=True):
    """Reads the arrays of one launch."""

    names: Names  # for expressions
    folder: Path | None  # of the description, where files are looked for; None for a text that came from no file
    arrays: dict[str, ArrayArgument] = field(default_factory=dict)  # those that were read, by name

    def read(self, table: Table, name: str, *, shape_of: Sequence[int] = ()) -> ArrayArgument:
        """Read an array.

        Args:
            shape_of: a texture's sizes, in place of ``count``.
        """
        if not shape_of:
            table.check_keys(ARRAY_KEYS, "an array")
        if "alias_of" in table.content:
            return self._read_alias(table, name)
        kind = read_type(table.read_text("type"))
        fill = self._find_fill(table)
        file = self._find_file(table) if fill == Generator.FILE else None
        count = self._read_count(table, kind, shape_of, file)
        values = self._read_values(table, kind) if fill == Generator.VALUES else ()
        usual_high = 100.0 if kind.scalar.is_integer and fill == Generator.UNIFORM else 1.0
        low, high = self._read_finite(table, "low", 0.0), self._read_finite(table, "high", usual_high)
        if fill == Generator.UNIFORM and high < low:
            raise table.refuse(
                f"high is {format_number(high)}, below low, {format_number(low)}", remedy="give low ≤ high", key="high"
            )
        array = ArrayArgument(
            name=name,
            type=kind.scalar,
            count=count,
            generator=fill,
            value=check_scalar(table.read_number("value", self.names.find, 0), kind.scalar),
            low=low,
            high=high,
            step=self._read_finite(table, "step", 1.0),
            seed=table.read_integer("seed", self.names.find, 0),
            values=values,
            file=file,
            offset_elements=kind.lanes * table.read_integer("offset", self.names.find, 0, most=count // kind.lanes),
            base_address=table.read_integer("base_address", self.names.find, least=1)
            if "base_address" in table.content
            else None,
            is_guessed=table.read_flag("guessed"),
        )
        self._keep(table, array)
        return array

    def _read_finite(self, table: Table, key: str, default: float) -> float:
        found = float(table.read_number(key, self.names.find, default))
        if not math.isfinite(found):
            raise table.refuse(f"{key} is {found}", remedy=f"give a finite {key}", key=key)
        return found

    def _keep(self, table: Table, array: ArrayArgument) -> None:
        if array.name in self.arrays:
            raise table.refuse(f"two arrays are named {array.name!r}", remedy="rename one of them", key="name")
        self.arrays[array.name] = array

    def _read_alias(self, table: Table, name: str) -> ArrayArgument:
        table.check_keys({"name", "type", "alias_of", "offset"}, "an array that shares memory")
        known = self.arrays.get(table.read_text("alias_of"))
        if known is None:
            raise table.refuse(
                "alias_of names no array above", remedy="name an array that is declared before this one", key="alias_of"
            )
        kind = read_type(table.read_text("type")) if "type" in table.content else ElementType(scalar=known.type)
        count = known.count * known.type.bytes // kind.scalar.bytes
        offset = kind.lanes * table.read_integer("offset", self.names.find, 0, most=count // kind.lanes)
        array = ArrayArgument(
            name=name, type=kind.scalar, count=count, offset_elements=offset, alias_of=known.alias_of or known.name
        )
        self._keep(table, array)
        return array

    def _find_fill(self, table: Table) -> Generator:
        given = [key for key in ("values", "file") if key in table.content]
        default = Generator(given[0]) if given else Generator.CONSTANT if "value" in table.content else Generator.ZEROS
        fill = Generator(table.read_choice("fill", [one.value for one in Generator], default.value))
        needed = {Generator.VALUES: "values", Generator.FILE: "file", Generator.CONSTANT: "value"}.get(fill)
        if needed is not None and needed not in table.content:
            raise table.refuse(f"fill is {fill.value!r} without {needed!r}", remedy=f"give {needed} = …", key="fill")
        if given and fill != Generator(given[0]):
            raise table.refuse(
                f"{given[0]!r} is given, and fill is {fill.value!r}", remedy="leave one of them out", key="fill"
            )
        return fill

    def _find_file(self, table: Table) -> Path:
        name = table.read_text("file")
        if self.folder is None:
            raise table.refuse("files are only read for a description that is a file", remedy="save it", key="file")
        try:
            return resolve_file(self.folder, name)
        except InputError as error:
            raise table.locate(error, "file") from None

    def _read_count(self, table: Table, kind: ElementType, sizes: Sequence[int], file: Path | None) -> int:
        """Scalars in the array."""
        elements = math.prod(sizes) if sizes else self._count_elements(table)
        if elements > _MOST_ELEMENTS:
            raise table.refuse(f"{elements} elements", remedy="give fewer; no GPU has that much memory")
        if file is not None:
            held = read_array_file(file, kind.scalar).count
            if elements >= 0 and held != elements * kind.lanes:
                raise table.refuse(
                    f"{file.name} holds {held // kind.lanes} elements, not {elements}",
                    remedy="leave count out, or correct it",
                    key="file",
                )
            return held
        if elements < 0 and isinstance(table.content.get("values"), list):
            return max(len(table.content["values"]), 1)
        if elements < 0:
            raise table.refuse("the array has no size", remedy="give count = … or shape = [ … ]")
        return elements * kind.lanes

    def _count_elements(self, table: Table) -> int:
        """Elements that are given; -1 if none are."""
        if "shape" not in table.content:
            return table.read_integer("count", self.names.find, most=_MOST_ELEMENTS) if "count" in table.content else -1
        shape = table.content["shape"]
        if "count" in table.content or not isinstance(shape, list) or not 1 <= len(shape) <= 16:
            raise table.refuse(
                "the shape is invalid", remedy="write shape = [HEIGHT, WIDTH], without count", key="shape"
            )
        sizes = (table.evaluate(size, self.names.find, "shape") for size in shape)
        return math.prod(table.check_integer(size, "shape", least=0, most=_MOST_ELEMENTS) for size in sizes)

    def _read_values(self, table: Table, kind: ElementType) -> tuple[int | float, ...]:
        values = table.content["values"]
        if not isinstance(values, list) or not 1 <= len(values) <= _MOST_VALUES:
            raise table.refuse("values is not a list of numbers", remedy="write values = [1, 2, 3]", key="values")
        return tuple(check_scalar(table.evaluate(one, self.names.find, "values"), kind.scalar) for one in values)


class ArgumentReader(Struct, kw_only=True):
    """Reads the arguments of one launch."""

    names: Names  # for expressions
    arrays: ArrayReader  # reads those among them

    def read(self, table: Table, number: int) -> Argument:
        """Read an argument.

        Raises:
            InputError: it is none.
        """
        name = table.read_text("name", f"argument{number}")
        try:
            return self._read(table, name)
        except InputError as error:
            raise table.locate(error, "type" if "type" in table.content else "name") from None

    def _read(self, table: Table, name: str) -> Argument:
        keys = table.content.keys()
        if "members" in keys:
            table.check_keys(STRUCT_KEYS, "a structure")
            return self._read_struct(table, name)
        if "width" in keys:
            return self.read_texture(table, name)
        if keys & OF_ARRAYS:
            return self.arrays.read(table, name)
        if "value" not in keys:
            raise table.refuse(
                f"{name!r} is neither a number nor an array",
                remedy="give value = … for a number, count = … for an array",
            )
        table.check_keys(SCALAR_KEYS, "a number")
        return self._read_numbers(table, name)

    def read_memory(self, table: Table, number: int) -> ArrayArgument | TextureArgument:
        """Read an array or texture that no parameter names.

        Raises:
            InputError: it is neither.
        """
        found = self.read(table, number)
        if not isinstance(found, ArrayArgument | TextureArgument):
            raise table.refuse(f"{found.name!r} is no array and no texture", remedy="give count = … or width = …")
        return found

    def read_texture(self, table: Table, name: str) -> TextureArgument:
        """Read a texture or surface."""
        table.check_keys(TEXTURE_KEYS, "a texture")
        channels = table.read_integer("channels", self.names.find, 1)
        if channels not in (1, 2, 4):
            raise table.refuse(f"{channels} channels", remedy="textures have 1, 2 or 4", key="channels")
        width, height, depth, layers = (
            table.read_integer(key, self.names.find, default, least=0 if default == 0 else 1, most=1 << 27)
            for key, default in (("width", None), ("height", 0), ("depth", 0), ("layers", 0))
        )
        if depth and not height:
            raise table.refuse("a texture with depth has no height", remedy="give height = …", key="depth")
        if depth and layers:
            raise table.refuse("a texture with depth has layers", remedy="leave one of them out", key="layers")
        if read_type(table.read_text("type")).lanes > 1:
            raise table.refuse(
                "the texels have a vector type", remedy="give the type of one channel, and channels", key="type"
            )
        sizes = (width, max(height, 1), max(depth, layers, 1), channels)
        return TextureArgument(
            name=name,
            array=self.arrays.read(table, name, shape_of=sizes),
            channels=channels,
            width=width,
            height=height,
            depth=depth,
            layers=layers,
            is_linear_filter=table.read_choice("filter", FILTERS, "nearest") == "linear",
            address_mode=table.read_choice("address", ADDRESS_MODES, "clamp"),
            is_normalized=table.read_flag("normalized"),
            reads_normalized=table.read_flag("reads_normalized"),
            handle=table.read_integer("handle", self.names.find, least=1) if "handle" in table.content else None,
        )

    def read_number_member(self, table: Table, name: str) -> tuple[ScalarArgument, ...]:
        """Read consecutive numbers in a structure."""
        table.check_keys(SCALAR_KEYS, "a number")
        if "value" not in table.content:
            raise table.refuse(
                f"{name!r} has no value", remedy="give value = …, or count = … for a pointer to an array"
            )
        kind = read_type(table.read_text("type"))
        scalars = self._read_scalars(table, name, kind)
        if len(scalars) % kind.lanes:
            raise table.refuse(
                f"{len(scalars)} numbers for parts of {kind.lanes}", remedy="give all parts", key="value"
            )
        return scalars

    def _read_numbers(self, table: Table, name: str) -> ScalarArgument | StructArgument:
        """Read a number, or a list of them for a vector such as ``float4``."""
        kind = read_type(table.read_text("type"))
        scalars = self._read_scalars(table, name, kind)
        if kind.lanes == 1 and len(scalars) == 1:
            return scalars[0]
        if len(scalars) != kind.lanes:
            raise table.refuse(f"{len(scalars)} numbers for {kind.lanes}", remedy="give one for each part", key="value")
        members = tuple((number * kind.scalar.bytes, one) for number, one in enumerate(scalars))
        return StructArgument(name=name, size_bytes=kind.bytes, members=members)

    def _read_scalars(self, table: Table, name: str, kind: ElementType) -> tuple[ScalarArgument, ...]:
        value = table.content["value"]
        values = value if isinstance(value, list) else [value]
        if not 1 <= len(values) <= _LARGEST_STRUCT:
            raise table.refuse(f"{len(values)} numbers", remedy=f"give 1 to {_LARGEST_STRUCT}", key="value")
        numbers = (check_scalar(table.evaluate(one, self.names.find, "value"), kind.scalar) for one in values)
        return tuple(ScalarArgument(name=name, type=kind.scalar, value=number) for number in numbers)

    def _read_struct(self, table: Table, name: str) -> StructArgument:
        layout = StructReader(arguments=self, owner=name)
        layout.read_members(table, 0, 0)
        size = table.read_integer("size", self.names.find, layout.size_bytes, least=1, most=_LARGEST_STRUCT)
        if size < layout.end_bytes:
            raise table.refuse(
                f"the members end at byte {layout.end_bytes}, and size is {size}", remedy="correct the size", key="size"
            )
        return StructArgument(name=name, size_bytes=size, members=tuple(layout.members))


class StructReader(Struct, kw_only=True):
    """Reads the members of one structure, those of structures in it included."""

    arguments: ArgumentReader  # reads arrays and numbers
    owner: str  # the structure's name, for arrays without one
    # (offset in bytes, member)
    members: list[tuple[int, ScalarArgument | ArrayArgument | TextureArgument]] = field(default_factory=list)
    end_bytes: int = 0  # behind the last byte of a member
    alignment_bytes: int = 1  # the largest of a member

    @property
    def size_bytes(self) -> int:
        """Size of the structure, with padding at its end."""
        return align_up(self.end_bytes, self.alignment_bytes)

    def read_members(self, table: Table, start: int, depth: int) -> tuple[int, int]:
        """Read the members of a structure that begins at ``start``.

        Raises:
            InputError: a member is none, or there are too many.
        """
        if depth > _DEEPEST:
            raise table.refuse("structures are nested too deeply", remedy=f"write at most {_DEEPEST} levels")
        place, alignment = start, 1
        for number, member in enumerate(table.read_tables("members", "members")):
            if len(self.members) > _LARGEST_STRUCT:
                raise member.refuse(f"more than {_LARGEST_STRUCT} members", remedy="write fewer")
            own = self._find_alignment(member, depth)
            at = member.read_integer(
                "at", self.arguments.names.find, align_up(place - start, own), most=_LARGEST_STRUCT
            )
            place = max(place, self._read_member(member, start + at, number, depth))
            alignment = max(alignment, own)
        self.end_bytes = max(self.end_bytes, place)
        self.alignment_bytes = max(self.alignment_bytes, alignment)
        return align_up(place - start, alignment) + start, alignment

    def _find_alignment(self, member: Table, depth: int) -> int:
        if depth > _DEEPEST:
            return 1
        if "members" in member.content:
            inner = member.read_tables("members", "members")
            return max((self._find_alignment(one, depth + 1) for one in inner), default=1)
        element = read_type(member.read_text("type")) if _is_number(member) else _POINTER
        return element.alignment_bytes

    def _read_member(self, member: Table, at: int, number: int, depth: int) -> int:
        """Read a member; returns the offset behind it."""
        content = {key: value for key, value in member.content.items() if key != "at"}
        inner = Table(content=content, place=member.place, lines=member.lines, path=member.path)
        if "members" in content:
            inner.check_keys({"name", "members"}, "a structure in a structure")
            return self.read_members(inner, at, depth + 1)[0]
        if not _is_number(inner):
            name = inner.read_text("name", f"{self.owner}.{number}")
            is_texture = "width" in content
            found = self.arguments.read_texture(inner, name) if is_texture else self.arguments.arrays.read(inner, name)
            self.members.append((at, found))
            return at + _POINTER.bytes
        scalars = self.arguments.read_number_member(inner, inner.read_text("name", f"{self.owner}.{number}"))
        for one in scalars:
            self.members.append((at, one))
            at += one.type.bytes
        return at


def _is_number(member: Table) -> bool:
    """Whether a member is a number, rather than a pointer or texture."""
    return not (OF_ARRAYS | {"width"}) & member.content.keys()


OF_ARRAYS = frozenset({"count", "shape", "fill", "values", "file", "alias_of"})  # Keys that only arrays have

_MOST_ELEMENTS = 1 << 40
_MOST_VALUES = 1 << 20
