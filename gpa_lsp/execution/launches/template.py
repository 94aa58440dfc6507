"""Writes a first launch description for a kernel that has none."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import log2, prod
from pathlib import PurePath

from msgspec import Struct

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.ptx.model import Operand, PtxFunction, PtxVariable, Register, SpecialRegister
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.source_parameters import SourceParameter, read_source_parameters
from gpa_lsp.code.sources.assumed_launches import USUAL_THREADS
from gpa_lsp.code.sources.host_inputs import names_a_size
from gpa_lsp.code.sources.host_values import HostArgument, HostLaunch
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.model import FIRST_ADDRESS
from gpa_lsp.execution.launches.pointer_uses import (
    INDEXING,
    MemberUse,
    PointerUse,
    find_held_uses,
    find_loaded_parameters,
    find_member_uses,
    find_modes,
    find_pointer_uses,
    find_read_parameters,
    find_record_members,
    find_texture_variables,
)
from gpa_lsp.execution.launches.type_names import ElementType, find_type, wrap
from gpa_lsp.foundation.prose import list_of

_GUESSES = "correct them, and take out what is right"
_NAMED = re.compile(r'\{ name = "(\w+)"')
_AS_TOLD = "# as told"  # Comment behind what a person has said
# Comments behind known values
TOLD = ("# line ", "# never read", _AS_TOLD)
_MOST_INPUTS = 6
# Of what names a number that is read, what cannot stand in a comment
_UNTOLD = re.compile(r"[^\w \[\]().>&-]", re.ASCII)
# Comment behind a number that the host code makes of what it reads
DERIVED = "# guess; line "
# Of a launch that nothing is known of: it fills any GPU
_GRID_WORDS = "# the grid is threads / block, rounded up; or give grid = …"
_BLOCK = 256
_NAME = re.compile(r"[A-Za-z_]\w{0,200}", re.ASCII)
_POINTER_BYTES = 8
# Of a number that may be how many elements there are; of those one is believed, or those with a telling name
_COUNTED = 'value = "threads_x"'

_PLACES = frozenset({"tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z"})
_MOST_ROUNDS = 8
# elements that each block works on, and how often a loop is gone through
_ROW, _LOOP = 1024, 16
_SIZED = "threads_"

TABLE = ", step = "  # Of an array of pointers: so far from each other lies what they lead to
RECORDS = ", values = ["  # Of an array of structures with pointers: the words of one, which all others repeat
# From what the pointers of one array lead to, to what those of the next do: more than there is for each while nothing bounds it
_TABLE_SPAN = (1 << 30) + (1 << 20)
_MOST_TABLES = 6
_TABLE_BYTES = 1 << 24  # Of what the pointers of one array lead to
_LEAST_STEP, _MOST_STEP = 256, 1 << 16
_POINTERS = 1024  # In an array of pointers of unknown size
_LARGEST_RECORD = 256  # bytes of a structure that memory holds, of which only some parts are loaded
_ONES = {ScalarType.F32: 0x3F800000, ScalarType.F64: 0x3FF0000000000000, ScalarType.F16: 0x3C00}  # bits of 1.0

GUESSED = ", guessed = true"  # Of an array of unknown size
# Declaration of a texture reference
_REFERENCE = re.compile(r"\btexture\s*<\s*([\w ]{1,40}?)\s*(?:,[^<>;]{0,80})?>\s*(\w{1,200})")
_COUNT = re.compile(r" count = (\"[^\"]*\"|\d+)")
# Contents of an array that are unknown
FILL = re.compile(r", fill = \"uniform\"(?:, low = -\d+)?(?:, high = \d+)?")
_SOME = 4  # Numbers among which a negative one that ends a loop comes up soon
_VALUE = re.compile(r" value = [^,}]*?(?=\s*[,}])")
_KNOWN_BITS = {1: "u8", 2: "u16", 4: "int", 8: "int64"}


class ToldSizes(Struct, frozen=True):
    """Sizes of a launch that a person gave."""

    # by the name of a kernel's parameter, or by a variable that the host code reads a number into
    numbers: dict[str, int] = {}
    threads: tuple[int, ...] = ()  # in all by axis; empty where they are not told


NOTHING_TOLD = ToldSizes()


def write_template(
    function: PtxFunction,
    names: Collection[str],
    *,
    texts: Sequence[tuple[str, str]] = (),
    filled: Collection[str] = (),
    measured: LaunchDescription | None = None,
    host: HostLaunch | None = None,
    threads: int = USUAL_THREADS,
    told: ToldSizes = NOTHING_TOLD,
) -> str:
    """Text of a description that can be read as it stands; sizes are guesses to be corrected.

    Args:
        names: linkage names of all kernels of the module, to tell a bare name from others.
        texts: name and text of each source that may define the kernel, for names and types of its parameters.
        filled: variables that host code fills.
        measured: a measured launch, for block, grid and shared memory; None if there is none.
        host: a launch in the host code, for arguments, and for the shape if none was measured; None if there is none.
        threads: of the launch, if neither is known.
        told: sizes that are no guesses.

    Every size is given by ``threads``, so that one number is to be changed first. Types of arrays are those of the source, else those that the
    kernel's instructions access them with. Without a source, arguments that the kernel never reads are zero.
    """
    parameters = (read_source_parameters(file, text, function.name) for file, text in texts)
    source_names = next((one for one in parameters if one), ())
    references = {found[2]: found[1].strip() for _, text in texts for found in _REFERENCE.finditer(text)}
    name = find_bare_name(function.name)
    if sum(find_bare_name(one) == name for one in names) != 1 or not _NAME.fullmatch(name):
        name = function.name
    block = function.required_threads or (min(function.max_threads or _BLOCK, _BLOCK), 1, 1)
    shape = _write_shape(host, measured, block, threads, count_axes(function, "ctaid"))
    known = source_names if len(source_names) == len(function.parameters) else ()
    if host is None and measured is None and not told.threads:
        told = ToldSizes(told.numbers, _cover_told(function, known, told.numbers))
    if told.threads:
        covered = f"threads = {told.threads[0] if len(told.threads) == 1 else list(told.threads)}  {_AS_TOLD}"
        shape = [covered if line.startswith("threads = ") else line for line in shape]
    shared_bytes = measured.shared_bytes if measured is not None else (host and host.shared_bytes) or 0
    has_shared = shared_bytes > 0 or any(one.is_extern for one in function.shared)
    has_threads = any(one.startswith("threads = ") for one in shape)
    written = _write_arguments(function, known, host, told.numbers, has_threads=has_threads)
    written += _write_references(function, references, has_threads=has_threads)
    tables = [] if not known else _write_tables(function, known, written)
    tables += [] if not known else _write_records(function, known, written, len(tables))
    shaping = [
        one for one in _list_guessed_shape(shape, function, host, measured) if one != "threads" or not told.threads
    ]
    guesses = [*shaping, *_list_guessed_arguments([*written, *tables])]
    guesses += sorted(find_read_parameters(function).intersection(filled).difference(guesses))
    lines = [
        _write_heading(host, measured),
        "",
        "[[launch]]",
        f'kernel = "{name}"',
        *shape,
        *([f"shared_bytes = {shared_bytes}  # of dynamic shared memory"] if has_shared else []),
        *([f"guesses = {json.dumps(guesses)}  # {_GUESSES}"] if guesses else []),
        "arguments = [",
        *(f"  {line}" for line in written),
        "]",
        *(["memory = [", *(f"  {line}" for line in tables), "]"] if tables else []),
    ]
    return "\n".join(lines) + "\n"


def count_axes(function: PtxFunction, index: str = "tid") -> int:
    """Number of axes of its thread's index, or of another special register, that a kernel reads; at least 1."""
    text = "\n".join(one.text for one in function.instructions)
    return 3 if f"%{index}.z" in text else 2 if f"%{index}.y" in text else 1


