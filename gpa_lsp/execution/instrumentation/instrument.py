"""A kernel's PTX → PTX that records its accesses and branches: :func:`instrument`.

Source: CUDAAdvisor (CGO 2018), section 3.1, for what is recorded; it instruments LLVM's representation, and arithmetic operands as well.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import Address, CallDetails, PtxFunction, PtxInstruction, PtxModule, Space
from gpa_lsp.code.ptx.parse import FunctionText, find_statements
from gpa_lsp.code.ptx.static_instructions import (
    count_bytes_per_lane,
    describe_instruction,
    list_reachable,
    list_static_instructions,
)
from gpa_lsp.execution.emulator.semantics.matrix_layouts import matrix_addresses
from gpa_lsp.execution.instrumentation.code import (
    BLOCKS,
    CALLS,
    MOST_WORDS,
    NO_PLACE,
    PATHS,
    PLACES,
    READ_WAY,
    ROWS,
    STATE,
    STATE_WORDS,
    VARIABLES,
    InstrumentedKernel,
    Place,
    RecordWriter,
    Site,
    SiteKind,
    StateWord,
    write_call,
    write_prologue,
)
from gpa_lsp.foundation.errors import InputError

UNKNOWN = 1  # Way of all that is reached after too many others
_MOST_WAYS = 1 << 12
_MOST_STEPS = 1 << 20


class CallWays(Struct, frozen=True, kw_only=True):
    """Ways of calls, and the steps between them."""

    # by number, calls from the innermost out, by their static number; None for :data:`UNKNOWN`
    paths: tuple[tuple[int, ...] | None, ...]
    calls: dict[int, int]  # static number of a call → its number in the table
    steps: tuple[int, ...]  # number of the way behind each call of each way, way after way


def number_ways(functions: Sequence[PtxFunction], first_statics: Mapping[str, int]) -> CallWays:
    """Number the ways of calls from the first function to all others; recursion is cut to one loop."""
    bodies = {function.name: function for function in functions}
    calls = {
        first_statics[function.name] + instruction.index: (function, instruction)
        for function in functions
        for instruction in function.instructions
        if instruction.call is not None and _list_callees(instruction.call, bodies)
    }
    numbers = {static: number for number, static in enumerate(calls)}
    by_function: dict[str, list[tuple[int, PtxInstruction]]] = {}
    for static, (function, instruction) in calls.items():
        by_function.setdefault(function.name, []).append((static, instruction))
    paths: dict[tuple[int, ...], int] = {(): 0}
    listed: list[tuple[int, ...] | None] = [(), None]
    steps: dict[tuple[int, int], int] = {}
    met: set[tuple[tuple[int, ...], str]] = {((), functions[0].name)}
    waiting = deque(met)
    while waiting:
        path, name = waiting.popleft()
        for static, instruction in by_function.get(name, ()):
            following = (*path[: path.index(static)], static) if static in path else (*path, static)
            number = paths.get(following)
            if number is None:
                if len(listed) >= _MOST_WAYS or (len(listed) + 1) * len(calls) > _MOST_STEPS:
                    steps[paths[path], numbers[static]] = UNKNOWN
                    continue
                number = paths[following] = len(listed)
                listed.append(following[::-1])
            steps[paths[path], numbers[static]] = number
            assert instruction.call is not None
            for callee in _list_callees(instruction.call, bodies):
                if (following, callee) not in met:
                    met.add((following, callee))
                    waiting.append((following, callee))
    return CallWays(
        paths=tuple(listed),
        calls=numbers,
        steps=tuple(steps.get((way, call), UNKNOWN) for way in range(len(listed)) for call in range(len(calls))),
    )


def _list_callees(call: CallDetails, bodies: Mapping[str, PtxFunction]) -> list[str]:
    """Functions with a body that a call can reach."""
    if call.callee is not None:
        return [call.callee] if call.callee in bodies else []
    named = [name for name in call.possible if name in bodies]
    return named or [name for name, function in bodies.items() if not function.is_entry]


_ORDINARY = frozenset({"ld", "ldu", "st", "atom", "red"})
_ROWS = frozenset({"ldmatrix", "stmatrix"})
_BARRIER_VERBS = frozenset({"init", "arrive", "arrive_drop"})
_BARRIER_BYTES = 8
# Instructions that access memory, and are reported if they have no site
_UNRECORDED = frozenset(
    {"tex", "tld4", "suld", "sust", "sured", "cp", "multimem", "wgmma", "tcgen05", "st", "red", "wmma"}
)
_HARMLESS = frozenset({"commit_group", "wait_group", "wait_all", "fence", "commit", "wait", "mma"})


def find_site(module: PtxModule, function: PtxFunction, instruction: PtxInstruction, static: int) -> Site | None:
    """Site of an instruction; None if nothing of it is recorded."""
    opcode, suffixes = instruction.opcode, instruction.suffixes
    if opcode == "bra":
        return Site(kind=SiteKind.BRANCH, static=static, instruction=instruction) if instruction.guard else None
    if opcode == "brx":
        return Site(kind=SiteKind.TABLE, static=static, instruction=instruction)
    if opcode == "mbarrier" and suffixes[:1] and suffixes[0] in _BARRIER_VERBS:
        space = Space.SHARED if any(word.startswith("shared") for word in suffixes) else Space.GENERIC
        return _make(static, instruction, space, _BARRIER_BYTES)
    if opcode in ("cp", "wmma") or opcode in _ROWS:
        return _find_move(instruction, static)
    if opcode not in _ORDINARY or "async" in suffixes or not isinstance(next(iter(instruction.sources), None), Address):
        return None
    known = describe_instruction(module, function, instruction, index=static)
    return None if known.kind is None else _make(static, instruction, known.space, known.bytes_per_lane)


def _find_move(instruction: PtxInstruction, static: int) -> Site | None:
    if instruction.opcode == "cp":
        size = count_bytes_per_lane(instruction)
        is_copy = instruction.suffixes[:1] == ("async",) and not {"bulk", "mbarrier"} & set(instruction.suffixes)
        return _make(static, instruction, Space.GLOBAL, size) if is_copy and size else None
    layout = matrix_addresses(instruction)
    if layout is None:
        return None
    names_shared = any(word.startswith("shared") for word in instruction.suffixes)
    space = Space.SHARED if names_shared else Space.GLOBAL if "global" in instruction.suffixes else Space.GENERIC
    if layout.row_bytes:
        return _make(static, instruction, space, layout.row_bytes, lanes=layout.address_lanes)
    return Site(kind=SiteKind.MATRIX, static=static, instruction=instruction, space=space)


def _make(static: int, instruction: PtxInstruction, space: Space, size_bytes: int, *, lanes: int = 32) -> Site:
    return Site(
        kind=SiteKind.ACCESS, static=static, instruction=instruction, space=space, size_bytes=size_bytes, lanes=lanes
    )


def _may_access(instruction: PtxInstruction) -> bool:
    """Whether an instruction that has no site may access memory all the same."""
    if instruction.opcode not in _UNRECORDED or _HARMLESS.intersection(instruction.suffixes):
        return False
    return instruction.opcode not in ("st", "red") or "async" in instruction.suffixes


_VERSION = re.compile(r"\.version\s+(\d+)\.(\d+)")
_LEAST_VERSION = (6, 2)  # The first with ``activemask``
_DYNAMIC_BYTES = 1 << 20
_DIRECTIVES = re.compile(r"(?:\s|\.(?:version|target|address_size)[^\n]*)*")


class OwnBuffers(Struct, frozen=True, kw_only=True):
    """Sizes of buffers in the module itself, if the launch does not provide any."""

    words: int  # of all records
    block_mask: int = 0  # see :class:`~gpa_lsp.execution.instrumentation.code.StateWord`
    block_bits: tuple[int, ...] = (1,)  # a bit for each block, 32 in a number
    threads: int = 1  # of the launch


NO_BUFFERS = OwnBuffers(words=0)  # The launch fills the words of the state


def instrument(
    module: PtxModule, kernel: str, *, entries: bool = False, buffers: OwnBuffers = NO_BUFFERS
) -> InstrumentedKernel:
    """Insert code that records into a kernel and all it can call.

    Lines, labels and basic blocks stay as they are; comments do not.

    Raises:
        InputError: the module has variables of our names, or the records would not fit their numbers.
    """
    taken = next((name for name in VARIABLES if name in module.variables), None)
    if taken is not None:
        raise InputError(f"the module has a variable {taken} already", path=None, remedy="give it as it was compiled")
    if buffers.words > MOST_WORDS:
        raise InputError(f"{buffers.words} words of records", remedy=f"record at most {MOST_WORDS}")
    return _Instrumentation(module, kernel, entries=entries).write(buffers)


class _Instrumentation:
    """One call of :func:`instrument`."""

    def __init__(self, module: PtxModule, kernel: str, *, entries: bool) -> None:
        self._module = module
        self._kernel = module.functions[kernel]
        self._functions = list_reachable(module, kernel)
        self._entries = entries
        self._firsts, self._first_blocks = _number(self._functions)
        self._ways = number_ways(self._functions, self._firsts)
        self._places = _list_places(module, self._kernel, self._functions)
        # of shared variables that only one device function names
        self._owners = {
            one.name: function.name
            for function in self._functions[1:]
            for one in function.shared
            if one.name not in module.variables
        }
        self._sites: list[Site] = []
        self._unrecorded: dict[str, None] = {}

    def write(self, buffers: OwnBuffers) -> InstrumentedKernel:
        text, places = find_statements(self._module)
        insertions: list[tuple[int, str]] = []
        for function in self._functions:
            found = places[function.name]
            if function.instructions and all(place != found[0] for place, _ in insertions):
                insertions += self._write_function(function, found)
        first_body = min((start for start, _ in places.values()), default=0)
        insertions.append((_find_head(text, first_body), self._write_variables(buffers)))
        return InstrumentedKernel(
            kernel=self._kernel.name,
            text=_raise_version(_insert(text, insertions)),
            sites=tuple(self._sites),
            instructions=list_static_instructions(self._module, self._kernel.name),
            paths=self._ways.paths,
            places=self._places,
            has_calls=bool(self._ways.calls),
            unrecorded=tuple(self._unrecorded),
        )

    def _write_function(self, function: PtxFunction, found: FunctionText) -> list[tuple[int, str]]:
        blocks = find_blocks(function)
        has_calls = bool(self._ways.calls)
        is_kernel = function is self._kernel
        seen = [
            (number, place)
            for number, place in enumerate(self._places)
            if self._owners.get(place.name, self._kernel.name) == function.name
        ]
        prologue = write_prologue(has_calls=has_calls, places=seen, is_kernel=is_kernel)
        if has_calls and not is_kernel:
            prologue.append(READ_WAY)
        targets = {one.target for one in function.instructions} | {
            target for one in function.instructions for target in one.targets
        }
        labelled, begin, _ = found[1][0]
        written = [(labelled if 0 in targets else begin, _join(prologue))]
        writer = RecordWriter(function)
        first_block = self._first_blocks[function.name]
        for instruction in function.instructions:
            lines: list[str] = []
            block = blocks.block_of[instruction.index]
            static = self._firsts[function.name] + instruction.index
            if self._entries and blocks.first[block] == instruction.index:
                lines += self._add(writer, Site(kind=SiteKind.ENTRY, static=first_block + block))
            site = find_site(self._module, function, instruction, static)
            if site is not None:
                lines += self._add(writer, site)
            elif _may_access(instruction):
                self._unrecorded[instruction.text.partition(" ")[0]] = None
            if static in self._ways.calls:
                guard = instruction.guard
                name = "" if guard is None else function.register_names[guard.slot]
                guarded = "" if guard is None else f"@{'!' if guard.is_negated else ''}{name} "
                lines += write_call(self._ways.calls[static], len(self._ways.calls), guarded)
            if lines:
                written.append((found[1][instruction.index][1], _join(lines)))
        return written

    def _add(self, writer: RecordWriter, site: Site) -> list[str]:
        self._sites.append(site)
        return writer.write(len(self._sites) - 1, site)

    def _write_variables(self, buffers: OwnBuffers) -> str:
        """Declarations of the module's additional variables."""
        state = [0] * STATE_WORDS
        state[StateWord.CAPACITY], state[StateWord.BLOCK_MASK] = buffers.words, buffers.block_mask
        words: list[int | str] = list(state)
        words[StateWord.ROWS], words[StateWord.BLOCKS], words[StateWord.PATHS] = ROWS, BLOCKS, PATHS
        threads = buffers.threads if self._ways.calls else 1
        lines = [
            f".visible .global .align 16 .u64 {ROWS}[{max(buffers.words, 1)}];",
            f".visible .global .align 8 .u32 {BLOCKS}[{len(buffers.block_bits)}] = {_list(buffers.block_bits)};",
            f".visible .global .align 8 .u32 {PATHS}[{threads}];",
            f".visible .global .align 8 .u64 {PLACES}[{max(len(self._places), 1)}] = {_list([NO_PLACE] * max(len(self._places), 1))};",
            f".visible .global .align 8 .u32 {CALLS}[{max(len(self._ways.steps), 1)}] = {_list(self._ways.steps or (0,))};",
            f".visible .global .align 8 .u64 {STATE}[{STATE_WORDS}] = {_list(words)};",
        ]
        return "\n".join(("", *lines, ""))


