"""Records as JSON objects and back, by their type hints: writer, reader and schema follow from one definition.

A field is a property of its own name; an enum is its value, a tuple an array, a mapping an object, a path a text, None null. A number that is
not finite becomes null, and null where a number is asked for is not-a-number: unknown. Unknown properties are passed over, and a missing
one takes its field's default, so that older and newer files can be read. A field that does not count in comparisons is not written.

What hints do not say stands in a :class:`Layout` of the struct, or behind ``Annotated``: the codec of a plain value (:mod:`.json_values`),
:class:`Shared`, :class:`StandIn`, :class:`RowsOf`.
"""

import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import msgspec.structs
from msgspec import Struct, field

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.json_values import (
    MAX_COUNT,
    Array,
    Cell,
    Codec,
    Fixed,
    Flag,
    InScope,
    Lines,
    MisfitError,
    Number,
    OrNull,
    PathText,
    SentenceText,
    SharedValue,
    Spelled,
    Table,
    Tagged,
    Text,
    Whole,
    Writing,
    hold_list,
    hold_object,
    name_kind,
    read_part,
)
from gpa_lsp.foundation.prose import Sentence

Record = TypeVar("Record")


class Shared(Struct, frozen=True, eq=False):
    """Values that many objects have: written once, in a table of the document, and named by their positions there. Read in place, too."""

    table: str


class StandIn(Struct, frozen=True, eq=False):
    """Values written as others."""

    hint: Any  # the type that is written
    make: Callable[[Any, Any], Any]  # from a value, and the kernel it belongs to
    restore: Callable[[Any, InScope], Any]  # the value back, held to what is in scope. Raises :class:`MisfitError`.


class RowsOf(Struct, frozen=True, eq=False):
    """Columns, by the names of a struct's fields, written as an array with an object of it per row."""

    kind: type
    layout: "Layout | None" = None  # of a row, where the fields of the struct are the columns themselves


WRITTEN_ONLY = object()  # A field that repeats what stands elsewhere: not read back


class Layout(Struct, frozen=True, kw_only=True, eq=False):
    """Facts about a struct that its hints do not state. Its whole numbers are counts, from 0 on, unless they are marked otherwise."""

    # field → property; ``"samples/total"`` for a property of an inner object, which is null where nothing of it is known; empty for a struct whose
    # properties stand among those of this one
    names: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, Any] = field(default_factory=dict)  # field → its type, where it says more than the field's own
    # property that no field holds → its type, and what computes it from the object and its kernel; written for readers of the JSON, not read back.
    # An object is merged into the inner object of that name.
    derived: Mapping[str, tuple[Any, Callable[[Any, Any], Any]]] = field(default_factory=dict)
    scoped: Sequence[str] = ()  # fields that are read before the others, and held in scope for them
    # field → the field, or number in scope, that it does not exceed; counts per reason all together
    at_most: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Any, InScope], None] | None = None  # what else must hold of an object; raises :class:`MisfitError`


class StandInCodec(Codec):
    """Values written as others."""

    def __init__(self, mark: StandIn, inner: Codec) -> None:
        self.inner, self._mark = inner, mark

    def write(self, value: Any, to: Writing) -> Any:
        return self.inner.write(self._mark.make(value, to.kernel), to)

    def read(self, value: Any, scope: InScope) -> Any:
        return self._mark.restore(self.inner.read(value, scope), scope)


class Property(Struct, frozen=True, kw_only=True, eq=False):
    """A property of a record."""

    key: str  # its name in the object; empty where its own properties stand among the record's
    codec: Codec  # of its value
    name: str = ""  # of the field; empty where it is no field
    make: Callable[[Any, Any], Any] | None = None  # where it is no field, what computes it
    is_read: bool = True  # it is read back
    is_required: bool = True  # its field has no default

    @property
    def sign(self) -> str | None:
        """The property that is null where an optional inner record, spread among this record's properties, is absent."""
        inner = self.codec.inner if isinstance(self.codec, OrNull) else None
        return inner.properties[0].key if isinstance(inner, RecordCodec) else None


