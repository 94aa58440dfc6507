"""Line tables: instruction → source line and the inlined calls it came through.

At one address the last row counts: the compiler first emits the row of the call site and then, in its context, that of the inlined code.

Each sequence starts with an address operand that a relocation ties to a function symbol, so that one function's sequences are run without those of
the others. In images dumped after loading (Nsight Compute 2020.3 to 2022.1) the operand is the run-time address already, and so is the value of
the function's symbol; otherwise both are 0.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.byte_reader import Allowance, StringTable, damaged
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
from gpa_lsp.code.binary.model import Cubin, Function, LineTable
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import Frame, InlineChain, join_source_path

FileNamer = Callable[[LineUnit, int], str]  # (unit, file number) → path

_NO_CALLERS = -1
_NO_LINE = -1
# Frames of all chains together, per row of the table; where libraries are at their worst, templates nest a few dozen deep
_FRAMES_PER_ROW = 64
_FEW_FRAMES = 4096
_STRING_SECTION = ".debug_str"
_PATHS_PER_BYTE = 64
_INTERNAL_PREFIX = re.compile(r"\$__internal_\d+_\$")


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
    return decode_rows(cubin, function, cubin.once(_open_lines))


def _open_lines(cubin: Cubin) -> "LineSection | None":
    elf = read_elf(cubin.image, path=cubin.path)
    section = elf.find_section(LINE_SECTION)
    if section is None:
        return None
    strings = elf.find_section(_STRING_SECTION)
    names = elf.read_strings(strings) if strings is not None else None
    return LineSection(elf, section, _file_namer(elf, section), names)


def _file_namer(elf: ElfImage, section: int) -> FileNamer:
    place = elf.place(section)
    allowance = Allowance(_PATHS_PER_BYTE * int(elf.sections[section]["size"]), path=elf.path, place=place)
    known: dict[tuple[int, int], str] = {}

    def name_file(unit: LineUnit, number: int) -> str:
        key = unit.start, number
        if key in known:
            return known[key]
        if not 0 < number <= len(unit.files):
            raise damaged(
                f"file {number} is not in the table of {len(unit.files)}",
                path=elf.path,
                place=f"{place} offset 0x{unit.start:x}",
            )
        folder, name = unit.files[number - 1]
        allowance.spend(len(folder) + len(name))
        known[key] = join_source_path(folder, name)
        return known[key]

    return name_file


class LineSection:
    """A line section (``.debug_line`` or ``.nv_debug_line_sass``), read once for all functions of an image: there may be thousands, decoded one by
    one. ``names`` is ``.debug_str``; None when the image has none.
    """

    def __init__(self, elf: ElfImage, section: int, name_file: FileNamer, names: StringTable | None = None) -> None:
        self.elf = elf
        self.place = elf.place(section)
        self.name_file = name_file
        self._names = names
        self._data = elf.section_bytes(section)
        self._operands = _group_operands(elf.read_relocations(section), elf.read_symbols())
        self._units: tuple[LineUnit, ...] = ()
        self._starts_of: dict[int, list[int]] = {}

    def fail(self, message: str) -> InputError:
        """An error that names the section."""
        return damaged(message, path=self.elf.path, place=self.place)

    def name_function(self, unit: LineUnit, offset: int) -> str | None:
        """The name of an inlined function; None where the table has no names."""
        if self._names is None or unit.names_base is None:
            return None
        return self._names.read(unit.names_base + offset)

    def find_sequences(self, function: Function) -> Iterator[tuple[LineUnit, LineRows]]:
        """Run the sequences of a function.

        Yields:
            The unit and the rows of each sequence, in file order; addresses are offsets from the function section's start, within its size.
        """
        size = int(self.elf.sections[function.section_index]["size"])
        relocations = self._operands.get(function.section_index, {})

        def resolve(operand: int, value: int) -> int:
            """The section offset that an address operand stands for."""
            if operand not in relocations:
                raise self.fail(f"the address operand at 0x{operand:x} belongs to another function ({function.name})")
            symbol_value, addend = relocations[operand]
            address = value + addend
            # Values of 0 are relative; a value inside the section is that of a local function; all others are run-time addresses.
            address += symbol_value if symbol_value < size else -symbol_value
            if not 0 <= address <= size:
                raise self.fail(f"the address operand at 0x{operand:x} is outside the function ({function.name})")
            return address

        # A sequence that reaches over the next operand contains it; running that one again would let overlapping sequences cost quadratic time.
        done = 0
        for operand in sorted(relocations):
            if operand < done:
                continue
            found = self._find_start(operand)
            if found is None:
                raise self.fail(f"the address operand at 0x{operand:x} is outside every program ({function.name})")
            unit, start = found
            rows = self._run(unit, start, resolve)
            done = rows.end
            highest = max(max(rows.addresses, default=0), rows.end_address or 0)
            if highest > size:
                raise self.fail(f"a row is at 0x{highest:x}, outside the function ({function.name})")
            yield unit, rows

    def _run(self, unit: LineUnit, start: int, resolve: Callable[[int, int], int]) -> LineRows:
        return run_sequence(self._data, unit, start, resolve=resolve, path=self.elf.path, place=self.place)

    def _find_start(self, operand: int) -> tuple[LineUnit, int] | None:
        """The unit and the first opcode of the sequence that an address operand is in; None where it is in none."""
        self._units = self._units or read_units(self._data, path=self.elf.path, place=self.place)
        number = bisect_right(self._units, operand, key=lambda unit: unit.start) - 1
        unit = self._units[number] if number >= 0 else None
        if unit is None or not unit.program_start < operand < unit.end:
            return None
        start = operand - len(SET_ADDRESS_HEAD)
        if self._data[start:operand] == SET_ADDRESS_HEAD and (
            start == unit.program_start or self._data[start - len(END_SEQUENCE) : start] == END_SEQUENCE
        ):
            return unit, start
        # Every sequence seen starts with its address; for one that does not, the unit's program has to be walked from its first opcode.
        if number not in self._starts_of:
            self._starts_of[number] = self._list_starts(unit)
        starts = self._starts_of[number]
        return unit, starts[bisect_right(starts, operand) - 1]

    def _list_starts(self, unit: LineUnit) -> list[int]:
        """Offset of the first opcode of each sequence of a unit."""
        starts = [unit.program_start]
        while (end := self._run(unit, starts[-1], lambda *_: 0).end) < unit.end:
            starts.append(end)
        return starts


def _group_operands(rows: npt.NDArray[np.void], symbols: npt.NDArray[np.void]) -> dict[int, dict[int, tuple[int, int]]]:
    """Section of a function → offset of each of its address operands → (value of its symbol, addend)."""
    known = rows[rows["symbol"] < len(symbols)]
    targets = symbols[known["symbol"]]
    columns = (targets["section"], known["offset"], targets["value"], known["addend"])
    found: dict[int, dict[int, tuple[int, int]]] = {}
    for section, offset, value, addend in zip(*(column.tolist() for column in columns), strict=True):
        found.setdefault(section, {})[offset] = value, addend
    return found


# A row of inlined code names the row of its call site, which may itself be in inlined code: followed to the end, the links give the chain of
# frames from the innermost line out to the compiled function. A link must point to an earlier row, so chains end; how many frames all chains
# may have together is limited, because a program of a few bytes per row can link each row to the one before.


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
        self.depths: list[int] = []  # frames of each chain

    def add(self, frame: tuple[str, int, str | None], callers: int = _NO_CALLERS) -> int:
        """The number of a chain."""
        key = (frame, callers)
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = len(self._frames)
            self._frames.append(Frame(file=frame[0], line=frame[1], function=frame[2]))
            self._callers.append(callers)
            self.depths.append(1 if callers == _NO_CALLERS else self.depths[callers] + 1)
        return number

    def chain(self, number: int) -> InlineChain:
        """The frames of a chain, innermost first."""
        frames = []
        while number != _NO_CALLERS:
            frames.append(self._frames[number])
            number = self._callers[number]
        return tuple(frames)


def _number_chains(
    tree: ChainTree, section: LineSection, unit: LineUnit, rows: LineRows, wanted: Iterator[tuple[int, str]]
) -> Iterator[int]:
    """The number, in the tree, of the chain of each wanted row (0-based, with the function that was compiled to it)."""
    contexts, files, lines, names = rows.contexts, rows.files, rows.lines, rows.names
    name_function = cache(section.name_function)
    known: dict[tuple[int, str], int] = {}  # (row of a call site, compiled function) → chain
    for first, compiled in wanted:
        row, inlined = first, []
        while context := contexts[row]:
            if context > row:
                raise section.fail(f"row {row + 1} is inlined into row {context}, which is not before it")
            inlined.append(row)
            callers = known.get((context, compiled))
            if callers is not None:
                break
            row = context - 1
        else:
            callers = tree.add((section.name_file(unit, files[row]), lines[row], compiled))
        while inlined:
            row = inlined.pop()
            known[contexts[row], compiled] = callers
            place = section.name_file(unit, files[row]), lines[row]
            callers = tree.add((*place, name_function(unit, names[row])), callers)
        yield callers


def decode_rows(cubin: Cubin, name: str, section: LineSection | None) -> LineTable:
    """Decode the rows that a line section has for a function; none where there is no section."""
    function = cubin.functions.get(name)
    if function is None:
        raise InputError(
            f"there is no function {name} in the image", path=cubin.path, remedy="use a mangled name that it contains"
        )
    if section is None:
        return LineTable(row_offsets=np.empty(0, dtype=np.int64), row_chain=np.empty(0, dtype=np.int32), chains=())
    tree = ChainTree()
    row_count = 0
    # Where one sequence ends another may start, whose row then counts: all ends come first.
    ends: list[int] = []
    offsets: list[npt.NDArray[np.int64]] = []
    numbers: list[int] = []
    for unit, rows in section.find_sequences(function):
        row_count += len(rows.lines)
        addresses = np.frombuffer(rows.addresses, dtype=np.int64)
        kept = _last_at_each_address(addresses)
        if rows.end_address is not None:
            ends.append(rows.end_address)
            kept = kept[addresses[kept] < rows.end_address]
        offsets.append(addresses[kept])
        compiled = _compiled_functions(section.elf, function, offsets[-1])
        numbers.extend(_number_chains(tree, section, unit, rows, zip(kept.tolist(), compiled, strict=True)))
    used, positions = np.unique(np.array(numbers, dtype=np.int32), return_inverse=True)
    row_offsets, row_chain = _merge_rows(
        np.concatenate([np.array(ends, dtype=np.int64), *offsets]),
        np.concatenate([np.full(len(ends), _NO_LINE, dtype=np.int32), positions.astype(np.int32)]),
    )
    allowance = Allowance(_FRAMES_PER_ROW * row_count + _FEW_FRAMES, path=section.elf.path, place=section.place)
    for number in used.tolist():
        allowance.spend(tree.depths[number])
    chains = tuple(tree.chain(number) for number in used.tolist())
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


# nvcc writes the length and the modification time of each source into the line table, so that the text an editor shows can be told from the one
# that was compiled without having a copy of it. NVRTC, Triton and Julia write zeros.


def find_source_sizes(cubin: Cubin | None) -> Mapping[str, int]:
    """The result of :func:`read_source_sizes`, cached; empty for a damaged line table, which is reported where its lines are read."""
    return {} if cubin is None or not cubin.has_lines else cubin.once(_read_known_sizes)


def _read_known_sizes(cubin: Cubin) -> Mapping[str, int]:
    try:
        return read_source_sizes(cubin)
    except InputError:
        return {}


def read_source_sizes(cubin: Cubin) -> Mapping[str, int]:
    """Bytes of an image's sources when they were compiled.

    Source: DWARF 2, section 6.2.4, the third and fourth field of a file entry.

    Returns:
        Path as in the frames of the line table → bytes. Files without a length are left out, and so are those that two units of the image
        saw differently, in length or modification time.

    Raises:
        InputError: the line table is damaged.
    """
    elf = read_elf(cubin.image, path=cubin.path)
    section = elf.find_section(LINE_SECTION)
    if section is None:
        return {}
    found: dict[str, set[tuple[int, int]]] = {}
    for unit in read_units(elf.section_bytes(section), path=cubin.path, place=elf.place(section)):
        for (folder, name), (modified, size) in zip(unit.files, unit.stamps, strict=True):
            if size:
                found.setdefault(join_source_path(folder, name), set()).add((modified, size))
    return {path: size for path, stamps in found.items() if len(stamps) == 1 for _, size in stamps}