def find_side(threads: int, axes: int) -> int:
    """Threads along each of some axes, a power of two, so that all are about as many as given.

    >>> find_side(1 << 20, 2), find_side(1 << 20, 3), find_side(1, 2)
    (1024, 128, 1)
    """
    return 1 << round(log2(max(threads, 1)) / axes)


def _find_bounds(function: PtxFunction) -> dict[str, str]:
    """Values of numbers that are compared with a thread's index, by parameter.

    What is compared with the place of a thread in the grid is the size along an axis; with its place in the block, the length of a row that a
    block works on. What is compared with neither bounds a loop, and what is taken off a size is no size.
    """
    loaded = find_loaded_parameters(function)
    indexes: dict[int, frozenset[str]] = {}
    numbers: dict[int, frozenset[str]] = {}

    def find(known: Mapping[int, frozenset[str]], operands: Sequence[Operand]) -> frozenset[str]:
        return frozenset[str]().union(*(known.get(one.slot, ()) for one in operands if isinstance(one, Register)))

    for _ in range(_MOST_ROUNDS):
        has_changed = False
        for one in function.instructions:
            place = loaded.get(one.index)
            if place is None and one.opcode not in INDEXING:
                continue
            read = {f"{item.name}.{item.component}" for item in one.sources if isinstance(item, SpecialRegister)}
            index = find(indexes, one.sources) | read.intersection(_PLACES)
            given = find(numbers, one.sources[:1] if one.opcode == "sub" else one.sources)
            number = given if place is None else frozenset({place[0]} if place[1] == 0 else ())
            for slot in (item.slot for item in one.destinations if isinstance(item, Register)):
                before = indexes.get(slot, frozenset()), numbers.get(slot, frozenset())
                indexes[slot], numbers[slot] = before[0] | index, before[1] | number
                has_changed |= before != (indexes[slot], numbers[slot])
        if not has_changed:
            break
    placed = frozenset[str]().union(*(numbers[slot] for slot, index in indexes.items() if index))
    bounds: dict[str, str] = {}
    for one in function.instructions:
        if one.opcode != "setp" or len(one.sources) < 2:
            continue
        for compared, bound in (one.sources[:2], one.sources[1::-1]):
            index = find(indexes, (compared,))
            axis = next((word[-1] for word in sorted(index) if word.startswith("tid")), "")
            given = frozenset[str]() if find(indexes, (bound,)) else find(numbers, (bound,))
            if axis and any(word.startswith("ctaid") for word in index):
                bounds.update(dict.fromkeys(given, f'value = "{_SIZED}{axis}"'))
            elif not index or axis:
                value = f"value = {_ROW if axis else _LOOP}"
                bounds = {**dict.fromkeys(given if axis else given - placed, value), **bounds}
    return bounds


