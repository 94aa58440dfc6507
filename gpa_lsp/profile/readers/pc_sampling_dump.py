"""Files that CUPTI's utility library for PC sampling writes (``libpcsamplingutil``), as NVIDIA's samples use it.

A file begins with its version and the number of buffers, 32 bits each. A buffer has four numbers of 64 bits (records, stall reasons of the GPU,
those that were asked for, bytes that follow) and then a FlatBuffer with the identifier ``CUPS``. Its tables were found out from files that the
library wrote of known values, with the releases 12.1 to 13.4: :class:`Position` names their fields. The file has no cubins, and no launches: a
record stands for each function, or for each function of each launch where samples know theirs.
"""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct, field

from gpa_lsp.foundation.errors import InputError, Problem
from gpa_lsp.foundation.files import open_regular_file
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.profile.model import Aggregate, Launch, LoadedFunction, Module, Profile, Sampling, StallSamples
from gpa_lsp.profile.readers import Reader
from gpa_lsp.profile.stall_reasons import CountedReason, read_reason

# A FlatBuffer's tables, read where they lie: numbers, strings and vectors by the position of their field. Nothing outside the buffer is looked at.
#
# Source: FlatBuffers, "Internals": a table begins with the distance back to its list of field offsets; offsets are 32 bits and point forward.

_REMEDY = "write it again"

IDENTIFIER = b"CUPS"
FORMAT = "cupti-pc-sampling"
HEADER_BYTES = 8
BUFFER_HEADER_BYTES = 32
SUFFIX = "pcsampling.dat"  # How NVIDIA's sample names its files, behind the number of the context


class Position:
    """Positions of fields in their tables."""

    # The root
    HOLDER = 0
    TOTAL_SAMPLES = 3
    DROPPED_SAMPLES = 4
    RECORDS = 8
    FOREIGN_SAMPLES = 9
    IS_BUFFER_FULL = 10
    # The first field of the root, which holds the table of settings
    SETTINGS = 5
    PERIOD = 0
    ALL_INDICES = 7
    ALL_NAMES = 8
    # An instruction
    CUBIN = 1
    OFFSET = 2
    FUNCTION_NAME = 4
    FUNCTION_INDEX = 5
    REASONS = 6
    CORRELATION = 7


class FlatTable:
    """A table in the content of a buffer."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self._at = at
        self._list = at - self._read("<i", at)
        self._size = self._read("<H", self._list)

    @classmethod
    def find_root(cls, content: bytes) -> "FlatTable":
        """The root table."""
        if len(content) < 4:
            raise InputError("is cut short", place="offset 0x0", remedy=_REMEDY)
        return cls(content, struct.unpack_from("<I", content)[0])

    def _read(self, form: str, at: int) -> int:
        if not 0 <= at <= len(self._content) - struct.calcsize(form):
            raise InputError("a table leads out of its buffer", place=f"offset {at:#x}", remedy=_REMEDY)
        return int(struct.unpack_from(form, self._content, at)[0])

    def _find(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        distance = self._read("<H", self._list + entry)
        return self._at + distance if distance else None

    def read_number(self, field: int, form: str = "<Q") -> int:
        """A number; 0 if absent."""
        at = self._find(field)
        return 0 if at is None else self._read(form, at)

    def read_table(self, field: int) -> "FlatTable | None":
        """A table; None if absent."""
        at = self._find(field)
        return None if at is None else FlatTable(self._content, at + self._read("<I", at))

    def _find_vector(self, field: int, item_bytes: int) -> tuple[int, int]:
        """Start and number of a vector's items."""
        at = self._find(field)
        if at is None:
            return 0, 0
        start = at + self._read("<I", at)
        count = self._read("<I", start)
        if start + 4 + count * item_bytes > len(self._content):
            raise InputError("a list leads out of its buffer", place=f"offset {start:#x}", remedy=_REMEDY)
        return start + 4, count

    def list_tables(self, field: int) -> Iterator["FlatTable"]:
        """The tables of a vector."""
        start, count = self._find_vector(field, 4)
        for at in range(start, start + 4 * count, 4):
            yield FlatTable(self._content, at + self._read("<I", at))

    def list_numbers(self, field: int) -> list[int]:
        """The 32-bit numbers of a vector."""
        start, count = self._find_vector(field, 4)
        return list(struct.unpack_from(f"<{count}I", self._content, start))

    def list_pairs(self, field: int) -> list[tuple[int, int]]:
        """Pairs of 32-bit numbers of a vector."""
        start, count = self._find_vector(field, 8)
        numbers = struct.unpack_from(f"<{2 * count}I", self._content, start)
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def read_text(self, field: int) -> str:
        """A string; empty if absent."""
        start, count = self._find_vector(field, 1)
        return self._content[start : start + count].decode("utf-8", "replace")

    def list_texts(self, field: int) -> list[str]:
        """The strings of a vector."""
        start, count = self._find_vector(field, 4)
        found = []
        for at in range(start, start + 4 * count, 4):
            text = at + self._read("<I", at)
            size = self._read("<I", text)
            found.append(self._content[text + 4 : text + 4 + size].decode("utf-8", "replace"))
        return found


