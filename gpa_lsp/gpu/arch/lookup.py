"""Find the architecture of a compute capability, by reading its table: TOML → :class:`~gpa_lsp.gpu.arch.model.Architecture`.

The tables lie in ``tables/``, one per architecture and complete in itself. A capability without a table is an error that lists those there
are: numbers of another architecture would look just as good and be wrong.

A value is written ``{ value = 64, documented = "guide" }``: the key beside ``value`` is its status and names its sources, ``note`` and
``spread`` may follow. ``{ unknown = "why" }`` is no value. A row of a hazard matrix holds lower bounds in ``value`` and, where they differ,
upper bounds in ``high``, one per entry of the matrix's ``readers``, ``"?"`` where the sources give none.

The tables are part of this package, so what is wrong with one is a :class:`~gpa_lsp.foundation.errors.CatalogueError`.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from gpa_lsp.foundation.errors import CatalogueError, UnknownArchitectureError
from gpa_lsp.foundation.toml_tables import read_own_table
from gpa_lsp.gpu.arch.hazards import HazardMatrix, LatencyClass, OpcodeClasses, ProducerGroup
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure, Producer, Status, Unknown, parse_compute_capability

Section = TypeVar("Section")
Key = TypeVar("Key", bound=StrEnum)

_STATUSES = {status.value: status for status in Status}
_NOT_IN_TABLE = {"table_of", "opcodes"}
_Count = Annotated[int, Meta(ge=0)]
_Amount = Annotated[float, Meta(ge=0, le=1e18)]  # nothing of a GPU is larger
# Type of a value as a section declares it → type its entry is converted to: no number is negative or infinite
_CONVERTED = {int: _Count, float: _Amount, tuple[int, ...]: tuple[_Count, ...]}
_Row = tuple[_Count | Literal["?"], ...]


def read_architecture(path: Path, opcodes: OpcodeClasses, wanted: tuple[int, int]) -> Architecture:
    """Read one architecture table.

    Args:
        opcodes: what :func:`read_opcode_classes` returned.
        wanted: the compute capability asked for: the table's own, or one of its ``also``.

    Raises:
        CatalogueError: the table is malformed or incomplete, cites a source it does not list, or does not serve ``wanted``.
    """
    document = read_own_table(path)
    table_of = parse_compute_capability(str(document.get("compute_capability")), path.name)
    also = _take_also(document, path.name)
    unlike = _find_differences(also, wanted, path.name) if wanted != table_of else {}
    _check_keys(document, set(Architecture.__struct_fields__) - _NOT_IN_TABLE, path.name)
    reader = _Reader(file=path.name, sources=document["sources"], unlike=unlike)
    for entry in also:
        reader.read_sources(entry["source"], "also")
    sections: dict[str, Any] = {}
    for field in fields(Architecture):
        if field.type is HazardMatrix:
            sections[field.name] = reader.read_matrix(document[field.name], field.name)
        elif isinstance(field.type, type) and issubclass(field.type, Struct) and field.name not in _NOT_IN_TABLE:
            sections[field.name] = reader.read_section(document[field.name], field.type, field.name)
    architecture = Architecture(
        name=reader.convert(document["name"], str, "name"),
        compute_capability=wanted,
        table_of=table_of,
        family=reader.convert(document["family"], str, "family"),
        examples=reader.convert(document["examples"], tuple[str, ...], "examples"),
        scoreboard=reader.read_by_key(document["scoreboard"], LatencyClass, "scoreboard", bool, may_be_unknown=True),
        producers={
            group: reader.read_section(entry, Producer, f"producers.{group}")
            for group, entry in reader.take_all(document["producers"], ProducerGroup, "producers")
        },
        opcodes=opcodes,
        sources=document["sources"],
        **sections,
    )
    reader.check_all_used()
    return architecture


def read_opcode_classes(path: Path) -> OpcodeClasses:
    """Read the table that says which class and group an opcode is in.

    Raises:
        CatalogueError: the table is malformed, cites a source it does not list, or puts one entry into two classes.
    """
    document = read_own_table(path)
    _check_keys(document, {"latency_classes", "producers", "sources"}, path.name)
    reader = _Reader(file=path.name, sources=document["sources"], unlike={})
    classes = reader.read_by_key(document["latency_classes"], LatencyClass, "latency_classes", tuple[str, ...])
    producers = reader.read_by_key(document["producers"], ProducerGroup, "producers", tuple[str, ...])
    reader.check_all_used()
    return OpcodeClasses(
        latency_classes=classes,
        producers=producers,
        sources=document["sources"],
        class_by_opcode=_turn_round(classes, path.name),
        producer_by_opcode=_turn_round(producers, path.name),
    )


class _Reader:
    """Turns entries into figures, and keeps count of the citations used and the differences applied."""

    def __init__(self, *, file: str, sources: object, unlike: dict[str, str]) -> None:
        self._file = file
        self._unlike = unlike
        self._cited: set[str] = set()
        self._applied: set[str] = set()
        if not isinstance(sources, dict) or not all(isinstance(text, str) and text for text in sources.values()):
            raise self._error("sources", "is a table in which every source has its citation")
        self._sources: dict[str, str] = sources

    def convert(self, value: object, kind: Any, place: str) -> Any:
        """A value as a type; strictly: no 1 for true, no 3.0 for 3, no text for a list."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise self._error(place, str(error)) from error

    def read_section(self, table: dict[str, Any], kind: type[Section], place: str) -> Section:
        """One section as a struct; every field must be there, and nothing else."""
        hashable: Any = kind
        spec = _field_kinds(hashable)
        _check_keys(table, spec.keys(), f"{self._file}: {place}")
        read = {
            name: self._read(table[name], of, f"{place}.{name}", may_be_unknown=may_be_unknown)
            for name, (of, may_be_unknown) in spec.items()
        }
        return kind(**read)

    def read_by_key(
        self, table: dict[str, Any], keys: type[Key], place: str, kind: Any, *, may_be_unknown: bool = False
    ) -> dict[Key, Any]:
        """Figures of one kind under every member of an enumeration."""
        return {
            key: self._read(entry, kind, f"{place}.{key}", may_be_unknown=may_be_unknown)
            for key, entry in self.take_all(table, keys, place)
        }

    def take_all(self, table: dict[str, Any], keys: type[Key], place: str) -> list[tuple[Key, Any]]:
        """The entry of every member of an enumeration."""
        _check_keys(table, {key.value for key in keys}, f"{self._file}: {place}")
        return [(key, table[key.value]) for key in keys]

    def read_matrix(self, table: dict[str, Any], place: str) -> HazardMatrix:
        """A hazard matrix: ``readers`` and one row per writer."""
        if not isinstance(table, dict):
            raise self._error(place, "not a table")
        readers = self.convert(table.get("readers"), tuple[str, ...], f"{place}.readers")
        rows = {
            writer: self._read_row(row, len(readers), f"{place}.{writer}")
            for writer, row in table.items()
            if writer != "readers"
        }
        return HazardMatrix(readers=readers, rows=rows)

    def check_all_used(self) -> None:
        """Refuse citations without a value and differences without a figure: either would be a slip of the pen."""
        idle = sorted(self._sources.keys() - self._cited)
        if idle:
            raise self._error("sources", f"cited nowhere: {', '.join(idle)}")
        lost = sorted(self._unlike.keys() - self._applied)
        if lost:
            raise self._error("also", f"no such figures: {', '.join(lost)}")

    def read_sources(self, names: object, place: str) -> tuple[str, ...]:
        """The keys a value cites, each of which must be listed."""
        keys: tuple[str, ...] = (names,) if isinstance(names, str) else self.convert(names, tuple[str, ...], place)
        if not keys:
            raise self._error(place, "cites no source")
        for key in keys:
            if key not in self._sources:
                raise self._error(place, f"source {key!r} is not listed in [sources]")
        self._cited.update(keys)
        return keys

    def _read(self, entry: object, kind: Any, place: str, *, may_be_unknown: bool) -> Any:
        if not isinstance(entry, dict):
            raise self._error(place, "not a table with a value or a reason why it is unknown")
        if "unknown" in entry:
            return self._read_unknown(entry, place, may_be_unknown=may_be_unknown)
        found = [key for key in entry if key in _STATUSES]
        if "value" not in entry or len(found) != 1 or entry.keys() - {"value", "high", "spread", "note", found[0]}:
            raise self._error(place, "needs value and exactly one of measured, documented, fitted and assumed")
        value = self.convert(entry["value"], kind, place)
        spread = None
        if "spread" in entry:
            spread = self.convert(entry["spread"], tuple[_Amount, _Amount], place)
            if spread[0] > spread[1]:
                raise self._error(place, f"{spread[0]} is above {spread[1]}")
        sources = self.read_sources(entry[found[0]], place)
        if place in self._unlike:
            self._applied.add(place)
            return self._read_unknown({"unknown": self._unlike[place]}, place, may_be_unknown=may_be_unknown)
        return Figure(value=value, sources=sources, status=_STATUSES[found[0]], note=entry.get("note"), spread=spread)

    def _read_unknown(self, entry: dict[str, Any], place: str, *, may_be_unknown: bool) -> Unknown:
        if not may_be_unknown:
            raise self._error(place, "must be known in every table")
        if len(entry) != 1 or not isinstance(entry["unknown"], str) or not entry["unknown"]:
            raise self._error(place, "an unknown value has its reason and nothing else")
        return Unknown(why=entry["unknown"])

    def _read_row(self, entry: dict[str, Any], width: int, place: str) -> Any:
        figure = self._read(entry, _Row, place, may_be_unknown=True)
        if isinstance(figure, Unknown):
            return figure
        low = figure.value
        high = self.convert(entry["high"], _Row, place) if "high" in entry else low
        if len(low) != width or len(high) != width:
            raise self._error(place, f"a row holds {width} numbers, one per reader")
        for least, most in zip(low, high, strict=True):
            if (least == "?") != (most == "?") or (least != "?" and least > most):
                raise self._error(place, f"{most} is not an upper bound of {least}")
        bounds = ([None if cycles == "?" else cycles for cycles in row] for row in (low, high))
        return Figure(value=tuple(map(tuple, bounds)), sources=figure.sources, status=figure.status, note=figure.note)

    def _error(self, place: str, message: str) -> CatalogueError:
        return CatalogueError(f"{self._file}: {place}: {message}")


