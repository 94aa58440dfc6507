"""A kernel's PTX → PTX that records what it accesses and how it branches: :func:`instrument`."""

import re
from collections.abc import Iterable

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.static_instructions import list_static_instructions
from gpa_lsp.instrumentation.call_ways import number_ways
from gpa_lsp.instrumentation.code import RecordWriter, write_call, write_prologue, write_way_read
from gpa_lsp.instrumentation.find_sites import find_site, is_unrecorded
from gpa_lsp.instrumentation.model import (
    BLOCKS,
    CALLS,
    MOST_WORDS,
    NO_PLACE,
    PATHS,
    PLACES,
    ROWS,
    STATE,
    STATE_WORDS,
    VARIABLES,
    InstrumentedKernel,
    Place,
    Site,
    SiteKind,
    StateWord,
)
from gpa_lsp.ptx.blocks import find_blocks
from gpa_lsp.ptx.model import PtxFunction, PtxModule, Space
from gpa_lsp.ptx.reachable import list_reachable
from gpa_lsp.ptx.statements import FunctionText, ModuleStatements, find_statements

_VERSION = re.compile(r"\.version\s+(\d+)\.(\d+)")
_LEAST_VERSION = (6, 2)
"""The first with ``activemask``."""
_DYNAMIC_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBuffers:
    """Room for records in the module itself, where nobody gives it any.

    Attributes:
        words: of all records.
        block_mask: see :class:`~gpa_lsp.instrumentation.model.StateWord`.
        block_bits: a bit for each block, 32 in a number.
        threads: of the launch.
    """

    words: int
    block_mask: int = 0
    block_bits: tuple[int, ...] = (1,)
    threads: int = 1


NO_BUFFERS = OwnBuffers(words=0)
"""Whoever launches it fills the words of the state."""


def instrument(
    module: PtxModule, kernel: str, *, entries: bool = False, buffers: OwnBuffers = NO_BUFFERS
) -> InstrumentedKernel:
    """Write between the instructions of a kernel, and of what it can call, what records them.

    Lines, labels and basic blocks stay as they are; comments do not.

    Args:
        module: the PTX.
        kernel: mangled name.
        entries: entries into basic blocks are recorded, too.
        buffers: room that the module is to bring.

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
        self._owners = {
            one.name: function.name
            for function in self._functions[1:]
            for one in function.shared
            if one.name not in module.variables
        }
        """Of shared variables that only one device function names."""
        self._sites: list[Site] = []
        self._unrecorded: dict[str, None] = {}

    def write(self, buffers: OwnBuffers) -> InstrumentedKernel:
        statements = find_statements(self._module)
        insertions: list[tuple[int, str]] = []
        for function in self._functions:
            found = statements.functions[function.name]
            if function.instructions and all(place != found.start for place, _ in insertions):
                insertions += self._write_function(function, found)
        first_body = min((one.start for one in statements.functions.values()), default=0)
        insertions.append((_find_head(statements.text, first_body), self._write_variables(buffers)))
        return InstrumentedKernel(
            kernel=self._kernel.name,
            text=_raise_version(_insert(statements, insertions)),
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
            prologue += write_way_read()
        targets = {one.target for one in function.instructions} | {
            target for one in function.instructions for target in one.targets
        }
        labelled, begin, _ = found.spans[0]
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
            elif is_unrecorded(instruction, site):
                self._unrecorded[instruction.text.partition(" ")[0]] = None
            if static in self._ways.calls:
                guard = instruction.guard
                name = "" if guard is None else function.register_names[guard.slot]
                guarded = "" if guard is None else f"@{'!' if guard.is_negated else ''}{name} "
                lines += write_call(self._ways.calls[static], len(self._ways.calls), guarded)
            if lines:
                written.append((found.spans[instruction.index][1], _join(lines)))
        return written

    def _add(self, writer: RecordWriter, site: Site) -> list[str]:
        self._sites.append(site)
        return writer.write(len(self._sites) - 1, site)

    def _write_variables(self, buffers: OwnBuffers) -> str:
        """What the module is to hold besides."""
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
    """Variables whose addresses on a GPU nobody else knows: shared and local ones of the kernel, and constants it names."""
    found = [
        Place(
            name=one.name,
            space=Space.SHARED,
            offset_bytes=one.offset_bytes,
            size_bytes=one.size_bytes or _DYNAMIC_BYTES,
        )
        for one in kernel.shared
    ]
    found += [
        Place(name=one.name, space=Space.LOCAL, offset_bytes=one.offset_bytes, size_bytes=one.size_bytes)
        for one in kernel.locals
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
    """Where the function with a body begins: behind what ends the statement before it."""
    head = text.rindex("{", 0, body)
    place = max(text.rfind(mark, 0, head) for mark in ";}")
    return place + 1 if place >= 0 else _end_of_directives(text)


def _end_of_directives(text: str) -> int:
    match = re.match(r"\s*(?:\.version[^\n]*\n?\s*|\.target[^\n]*\n?\s*|\.address_size[^\n]*\n?\s*)*", text)
    return match.end() if match else 0


def _insert(statements: ModuleStatements, insertions: list[tuple[int, str]]) -> str:
    parts = []
    place = 0
    for start, added in sorted(insertions, key=lambda one: one[0]):
        parts += [statements.text[place:start], added]
        place = start
    return "".join((*parts, statements.text[place:]))


def _raise_version(text: str) -> str:
    match = _VERSION.search(text)
    if match is None or (int(match[1]), int(match[2])) >= _LEAST_VERSION:
        return text
    return f"{text[: match.start()]}.version {'.'.join(map(str, _LEAST_VERSION))}{text[match.end() :]}"


def _join(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _list(values: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"