_MOST_BYTES = 1 << 30
_FIRST_ADDRESS = 0x5000_0000_0000
_MODULE_BYTES = 0x1_0000_0000
_FUNCTION_BYTES = 0x1000
_MOST_OFFSET = 1 << 28
_LARGEST_EXPONENT = 31

_Function = tuple[int, str]  # Hash of a cubin, and mangled name
_Counts = dict[CountedReason, int]


class _Collected(Struct):
    """Sums over all buffers of a file."""

    samples: dict[tuple[_Function, int], dict[int, _Counts]] = field(default_factory=dict)
    symbols: dict[_Function, int] = field(default_factory=dict)
    total: int = 0
    counted: int = 0
    has_latency: bool = False
    dropped: int = 0
    foreign: int = 0
    period_cycles: int | None = None
    is_full: bool = False
    problems: list[Problem] = field(default_factory=list)


def read_pc_samples(path: Path) -> Profile:
    """Read a file.

    Raises:
        InputError: it is damaged from its first buffer on, or too large.
    """
    stream, size_bytes = open_regular_file(path)
    with stream:
        if size_bytes > _MOST_BYTES:
            raise InputError("is larger than any run of PC sampling writes", path=path, remedy="measure a shorter part")
        content = stream.read(size_bytes)
    found = _Collected()
    for number, (place, buffer) in enumerate(_split(content, found, path)):
        try:
            _Buffer(found, buffer, size_bytes).read()
        except (InputError, struct.error) as error:
            message = error.message if isinstance(error, InputError) else "is damaged"
            if number == 0:
                raise InputError(message, path=path, place=f"offset {place:#x}", remedy=_REMEDY) from None
            _add_problem(found, f"buffer {number} {message}, and is left out", path)
    return _build(found, path)


