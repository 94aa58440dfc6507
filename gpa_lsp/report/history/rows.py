"""Rows of the history: records as JSON, compressed where long; nothing is pickled."""

import hashlib
import math
import zlib
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from gpa_lsp.foundation.figures import Spread
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.report.changes import LaunchTimes, ReasonCount
from gpa_lsp.report.history.model import (
    Commit,
    KernelKey,
    Measurement,
    RememberedAdvice,
    RememberedLine,
    RememberedPlace,
)

MOST_TEXT_BYTES = 64 << 20  # Longer than anything that is kept; what unpacks to more is not ours

_LONGEST_NAME_CHARS = 16_384
_LATEST_NS = (1 << 63) - 1

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Dim3 = tuple[int, int, int]
_Spread = tuple[int, float, float | None, float | None, float | None]
_Value = TypeVar("_Value")
_Record = TypeVar("_Record", bound=Struct)


class DamagedRowError(ValueError):
    """A row that is not what was written."""


def check_columns(values: Sequence[object], kinds: Sequence[type | UnionType]) -> None:
    """Check the types of a row's values, which SQLite does not enforce.

    Raises:
        DamagedRowError: one is not.
    """
    for place, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        if not isinstance(value, kind):
            raise DamagedRowError(f"column {place} holds {type(value).__name__}")


def make_storable(text: str) -> str:
    """A text that the database can hold: no lone surrogates, and bounded length.

    Different texts stay different.

    >>> make_storable("k" * 20_000) != make_storable("k" * 20_001), make_storable("scale")
    (True, 'scale')
    """
    sound = text.encode("utf-8", "backslashreplace").decode()
    if len(sound) <= _LONGEST_NAME_CHARS:
        return sound
    digest = hashlib.sha256(sound.encode()).hexdigest()
    return f"{sound[: _LONGEST_NAME_CHARS - len(digest) - 1]}…{digest}"


def make_storable_time(unix_ns: int) -> int:
    """A time clamped to the column's range."""
    return min(max(unix_ns, 0), _LATEST_NS)


def write_capability(capability: tuple[int, int] | None) -> str:
    """A compute capability as ``8.6``; empty when unknown."""
    return "" if capability is None else f"{capability[0]}.{capability[1]}"


def read_capability(text: str) -> tuple[int, int] | None:
    """Parse a compute capability; None for an empty text.

    >>> read_capability("8.6"), read_capability("")
    ((8, 6), None)
    """
    if not text:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def pack_text(text: str) -> bytes:
    """Compress a text."""
    return zlib.compress(text.encode("utf-8", "backslashreplace"), 6)


def unpack_text(packed: bytes) -> str:
    """Decompress a text.

    Raises:
        DamagedRowError: it is not.
    """
    unpack = zlib.decompressobj()
    try:
        text = unpack.decompress(packed, MOST_TEXT_BYTES)
        if not unpack.eof:
            raise DamagedRowError("the text has no end")
        return text.decode("utf-8")
    except (zlib.error, UnicodeDecodeError, TypeError) as error:
        raise DamagedRowError(str(error)) from error


class _Facts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Columns of a measurement that are stored together: records as lists of fields, null for infinite and unknown numbers."""

    name: str
    launch: tuple[_Dim3 | None, _Dim3 | None, int | None, int | None, int | None]
    duration_ns: float | None
    cycles: _Spread | None
    ns: _Spread | None
    total_samples: int
    latency_samples: int | None
    by_reason: dict[str, tuple[int, int | None]]
    executed_instructions: float | None
    code_digest: str | None
    advice: tuple[tuple[str, str, float | None], ...]
    # rows of earlier versions have no such entries, and stay as they are when they are read again
    commit: tuple[str, str] | None = None
    places: tuple[tuple[str, str, int | None, float], ...] = ()


class _Lines(Struct, frozen=True, kw_only=True):
    """Lines of a measurement, with their files as positions in its list of files."""

    is_whole: bool
    lines: tuple[tuple[_Count, int, int, int | None, float, float | None, str], ...]


def write_facts(measurement: Measurement) -> str:
    """JSON of a measurement's facts."""
    times, commit = measurement.times, measurement.commit
    facts = _Facts(
        name=measurement.name,
        launch=astuple(measurement.launch),
        duration_ns=measurement.duration_ns,
        cycles=None if times.cycles is None else astuple(times.cycles),
        ns=None if times.ns is None else astuple(times.ns),
        total_samples=measurement.total_samples,
        latency_samples=measurement.latency_samples,
        by_reason={name: astuple(count) for name, count in measurement.by_reason.items()},
        executed_instructions=measurement.executed_instructions,
        code_digest=measurement.code_digest,
        advice=tuple(astuple(piece) for piece in measurement.advice),
        commit=None if commit is None else astuple(commit),
        places=tuple(astuple(place) for place in measurement.places),
    )
    return msgspec.json.encode(facts).decode()


