"""Measurements as the text and bytes of a row, and back. JSON, compressed where it is long; nothing is pickled."""

import hashlib
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, TypeVar

from gpa_lsp.foundation.figures import Spread
from gpa_lsp.report.changes import LaunchConfiguration, LaunchTimes, ReasonCount
from gpa_lsp.report.history.model import (
    KernelKey,
    Measurement,
    RememberedAdvice,
    RememberedLine,
    RememberedPlace,
)
from gpa_lsp.report.time_course import Commit

MOST_TEXT_BYTES = 64 << 20  # Longer than anything that is kept; what unpacks to more is not ours

_LONGEST_NAME_CHARS = 16_384
_LATEST_NS = (1 << 63) - 1
_LINE_COLUMNS = 7


_Value = TypeVar("_Value")


class DamagedRowError(ValueError):
    """A row that is not what was written."""


# What reading something else ends with
_DAMAGES = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)


def check_columns(values: Sequence[object], kinds: Sequence[type | UnionType]) -> None:
    """Whether the values of a row are of the kinds its columns are declared with, which SQLite itself does not insist on.

    Raises:
        DamagedRowError: one is not.
    """
    for place, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        if not isinstance(value, kind):
            raise DamagedRowError(f"column {place} holds {type(value).__name__}")


def make_storable(text: str) -> str:
    """A text as the database can hold it: no lone surrogates, and no longer than a name can sensibly be.

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
    """A time as a column can hold it."""
    return min(max(unix_ns, 0), _LATEST_NS)


def write_capability(capability: tuple[int, int] | None) -> str:
    """``8.6``; empty when unknown."""
    return "" if capability is None else f"{capability[0]}.{capability[1]}"


def read_capability(text: str) -> tuple[int, int] | None:
    """What :func:`write_capability` wrote.

    >>> read_capability("8.6"), read_capability("")
    ((8, 6), None)
    """
    if not text:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def pack_text(text: str) -> bytes:
    """Compressed."""
    return zlib.compress(text.encode("utf-8", "backslashreplace"), 6)


def unpack_text(packed: bytes) -> str:
    """What :func:`pack_text` packed.

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


def write_facts(measurement: Measurement) -> str:
    """What of a measurement has no column of its own."""
    launch = measurement.launch
    facts: dict[str, Any] = {
        "name": measurement.name,
        "launch": [
            launch.grid,
            launch.block,
            launch.registers_per_thread,
            launch.shared_static_bytes,
            launch.shared_dynamic_bytes,
        ],
        "duration_ns": _keep_finite(measurement.duration_ns),
        "cycles": _write_spread(measurement.times.cycles),
        "ns": _write_spread(measurement.times.ns),
        "total_samples": measurement.total_samples,
        "latency_samples": measurement.latency_samples,
        "by_reason": {
            name: (count.all_samples, count.latency_samples) for name, count in measurement.by_reason.items()
        },
        "executed_instructions": _keep_finite(measurement.executed_instructions),
        "code_digest": measurement.code_digest,
        "advice": [[piece.optimizer, piece.title, _keep_finite(piece.speedup)] for piece in measurement.advice],
    }
    if (
        measurement.commit is not None
    ):  # rows of earlier versions have no such entry, and stay as they are when they are read again
        facts["commit"] = [measurement.commit.digest, measurement.commit.subject]
    if measurement.places:
        facts["places"] = [
            [place.name, place.function, place.launches, _keep_finite(place.duration_ns)]
            for place in measurement.places
        ]
    return json.dumps(facts, separators=(",", ":"), allow_nan=False)


def read_commit(facts: Mapping[str, Any]) -> Commit | None:
    """The commit of a measurement, from what :func:`write_facts` wrote; None where it was not known, or not yet asked for."""
    if facts.get("commit") is None:
        return None
    digest, subject = facts["commit"]
    return Commit(digest=str(digest), subject=str(subject))


