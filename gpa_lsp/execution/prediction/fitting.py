"""Unknown sizes of a launch, fitted to the kernel: arrays as large as what is touched, blocks without faults."""

import gc
import re
from bisect import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import ceil, prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, Space
from gpa_lsp.execution.emulator.emulate import emulate, find_static_shared_bytes
from gpa_lsp.execution.emulator.model import Budget, Emulation, Fault, FaultKind, Sampling, SamplingKind, TraceSettings
from gpa_lsp.execution.emulator.semantics.model import RANK_SHIFT
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription, list_arrays, replace_arrays
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.launches.template import DERIVED, FILL, RECORDS, TABLE, TOLD, count_axes, find_side
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.work_time import work_time

LIMITS = frozenset(
    {FaultKind.TIME_BUDGET, FaultKind.INSTRUCTION_BUDGET, FaultKind.MEMORY_BUDGET, FaultKind.TRACE_BUDGET}
)
FITTED = "# fitted: as much as is touched"
CUT_OFF = "# fitted: time ran out, more may be touched"
_FITTED = FITTED.partition(":")[0]
_ROOM_BYTES = 4 << 30  # Of all arrays together while nothing bounds them; zeros that are not touched cost nothing
_LARGEST_BYTES = 1 << 30
_FILLED = ", fill ="
_SHARE_OF_MEMORY = 0.9
_USUAL_BYTES = 512 << 20
_TRY = Budget(seconds=1.0, memory_bytes=2 * _ROOM_BYTES, warp_instructions=4_000_000, trace_bytes=64 << 20)
_SHARED_BYTES = 48 << 10
_ROUNDS = 6
_SPREAD = 16  # Blocks between the corners of the grid that are tried as well
_GROWTH = 4
_SMALL_BYTES = 16 << 20
_ARRAY = re.compile(r"\{ name = \"(?P<name>\w+)\",[^}]* count = (?P<count>\"[^\"]*\"|\d+)")
_KNOWN = "# allocated at line"
_GUESSED_NUMBER = re.compile(
    r'(?P<before>type = "(?:int|uint|unsigned int|unsigned|size_t|long|int64|u64|s64|u32|s32)", value = )'
    r'(?P<value>"threads_[xyz]"|"grid_x \* block_x"|16)(?=[ ,}])'
)
MOST_VARIANTS = 7
SHAPES = frozenset({FaultKind.OUT_OF_BOUNDS, FaultKind.MISALIGNED})  # Faults that other sizes and numbers may avoid
_BLOCK = re.compile(r"^block = [^#\n]*?(?=\s*(?:#|$))", re.MULTILINE)
_THREADS = re.compile(r"^threads = (\d+)", re.MULTILINE)
_SHARED = re.compile(r"^shared_bytes = 0\b.*$", re.MULTILINE)
_LEAST_BLOCKS = 2  # Tried where the first goes wrong, however slow the machine is
# By axes of the threads; the usual ones first
_BLOCKS = {
    1: ((256, 1, 1), (128, 1, 1), (64, 1, 1), (512, 1, 1), (32, 1, 1), (1024, 1, 1), (16, 1, 1)),
    2: ((16, 16, 1), (32, 8, 1), (32, 32, 1), (8, 8, 1), (32, 16, 1), (32, 4, 1), (64, 4, 1), (4, 4, 1)),
    3: ((8, 8, 4), (8, 8, 8), (4, 4, 4), (16, 8, 4)),
}


class _Tried(Struct, frozen=True, kw_only=True):
    text: str
    faults: tuple[Fault, ...]


class _Touched(Struct, frozen=True, kw_only=True):
    """Memory that a launch touches."""

    counts: dict[str, int]  # elements up to the last that is touched, by array
    shared_bytes: int  # of dynamic shared memory
    is_cut_off: bool  # not all that was to be tried ran to its end


def list_variants(text: str) -> Iterator[str]:
    r"""A description with other numbers where they were guessed: each of them in turn as the size, then none.

    >>> line = '{{ name = "{}", type = "int", value = {} }},'
    >>> text = "\n".join(("threads = 4", line.format("a", '"threads_x"'), line.format("b", 16)))
    >>> [one.split() == text.split() for one in list_variants(text)]
    [True, False, False, False]
    """
    yield text
    size = '"threads_x"' if _THREADS.search(text) else '"grid_x * block_x"'
    lines = text.split("\n")
    guessed = [
        number
        for number, line in enumerate(lines)
        if _GUESSED_NUMBER.search(line) and not any(word in line for word in (*TOLD, DERIVED))
    ]
    chosen: list[tuple[int | None, str]] = [(number, "16") for number in guessed[: MOST_VARIANTS - 2]]
    for sized, other in (*chosen, (None, "16"), (None, "1")) if guessed else ():
        changed = list(lines)
        for number in guessed:
            value = size if number == sized else other
            changed[number] = _GUESSED_NUMBER.sub(rf"\g<before>{value}", lines[number])
        if changed != lines:
            yield "\n".join(changed)


