"""Which source line, through which inlined calls, each instruction of a function came from.

At one address the last row counts: the compiler first emits the row of the call site and then, in its context, that of the inlined code.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.byte_reader import DAMAGED, Allowance, StringTable
from gpa_lsp.code.binary.cubin import LINE_SECTION
from gpa_lsp.code.binary.elf import ElfImage, read_elf
from gpa_lsp.code.binary.line_program import (
    END_SEQUENCE,
    SET_ADDRESS_HEAD,
    LineRows,
    LineUnit,
    read_units,
    run_sequence,
)
from gpa_lsp.code.binary.model import Cubin, Function, LineTable, SourceStamp
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import Frame, InlineChain, join_source_path

# Each sequence starts with an address operand that a relocation ties to a function symbol, so that one function's sequences are run without those of
# the others. In images dumped after loading (Nsight Compute 2020.3 to 2022.1) the operand is the run-time address already, and so is the value of
# the function's symbol; otherwise both are 0.


class LineSection:
    """A line section with what finding the sequences of any of its functions needs, which is read once.

    Args:
        elf: the image.
        section: index of ``.debug_line`` or ``.nv_debug_line_sass``.

    Attributes:
        elf: the image.
        place: the section, for errors.
        data: its bytes.
    """

    def __init__(self, elf: ElfImage, section: int) -> None:
        self.elf = elf
        self.place = elf.place(section)
        self.data = elf.section_bytes(section)
        self._operands = _group_operands(elf.read_relocations(section), elf.read_symbols())
        self._units: tuple[LineUnit, ...] = ()
        self._unit_starts: list[int] = []
        self._starts_of: dict[int, list[int]] = {}

    def find_operands(self, function: Function) -> Mapping[int, tuple[int, int]]:
        """Offset of each address operand of a function → (value of its symbol, addend)."""
        return self._operands.get(function.section_index, {})

    def find_unit(self, operand: int) -> tuple[int, LineUnit] | None:
        """The unit whose program an operand is in, with its number; None where it is in none."""
        if not self._units:
            self._units = read_units(self.data, path=self.elf.path, place=self.place)
            self._unit_starts = [unit.start for unit in self._units]
        number = bisect_right(self._unit_starts, operand) - 1
        if number < 0 or not self._units[number].program_start < operand < self._units[number].end:
            return None
        return number, self._units[number]

    def list_starts(self, number: int) -> list[int]:
        """Where the sequences of a unit start, by walking its program from its first opcode."""
        if number not in self._starts_of:
            self._starts_of[number] = self._walk(self._units[number])
        return self._starts_of[number]

    def _walk(self, unit: LineUnit) -> list[int]:
        starts = [unit.program_start]
        while True:
            rows = run_sequence(self.data, unit, starts[-1], resolve=lambda *_: 0, path=self.elf.path, place=self.place)
            if rows.end >= unit.end:
                return starts
            starts.append(rows.end)


def _group_operands(rows: npt.NDArray[np.void], symbols: npt.NDArray[np.void]) -> dict[int, dict[int, tuple[int, int]]]:
    """Section of a function → offset of each of its address operands → (value of its symbol, addend)."""
    known = rows[rows["symbol"] < len(symbols)]
    targets = symbols[known["symbol"]]
    found: dict[int, dict[int, tuple[int, int]]] = {}
    for section, offset, value, addend in zip(
        targets["section"].tolist(),
        known["offset"].tolist(),
        targets["value"].tolist(),
        known["addend"].tolist(),
        strict=True,
    ):
        found.setdefault(section, {})[offset] = value, addend
    return found


def find_sequences(lines: LineSection, function: Function) -> Iterator[tuple[LineUnit, LineRows]]:
    """Run the sequences of a function.

    Yields:
        The unit and the rows of each sequence, in file order; addresses are offsets from the function section's start, within its size.

    Raises:
        InputError: the section is damaged, or places rows outside the function.
    """
    finder = _SequenceFinder(lines, function)
    # A sequence that reaches over the next operand contains it; running that one again would let overlapping sequences cost quadratic time.
    done = 0
    for operand in finder.own_operands():
        if operand < done:
            continue
        unit, start = finder.find_start(operand)
        rows = run_sequence(lines.data, unit, start, resolve=finder.resolve, path=lines.elf.path, place=lines.place)
        done = rows.end
        finder.check(rows)
        yield unit, rows


class _SequenceFinder:
    def __init__(self, lines: LineSection, function: Function) -> None:
        self._lines = lines
        self._function = function
        self._size = int(lines.elf.sections[function.section_index]["size"])
        self._relocations = lines.find_operands(function)

    def own_operands(self) -> list[int]:
        """Offsets of the address operands that belong to the function, ascending."""
        return sorted(self._relocations)

    def resolve(self, operand: int, value: int) -> int:
        """The section offset that an address operand stands for."""
        if operand not in self._relocations:
            raise self._fail(f"the address operand at 0x{operand:x} belongs to another function")
        symbol_value, addend = self._relocations[operand]
        address = value + addend
        # Values of 0 are relative; a value inside the section is that of a local function; all others are run-time addresses.
        address += symbol_value if symbol_value < self._size else -symbol_value
        if not 0 <= address <= self._size:
            raise self._fail(f"the address operand at 0x{operand:x} is outside the function")
        return address

    def check(self, rows: LineRows) -> None:
        """Refuse rows outside the function."""
        highest = max(rows.addresses, default=0)
        if max(highest, rows.end_address or 0) > self._size:
            raise self._fail(f"a row is at 0x{max(highest, rows.end_address or 0):x}, outside the function")

    def find_start(self, operand: int) -> tuple[LineUnit, int]:
        """The unit and the first opcode of the sequence that an address operand is in."""
        lines = self._lines
        found = lines.find_unit(operand)
        if found is None:
            raise self._fail(f"the address operand at 0x{operand:x} is outside every program")
        number, unit = found
        start = operand - len(SET_ADDRESS_HEAD)
        if lines.data[start:operand] == SET_ADDRESS_HEAD and (
            start == unit.program_start or lines.data[start - len(END_SEQUENCE) : start] == END_SEQUENCE
        ):
            return unit, start
        # Every sequence seen starts with its address; for one that does not, the unit's program has to be walked from its first opcode.
        starts = lines.list_starts(number)
        return unit, starts[bisect_right(starts, operand) - 1]

    def _fail(self, message: str) -> InputError:
        lines = self._lines
        return InputError(f"{message} ({self._function.name})", path=lines.elf.path, place=lines.place, remedy=DAMAGED)


# Inline chains from the rows of a line program.
#
# A row of inlined code names the row of its call site, which may itself be in inlined code: followed to the end, the links give the chain of
# frames from the innermost line out to the compiled function. A link must point to an earlier row, so chains end; how many frames all chains
# may have together is limited, because a program of a few bytes per row can link each row to the one before.

_NOBODY = -1
# Frames of all chains together, per row of the table; where libraries are at their worst, templates nest a few dozen deep
_FRAMES_PER_ROW = 64
_FEW_FRAMES = 4096


class ChainTree:
    """The distinct chains of a function: each is its innermost frame and the number of its callers' chain, so equal chains are one.

    >>> tree = ChainTree()
    >>> kernel = tree.add(("a.cu", 9, "kernel"))
    >>> body = tree.add(("a.cu", 3, "square"), kernel)
    >>> tree.add(("a.cu", 3, "square"), kernel) == body
    True
    >>> [str(frame.source_line) for frame in tree.chain(body)]
    ['a.cu:3', 'a.cu:9']
    """

    def __init__(self) -> None:
        self._number_of: dict[tuple[tuple[str, int, str | None], int], int] = {}
        self._frames: list[Frame] = []
        self._callers: list[int] = []
        self._depths: list[int] = []

    def add(self, frame: tuple[str, int, str | None], callers: int = _NOBODY) -> int:
        """The number of a chain."""
        key = (frame, callers)
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = len(self._frames)
            self._frames.append(Frame(file=frame[0], line=frame[1], function=frame[2]))
            self._callers.append(callers)
            self._depths.append(1 if callers == _NOBODY else self._depths[callers] + 1)
        return number

    def depth(self, number: int) -> int:
        """How many frames a chain has."""
        return self._depths[number]

    def chain(self, number: int) -> InlineChain:
        """The frames of a chain, innermost first."""
        frames = []
        while number != _NOBODY:
            frames.append(self._frames[number])
            number = self._callers[number]
        return tuple(frames)


class SequenceChains:
    """Finds the chain of each row of one sequence.

    Args:
        rows: the sequence.
        tree: where the chains are kept.
        file_name: file number → path.
        function_name: offset as in :attr:`LineRows.names` → mangled name, None where the table has no names.
        path: the file, for errors.
        place: the section, for errors.
    """

    def __init__(
        self,
        rows: LineRows,
        tree: ChainTree,
        *,
        file_name: Callable[[int], str],
        function_name: Callable[[int], str | None],
        path: Path | None,
        place: str,
    ) -> None:
        self._rows = rows
        self._tree = tree
        self._file_name = file_name
        self._function_name = function_name
        self._path = path
        self._place = place
        self._number_of: dict[tuple[int, str], int] = {}

    def number(self, row: int, compiled_function: str) -> int:
        """The number, in the tree, of the chain of a row.

        Args:
            row: 0-based index of the row.

        Raises:
            InputError: a link points forward, or a file or a name does not exist.
        """
        inlined: list[int] = []
        callers = _NOBODY
        while context := self._rows.contexts[row]:
            if context > row:
                raise InputError(
                    f"row {row + 1} is inlined into row {context}, which is not before it",
                    path=self._path,
                    place=self._place,
                    remedy=DAMAGED,
                )
            inlined.append(row)
            known = self._number_of.get((context, compiled_function))
            if known is not None:
                callers = known
                break
            row = context - 1
        else:
            callers = self._tree.add((*self._place_of(row), compiled_function))
        while inlined:
            row = inlined.pop()
            self._number_of[self._rows.contexts[row], compiled_function] = callers
            callers = self._tree.add((*self._place_of(row), self._function_name(self._rows.names[row])), callers)
        return callers

    def _place_of(self, row: int) -> tuple[str, int]:
        return self._file_name(self._rows.files[row]), self._rows.lines[row]


def build_chains(
    tree: ChainTree, numbers: list[int], *, row_count: int, path: Path | None, place: str
) -> tuple[InlineChain, ...]:
    """The chains of the given numbers.

    Raises:
        InputError: the chains are longer than any compiler makes them.
    """
    allowance = Allowance(_FRAMES_PER_ROW * row_count + _FEW_FRAMES, path=path, place=place)
    for number in numbers:
        allowance.spend(tree.depth(number))
    return tuple(tree.chain(number) for number in numbers)


FileNamer = Callable[[LineUnit, int], str]  # (unit, file number) → path

_STRING_SECTION = ".debug_str"
_PATHS_PER_BYTE = 64
_INTERNAL_PREFIX = re.compile(r"\$__internal_\d+_\$")
_NO_LINE = -1


def read_line_table(cubin: Cubin, function: str) -> LineTable:
    """Decode the line table of one function.

    Args:
        cubin: the image.
        function: name of one of its functions.

    Returns:
        The rows, by address; empty when the image has no lines for the function. In the chains, the innermost frame carries the mangled name
        of the inlined function and the outermost one that of the compiled function (or of the local function the code is in).

    Raises:
        InputError: there is no such function, or its line table is damaged.
    """
    wanted = find_function(cubin, function)
    lines = cubin.once(_open_lines)
    return empty_line_table() if lines is None else decode_rows(lines.section, wanted, lines.name_file, lines.names)


class _Lines(Struct, frozen=True, kw_only=True):
    """The line section of an image: its functions may be thousands, and are asked about one by one."""

    section: LineSection
    name_file: FileNamer
    names: StringTable | None


def _open_lines(cubin: Cubin) -> _Lines | None:
    elf = read_elf(cubin.image, path=cubin.path)
    section = elf.find_section(LINE_SECTION)
    if section is None:
        return None
    strings = elf.find_section(_STRING_SECTION)
    return _Lines(
        section=LineSection(elf, section),
        name_file=_file_namer(elf, section),
        names=elf.read_strings(strings) if strings is not None else None,
    )


def find_function(cubin: Cubin, name: str) -> Function:
    """The function of that name.

    Raises:
        InputError: there is none.
    """
    if name not in cubin.functions:
        raise InputError(
            f"there is no function {name} in the image", path=cubin.path, remedy="use a mangled name that it contains"
        )
    return cubin.functions[name]


def empty_line_table() -> LineTable:
    """The table of a function without lines."""
    return LineTable(row_offsets=np.empty(0, dtype=np.int64), row_chain=np.empty(0, dtype=np.int32), chains=())


def decode_rows(
    section: LineSection, function: Function, name_file: FileNamer, names: StringTable | None = None
) -> LineTable:
    """Decode the rows that a line section has for a function.

    Args:
        names: ``.debug_str``; None when the image has none.

    Raises:
        InputError: the section is damaged.
    """
    elf, place = section.elf, section.place
    tree = ChainTree()
    row_count = 0
    # Where one sequence ends another may start, whose row then counts: all ends come first.
    ends: list[int] = []
    offsets: list[npt.NDArray[np.int64]] = []
    numbers: list[int] = []
    for unit, rows in find_sequences(section, function):
        row_count += len(rows)
        finder = SequenceChains(
            rows,
            tree,
            file_name=partial(name_file, unit),
            function_name=cache(partial(_read_name, names, unit)),
            path=elf.path,
            place=place,
        )
        addresses = np.frombuffer(rows.addresses, dtype=np.int64)
        kept = _last_at_each_address(addresses)
        if rows.end_address is not None:
            ends.append(rows.end_address)
            kept = kept[addresses[kept] < rows.end_address]
        offsets.append(addresses[kept])
        compiled = _compiled_functions(elf, function, offsets[-1])
        numbers.extend(finder.number(row, name) for row, name in zip(kept.tolist(), compiled, strict=True))
    used, positions = np.unique(np.array(numbers, dtype=np.int32), return_inverse=True)
    row_offsets, row_chain = _merge_rows(
        np.concatenate([np.array(ends, dtype=np.int64), *offsets]),
        np.concatenate([np.full(len(ends), _NO_LINE, dtype=np.int32), positions.astype(np.int32)]),
    )
    chains = build_chains(tree, used.tolist(), row_count=row_count, path=elf.path, place=place)
    return LineTable(row_offsets=row_offsets, row_chain=row_chain, chains=chains)


def _merge_rows(
    offsets: npt.NDArray[np.int64], chains: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The rows by address, without those that change nothing."""
    kept = _last_at_each_address(offsets)
    offsets, chains = offsets[kept], chains[kept]
    changes = np.ones(len(chains), dtype=np.bool_)
    changes[1:] = chains[1:] != chains[:-1]
    return offsets[changes], chains[changes]