def read_measurement(key: KernelKey, columns: tuple[int, str | None, str], text: str) -> Measurement:
    """A measurement from its row.

    Args:
        columns: ``measured_ns``, ``profile``, ``session``.
        text: what :func:`write_facts` wrote.

    Raises:
        DamagedRowError: it is not.
    """
    measured_ns, profile, session = columns
    try:
        facts = json.loads(text, parse_constant=_refuse_constant)
        grid, block, registers, shared_static_bytes, shared_dynamic_bytes = facts["launch"]
        return Measurement(
            key=key,
            device=key.device,
            name=str(facts["name"]),
            measured_ns=measured_ns,
            profile=profile,
            session=session,
            launch=LaunchConfiguration(
                grid=_read_optional(_read_dim3, grid),
                block=_read_optional(_read_dim3, block),
                registers_per_thread=_read_optional(int, registers),
                shared_static_bytes=_read_optional(int, shared_static_bytes),
                shared_dynamic_bytes=_read_optional(int, shared_dynamic_bytes),
            ),
            duration_ns=_read_optional(_read_number, facts["duration_ns"]),
            times=LaunchTimes(cycles=_read_spread(facts["cycles"]), ns=_read_spread(facts["ns"])),
            total_samples=int(facts["total_samples"]),
            latency_samples=_read_optional(int, facts["latency_samples"]),
            by_reason={
                str(reason): ReasonCount(all_samples=int(every), latency_samples=_read_optional(int, quiet))
                for reason, (every, quiet) in facts["by_reason"].items()
            },
            executed_instructions=_read_optional(_read_number, facts["executed_instructions"]),
            code_digest=_read_optional(str, facts["code_digest"]),
            advice=tuple(_read_advice(piece) for piece in facts["advice"]),
            commit=read_commit(facts),
            places=tuple(_read_place(place) for place in facts.get("places", ())),
        )
    except _DAMAGES as error:
        raise DamagedRowError(str(error)) from error


def _read_place(place: Sequence[Any]) -> RememberedPlace:
    name, function, launches, duration_ns = place
    return RememberedPlace(
        name=str(name),
        function=str(function),
        launches=_read_optional(int, launches),
        duration_ns=_read_number(duration_ns),
    )


def write_lines(lines: Sequence[RememberedLine], positions: Mapping[str, int], *, is_whole: bool) -> bytes:
    """Lines with their files as positions in the measurement's list of files."""
    rows = [
        [
            positions[line.file],
            line.line,
            line.samples,
            line.latency_samples,
            round(line.called_samples, 3),
            None if line.caused_samples is None else round(line.caused_samples, 3),
            line.reason,
        ]
        for line in lines
    ]
    return pack_text(json.dumps({"is_whole": is_whole, "lines": rows}, separators=(",", ":"), allow_nan=False))


def read_lines(packed: bytes, files: Sequence[str]) -> tuple[tuple[RememberedLine, ...], bool]:
    """What :func:`write_lines` wrote: the lines, and whether they are all.

    Raises:
        DamagedRowError: it is something else.
    """
    try:
        document = json.loads(unpack_text(packed), parse_constant=_refuse_constant)
        rows: list[Any] = document["lines"]
        if any(len(row) != _LINE_COLUMNS or row[0] < 0 for row in rows):
            raise DamagedRowError("a line has other columns")
        lines = tuple(
            RememberedLine(
                file=files[file],
                line=int(line),
                samples=int(samples),
                latency_samples=_read_optional(int, latency_samples),
                called_samples=_read_number(called_samples),
                caused_samples=_read_optional(_read_number, caused_samples),
                reason=str(reason),
            )
            for file, line, samples, latency_samples, called_samples, caused_samples, reason in rows
        )
        return lines, bool(document["is_whole"])
    except DamagedRowError:
        raise
    except _DAMAGES as error:
        raise DamagedRowError(str(error)) from error


def _keep_finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _write_spread(spread: Spread | None) -> list[float | None] | None:
    if spread is None:
        return None
    return [spread.count, spread.mean, spread.minimum, spread.maximum, _keep_finite(spread.standard_deviation)]


def _read_spread(values: Any) -> Spread | None:
    if values is None:
        return None
    count, mean, minimum, maximum, deviation = values
    return Spread(
        count=int(count),
        mean=_read_number(mean),
        minimum=_read_optional(_read_number, minimum),
        maximum=_read_optional(_read_number, maximum),
        standard_deviation=_read_optional(_read_number, deviation),
    )


def _read_optional(read: Callable[[Any], _Value], value: Any) -> _Value | None:
    return None if value is None else read(value)


def _read_number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise DamagedRowError(f"{value} is not a number that is written")
    return number


def _refuse_constant(word: str) -> float:
    raise DamagedRowError(f"{word} is never written")


def _read_dim3(values: Any) -> tuple[int, int, int]:
    x, y, z = values
    return int(x), int(y), int(z)


def _read_advice(values: Any) -> RememberedAdvice:
    optimizer, title, speedup = values
    return RememberedAdvice(
        optimizer=str(optimizer), title=str(title), speedup=math.inf if speedup is None else _read_number(speedup)
    )