class InnerObject(Struct, frozen=True, kw_only=True, eq=False):
    """Properties of a record that stand in an object of their own. It is null where nothing of it is known."""

    key: str
    parts: tuple[Property, ...]


class RecordCodec(Codec):
    """A struct as an object."""

    def __init__(self, kind: Any, layout: Layout, properties: Sequence[Property | InnerObject]) -> None:
        self.kind, self.layout = kind, layout
        self.properties = tuple(properties)
        self._ways: dict[str, tuple[str, ...]] = {}  # Field → keys that lead to its property, innermost first
        for one in properties:
            parts = one.parts if isinstance(one, InnerObject) else ()
            self._ways.update({part.name: (part.key, one.key) for part in parts})
            self._ways.update({one.name: (one.key,)} if isinstance(one, Property) else {})
        first = [self._ways[name][-1] for name in layout.scoped]
        self._in_reading_order = sorted(properties, key=lambda one: one.key not in first)

    def write(self, value: Any, to: Writing) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for one in self.properties:
            if isinstance(one, Property):
                self._write_part(one, value, to, found)
                continue
            inner: dict[str, Any] = {}
            for part in one.parts:
                self._write_part(part, value, to, inner)
            found[one.key] = inner if any(part is not None for part in inner.values()) else None
        return found

    def _write_part(self, one: Property, value: Any, to: Writing, found: dict[str, Any]) -> None:
        part = getattr(value, one.name) if one.make is None else one.make(value, to.kernel)
        written = one.codec.write(part, to)
        if one.key:
            found[one.key] = written
        elif written is not None:
            found.update(written)
        elif one.is_read and one.sign:
            found[one.sign] = None

    def read(self, value: Any, scope: InScope) -> Any:
        found: dict[str, Any] = {}
        hold_object(value)
        for one in self._in_reading_order:
            if isinstance(one, Property):
                self._read_part(one, value, scope, found)
            else:
                self._read_inner(one, value, scope, found)
        record = self.kind(**found)
        self._check(record, scope)
        return record

    def _read_part(self, one: Property, value: dict[str, Any], scope: InScope, found: dict[str, Any]) -> None:
        if not one.is_read:
            return
        if not one.key:
            found[one.name] = None if one.sign and value.get(one.sign) is None else one.codec.read(value, scope)
        elif one.key in value:
            found[one.name] = read_part(one.codec, value, one.key, scope)
        elif one.is_required:
            raise MisfitError(f"lacks the property {one.key!r}")
        if one.name in self.layout.scoped and one.name in found:
            scope[one.name] = found[one.name]

    def _read_inner(self, one: InnerObject, value: dict[str, Any], scope: InScope, found: dict[str, Any]) -> None:
        parts = [part for part in one.parts if part.is_read]
        if one.key not in value:
            if any(part.is_required for part in parts):
                raise MisfitError(f"lacks the property {one.key!r}")
        elif value[one.key] is None and all(isinstance(part.codec, OrNull) for part in parts):
            found.update({part.name: None for part in parts})
        else:
            try:
                for part in parts:
                    self._read_part(part, hold_object(value[one.key]), scope, found)
            except MisfitError as wrong:
                wrong.within(one.key)
                raise

    def _check(self, record: Any, scope: InScope) -> None:
        for name, other in self.layout.at_most.items():
            amount = getattr(record, name)
            limit = getattr(record, other) if hasattr(record, other) else scope[other]
            words = "is {}, outside 0 to {}"
            if isinstance(amount, Mapping):
                amount, words = sum(count.all_samples for count in amount.values()), "has {} samples, more than {}"
            if amount is not None and amount > limit:
                raise MisfitError(words.format(amount, limit)).within(*self._ways[name])
        if self.layout.check is not None:
            self.layout.check(record, scope)


