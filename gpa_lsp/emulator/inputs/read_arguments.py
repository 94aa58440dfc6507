"""Arguments of a launch, from their tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpa_lsp.emulator.inputs.files import read_array_file, resolve_file
from gpa_lsp.emulator.inputs.names import Names
from gpa_lsp.emulator.inputs.scalars import check_scalar
from gpa_lsp.emulator.inputs.tables import Table
from gpa_lsp.emulator.inputs.type_names import ElementType, read_type
from gpa_lsp.emulator.launch import (
    Argument,
    ArrayArgument,
    Generator,
    ScalarArgument,
    StructArgument,
    TextureArgument,
)
from gpa_lsp.errors import InputError

ARRAY_KEYS = frozenset(
    {
        "name",
        "type",
        "count",
        "shape",
        "fill",
        "value",
        "values",
        "low",
        "high",
        "step",
        "seed",
        "file",
        "offset",
        "alias_of",
    }
)
"""Keys of an array's table."""

SCALAR_KEYS = frozenset({"name", "type", "value"})
"""Keys of a scalar's table."""

STRUCT_KEYS = frozenset({"name", "members", "size"})
"""Keys of a structure's table; its members have those of scalars, arrays or structures, and ``at``."""

TEXTURE_KEYS = (ARRAY_KEYS - {"count", "shape", "offset", "alias_of"}) | {
    "width",
    "height",
    "depth",
    "channels",
    "filter",
    "address",
    "normalized",
    "reads_normalized",
}
"""Keys of a texture's table."""

ADDRESS_MODES = ("clamp", "border", "wrap", "mirror")
FILTERS = ("nearest", "linear")
_OF_ARRAYS = frozenset({"count", "shape", "fill", "values", "file", "alias_of"})
_MOST_ELEMENTS = 1 << 40
_MOST_VALUES = 1 << 20
_MOST_MEMBERS = 4096
_LARGEST_STRUCT = 32764
"""Bytes of parameters that a kernel can have, from CUDA 12.1 on."""


