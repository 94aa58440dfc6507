"""Traces written by hand: a builder that takes accesses as lane → address, in the order of execution."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction
from gpa_lsp.execution.emulator.model import (
    ACCESS_DTYPES,
    BRANCH_DTYPES,
    ENTRY_DTYPES,
    Accesses,
    Branches,
    Buffer,
    Entries,
    Trace,
)
from gpa_lsp.foundation.locations import Frame

FILE = "kernel.cu"
BASE = 1 << 20
"""Of the first buffer."""

Lanes = Mapping[int, int] | Sequence[int]


def make_instruction(
    index: int,
    kind: AccessKind | None = AccessKind.LOAD,
    space: Space = Space.GLOBAL,
    width: int = 4,
    *,
    line: int | None = None,
    text: str = "",
    callers: tuple[int, ...] = (),
) -> StaticInstruction:
    lines = (line if line is not None else index + 1, *callers)
    return StaticInstruction(
        index=index,
        function="_Z6kernelv",
        text=text,
        kind=kind,
        space=space,
        bytes_per_lane=width,
        chain=tuple(Frame(file=FILE, line=one, function="_Z6kernelv") for one in lines),
    )


def make_buffer(name: str, size_bytes: int, base: int = BASE) -> Buffer:
    return Buffer(name=name, space=Space.GLOBAL, base=base, size_bytes=size_bytes, element_bytes=4, argument=0)


@dataclass
class TraceWriter:
    """Writes a trace row by row."""

    instructions: tuple[StaticInstruction, ...]
    buffers: tuple[Buffer, ...] = ()
    grid: tuple[int, int, int] = (1, 1, 1)
    block_threads: tuple[int, int, int] = (32, 1, 1)
    rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)
    branch_rows: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    entry_rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    done: Counter[tuple[int, int, int]] = field(default_factory=Counter)

    def access(self, instruction: int, lanes: Lanes, *, block: int = 0, warp: int = 0) -> "TraceWriter":
        """One access; a sequence holds the addresses of lanes 0, 1, …"""
        places = dict(enumerate(lanes)) if not isinstance(lanes, Mapping) else dict(lanes)
        one = self.instructions[instruction]
        key = (block, warp, instruction)
        mask = sum(1 << lane for lane in places)
        self.rows.append((block, warp, instruction, self.done[key], mask, one.bytes_per_lane, one.space))
        self.done[key] += 1
        self.addresses += [places[lane] for lane in sorted(places)]
        return self

    def branch(self, instruction: int, active: int, taken: int, *, block: int = 0, warp: int = 0) -> "TraceWriter":
        key = (block, warp, instruction)
        self.branch_rows.append((block, warp, instruction, self.done[key], active, taken))
        self.done[key] += 1
        return self

    def enter(self, basic_block: int, mask: int, *, block: int = 0, warp: int = 0) -> "TraceWriter":
        self.entry_rows.append((block, warp, basic_block, mask))
        return self

    def finish(self) -> Trace:
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * 7
        counts = np.array([mask.bit_count() for mask in columns[4]], dtype=np.uint64)
        names = ("block", "warp", "instruction", "execution", "lane_mask", "bytes", "space")
        accesses = {
            name: np.array(column, dtype=ACCESS_DTYPES[name]) for name, column in zip(names, columns, strict=True)
        }
        branch_columns = list(zip(*self.branch_rows, strict=True)) if self.branch_rows else [()] * 6
        entry_columns = list(zip(*self.entry_rows, strict=True)) if self.entry_rows else [()] * 4
        blocks = {row[0] for rows in (self.rows, self.branch_rows, self.entry_rows) for row in rows}
        return Trace(
            kernel="_Z6kernelv",
            grid=self.grid,
            block_threads=self.block_threads,
            instructions=self.instructions,
            buffers=self.buffers,
            accesses=Accesses(
                **accesses,
                first_address=(np.cumsum(counts) - counts).astype(np.uint64),
                addresses=np.array(self.addresses, dtype=np.uint64),
            ),
            branches=Branches(
                **{
                    name: np.array(column, dtype=BRANCH_DTYPES[name])
                    for name, column in zip(BRANCH_DTYPES, branch_columns, strict=True)
                }
            ),
            entries=Entries(
                **{
                    name: np.array(column, dtype=ENTRY_DTYPES[name])
                    for name, column in zip(ENTRY_DTYPES, entry_columns, strict=True)
                }
            ),
            traced_blocks=np.array(sorted(blocks), dtype=np.uint32),
        )


def lanes_by(stride: int, *, base: int = BASE, count: int = 32) -> list[int]:
    """The addresses of lanes that lie a stride apart."""
    return [base + stride * lane for lane in range(count)]
