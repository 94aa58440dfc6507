"""Functions and lines of host programs, from the debugging information of images.

pyelftools reads it; without debugging information, names come from the table of symbols or are not known.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.files import open_regular_file
from gpa_lsp.profile.model import HostFrame

_MOST_BYTES = 4 << 30
_DEBUG_FOLDER = Path("/usr/lib/debug/.build-id")


def find_places(image: Path, offsets: Collection[int]) -> Mapping[int, tuple[HostFrame, ...]]:
    """Frames at addresses of an image, each with the functions inlined there, innermost first; names are demangled."""
    # imported here: measuring without DWARF does without it
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        stream, size_bytes = open_regular_file(image)
    except InputError:
        return {}
    with stream:
        if size_bytes > _MOST_BYTES:
            return {}
        try:
            return _Finder(ELFFile(stream), stream).find(sorted(offsets))
        except (ELFError, ValueError, KeyError, IndexError, AttributeError, AssertionError, OSError, RecursionError):
            return {}  # damaged, or of a kind that the library does not read: addresses are shown as they are


class _Finder:
    """Reader of one image."""

    def __init__(self, elf: Any, stream: BinaryIO) -> None:
        self._elf = elf
        self._stream = stream

    def find(self, offsets: list[int]) -> dict[int, tuple[HostFrame, ...]]:
        symbols = self._find_symbols(offsets)
        found: dict[int, tuple[HostFrame, ...]] = {
            offset: (HostFrame(function=name),) for offset, name in symbols.items()
        }
        with _open_debug(self._elf) as elf:
            if elf.has_dwarf_info(strict=True):
                found.update(self._find_lines(elf.get_dwarf_info(), offsets, symbols))
        return found

    def _find_symbols(self, offsets: list[int]) -> dict[int, str]:
        """Function symbol that contains each address."""
        rows: list[tuple[int, int, str]] = []
        for name in (".symtab", ".dynsym"):
            section = self._elf.get_section_by_name(name)
            if section is None or not hasattr(section, "iter_symbols"):
                continue
            rows += [
                (symbol["st_value"], symbol["st_size"], symbol.name)
                for symbol in section.iter_symbols()
                if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF"
            ]
            if rows:
                break
        rows.sort()
        starts = [start for start, _, _ in rows]
        found = {}
        for offset in offsets:
            at = bisect_right(starts, offset) - 1
            if at >= 0 and offset < rows[at][0] + max(rows[at][1], 1):
                found[offset] = demangle(rows[at][2]) or rows[at][2]
        return found

    def _find_lines(
        self, dwarf: Any, offsets: list[int], symbols: Mapping[int, str]
    ) -> Iterator[tuple[int, tuple[HostFrame, ...]]]:
        units = _find_units(dwarf, offsets)
        for unit, held in units:
            lines = _read_lines(dwarf, unit, held)
            chains = _find_chains(dwarf, unit, held)
            for offset in held:
                file, line = lines.get(offset, (None, None))
                chain = chains.get(offset, [])
                yield offset, tuple(_unroll(chain, file, line, symbols.get(offset)))


@contextmanager
def _open_debug(elf: Any) -> Iterator[Any]:
    """Image with debugging information: itself, or the separate file by its build id."""
    from elftools.elf.elffile import ELFFile

    path = None if elf.has_dwarf_info(strict=True) else _find_separate(elf)
    try:
        stream = None if path is None else open_regular_file(path)[0]
    except InputError:
        stream = None
    if stream is None:
        yield elf
        return
    with stream:
        yield ELFFile(stream)


def _find_separate(elf: Any) -> Path | None:
    section = elf.get_section_by_name(".note.gnu.build-id")
    if section is None:
        return None
    for note in section.iter_notes():
        if note["n_type"] == "NT_GNU_BUILD_ID":
            digest = str(note["n_desc"])
            path = _DEBUG_FOLDER / digest[:2] / f"{digest[2:]}.debug"
            return path if path.is_file() else None
    return None


def _find_units(dwarf: Any, offsets: list[int]) -> list[tuple[Any, list[int]]]:
    """Compilation units of addresses, by the range table or, without one, by each unit's ranges."""
    found: dict[int, tuple[Any, list[int]]] = {}
    table = dwarf.get_aranges()
    missing = []
    for offset in offsets:
        place = None if table is None else table.cu_offset_at_addr(offset)
        if place is None:
            missing.append(offset)
        else:
            found.setdefault(place, (dwarf.get_CU_at(place), []))[1].append(offset)
    if missing:
        for unit in dwarf.iter_CUs():
            ranges = list(_list_ranges(dwarf, unit, unit.get_top_DIE()))
            held = [offset for offset in missing if any(low <= offset < high for low, high in ranges)]
            if held:
                found.setdefault(unit.cu_offset, (unit, []))[1].extend(held)
    return list(found.values())


