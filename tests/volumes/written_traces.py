"""Traces as a kernel would leave them, written from a function of thread, block and iteration."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

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
from gpa_lsp.execution.volumes.expressions import Triple

BASE = 0x10_0000_0000
SIZE = 1 << 30

Addresses = Callable[[Triple, Triple], Iterable[int]]
"""Thread and block → byte offsets within the array, one per execution; nothing for a thread that does not take part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAccess:
    """One instruction: what it does, in which array, and where each thread goes."""

    addresses: Addresses
    kind: AccessKind = AccessKind.LOAD
    array: int = 0
    width: int = 8
    space: Space = Space.GLOBAL
    text: str = "ld"
    cache_operator: str = ""
    is_apart: bool = False  # even lanes come before odd ones, each time


def write_trace(
    instructions: Sequence[WrittenAccess],
    *,
    block: Triple,
    grid: Triple,
    traced: Sequence[int],
    array_bytes: int = SIZE,
) -> Trace:
    """The trace of some blocks. Lanes that go through fewer iterations drop out at the end."""
    rows: list[dict[str, int]] = []
    addresses: list[int] = []
    for place in traced:
        at = (place % grid[0], place // grid[0] % grid[1], place // (grid[0] * grid[1]))
        for warp, (index, access) in product(range(-(-prod(block) // 32)), enumerate(instructions)):
            for execution, lanes in enumerate(_list_executions(access, at, warp, block)):
                rows.append(
                    {
                        "block": place,
                        "warp": warp,
                        "instruction": index,
                        "execution": execution,
                        "lane_mask": sum(1 << lane for lane in lanes),
                        "bytes": access.width,
                        "space": int(access.space),
                        "first_address": len(addresses),
                    }
                )
                base = 0 if access.space is Space.SHARED else BASE + access.array * array_bytes
                addresses.extend(base + offset for offset in lanes.values())
    columns = {name: np.array([row[name] for row in rows], dtype=kind) for name, kind in ACCESS_DTYPES.items()}
    return Trace(
        kernel="written",
        grid=grid,
        block_threads=block,
        instructions=tuple(
            StaticInstruction(
                index=index,
                function="written",
                text=access.text,
                kind=access.kind,
                space=access.space,
                bytes_per_lane=access.width,
                cache_operator=access.cache_operator,
            )
            for index, access in enumerate(instructions)
        ),
        buffers=tuple(
            Buffer(
                name="ab"[index],
                space=Space.GLOBAL,
                base=BASE + index * array_bytes,
                size_bytes=array_bytes,
                element_bytes=8,
                argument=index,
            )
            for index in range(2)
        ),
        accesses=Accesses(**columns, addresses=np.array(addresses, dtype=np.uint64)),
        branches=Branches(**{name: np.zeros(0, dtype=kind) for name, kind in BRANCH_DTYPES.items()}),
        entries=Entries(**{name: np.zeros(0, dtype=kind) for name, kind in ENTRY_DTYPES.items()}),
        traced_blocks=np.array(sorted(traced), dtype=np.uint32),
    )


def _list_executions(access: WrittenAccess, at: Triple, warp: int, block: Triple) -> Iterator[dict[int, int]]:
    """Offset by lane, for each time a warp executes an instruction."""
    found: dict[int, list[int]] = {}
    for lane in range(min(32, prod(block) - 32 * warp)):
        number = 32 * warp + lane
        thread = (number % block[0], number // block[0] % block[1], number // (block[0] * block[1]))
        found[lane] = list(access.addresses(thread, at))
    for execution in range(max(map(len, found.values()), default=0)):
        together = {lane: offsets[execution] for lane, offsets in found.items() if len(offsets) > execution}
        for parity in (0, 1) if access.is_apart else ():
            yield {lane: offset for lane, offset in together.items() if lane % 2 == parity}
        if not access.is_apart:
            yield together