def _split(content: bytes, found: _Collected, path: Path) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each buffer."""
    _, count = struct.unpack_from("<II", content)
    at = HEADER_BYTES
    for number in range(count):
        begin = at + BUFFER_HEADER_BYTES
        size = struct.unpack_from("<Q", content, at + 24)[0] if begin <= len(content) else 0
        if begin > len(content) or begin + size > len(content) or content[begin + 4 : begin + 8] != IDENTIFIER:
            if number == 0:
                raise InputError("has no whole buffer", path=path, place=f"offset {at:#x}", remedy=_REMEDY)
            _add_problem(found, f"{count - number} of {count} buffers are cut off or damaged", path)
            return
        yield begin, content[begin : begin + size]
        at = begin + size


def _add_problem(found: _Collected, message: str, path: Path) -> None:
    found.problems.append(Problem.warning(message, path=path))


class _Buffer:
    """Adds one buffer to the sums."""

    def __init__(self, found: _Collected, content: bytes, most_counts: int) -> None:
        self._found = found
        self._root = FlatTable.find_root(content)
        self._left = most_counts  # a count takes eight bytes; more of them come from lists that share their bytes

    def read(self) -> None:
        root, found = self._root, self._found
        reasons = self._read_settings()
        rows = list(self._list_rows(reasons))
        found.has_latency |= any(reason is not None and reason[1] for reason in reasons.values())
        for function, symbol, offset, correlation, counts in rows:
            found.symbols[function] = symbol
            places = found.samples.setdefault((function, correlation), {})
            held = places.setdefault(offset, {})
            for reason, count in counts.items():
                held[reason] = held.get(reason, 0) + count
        found.total += root.read_number(Position.TOTAL_SAMPLES)
        found.dropped += root.read_number(Position.DROPPED_SAMPLES)
        found.foreign += root.read_number(Position.FOREIGN_SAMPLES)
        found.is_full |= bool(root.read_number(Position.IS_BUFFER_FULL, "<B"))

    def _read_settings(self) -> Mapping[int, CountedReason | None]:
        holder = self._root.read_table(Position.HOLDER)
        settings = None if holder is None else holder.read_table(Position.SETTINGS)
        names = [] if settings is None else settings.list_texts(Position.ALL_NAMES)
        indices = [] if settings is None else settings.list_numbers(Position.ALL_INDICES)
        exponent = 0 if settings is None else settings.read_number(Position.PERIOD, "<I")
        if 0 < exponent <= _LARGEST_EXPONENT:
            self._found.period_cycles = 1 << exponent
        if not names or len(names) != len(indices):
            raise InputError(
                "does not say what its stall reasons are", remedy="write it with the names of all stall reasons"
            )
        return {index: read_reason(name) for index, name in zip(indices, names, strict=True)}

    def _list_rows(
        self, reasons: Mapping[int, CountedReason | None]
    ) -> Iterator[tuple[_Function, int, int, int, _Counts]]:
        for record in self._root.list_tables(Position.RECORDS):
            pairs = record.list_pairs(Position.REASONS)
            self._left -= 1 + len(pairs)
            offset = record.read_number(Position.OFFSET)
            if self._left < 0 or offset > _MOST_OFFSET:
                raise InputError("has records that no run writes", remedy=_REMEDY)
            counts: _Counts = {}
            self._found.counted += sum(count for _, count in pairs)
            for index, count in pairs:
                if index not in reasons:
                    raise InputError(f"counts a stall reason {index} that it does not name", remedy=_REMEDY)
                reason = reasons[index]
                if reason is not None:
                    counts[reason] = counts.get(reason, 0) + count
            function = (record.read_number(Position.CUBIN), record.read_text(Position.FUNCTION_NAME))
            symbol = record.read_number(Position.FUNCTION_INDEX, "<I")
            yield function, symbol, offset, record.read_number(Position.CORRELATION, "<I"), counts


def _build(found: _Collected, path: Path) -> Profile:
    missing = found.total - found.dropped - found.foreign - found.counted
    if missing > 0:
        _add_problem(found, f"{format_count(missing)} samples are counted, but at no instruction", path)
    addresses = _place_functions(found)
    module_ids = {cubin: number for number, cubin in enumerate(dict.fromkeys(cubin for cubin, _ in addresses))}
    modules = {
        number: Module(
            module_id=number,
            image=None,
            compute_capability=None,
            functions=tuple(
                LoadedFunction(name=function[1], address=address, symbol_index=found.symbols[function])
                for function, address in addresses.items()
                if function[0] == cubin
            ),
        )
        for cubin, number in module_ids.items()
    }
    return Profile(
        path=path,
        format_name=FORMAT,
        tool_version=None,
        modules=modules,
        launches=tuple(_list_launches(found, addresses, module_ids)),
        problems=tuple(found.problems),
        sampling=Sampling(dropped_samples=found.dropped, foreign_samples=found.foreign),
        samples_truncated=found.is_full,
    )


def _place_functions(found: _Collected) -> dict[_Function, int]:
    """Synthetic addresses: a range for each cubin, pages for each function as far as samples reach."""
    ends: dict[_Function, int] = {}
    for (function, _), places in found.samples.items():
        ends[function] = max(ends.get(function, 0), *places)
    addresses: dict[_Function, int] = {}
    module, before, at = -1, None, 0
    for function in sorted(ends):
        if function[0] != before:
            module, before = module + 1, function[0]
            at = _FIRST_ADDRESS + module * _MODULE_BYTES
        addresses[function] = at
        at += (ends[function] // _FUNCTION_BYTES + 1) * _FUNCTION_BYTES
    return addresses


def _list_launches(
    found: _Collected, addresses: Mapping[_Function, int], module_ids: Mapping[int, int]
) -> Iterator[Launch]:
    is_apart = _are_apart(found)
    for index, ((function, correlation), places) in enumerate(sorted(found.samples.items())):
        yield Launch(
            index=index,
            mangled_name=function[1],
            module_id=module_ids[function[0]],
            samples=_build_samples(found, places, addresses[function], is_apart=is_apart),
            function_addresses=(addresses[function],),
            sampling=Sampling(period_cycles=found.period_cycles),
            aggregate=None if correlation else Aggregate(launches=None),
        )


def _are_apart(found: _Collected) -> bool:
    """Whether samples without issue are counted under their own name only, rather than as part of their reason's."""
    return any(
        count > counts.get((reason[0], False), 0)
        for places in found.samples.values()
        for counts in places.values()
        for reason, count in counts.items()
        if reason[1]
    )


def _build_samples(found: _Collected, places: Mapping[int, _Counts], address: int, *, is_apart: bool) -> StallSamples:
    reasons = tuple(sorted({reason[0] for counts in places.values() for reason in counts}))
    columns = {name: number for number, name in enumerate(reasons)}
    offsets = sorted(places)
    every = np.zeros((len(offsets), len(reasons)), np.int64)
    latency = np.zeros_like(every)
    for row, offset in enumerate(offsets):
        for reason, count in places[offset].items():
            (latency if reason[1] else every)[row, columns[reason[0]]] += count
    return StallSamples(
        addresses=np.array([address + offset for offset in offsets], np.uint64),
        reasons=reasons,
        all_samples=every + latency if is_apart else every,
        latency_samples=latency if found.has_latency else None,
    )


_PLACE = HEADER_BYTES + BUFFER_HEADER_BYTES + 4


def _recognises(head: bytes, path: Path) -> bool:
    return head[_PLACE : _PLACE + len(IDENTIFIER)] == IDENTIFIER or path.name.endswith(SUFFIX)


READER = Reader(
    name=FORMAT, description="PC samples of CUPTI", suffixes=(SUFFIX,), recognises=_recognises, read=read_pc_samples
)