def _cover_told(function: PtxFunction, known: Sequence[SourceParameter], told: Mapping[str, int]) -> tuple[int, ...]:
    """Threads by axis, from given sizes that thread indices are compared with; empty if none is."""
    bounds = _find_bounds(function) if told else {}
    names = zip(function.parameters, _choose_names(function, known), strict=True)
    bounding = [(bounds.get(one.name, ""), told[name]) for one, name in names if name in told]
    sizes = {bound.rstrip('"')[-1]: size for bound, size in bounding if _SIZED in bound}
    return tuple(sizes.get(axis, max(sizes.values())) for axis in "xyz"[: count_axes(function)] if sizes)


def _write_arguments(
    function: PtxFunction,
    known: Sequence[SourceParameter],
    host: HostLaunch | None,
    told: Mapping[str, int],
    *,
    has_threads: bool,
) -> list[str]:
    """One line for each argument; several for structures."""
    lines: list[str] = []
    uses = find_pointer_uses(function)
    arguments = _choose_names(function, known)
    read = {parameter.name for parameter in function.parameters} if known else find_read_parameters(function)
    members = find_member_uses(function)
    modes = find_modes(function)
    has_size = any(names_a_size(name) for name in arguments)
    bounds = _find_bounds(function)
    is_bounded = any(_SIZED in value for value in bounds.values())
    for number, parameter in enumerate(function.parameters):
        if parameter.name not in read and parameter.count == 1 and parameter.size_bytes in _KNOWN_BITS:
            lines.append(_write_unread(parameter, arguments[number]))
            continue
        source = known[number] if known else None
        line = _write_argument(parameter, arguments[number], source, uses.get(parameter.name))
        if parameter.name in modes and _COUNTED in line:
            line = line.replace(_COUNTED, f"value = {modes[parameter.name]}")
        given = host.arguments[number] if host is not None and len(host.arguments) == len(function.parameters) else None
        if parameter.name in members:
            line = _write_structure(parameter, arguments[number], members[parameter.name], source, given)
        if _COUNTED in line and parameter.name not in members and (is_bounded or parameter.name in bounds):
            line = line.replace(_COUNTED, bounds.get(parameter.name, f"value = {_LOOP}"))
        elif _COUNTED in line and not names_a_size(arguments[number]):
            line = line.replace(_COUNTED, "value = 16") if has_size else line
            has_size = True
        if host is not None:
            line = line if parameter.name in members else _give(line, given, parameter.type)
            line = line if has_threads else _count_by_grid(line)
        if arguments[number] in told and " value = " in line and "[" not in line:
            value = told[arguments[number]]
            shown = repr(float(value)) if parameter.type.is_float else str(value)
            line = f"{_VALUE.sub(f' value = {shown}', line.partition('  # ')[0], count=1)}  {_AS_TOLD}"
        lines.append(line)
    return lines