def fit_sizes(
    module: PtxModule, function: PtxFunction, text: str, *, block_axes: int, deadline: float, memory_bytes: int
) -> str | None:
    """A description with unknown sizes fitted.

    Args:
        block_axes: along which a block that is to be guessed may have several threads; 0 where the block is known.

    Returns:
        None where arrays would have to be larger than there may be.
    """
    found: list[_Tried] = []
    room = int(memory_bytes * _SHARE_OF_MEMORY)
    if _THREADS.search(text):  # fewer threads show the same, and filling so much memory takes long
        room = min(room, _USUAL_BYTES)
    for block in _list_blocks(function, block_axes) if block_axes else (None,):
        tried = _fit_arrays(module, function, text if block is None else _write_block(text, block), room)
        if tried is None:
            break  # another block touches as much
        found.append(tried)
        if not tried.faults or (work_time() > deadline and len(found) >= _LEAST_BLOCKS):
            break
    return min(found, key=lambda one: len(one.faults)).text if found else None


def shape_by_axes(function: PtxFunction, text: str) -> str:
    """A description with a block and threads along as many axes as the kernel looks at, where both are guesses, and arrays as large as that."""
    axes = count_axes(function)
    if axes < 2 or function.required_threads is not None or not _THREADS.search(text):
        return text
    block = next(_list_blocks(function, axes), None)
    every = " * ".join(f"threads_{axis}" for axis in "xyz"[:axes])
    return text if block is None else _write_block(text, block).replace('count = "threads_x', f'count = "{every}')


def _list_blocks(function: PtxFunction, axes: int) -> Iterator[tuple[int, int, int]]:
    if function.required_threads is not None:
        yield function.required_threads
        return
    most = function.max_threads or 1024
    for block in _BLOCKS[min(count_axes(function), axes)]:
        if prod(block) <= most:
            yield block


def _write_block(text: str, block: tuple[int, int, int]) -> str:
    """The same threads in another block: on two axes a square of them."""
    axes = sum(size > 1 for size in block)
    if axes < 2:
        return _BLOCK.sub(f"block = {block[0]}", text, count=1)
    text = _BLOCK.sub(f"block = {list(block[:axes])}", text, count=1)
    return _THREADS.sub(lambda found: f"threads = {[find_side(int(found[1]), axes)] * axes}", text, count=1)


def _fit_arrays(module: PtxModule, function: PtxFunction, text: str, room: int) -> _Tried | None:
    launch = _read(text)
    kept = (_KNOWN, TABLE, RECORDS)
    free = (line for line in text.splitlines() if not any(word in line for word in kept))
    guessed = {match["name"] for line in free if (match := _ARRAY.search(line))}
    has_shared = _SHARED.search(text) is not None
    try:
        touched = _find_touched(module, function, launch, guessed, has_shared=has_shared)
    except GpaError:
        return _Tried(text=text, faults=())  # what cannot be tried is said when it is emulated
    if touched is None:
        return None
    if has_shared and touched.shared_bytes > 0:
        text = _SHARED.sub(f"shared_bytes = {touched.shared_bytes}  {FITTED}", text, count=1)
    found = _fit_counts(module, text, touched, launch, room)
    if found is None or not found.faults:
        return found
    # members of structures may be indexes: zeros lead nowhere
    zeros = _fit_counts(module, empty_guessed(text), touched, launch, room)
    return zeros if zeros is not None and len(zeros.faults) < len(found.faults) else found


def _fit_counts(
    module: PtxModule, text: str, touched: "_Touched", launch: LaunchDescription, room: int
) -> _Tried | None:
    """The launch with arrays that grow until nothing is touched beyond them; None where they would be too large."""
    counts: Mapping[str, int] = touched.counts
    for _ in range(_ROUNDS):
        fitted = _write_counts(text, counts, CUT_OFF if touched.is_cut_off else FITTED)
        if _count_bytes(fitted) > room:
            return None
        described = _read(fitted)
        found = _try(module, described, _choose_blocks(described.grid, is_few=False)).faults
        faults = tuple(one for one in found if one.kind not in LIMITS)
        grown = _grow(counts, faults, launch)
        if grown is None:
            return None
        if grown == counts:
            break
        counts = grown
    return _Tried(text=fitted, faults=faults)