def _read_lines(dwarf: Any, unit: Any, offsets: list[int]) -> dict[int, tuple[str | None, int | None]]:
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return {}
    names = _name_files(program, unit)
    found: dict[int, tuple[str | None, int | None]] = {}
    before = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None and before.address < state.address:
            for offset in offsets:
                if before.address <= offset < state.address:
                    found[offset] = (names.get(before.file), before.line or None)
        before = None if state.end_sequence else state
    return found


def _name_files(program: Any, unit: Any) -> dict[int, str]:
    header = program.header
    folder = _read_text(unit.get_top_DIE().attributes.get("DW_AT_comp_dir"))
    folders = [_as_text(one) for one in header.get("include_directory", ())]
    is_new = header["version"] >= 5
    if not is_new:
        folders = [folder, *folders]
    found = {}
    for number, entry in enumerate(header["file_entry"], 0 if is_new else 1):
        index = entry.get("dir_index", 0)
        base = Path(folder, folders[index]) if index < len(folders) else Path(folder)
        found[number] = str(base / _as_text(entry.name))
    return found


def _find_chains(dwarf: Any, unit: Any, offsets: list[int]) -> dict[int, list[Any]]:
    """Function at each address with those inlined into it there, outermost first."""
    found: dict[int, list[Any]] = {}

    def walk(entry: Any) -> None:
        for child in entry.iter_children():
            held: list[int] = []
            if child.tag in ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine"):
                ranges = list(_list_ranges(dwarf, unit, child))
                held = [offset for offset in offsets if any(low <= offset < high for low, high in ranges)]
                for offset in held:
                    found.setdefault(offset, []).append(child)
            is_scope = child.tag in (
                "DW_TAG_namespace",
                "DW_TAG_lexical_block",
                "DW_TAG_class_type",
                "DW_TAG_structure_type",
            )
            if child.has_children and (held or is_scope):
                walk(child)

    walk(unit.get_top_DIE())
    return found


def _list_ranges(dwarf: Any, unit: Any, entry: Any) -> Iterator[tuple[int, int]]:
    low, high = entry.attributes.get("DW_AT_low_pc"), entry.attributes.get("DW_AT_high_pc")
    if low is not None and high is not None:
        is_length = not high.form.startswith("DW_FORM_addr")
        yield low.value, low.value + high.value if is_length else high.value
        return
    ranges = entry.attributes.get("DW_AT_ranges")
    lists = None if ranges is None else dwarf.range_lists()
    if lists is None:
        return
    first = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = 0 if first is None else first.value
    for one in lists.get_range_list_at_offset(ranges.value, cu=unit):
        if hasattr(one, "base_address"):
            base = one.base_address
        elif getattr(one, "is_absolute", False):
            yield one.begin_offset, one.end_offset
        else:
            yield base + one.begin_offset, base + one.end_offset


def _unroll(chain: list[Any], file: str | None, line: int | None, symbol: str | None) -> Iterator[HostFrame]:
    """Frames innermost first: each function's place is where the next inner one was called."""
    if not chain:
        yield HostFrame(function=symbol, file=file, line=line)
        return
    for position, entry in reversed(list(enumerate(chain))):
        name = _name_function(entry) or (symbol if position == 0 else None)
        yield HostFrame(function=name, file=file, line=line)
        called = entry.attributes.get("DW_AT_call_line")
        line = called.value if called is not None else None
        file = _name_call_file(entry) or file


def _name_call_file(entry: Any) -> str | None:
    number = entry.attributes.get("DW_AT_call_file")
    if number is None:
        return None
    program = entry.dwarfinfo.line_program_for_CU(entry.cu)
    return None if program is None else _name_files(program, entry.cu).get(number.value)


def _name_function(entry: Any) -> str | None:
    for _ in range(4):  # an inlined copy, its abstract instance, the declaration in a class
        for attribute in ("DW_AT_linkage_name", "DW_AT_name"):
            if attribute in entry.attributes:
                name = _read_text(entry.attributes[attribute])
                return demangle(name) or name
        link = next(
            (name for name in ("DW_AT_abstract_origin", "DW_AT_specification") if name in entry.attributes), None
        )
        if link is None:
            return None
        entry = entry.get_DIE_from_attribute(link)
    return None


def _read_text(attribute: Any) -> str:
    return "" if attribute is None else _as_text(attribute.value)


def _as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