def _write_tables(function: PtxFunction, known: Sequence[SourceParameter], written: list[str]) -> list[str]:
    """Memory that the pointers in arrays of pointers lead to, one line for each array, whose own line gets their distance."""
    uses = find_held_uses(function)
    lines: list[str] = []
    for number, (parameter, source) in enumerate(zip(function.parameters, known, strict=True)):
        use = uses.get(parameter.name) if source.leads_to_pointers else None
        name = _NAMED.search(written[number])
        if use is None or name is None or len(lines) == _MOST_TABLES:
            continue
        base = FIRST_ADDRESS + len(lines) * _TABLE_SPAN
        written[number], size = _write_pointers(written[number], base)
        kind = find_type(source.type)
        scalar = ScalarType.F32 if use.type is None else use.type
        each = scalar.bytes if kind is None else kind.bytes
        line = _write_array(f"{name[1]}_i", kind, use, source)
        line = _COUNT.sub(f" count = {size // each}", line, count=1)
        lines.append(line.replace(GUESSED, f", base_address = {base}{GUESSED}"))
    return lines


def _write_records(
    function: PtxFunction, known: Sequence[SourceParameter], written: list[str], begun: int
) -> list[str]:
    """Memory that the pointers in structures lead to, one line for each pointer; the line of the structures gets their words.

    Args:
        begun: lines of memory there are already.
    """
    uses = find_pointer_uses(function)
    members = find_record_members(function)
    lines: list[str] = []
    for number, (parameter, source) in enumerate(zip(function.parameters, known, strict=True)):
        name = _NAMED.search(written[number])
        parts = members.get(parameter.name, ())
        pointers = sum(one.pointer is not None for one in parts)
        is_known = source.leads_to_pointers or not source.is_pointer or find_type(source.type) is not None
        if is_known or name is None or not pointers or begun + len(lines) + pointers > _MOST_TABLES:
            continue
        stride = uses[parameter.name].stride_bytes
        end = max(one.offset_bytes + one.type.bytes for one in parts)
        size = -(-max(stride, end) // _POINTER_BYTES)
        if min(one.offset_bytes for one in parts) < 0 or stride % _POINTER_BYTES or end > max(stride, _LARGEST_RECORD):
            continue
        words: list[list[str]] = [[] for _ in range(size)]
        has_size = False
        for one in parts:
            word, shift = divmod(one.offset_bytes, _POINTER_BYTES)
            if one.pointer is not None:
                base = FIRST_ADDRESS + (begun + len(lines)) * _TABLE_SPAN
                line = _write_array(f"{name[1]}_{one.offset_bytes}", None, one.pointer, None)
                lines.append(line.replace(GUESSED, f", base_address = {base}{GUESSED}"))
                value = str(base)
            else:
                is_size = not has_size and not one.type.is_float and one.type.bytes >= 4
                has_size |= is_size
                value = "threads_x" if is_size else str(_ONES.get(one.type, 16 if one.type.bytes > 2 else 1))
            words[word].append(f"{value} * {1 << 8 * shift}" if shift else value)
        values = ", ".join(_write_word(" + ".join(one) or "0") for one in words)
        count = f'"threads_x * {size}"' if stride else size
        comment = f"  # {_plain(source.type)}: {list_of(str(one.offset_bytes) for one in parts)}"
        text = f'{{ name = "{name[1]}", type = "u64", count = {count}{RECORDS}{values}]{GUESSED} }},'
        written[number] = f"{text}{comment} bytes into it"
    return lines


def _write_word(text: str) -> str:
    return text if text.isdecimal() else json.dumps(text)


def _write_pointers(line: str, base: int) -> tuple[str, int]:
    """Line of an array of pointers to equally distant places, and the bytes of these places."""
    text, _, comment = line.partition("  # ")
    told = _COUNT.search(text)
    count = int(told[1]) if told is not None and told[1].isdecimal() else _POINTERS
    room = 1 << max(_TABLE_BYTES // max(count, 1), 1).bit_length() - 1
    step = min(max(room, _LEAST_STEP), _MOST_STEP)
    text = _COUNT.sub(f" count = {count}", text, count=1)
    text = FILL.sub(f', fill = "sequence", low = {base}{TABLE}{step}', text, count=1)
    return f"{text}{f'  # {comment}' if comment else ''}", count * step


def _write_references(function: PtxFunction, references: Mapping[str, str], *, has_threads: bool) -> list[str]:
    """Textures that the kernel reads by a variable of the module."""
    lines = []
    for name, use in find_texture_variables(function).items():
        texture = _write_texture(name, use, find_type(references.get(find_bare_name(name), "")))
        lines.append(f"{texture if has_threads else _count_by_grid(texture)}  # guess")
    return lines


def _list_guessed_shape(
    shape: Sequence[str], function: PtxFunction, host: HostLaunch | None, measured: LaunchDescription | None
) -> list[str]:
    """Names of the guessed ones among block, grid and threads."""
    if measured is not None:
        return []
    if host is not None:
        guessed = [line.partition(" ")[0] for line in shape if "# guess" in line]
        return ["block", *guessed] if host.is_assumed and "block" not in guessed else guessed
    return ["threads"] if function.required_threads is not None else ["block", "threads"]


def _list_guessed_arguments(lines: Sequence[str]) -> Iterator[str]:
    """Names of unknown numbers, and of arrays with made-up contents."""
    for line in "\n".join(lines).split("\n"):
        name = _NAMED.search(line)
        is_number = " value = " in line and not any(word in line for word in TOLD)
        if name is not None and (is_number or ", fill = " in line or RECORDS in line):
            yield name[1]


def _write_heading(host: HostLaunch | None, measured: LaunchDescription | None) -> str:
    if host is not None and measured is None:
        read = _name_inputs(host)
        doubt = " It may be one of another instance of the kernel: a guess." if host.is_of_other else ""
        doubt += " The host code chooses another case or branch." if host.is_assumed else ""
        return f"# Inferred from {_name_line(host)}; check the values marked as guesses.{doubt}{read}"
    if measured is not None:
        return "# What to run the kernel with. Block, threads and shared memory are as measured; other sizes and values are guesses."
    return "# What to run the kernel with. Sizes and values are guesses: correct them, threads first."


def _name_inputs(host: HostLaunch) -> str:
    """Comment about values the host code is assumed to read, if the launch follows from them."""
    if not host.inputs:
        return ""
    named = list_of(f"{_UNTOLD.sub('', source)} = {value}" for source, value in host.inputs[:_MOST_INPUTS])
    return f"\n# Guessed: {named}; grid, sizes and numbers follow from that."


def _write_shape(
    host: HostLaunch | None,
    measured: LaunchDescription | None,
    block: tuple[int, int, int],
    threads: int,
    grid_axes: int,
) -> list[str]:
    """Block, and grid or threads; of so many axes of the grid that the kernel reads."""
    covered = str(threads)
    if host is not None and measured is None:
        known = host.block
        is_told = host.block is not None and "block" not in host.guessed
        lines = [f"block = {_shorten(known or block)}{'' if is_told else '  # guess'}"]
        if host.grid is not None and known is not None:
            return [*lines, f"grid = {_shorten(host.grid)}{'  # guess' if 'grid' in host.guessed else ''}"]
        sizes = list(known or block)
        free = sum(size > 1 for size in sizes[:grid_axes]) or 1
        if max(sizes[1:]) > 1:  # one block along the axes whose blocks the kernel does not tell apart
            side = find_side(threads // prod(sizes[grid_axes:]), free)
            along = [side if size > 1 and axis < grid_axes else size for axis, size in enumerate(sizes)]
            covered = str(along[: 3 if sizes[2] > 1 else 2])
        return [*lines, f"threads = {covered}  # guess; {_GRID_WORDS[2:]}"]
    if measured is not None:
        block = measured.block
        covered = str([size * blocks for size, blocks in zip(measured.block, measured.grid, strict=True)])
    return [f"block = {_shorten(block)}", f"threads = {covered}  {_GRID_WORDS}"]


def _shorten(extent: tuple[int, int, int]) -> int | list[int]:
    return extent[0] if extent[1:] == (1, 1) else list(extent)


def _name_line(given: HostArgument | HostLaunch) -> str:
    return f"line {given.line}{f' of {PurePath(given.file).name}' if given.file else ''}"


def _give(line: str, given: HostArgument | None, read: ScalarType) -> str:
    """Line of an argument with the host code's value and its place; marked as a guess if there is none."""
    text, _, comment = line.partition("  # ")
    is_number = " value = " in text and "[" not in text
    if given is not None and is_number and given.value is not None and not given.is_array:
        kind = _find_written_type(text)
        shown = repr(float(given.value)) if read.is_float else str(wrap(given.value, kind.scalar if kind else read))
        comment = f"{DERIVED.removesuffix('line ') if given.is_guess else '# '}{_name_line(given)}"
        return f"{_VALUE.sub(f' value = {shown}', text, count=1)}  {comment}"
    if given is not None and given.is_array and given.size_bytes and " count = " in text:
        counted = _count_allocated(FILL.sub("", text) if given.is_zero else text, given)
        if counted is not None:
            return f"{counted}  # allocated at {_name_line(given)}{'; its size is a guess' if given.is_guess else ''}"
    return f"{text}  # guess{f'; {comment}' if comment else ''}"


def _find_written_type(text: str) -> ElementType | None:
    """Type that an argument's line names; None for none, or an unknown one."""
    named = re.search(r'type = "([^"]*)"', text)
    return None if named is None else find_type(named[1])


def _count_allocated(text: str, given: HostArgument) -> str | None:
    """Line of an array with its size, and the pointer's offset in it; None if they are unknown."""
    element = _find_written_type(text)
    if element is None or not given.size_bytes or given.size_bytes % element.bytes:
        return None
    count = given.size_bytes // element.bytes
    if given.offset is None or not 0 <= given.offset < count:
        return None
    moved = f", offset = {given.offset}" if given.offset else ""
    plain = text if given.is_guess else text.replace(GUESSED, "")
    counted = re.sub(r" count = [^,}]*(?=[,}])", f" count = {count}{moved}", plain, count=1)
    return re.sub(r"(?<! )\}", " }", counted)


def _count_by_grid(line: str) -> str:
    """Line with sizes in blocks of the known grid instead of threads."""
    return re.sub(r'"threads_([xyz])', r'"grid_\1 * block_\1', line)


def _choose_names(function: PtxFunction, known: Sequence[SourceParameter]) -> list[str]:
    """Name of each parameter in the source, or one by its number."""
    given = [one.name for one in known]
    found: list[str] = []
    for number in range(len(function.parameters)):
        name = given[number] if number < len(given) else ""
        is_good = _NAME.fullmatch(name) is not None and given.count(name) == 1
        found.append(name if is_good else f"argument{number}")
    return found


def _write_argument(parameter: PtxVariable, name: str, source: SourceParameter | None, use: PointerUse | None) -> str:
    if use is not None and use.texture_dimensions:
        return _write_texture(name, use, None)
    kind = None if source is None else find_type(source.type)
    is_pointer = parameter.is_pointer or use is not None or (source is not None and source.is_pointer)
    if source is not None and source.leads_to_pointers and parameter.size_bytes == _POINTER_BYTES:
        return _write_array(name, None, _POINTERS_USE, None)
    if is_pointer and parameter.size_bytes == _POINTER_BYTES:
        return _write_array(name, kind, use, source)
    if kind is not None and kind.bytes == parameter.size_bytes:
        return _write_number(name, source.type if source is not None else "", kind)
    if parameter.count != 1 or parameter.size_bytes not in _KNOWN_BITS:
        comment = "" if source is None else f"  # {_plain(source.type)}"
        return f'{{ name = "{name}", size = {max(1, parameter.size_bytes)}, members = [] }},{comment}'
    word = _name_number(parameter.type)
    return _write_number(name, word, find_type(word) or ElementType(scalar=parameter.type))


_POINTERS_USE = PointerUse(type=ScalarType.U64, is_read=True, is_written=False, stride_bytes=0, texture_dimensions=0)


def _write_structure(
    parameter: PtxVariable,
    name: str,
    members: Sequence[MemberUse],
    source: SourceParameter | None,
    given: HostArgument | None,
) -> str:
    """Line of a structure, with a line for each member that the kernel loads."""
    lines = []
    told = {} if given is None else dict(given.members)
    has_size = False
    for member in members:
        own = f"{name}_{member.offset_bytes}"
        if member.pointer is not None:
            text = _write_array(own, None, member.pointer, None)
        else:
            word = _name_number(member.type)
            text = _write_number(own, word, find_type(word) or ElementType(scalar=member.type))
            text = text.replace(_COUNTED, "value = 16") if has_size else text
            has_size = has_size or _COUNTED in text
        text = f"{text.rpartition(' }')[0]}, at = {member.offset_bytes} }},"
        lines.append(f"    {_give(text, told.get(member.offset_bytes), member.type) if given else text}")
    comment = "" if source is None else f"  # {_plain(source.type)}"
    listed = "\n".join(lines)
    return f'{{ name = "{name}", size = {max(1, parameter.size_bytes)}, members = [{comment}\n{listed}\n  ] }},'


def _write_unread(parameter: PtxVariable, name: str) -> str:
    word = _name_number(parameter.type)
    kind = find_type(word)
    value = "0.0" if kind is not None and kind.scalar.is_float else "0"
    return f'{{ name = "{name}", type = "{word}", value = {value} }},  # never read'


def _name_number(kind: ScalarType) -> str:
    """Type name of a number: its own for floats, else the plainest of the size."""
    is_known = kind.is_float and find_type(kind.value) is not None
    return kind.value if is_known else _KNOWN_BITS.get(kind.bytes, "int64")


def _write_array(name: str, kind: ElementType | None, use: PointerUse | None, source: SourceParameter | None) -> str:
    used = ScalarType.F32 if use is None or use.type is None else use.type
    word = _plain(source.type) if source is not None and kind is not None else _name_type(used)
    scalar = used if kind is None else kind.scalar
    comment = "" if source is None or kind is not None else f"  # {_plain(source.type)}"
    fill = ', fill = "uniform"' if use is None or use.is_read else ""
    if source is not None and source.is_reference:  # a size rather than an array
        fill = ', fill = "constant", value = "threads_x"' if fill and scalar.is_integer else fill
        return f'{{ name = "{name}", type = "{word}", count = 1{fill}{GUESSED} }},{comment}'
    elements = 1 if use is None else use.stride_bytes // (scalar.bytes if kind is None else kind.bytes)
    if fill and scalar.is_integer and use is not None and use.leads_to_itself and elements <= 1:
        # each element leads to the one before it, and the first to none; or each to itself
        fill = f', fill = "sequence"{", low = -1" if use.least else ""}'
    elif fill and scalar.is_integer:
        fill += ", high = 100" if use is None or not use.least else f", low = {use.least}, high = {_SOME}"
    count = "threads_x" if elements <= 1 else f"threads_x * {elements}"
    return f'{{ name = "{name}", type = "{word}", count = "{count}"{fill}{GUESSED} }},{comment}'


def _write_texture(name: str, use: PointerUse, texel: ElementType | None) -> str:
    """Line of a texture or surface; *texel* is None if the type of its texels is unknown."""
    read = ScalarType.F32 if use.type is None or use.type.bytes == 1 else use.type
    word = _name_type(read if texel is None else texel.scalar)
    sizes = ('width = "threads_x"', "width = 256, height = 256", "width = 64, height = 64, depth = 16")
    more = f", channels = {texel.lanes}" if texel is not None and texel.lanes > 1 else ""
    more += ", reads_normalized = true" if texel is not None and texel.scalar.is_integer and read.is_float else ""
    return f'{{ name = "{name}", type = "{word}", {sizes[use.texture_dimensions - 1]}{more}, fill = "uniform" }},'


def _name_type(kind: ScalarType) -> str:
    """Type name that a description knows, of the same size."""
    return kind.value if find_type(kind.value) is not None else _KNOWN_BITS.get(kind.bytes, "u8")


def _write_number(name: str, word: str, kind: ElementType) -> str:
    if kind.lanes > 1:
        value = f"[{', '.join(['1'] * kind.lanes)}]"
    elif kind.scalar.is_float:
        value = "1.0"
    else:
        value = _COUNTED.removeprefix("value = ") if kind.bytes > 2 else "1"
    return f'{{ name = "{name}", type = "{_plain(word)}", value = {value} }},'


def _plain(text: str) -> str:
    """Type name without characters that cannot stand in a string or comment."""
    return re.sub(r"[^\w :<>,*&]", "", text, flags=re.ASCII)[:100]