def empty_guessed(text: str) -> str:
    """The description with zeros in the arrays of unknown size."""
    lines = text.split("\n")
    return "\n".join(FILL.sub("", one) if _KNOWN not in one and _ARRAY.search(one) else one for one in lines)


def grow_arrays(text: str, faults: tuple[Fault, ...]) -> str | None:
    """A description whose fitted arrays hold what was touched beyond their ends; None where none is to grow."""
    launch = _read(text)
    counts = {
        match["name"]: int(match["count"])
        for line in text.splitlines()
        if _FITTED in line and (match := _ARRAY.search(line))
    }
    grown = _grow(counts, faults, launch)
    comment = CUT_OFF if CUT_OFF in text else FITTED
    return None if grown is None or grown == counts else _write_counts(text, grown, comment)


def _read(text: str) -> LaunchDescription:
    return read_launches(Path("fitting.launch.toml"), text=text)[0]


def _try(
    module: PtxModule, launch: LaunchDescription, blocks: tuple[int, ...], *, is_traced: bool = False
) -> Emulation:
    return emulate(
        module,
        launch,
        budget=_TRY,
        sampling=Sampling(kind=SamplingKind.CHOSEN, blocks=blocks),
        trace=TraceSettings(branches=False, spaces_left_out=frozenset({Space.LOCAL.value})) if is_traced else None,
    )