def _check_keys(table: object, wanted: Any, place: str) -> None:
    if not isinstance(table, dict):
        raise CatalogueError(f"{place}: not a table")
    if table.keys() == wanted:
        return
    missing, extra = sorted(wanted - table.keys()), sorted(table.keys() - wanted)
    raise CatalogueError(
        f"{place}: missing {', '.join(missing) or 'nothing'}; not known {', '.join(extra) or 'nothing'}"
    )


def _take_also(document: dict[str, Any], file: str) -> list[dict[str, Any]]:
    """The entries that say which other capabilities the table serves, taken out of the document."""
    also = document.pop("also", [])
    if not isinstance(also, list):
        raise CatalogueError(f"{file}: also: not an array of tables")
    for entry in also:
        _check_keys(entry, {"compute_capability", "source", "why", "unlike"}, f"{file}: also")
        if not isinstance(entry["unlike"], list) or not all(isinstance(place, str) for place in entry["unlike"]):
            raise CatalogueError(f"{file}: also: unlike is not a list of names of figures")
    return also


def _find_differences(also: list[dict[str, Any]], wanted: tuple[int, int], file: str) -> dict[str, str]:
    """Place of a figure → why it is unknown, for the capability that is served by another's table."""
    for entry in also:
        if parse_compute_capability(str(entry["compute_capability"]), file) == wanted:
            name = f"{wanted[0]}.{wanted[1]}"
            return dict.fromkeys(entry["unlike"], f"differs on {name}, whose table this is not")
    raise CatalogueError(f"{file}: is not a table for {wanted[0]}.{wanted[1]}")