class RowsCodec(Codec):
    """Columns as an array of objects, written one at a time. What is read are columns again: long arrays are checked a column at a time."""

    def __init__(self, row: RecordCodec) -> None:
        self.row = row
        self._columns = [one for one in row.properties if isinstance(one, Property)]

    def write(self, value: Mapping[str, Sequence[Any]], to: Writing) -> Lines:
        columns = [one.codec.write_many(value[one.name], to) for one in self._columns]
        keys = [one.key for one in self._columns]
        return Lines(dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True))

    def read(self, value: Any, scope: InScope) -> dict[str, Sequence[Any]]:
        hold_list(value)
        return {one.name: self._read_column(value, one, scope) for one in self._columns if one.is_read}

    def _read_column(self, rows: Sequence[Any], one: Property, scope: InScope) -> Sequence[Any]:
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                raise MisfitError(f"is {name_kind(row)}, not an object").within(number)
            if one.key not in row:
                raise MisfitError(f"lacks the property {one.key!r}").within(number)
        try:
            found: Sequence[Any] = one.codec.read_many([row[one.key] for row in rows], scope)
        except MisfitError as wrong:
            wrong.way.insert(-1, one.key)  # behind the row's number
            raise
        return found


_PLAIN_CODECS: Mapping[Any, Codec] = {bool: Flag(), str: Text(), Path: PathText(), Sentence: SentenceText()}


class Codecs:
    """The codecs of types, each made when it is first asked for.

    Args:
        layouts: of structs, or what stands in for values of a type.
    """

    def __init__(self, layouts: Mapping[Any, Layout | StandIn]) -> None:
        self._layouts = layouts
        self._found: dict[Any, Codec] = {}

    def find(self, hint: Any, *, is_laid_out: bool = True) -> Codec:
        """The codec of a type.

        Args:
            hint: the type.
            is_laid_out: it is the type of a field of a struct with a layout, whose whole numbers are counts.

        Raises:
            TypeError: it is no part of a record.
        """
        if (hint, is_laid_out) not in self._found:
            self._found[hint, is_laid_out] = self._make(hint, is_laid_out)
        return self._found[hint, is_laid_out]

    def _make(self, hint: Any, is_laid_out: bool) -> Codec:
        origin, parts = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return self._make_marked(hint.__origin__, hint.__metadata__[0], is_laid_out)
        if origin in (typing.Union, types.UnionType):
            return self._make_union(parts, is_laid_out)
        if origin is tuple and parts[-1] is not Ellipsis:
            return Fixed([self.find(part, is_laid_out=is_laid_out) for part in parts])
        if origin is not None:
            item = self.find(parts[0 if origin is tuple else 1], is_laid_out=is_laid_out)
            return Array(item) if origin is tuple else Table(item)
        if hint is int:
            return Whole(0 if is_laid_out else -MAX_COUNT, MAX_COUNT)
        if hint is float:
            return Number(null=math.nan)
        if hint in _PLAIN_CODECS:
            return _PLAIN_CODECS[hint]
        is_enum = isinstance(hint, type) and issubclass(hint, Enum)
        return Spelled({member: member.value for member in hint}) if is_enum else self._make_record(hint)

    def _make_marked(self, hint: Any, mark: Any, is_laid_out: bool) -> Codec:
        if isinstance(mark, Codec):
            return mark
        if isinstance(mark, StandIn):
            return StandInCodec(mark, self.find(mark.hint))
        if isinstance(mark, RowsOf):
            row = self._make_record(mark.kind, mark.layout)
            assert isinstance(row, RecordCodec)
            return RowsCodec(row)
        inner = self.find(hint, is_laid_out=is_laid_out)
        return SharedValue(mark.table, inner) if isinstance(mark, Shared) else inner

    def _make_union(self, parts: Sequence[Any], is_laid_out: bool) -> Codec:
        """One type or nothing; a cell of a table; or a text or one of several records."""
        kept = [part for part in parts if part is not type(None)]
        if set(kept) == {str, int, float}:
            inner: Codec = Cell()
        elif str in kept and len(kept) > 1:
            kinds = [part for part in kept if part is not str]
            return Tagged({kind: self.find(kind, is_laid_out=is_laid_out) for kind in kinds})
        elif len(kept) == 1:
            inner = Number() if kept[0] is float else self.find(kept[0], is_laid_out=is_laid_out)
        else:
            raise TypeError(f"no reader tells {parts} apart")
        return OrNull(inner) if len(kept) < len(parts) else inner

    def _make_record(self, kind: Any, layout: Layout | StandIn | None = None) -> Codec:
        layout = layout or self._layouts.get(kind)
        if isinstance(layout, StandIn):
            return StandInCodec(layout, self.find(layout.hint))
        if not (isinstance(kind, type) and issubclass(kind, Struct)):
            raise TypeError(f"{kind} is no part of a record")
        is_laid_out, layout = layout is not None, layout or Layout()
        hints = {**typing.get_type_hints(kind, include_extras=True), **layout.hints}
        groups: dict[str, list[Property]] = {}
        for name, is_required in _list_fields(kind):
            group, slash, key = layout.names.get(name, name).rpartition("/")
            made = Property(
                key=key,
                name=name,
                codec=self.find(hints[name], is_laid_out=is_laid_out),
                is_read=WRITTEN_ONLY not in getattr(hints[name], "__metadata__", ()),
                is_required=is_required,
            )
            groups.setdefault(group if slash else f"/{key or name}", []).append(made)
        for key, (hint, make) in layout.derived.items():
            inner, name = (key, "") if key in groups else (f"/{key}", key)
            made = Property(key=name, codec=self.find(hint), make=make, is_read=False)
            groups.setdefault(inner, []).append(made)
        return RecordCodec(kind, layout, [_join_parts(group, parts) for group, parts in groups.items()])


