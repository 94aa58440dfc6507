"""Arrays of a launch, from their tables."""

import math
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from gpa_lsp.execution.launches.files import read_array_file, resolve_file
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator
from gpa_lsp.execution.launches.names import Names
from gpa_lsp.execution.launches.scalars import check_scalar
from gpa_lsp.execution.launches.tables import Table
from gpa_lsp.execution.launches.type_names import ElementType, read_type
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_number

# Keys of an array's table
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
        "base_address",
        "guessed",
    }
)

OF_ARRAYS = frozenset({"count", "shape", "fill", "values", "file", "alias_of"})  # Keys that only arrays have

_MOST_ELEMENTS = 1 << 40
_MOST_VALUES = 1 << 20


class ArrayReader(Struct, kw_only=True):
    """Reads the arrays of one launch."""

    names: Names  # for expressions
    folder: Path | None  # of the description, where files are looked for; None for a text that came from no file
    arrays: dict[str, ArrayArgument] = field(default_factory=dict)  # those that were read, by name

    def read(self, table: Table, name: str, *, shape_of: Sequence[int] = ()) -> ArrayArgument:
        """An array.

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
        low, high = self._read_finite(table, "low", 0.0), self._read_finite(table, "high", _default_high(kind, fill))
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
            is_guessed=self._read_guessed(table),
        )
        self._keep(table, array)
        return array

    def _read_finite(self, table: Table, key: str, default: float) -> float:
        found = float(table.read_number(key, self.names.find, default))
        if not math.isfinite(found):
            raise table.refuse(f"{key} is {found}", remedy=f"give a finite {key}", key=key)
        return found

    def _read_guessed(self, table: Table) -> bool:
        guessed = table.content.get("guessed", False)
        if not isinstance(guessed, bool):
            raise table.refuse("guessed is neither true nor false", remedy="write guessed = true", key="guessed")
        return guessed

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
        if sizes:
            elements = 1
            for size in sizes:
                elements *= size
        else:
            elements = self._count_elements(table)
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
        """Elements that were asked for; -1 where nothing says."""
        if "shape" not in table.content:
            return table.read_integer("count", self.names.find, most=_MOST_ELEMENTS) if "count" in table.content else -1
        shape = table.content["shape"]
        if "count" in table.content or not isinstance(shape, list) or not 1 <= len(shape) <= 16:
            raise table.refuse(
                "the shape is invalid", remedy="write shape = [HEIGHT, WIDTH], without count", key="shape"
            )
        elements = 1
        for size in shape:
            elements *= table.check_integer(
                table.evaluate(size, self.names.find, "shape"), "shape", least=0, most=_MOST_ELEMENTS
            )
        return elements

    def _read_values(self, table: Table, kind: ElementType) -> tuple[int | float, ...]:
        values = table.content["values"]
        if not isinstance(values, list) or not 1 <= len(values) <= _MOST_VALUES:
            raise table.refuse("values is not a list of numbers", remedy="write values = [1, 2, 3]", key="values")
        return tuple(check_scalar(table.evaluate(one, self.names.find, "values"), kind.scalar) for one in values)


def _default_high(kind: ElementType, fill: Generator) -> float:
    return 100.0 if kind.scalar.is_integer and fill == Generator.UNIFORM else 1.0