def _turn_round(classes: Mapping[Key, Figure[tuple[str, ...]]], file: str) -> dict[str, Key]:
    found: dict[str, Key] = {}
    for key, figure in classes.items():
        for opcode in figure.value:
            if opcode in found:
                raise CatalogueError(f"{file}: {opcode} is both in {found[opcode]} and {key}")
            found[opcode] = key
    return found


@cache
def _field_kinds(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Field name → type of its value, and whether it may be unknown; read off the field's annotation."""
    return {field.name: _read_annotation(field.type) for field in fields(kind)}


def _read_annotation(annotation: Any) -> tuple[Any, bool]:
    if isinstance(annotation, UnionType) or get_origin(annotation) is not Figure:
        members = [member for member in get_args(annotation) if member is not Unknown]
        return _read_annotation(members[0])[0], True
    kind = get_args(annotation)[0]
    return _CONVERTED.get(kind, kind), False


TABLES = Path(__file__).parent / "tables"

# The capability a table is of, and after it those it also serves; matched in the text because a whole table takes longer to parse
_CAPABILITY = re.compile(r'^compute_capability = "([^"]*)"', re.MULTILINE)


@cache
def find_architecture(compute_capability: tuple[int, int]) -> Architecture:
    """The architecture of a compute capability.

    Args:
        compute_capability: (major, minor), e.g. (8, 6).

    Returns:
        The same object for the same capability.

    Raises:
        UnknownArchitectureError: there is no table for it; the message lists those there are.
        CatalogueError: its table is malformed.

    >>> find_architecture((7, 5)).occupancy.max_warps_per_sm.value
    32
    >>> find_architecture((12, 1)).table_of
    (12, 0)
    """
    path = _find_table(compute_capability)
    if path is None:
        known = ", ".join(f"{major}.{minor}" for major, minor in list_architectures())
        raise UnknownArchitectureError(
            f"compute capability {compute_capability[0]}.{compute_capability[1]} is not supported; supported are {known}",
            remedy="profile on a GPU of one of these",
        )
    return read_architecture(path, load_opcode_classes(), compute_capability)


@cache
def list_architectures() -> tuple[tuple[int, int], ...]:
    """Every compute capability :func:`find_architecture` knows, ascending.

    >>> (9, 0) in list_architectures()
    True
    """
    return tuple(sorted(capability for path in list_tables() for capability in _read_capabilities(path)))


@cache
def load_opcode_classes() -> OpcodeClasses:
    """Latency classes and producer groups of opcodes, which are the same on every architecture.

    Raises:
        CatalogueError: their table is malformed.

    >>> load_opcode_classes().find_latency_class("IMAD.WIDE.U32").value
    'imad_wide'
    """
    return read_opcode_classes(TABLES / "opcode_classes.toml")


def list_tables() -> tuple[Path, ...]:
    """The architecture tables, by file name."""
    return tuple(sorted(TABLES.glob("sm_*.toml")))


def _find_table(compute_capability: tuple[int, int]) -> Path | None:
    major, minor = compute_capability
    own = TABLES / f"sm_{major}{minor}.toml"
    if own in list_tables():
        return own
    return next((path for path in list_tables() if compute_capability in _read_capabilities(path)), None)


@cache
def _read_capabilities(path: Path) -> tuple[tuple[int, int], ...]:
    found = _CAPABILITY.findall(path.read_text(encoding="utf-8"))
    if not found:
        raise CatalogueError(f"{path.name}: compute_capability is missing")
    return tuple(parse_compute_capability(text, path.name) for text in found)