def read_commit(text: str) -> Commit | None:
    """Commit from stored facts; None where it is unknown or the row is damaged."""
    try:
        commit = msgspec.json.decode(text, type=_Facts).commit
    except msgspec.DecodeError:
        return None
    return None if commit is None else Commit(digest=commit[0], subject=commit[1])


def read_measurement(key: KernelKey, columns: tuple[int, str | None, str], text: str) -> Measurement:
    """A measurement from its row: ``measured_ns``, ``profile`` and ``session``, and what :func:`write_facts` wrote.

    Raises:
        DamagedRowError: it is not.
    """
    measured_ns, profile, session = columns
    facts = _decode(text, _Facts)
    return Measurement(
        key=key,
        device=key.device,
        name=facts.name,
        measured_ns=measured_ns,
        profile=profile,
        session=session,
        launch=_restore(LaunchConfiguration, facts.launch),
        duration_ns=facts.duration_ns,
        times=LaunchTimes(
            cycles=None if facts.cycles is None else _restore(Spread, facts.cycles),
            ns=None if facts.ns is None else _restore(Spread, facts.ns),
        ),
        total_samples=facts.total_samples,
        latency_samples=facts.latency_samples,
        by_reason={name: _restore(ReasonCount, count) for name, count in facts.by_reason.items()},
        executed_instructions=facts.executed_instructions,
        code_digest=facts.code_digest,
        advice=tuple(
            RememberedAdvice(optimizer=optimizer, title=title, speedup=math.inf if speedup is None else speedup)
            for optimizer, title, speedup in facts.advice
        ),
        commit=None if facts.commit is None else _restore(Commit, facts.commit),
        places=tuple(_restore(RememberedPlace, place) for place in facts.places),
    )


def write_lines(lines: Sequence[RememberedLine], positions: Mapping[str, int], *, is_whole: bool) -> bytes:
    """Packed lines, with files as positions in the measurement's list of files."""
    rows = tuple(
        (
            positions[line.file],
            line.line,
            line.samples,
            line.latency_samples,
            round(line.called_samples, 3),
            None if line.caused_samples is None else round(line.caused_samples, 3),
            line.reason,
        )
        for line in lines
    )
    return pack_text(msgspec.json.encode(_Lines(is_whole=is_whole, lines=rows)).decode())


def read_lines(packed: bytes, files: Sequence[str]) -> tuple[tuple[RememberedLine, ...], bool]:
    """Lines of a measurement, and whether they are all.

    Raises:
        DamagedRowError: it is something else.
    """
    found = _decode(unpack_text(packed), _Lines)
    if any(row[0] >= len(files) for row in found.lines):
        raise DamagedRowError("a line has no file")
    return tuple(_restore(RememberedLine, (files[file], *rest)) for file, *rest in found.lines), found.is_whole


def _decode(text: str, kind: type[_Value]) -> _Value:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DamagedRowError(str(error)) from error


def _restore(kind: type[_Record], values: Sequence[Any]) -> _Record:
    """A record from the list of its fields."""
    return kind(**dict(zip(kind.__struct_fields__, values, strict=True)))