def _number(functions: Iterable[PtxFunction]) -> tuple[dict[str, int], dict[str, int]]:
    """Numbers of each function's first instruction and first basic block."""
    instructions: dict[str, int] = {}
    blocks: dict[str, int] = {}
    instruction = block = 0
    for function in functions:
        instructions[function.name], blocks[function.name] = instruction, block
        instruction += len(function.instructions)
        block += len(find_blocks(function).first)
    return instructions, blocks


def _list_places(module: PtxModule, kernel: PtxFunction, functions: Iterable[PtxFunction]) -> tuple[Place, ...]:
    """Variables whose addresses only the GPU knows: the kernel's shared and local ones, and constants it names."""
    own = [(Space.SHARED, one) for one in kernel.shared] + [(Space.LOCAL, one) for one in kernel.locals]
    found = [
        Place(name=one.name, space=space, offset_bytes=one.offset_bytes, size_bytes=one.size_bytes or _DYNAMIC_BYTES)
        for space, one in own
    ]
    texts = " ".join(one.text for function in functions for one in function.instructions)
    named = frozenset(re.findall(r"[\w$%]+", texts))
    found += [
        Place(name=one.name, space=Space.CONST, offset_bytes=0, size_bytes=one.size_bytes)
        for one in module.variables.values()
        if one.space is Space.CONST and not one.is_texture and one.name in named
    ]
    return tuple(found)


def _find_head(text: str, body: int) -> int:
    """Offset at which a function with a body begins: after the statement before it."""
    head = text.rindex("{", 0, body)
    place = max(text.rfind(mark, 0, head) for mark in ";}")
    return place + 1 if place >= 0 else _DIRECTIVES.match(text).end()  # type: ignore[union-attr]  # it may be empty


def _insert(text: str, insertions: list[tuple[int, str]]) -> str:
    parts = []
    place = 0
    for start, added in sorted(insertions, key=lambda one: one[0]):
        parts += [text[place:start], added]
        place = start
    return "".join((*parts, text[place:]))


def _raise_version(text: str) -> str:
    match = _VERSION.search(text)
    if match is None or (int(match[1]), int(match[2])) >= _LEAST_VERSION:
        return text
    return f"{text[: match.start()]}.version {'.'.join(map(str, _LEAST_VERSION))}{text[match.end() :]}"


def _join(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _list(values: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"