@dataclass(slots=True, kw_only=True)
class ArgumentReader:
    """Reads the arguments of one launch.

    Attributes:
        names: for expressions.
        folder: of the description, where files are looked for; None for a text that came from no file.
        arrays: those that were read, by name.
    """

    names: Names
    folder: Path | None
    arrays: dict[str, ArrayArgument] = field(default_factory=dict)

    def read(self, table: Table, number: int) -> Argument:
        """One argument.

        Args:
            table: its own.
            number: its index, for arguments without a name.

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
            table.check_keys(TEXTURE_KEYS, "a texture")
            return self._read_texture(table, name)
        if keys & _OF_ARRAYS:
            table.check_keys(ARRAY_KEYS, "an array")
            return self.read_array(table, name)
        if "value" not in keys:
            raise table.refuse(
                f"{name!r} is neither a number nor an array",
                remedy="give value = … for a number, count = … for an array",
            )
        table.check_keys(SCALAR_KEYS, "a number")
        return self._read_numbers(table, name)

    def read_array_member(self, table: Table, name: str) -> ArrayArgument:
        """An array that a structure points to."""
        table.check_keys(ARRAY_KEYS, "an array")
        return self.read_array(table, name)

    def read_number_member(self, table: Table, name: str) -> tuple[ScalarArgument, ...]:
        """Numbers that lie in a structure one behind the other."""
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
        """A number; a list of them for a vector such as ``float4``."""
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
        if not 1 <= len(values) <= _MOST_MEMBERS:
            raise table.refuse(f"{len(values)} numbers", remedy=f"give 1 to {_MOST_MEMBERS}", key="value")
        found = []
        for one in values:
            number = check_scalar(table.evaluate(one, self.names.find, "value"), kind.scalar)
            found.append(ScalarArgument(name=name, type=kind.scalar, value=number))
        return tuple(found)

    def read_array(self, table: Table, name: str, *, shape_of: Sequence[int] = ()) -> ArrayArgument:
        """An array.

        Args:
            table: its own.
            name: as read.
            shape_of: a texture's sizes, in place of ``count``.
        """
        alias = table.content.get("alias_of")
        if alias is not None:
            return self._read_alias(table, name)
        kind = read_type(table.read_text("type"))
        fill = self._find_fill(table)
        file = self._find_file(table) if fill == Generator.FILE else None
        count = self._read_count(table, kind, shape_of, file)
        values = self._read_values(table, kind) if fill == Generator.VALUES else ()
        array = ArrayArgument(
            name=name,
            type=kind.scalar,
            count=count,
            generator=fill,
            value=check_scalar(table.read_number("value", self.names.find, 0), kind.scalar),
            low=float(table.read_number("low", self.names.find, 0.0)),
            high=float(table.read_number("high", self.names.find, _default_high(kind, fill))),
            step=float(table.read_number("step", self.names.find, 1.0)),
            seed=table.read_integer("seed", self.names.find, 0),
            values=values,
            file=file,
            offset_elements=kind.lanes * table.read_integer("offset", self.names.find, 0, most=count // kind.lanes),
        )
        self._keep(table, array)
        return array

    def _keep(self, table: Table, array: ArrayArgument) -> None:
        if array.name in self.arrays:
            raise table.refuse(f"two arrays are called {array.name!r}", remedy="rename one of them", key="name")
        self.arrays[array.name] = array

    def _read_alias(self, table: Table, name: str) -> ArrayArgument:
        table.check_keys({"name", "type", "alias_of", "offset"}, "an array that is another one's memory")
        known = self.arrays.get(table.read_text("alias_of"))
        if known is None:
            raise table.refuse(
                "alias_of names no array above", remedy="name an array that stands before this one", key="alias_of"
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
        if sizes:
            elements = 1
            for size in sizes:
                elements *= size
        else:
            elements = self._read_elements(table)
        if elements > _MOST_ELEMENTS:
            raise table.refuse(f"{elements} elements", remedy="give fewer; no GPU has so much memory")
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

    def _read_elements(self, table: Table) -> int:
        """Elements that were asked for; -1 where nothing says."""
        if "shape" not in table.content:
            return table.read_integer("count", self.names.find, most=_MOST_ELEMENTS) if "count" in table.content else -1
        shape = table.content["shape"]
        if "count" in table.content or not isinstance(shape, list) or not 1 <= len(shape) <= 16:
            raise table.refuse("the shape is none", remedy="write shape = [HEIGHT, WIDTH], without count", key="shape")
        elements = 1
        for size in shape:
            elements *= table.check_integer(
                table.evaluate(size, self.names.find, "shape"), "shape", least=0, most=_MOST_ELEMENTS
            )
        return elements

    def _read_values(self, table: Table, kind: ElementType) -> tuple[int | float, ...]:
        values = table.content["values"]
        if not isinstance(values, list) or not 1 <= len(values) <= _MOST_VALUES:
            raise table.refuse("values is no list of numbers", remedy="write values = [1, 2, 3]", key="values")
        return tuple(check_scalar(table.evaluate(one, self.names.find, "values"), kind.scalar) for one in values)

    def _read_texture(self, table: Table, name: str) -> TextureArgument:
        channels = table.read_integer("channels", self.names.find, 1)
        if channels not in (1, 2, 4):
            raise table.refuse(f"{channels} channels", remedy="textures have 1, 2 or 4", key="channels")
        width, height, depth = (
            table.read_integer(key, self.names.find, default, least=0 if default == 0 else 1, most=1 << 27)
            for key, default in (("width", None), ("height", 0), ("depth", 0))
        )
        if depth and not height:
            raise table.refuse("a texture with depth has no height", remedy="give height = …", key="depth")
        if read_type(table.read_text("type")).lanes > 1:
            raise table.refuse(
                "the texels have a vector type", remedy="give the type of one channel, and channels", key="type"
            )
        sizes = (width, max(height, 1), max(depth, 1), channels)
        return TextureArgument(
            name=name,
            array=self.read_array(table, name, shape_of=sizes),
            channels=channels,
            width=width,
            height=height,
            depth=depth,
            is_linear_filter=table.read_choice("filter", FILTERS, "nearest") == "linear",
            address_mode=table.read_choice("address", ADDRESS_MODES, "clamp"),
            is_normalized=table.read_flag("normalized"),
            reads_normalized=table.read_flag("reads_normalized"),
        )

    def _read_struct(self, table: Table, name: str) -> StructArgument:
        from gpa_lsp.emulator.inputs.read_structs import StructReader

        layout = StructReader(arguments=self, owner=name)
        layout.read_members(table, 0, 0)
        size = table.read_integer("size", self.names.find, layout.size_bytes, least=1, most=_LARGEST_STRUCT)
        if size < layout.end_bytes:
            raise table.refuse(
                f"the members end at byte {layout.end_bytes}, and size is {size}", remedy="correct the size", key="size"
            )
        return StructArgument(name=name, size_bytes=size, members=tuple(layout.members))


def _default_high(kind: ElementType, fill: Generator) -> float:
    return 100.0 if kind.scalar.is_integer and fill == Generator.UNIFORM else 1.0