def _last_at_each_address(addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Indexes of the last row at each address, by ascending address.

    >>> _last_at_each_address(np.array([0, 0, 32, 16])).tolist()
    [1, 3, 2]
    """
    order = np.argsort(addresses, kind="stable")
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = np.diff(addresses[order]) != 0
    return order[last]


def _compiled_functions(elf: ElfImage, function: Function, offsets: npt.NDArray[np.int64]) -> list[str]:
    """The function or local function that was compiled to each offset."""
    own = elf.section_names[function.section_index].removeprefix(".text.")
    subs = function.sub_functions
    if not subs:
        return [own] * len(offsets)
    starts = np.array([sub.start_offset for sub in subs])
    ends = starts + np.array([sub.size_bytes for sub in subs])
    number = np.searchsorted(starts, offsets, side="right") - 1
    number[(number >= 0) & (offsets >= ends[number])] = -1
    names = [*(strip_local_prefix(sub.name, own) for sub in subs), own]
    return [names[index] for index in number.tolist()]


def strip_local_prefix(symbol: str, kernel: str) -> str:
    """The mangled name of a local function, without what the compiler puts in front of it to make it unique.

    >>> strip_local_prefix("$_Z4kernPf$_Z3recfi", "_Z4kernPf"), strip_local_prefix("$__internal_0_$__cuda_sm20_div_s64", "k")
    ('_Z3recfi', '__cuda_sm20_div_s64')
    """
    return _INTERNAL_PREFIX.sub("", symbol.removeprefix(f"${kernel}$"), count=1)


def _file_namer(elf: ElfImage, section: int) -> FileNamer:
    place = elf.place(section)
    allowance = Allowance(_PATHS_PER_BYTE * int(elf.sections[section]["size"]), path=elf.path, place=place)
    known: dict[tuple[int, int], str] = {}

    def name_file(unit: LineUnit, number: int) -> str:
        key = unit.start, number
        if key in known:
            return known[key]
        if not 0 < number <= len(unit.files):
            raise InputError(
                f"file {number} is not in the table of {len(unit.files)}",
                path=elf.path,
                place=f"{place} offset 0x{unit.start:x}",
                remedy=DAMAGED,
            )
        name, directory = unit.files[number - 1]
        folder = unit.directories[directory - 1] if 0 < directory <= len(unit.directories) else ""
        allowance.spend(len(folder) + len(name))
        known[key] = join_source_path(folder, name)
        return known[key]

    return name_file


def _read_name(names: StringTable | None, unit: LineUnit, offset: int) -> str | None:
    """The name of an inlined function."""
    if names is None or unit.names_base is None:
        return None
    return names.read(unit.names_base + offset)


# nvcc writes the length and the modification time of each source into the line table, so that the text an editor shows can be told from the one
# that was compiled without having a copy of it. NVRTC, Triton and Julia write zeros.


def read_source_stamps(cubin: Cubin) -> Mapping[str, SourceStamp]:
    """The stamps of an image's sources.

    Returns:
        Path as in the frames of the line table → stamp. Files without a length are left out, and so are those that two units of the image
        saw differently.

    Raises:
        InputError: the line table is damaged.
    """
    elf = read_elf(cubin.image, path=cubin.path)
    section = elf.find_section(LINE_SECTION)
    if section is None:
        return {}
    found: dict[str, set[tuple[int, int]]] = {}
    for unit in read_units(elf.section_bytes(section), path=cubin.path, place=elf.place(section)):
        for (name, directory), (modified, size) in zip(unit.files, unit.stamps, strict=True):
            if size:
                folder = unit.directories[directory - 1] if 0 < directory <= len(unit.directories) else ""
                found.setdefault(join_source_path(folder, name), set()).add((modified, size))
    return {
        path: SourceStamp(size_bytes=size, modified_unix_s=modified or None)
        for path, stamps in found.items()
        if len(stamps) == 1
        for modified, size in stamps
    }
