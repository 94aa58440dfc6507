"""The PTX that ``-lineinfo`` keeps in a device image, made whole again.

The compiler keeps the text line by line, but empties the lines with ``.loc`` and leaves out the names of inlined functions. Both are written again
from the image's line tables: a PTX line gets the place of the first instruction that came from it.

Approximation: PTX that became no instruction has the place of what is in front of it.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.cubin import PTX_LINE_SECTION, PTX_TEXT_PREFIX
from gpa_lsp.code.binary.elf import read_elf
from gpa_lsp.code.binary.line_program import LineUnit
from gpa_lsp.code.binary.line_table import LineSection, decode_rows, read_line_table
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin, LineTable
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import InlineChain

# The PTX inside a device image, and which of its lines each instruction came from.
#
# ``-lineinfo`` keeps the whole PTX in ``.nv_debug_ptx_txt``, its lines separated by NUL; in code that was linked there is one such section per
# translation unit, ``.nv_debug_ptx_txt.<number>``. ``.nv_debug_line_sass`` maps instructions to its lines in the encoding of ``.debug_line``;
# file 0 stands for the section without a number.


def read_ptx_line_table(cubin: Cubin, function: str) -> LineTable:
    """Decode which PTX line each instruction of one function came from, by address; no rows when the image has none for the function.

    Each chain has one frame, whose file is the name of the section with the text, for :func:`read_ptx_text`, and whose line is 1-based in it.
    """
    return decode_rows(cubin, function, cubin.once(_open_ptx_lines))


def _open_ptx_lines(cubin: Cubin) -> LineSection | None:
    elf = read_elf(cubin.image, path=cubin.path)
    section = elf.find_section(PTX_LINE_SECTION)
    return None if section is None else LineSection(elf, section, _name_ptx_section)


def read_ptx_text(cubin: Cubin, section: str | None = None) -> tuple[str, ...]:
    """The lines of the PTX in an image, by its section as in the frames of :func:`read_ptx_line_table`; None takes the first one there is."""
    elf = read_elf(cubin.image, path=cubin.path)
    for index, name in enumerate(elf.section_names):
        if name == section or (section is None and name.startswith(PTX_TEXT_PREFIX)):
            text = elf.section_bytes(index).decode("utf-8", errors="backslashreplace")
            return tuple(text.removesuffix("\0").split("\0")) if text else ()
    return ()


def _name_ptx_section(unit: LineUnit, number: int) -> str:
    if number == 0:
        return PTX_TEXT_PREFIX
    if number > len(unit.files):
        raise InputError(f"file {number} is not in the table of {len(unit.files)}", place=f"section {PTX_LINE_SECTION}")
    return unit.files[number - 1][1]


_STRINGS = ".section"
_STRING_LABEL = "$L__info_string"
_UNREAD = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')  # Strings and comments, which may hold anything
_DEBUG = re.compile(r"\s*,\s*debug\b")
_ENDINGS = (";", "{", "}", ":")  # Of what stands outside of functions
# Braces of blocks and labels, in front of a statement. Braces within one are those of a vector: they end nothing.
_BETWEEN = re.compile(r"^(?:[{}]|[\w$%.]+\s*:|\s)+")
_ESCAPED = {'"': '\\"', "\\": "\\\\"}


class EmbeddedPtx(Struct, frozen=True, kw_only=True):
    """The PTX of one unit that an image was linked from."""

    section: str  # of the image, which tells the unit
    text: str  # made whole again
    # for each line of the text the line of the section that it was, from 1; 0 for what was written again
    kept_lines: tuple[int, ...]


def read_embedded_ptx(cubin: Cubin) -> tuple[str, ...]:
    """The PTX texts in an image, one per unit it was linked from; empty when there is none.

    Raises:
        InputError: the image is damaged.
    """
    return tuple(unit.text for unit in list_embedded_ptx(cubin))


def list_embedded_ptx(cubin: Cubin) -> tuple[EmbeddedPtx, ...]:
    """The PTX texts as in :func:`read_embedded_ptx`, each with the lines of the image it was made from.

    Raises:
        InputError: the image is damaged.
    """
    if not cubin.has_ptx_lines:
        return ()
    names = read_elf(cubin.image, path=cubin.path).section_names
    places = _find_places(cubin)
    sections = dict.fromkeys(name for name in names if name.startswith(PTX_TEXT_PREFIX))
    units = (_restore(section, read_ptx_text(cubin, section), places.get(section, {})) for section in sections)
    return tuple(unit for unit in units if unit is not None)


def find_ptx_lines(cubin: Cubin, function: str, unit: EmbeddedPtx) -> npt.NDArray[np.int64]:
    """int64[n]: the line of a unit's section that each instruction of a function came from, by address; 0 for none.

    Raises:
        InputError: there is no such function, or its table is damaged.
    """
    offsets = np.arange(0, cubin.functions[function].size_bytes, INSTRUCTION_BYTES, dtype=np.int64)
    table = read_ptx_line_table(cubin, function)
    # The last one is that of instructions without a line.
    lines = [chain[0].line if chain[0].file == unit.section else 0 for chain in table.chains] + [0]
    return np.array(lines, dtype=np.int64)[table.chain_index(offsets)]


def _find_places(cubin: Cubin) -> dict[str, dict[int, InlineChain]]:
    """Section → PTX line → chain of source places of the first instruction that came from it."""
    found: dict[str, dict[int, InlineChain]] = {}
    for name, function in cubin.functions.items():
        lines, sources = read_ptx_line_table(cubin, name), read_line_table(cubin, name)
        offsets = np.arange(0, function.size_bytes, INSTRUCTION_BYTES, dtype=np.int64)
        pairs = np.stack([lines.chain_index(offsets), sources.chain_index(offsets)], axis=1)
        _, first = np.unique(pairs, axis=0, return_index=True)
        for ptx, source in pairs[np.sort(first)].tolist():
            if ptx >= 0 and source >= 0:
                place = lines.chains[ptx][0]
                found.setdefault(place.file, {}).setdefault(place.line, sources.chains[source])
    return found


def _restore(section: str, lines: tuple[str, ...], places: Mapping[int, InlineChain]) -> EmbeddedPtx | None:
    files: dict[str, int] = {}
    functions: dict[str, int] = {}
    written: list[str] = []
    kept: list[int] = []
    before: InlineChain | None = None
    of_statements = _move_to_statements(lines, places)
    for number, line in enumerate(lines, 1):
        if line.startswith(_STRINGS):  # of debugging information, whose content was not kept
            break
        chain = of_statements.get(number)
        if chain is not None and chain != before:
            written += _write_locations(chain, files, functions)
            kept += [0] * (len(written) - len(kept))
        before = chain if chain is not None else None if line.startswith("}") else before
        # Without its debugging information, which was not kept, assemblers refuse a text that says it has some.
        written.append(_DEBUG.sub("", line) if line.startswith(".target") else line)
        kept.append(number)
    if not any(line.startswith(".version") for line in written):
        return None
    written += [f'\t.file\t{number} "{_escape(file)}"' for file, number in files.items()]
    if functions:
        written += ["\t.section\t.debug_str", "\t{"]
        for name, number in functions.items():
            written.append(f"{_STRING_LABEL}{number}:")
            written.append(f".b8 {','.join(map(str, (*name.encode(), 0)))}")
        written.append("\t}")
    kept += [0] * (len(written) - len(kept))
    return EmbeddedPtx(section=section, text="\n".join(written) + "\n", kept_lines=tuple(kept))


def _move_to_statements(lines: Sequence[str], places: Mapping[int, InlineChain]) -> dict[int, InlineChain]:
    """Each place at the line where the statement it is in begins: nowhere else does PTX allow a ``.loc``.

    What is in a function's head goes to the first line of its body. Of several places in one statement the first is kept.
    """
    moved: dict[int, InlineChain] = {}
    heading: list[int] = []  # lines outside of functions that have a place
    begin, depth = 0, 0  # the line where the statement begins that has not ended; 0 between statements
    for number, line in enumerate(lines, 1):
        code = _UNREAD.sub("", line).strip()
        is_inside = depth > 0
        depth += code.count("{") - code.count("}")
        if not is_inside:
            heading += [number] if number in places else []
            if depth > 0 and heading:
                moved[number + 1] = places[heading[0]]
            if code.endswith(_ENDINGS):
                heading = []
            continue
        if number in places:
            moved.setdefault(begin or number, places[number])
        if begin == 0 or ";" in code:
            begin = number if _BETWEEN.sub("", code.rpartition(";")[2]) else 0
    return moved


def _write_locations(chain: InlineChain, files: dict[str, int], functions: dict[str, int]) -> list[str]:
    """The ``.loc`` lines for a chain, outermost first, as each names the place it was inlined at."""
    written = []
    outer: str | None = None
    for frame in reversed(chain):
        place = f"{files.setdefault(frame.file, len(files) + 1)} {frame.line} 0"
        if outer is None or frame.function is None:
            written.append(f"\t.loc\t{place}")
        else:
            label = f"{_STRING_LABEL}{functions.setdefault(frame.function, len(functions))}"
            written.append(f"\t.loc\t{place}, function_name {label}, inlined_at {outer}")
        outer = place
    return written


def _escape(file: str) -> str:
    return "".join(_ESCAPED.get(letter, letter) for letter in file if letter.isprintable())