def _choose_blocks(grid: tuple[int, int, int], *, is_few: bool) -> tuple[int, ...]:
    """Blocks at the corners of the grid, and some between them: a guard may keep the last ones from doing anything."""
    width, height, _ = grid
    every = prod(grid)
    if is_few:
        return (every - 1,)
    x_ends, y_ends, z_ends = (sorted({0, size // 2, max(size - 2, 0), size - 1}) for size in grid)
    corners = {(z * height + y) * width + x for z in z_ends for y in y_ends for x in x_ends}
    return tuple(sorted(corners | {number * every // _SPREAD for number in range(_SPREAD)}))


def _find_touched(
    module: PtxModule, function: PtxFunction, launch: LaunchDescription, guessed: set[str], *, has_shared: bool
) -> _Touched | None:
    """Memory that is touched where arrays are as large as can be; None where that is too much."""
    arrays = [one for one in list_arrays(launch) if one.name in guessed]
    room = _ROOM_BYTES // max(len(arrays), 4)
    wide = {one.name: replace(one, count=room // one.type.bytes, generator=Generator.ZEROS) for one in arrays}
    static_bytes = find_static_shared_bytes(module, function)
    roomy = replace(
        replace_arrays(launch, wide),
        shared_bytes=max(_SHARED_BYTES - static_bytes, 0) if has_shared else launch.shared_bytes,
    )
    given = {one.name for one in list_arrays(launch)} - wide.keys()
    touched: dict[str, int] = {}
    shared_bytes = 0
    is_cut_off = False
    for is_few in (False, True):  # the last blocks alone, where those before them took all the time
        gc.collect()  # the arrays of the try before lie in a cycle: a few of them are all the memory there may be
        chosen = _choose_blocks(launch.grid, is_few=is_few)
        emulation = _try(module, roomy, chosen, is_traced=True)
        if wide and any(_is_behind_all(fault, given) for fault in emulation.faults):
            return None
        found, shared_end = _measure_touched(emulation, wide, chosen)
        is_cut = _is_cut(emulation)
        is_cut_off |= is_cut
        touched = {name: max(found.get(name, 0), touched.get(name, 0)) for name in found.keys() | touched.keys()}
        shared_bytes = max(shared_bytes, shared_end - static_bytes)
        if not is_cut:
            break
    # what nothing touched so far may be touched with other data
    counts = {one.name: touched.get(one.name) or one.count for one in arrays}
    return _Touched(counts=counts, shared_bytes=shared_bytes, is_cut_off=is_cut_off)


def _is_cut(emulation: Emulation) -> bool:
    return any(fault.kind in LIMITS for fault in emulation.faults)


def _carry_on(blocks: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], last: int) -> int:
    """End of the bytes that the blocks up to one touch, from the blocks that were tried: each moves on as far as the fastest of them.

    >>> _carry_on(np.array([0, 0, 4]), np.array([100, 512, 2560]), 7)
    4096
    """
    tried, place = np.unique(blocks, return_inverse=True)
    furthest = np.zeros(len(tried), dtype=np.int64)
    np.maximum.at(furthest, place, ends)
    end = int(furthest.max())
    steps = np.diff(furthest) / np.diff(tried)
    pace = float(steps.max(initial=0.0))
    return max(end, int(furthest[-1]) + ceil(pace * max(last - int(tried[-1]), 0)))


def _measure_touched(
    emulation: Emulation, wide: Mapping[str, ArrayArgument], chosen: Sequence[int]
) -> tuple[dict[str, int], int]:
    """Elements of each array up to the last that was touched, and the end of what was touched of shared memory.

    Blocks behind the last that touched an array were not tried up to the next that did not touch it, or at all: they are taken to go on like it.
    """
    trace = emulation.trace
    if trace is None or not len(trace.accesses):
        return {}, 0
    accesses = trace.accesses
    firsts: npt.NDArray[np.int64] = np.append(accesses.first_address, len(accesses.addresses)).astype(np.int64)
    lanes = firsts[1:] - firsts[:-1]
    ends = accesses.addresses + np.repeat(accesses.bytes, lanes)
    spaces = np.repeat(accesses.space, lanes)
    blocks = np.repeat(accesses.block, lanes)
    all_blocks = prod(emulation.grid)
    is_cut = _is_cut(emulation)
    counts = {}
    for buffer in trace.buffers:
        inside = (accesses.addresses >= buffer.base) & (accesses.addresses < buffer.base + buffer.size_bytes)
        inside &= spaces == Space.GLOBAL.value
        if buffer.name in wide and inside.any():
            touching = blocks[inside].astype(np.int64)
            behind = bisect(chosen, int(touching.max()))
            last = chosen[behind] - 1 if behind < len(chosen) and not is_cut else all_blocks - 1
            size = _carry_on(touching, ends[inside].astype(np.int64) - buffer.base, last)
            most = max(int(ends[inside].max()) - buffer.base, _LARGEST_BYTES)
            counts[buffer.name] = -(-min(size, most) // wide[buffer.name].type.bytes)
    shared = ends[spaces == Space.SHARED.value] & ((1 << RANK_SHIFT) - 1)  # of whatever block of a cluster
    return counts, int(shared.max()) if len(shared) else 0


def _count_bytes(text: str) -> int:
    """Bytes of the arrays of a description; those that are filled count twice."""
    filled = {match["name"] for line in text.splitlines() if _FILLED in line and (match := _ARRAY.search(line))}
    arrays = list_arrays(_read(text))
    return sum(one.count * one.type.bytes * (2 if one.name in filled else 1) for one in arrays)


def _is_behind_all(fault: Fault, given: Collection[str]) -> bool:
    """Whether an access lies behind the enlarged arrays; not in front of them, nor behind an array of known size."""
    passed = fault.passed
    return passed is not None and passed.offset_bytes >= 0 and passed.array not in given


def _grow(counts: Mapping[str, int], faults: tuple[Fault, ...], launch: LaunchDescription) -> dict[str, int] | None:
    """Counts with room for accesses beyond the ends; None where that is too much."""
    sizes = {one.name: one.type.bytes for one in list_arrays(launch)}
    grown = dict(counts)
    for fault in faults:
        passed = fault.passed
        if passed is None or not passed.array or passed.offset_bytes < 0:
            continue
        # far behind an array lies another, which is then named: it is unknown whose end was passed
        names = (
            [passed.array]
            if passed.array in counts
            else [name for name in counts if counts[name] * sizes.get(name, 1) < _SMALL_BYTES]
        )
        names += [
            name
            for name in counts
            if passed.array in counts and counts[name] == counts[passed.array] and name not in names
        ]
        for name in names:
            least = passed.offset_bytes // sizes.get(name, 1) + 1 if name == passed.array else 0
            grown[name] = max(grown[name], least, _GROWTH * counts[name])
    if any(count * sizes.get(name, 1) > _LARGEST_BYTES for name, count in grown.items()):
        return None
    return grown


def _write_counts(text: str, counts: Mapping[str, int], comment: str) -> str:
    lines = text.split("\n")
    for number, line in enumerate(lines):
        match = _ARRAY.search(line)
        if match is not None and match["name"] in counts and _KNOWN not in line:
            whole = f"{line[: match.start('count')]}{counts[match['name']]}{line[match.end('count') :]}"
            lines[number] = f"{whole.partition('  # ')[0]}  {comment}"
    return "\n".join(lines)