def _list_fields(kind: Any) -> Iterator[tuple[str, bool]]:
    """(name, whether it has no default) of each field that is written."""
    uncompared = getattr(kind, "UNCOMPARED", ())
    for each in msgspec.structs.fields(kind):
        if each.name not in uncompared:
            yield each.name, each.required


def _join_parts(group: str, parts: Sequence[Property]) -> Property | InnerObject:
    """The inner object of a name; outside of one, the property itself."""
    return parts[0] if group.startswith("/") else InnerObject(key=group, parts=tuple(parts))


# What is no report: records as they are.

_PLAIN = Codecs({})


def make_record(value: Any) -> Any:
    """A struct, or a tuple of some, as JSON values.

    Raises:
        TypeError: it holds something that is no record, enum, tuple or plain value.

    >>> from gpa_lsp.diagnosis.analyses.answers import Bar
    >>> make_record(Bar(label="L2", ratio=0.5))
    {'label': 'L2', 'ratio': 0.5, 'ceiling_ratio': 1.0, 'words': ''}
    """
    if isinstance(value, tuple):
        return [make_record(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    kind = float if isinstance(value, float) else type(value)  # numbers of numpy are floats, too
    return None if value is None else _PLAIN.find(kind, is_laid_out=False).write(value, Writing())


def pick(record: Any, fields: str) -> dict[str, Any]:
    """Some fields of an object as JSON values, by their names; one with another name in JSON as ``field=name``.

    >>> from gpa_lsp.diagnosis.analyses.answers import Bar
    >>> pick(Bar(label="L2", ratio=0.5), "label ratio=share")
    {'label': 'L2', 'share': 0.5}
    """
    named = (one.partition("=") for one in fields.split())
    return {key or name: make_record(getattr(record, name)) for name, _, key in named}


def read_record(value: Any, kind: type[Record], *, path: Path, remedy: str) -> Record:
    """A struct back from its JSON object.

    Args:
        value: as ``json.loads`` gives it.
        kind: the struct.
        path: the file, for errors.
        remedy: what to do, for errors.

    Raises:
        InputError: a property is missing or of another type; the place is a JSON pointer.
    """
    found: Record = read_with(_PLAIN.find(kind, is_laid_out=False), value, path=path, remedy=remedy)
    return found


def read_with(codec: Codec, value: Any, *, path: Path, remedy: str) -> Any:
    """Read a document with a codec.

    Raises:
        InputError: something in it is wrong; the place is a JSON pointer.
    """
    try:
        return codec.read(value, {})
    except MisfitError as wrong:
        raise InputError(wrong.message, path=path, place=wrong.pointer or None, remedy=remedy) from None
