"""The instructions of a JSON report back into columns, each value checked before it is believed."""

from collections.abc import Sequence

import numpy as np

from gpa_lsp.locations import Frame, InlineChain
from gpa_lsp.report.json_cursor import JsonCursor
from gpa_lsp.report.json_rows import NO_BARRIER
from gpa_lsp.report.model import InstructionColumns, ReasonCount, ReasonCounts

_MAX_DEPTH = (1 << 16) - 1

_MAX_REASONS = 64
"""Real profiles have about twenty; the columns take memory for every reason on every instruction."""


def read_reasons(at: JsonCursor, limit: int) -> ReasonCounts:
    """A ``by_reason`` object whose counts add up to at most ``limit`` samples.

    Raises:
        InputError: it is not one.
    """
    counts = {}
    left = limit
    for reason, entry in at.entries():
        every = entry.at("all").count(maximum=left)
        left -= every
        counts[reason] = ReasonCount(all_samples=every, latency_samples=entry.at("latency").count(maximum=every))
    return counts


def read_instructions(kernel: JsonCursor, total: int) -> InstructionColumns:
    """The ``reasons`` and ``instructions`` of a kernel object; functions and chains are numbered in the order they first occur.

    Args:
        kernel: the kernel object.
        total: its samples, which the instructions must add up to.

    Raises:
        InputError: they break the schema.
    """
    reasons = tuple(reason.text() for reason in kernel.at("reasons").items())
    number_of = {reason: number for number, reason in enumerate(reasons)}
    if len(number_of) != len(reasons):
        kernel.at("reasons").fail("names a reason twice")
    if len(reasons) > _MAX_REASONS:
        kernel.at("reasons").fail(f"has {len(reasons)} reasons, more than {_MAX_REASONS}")
    rows = list(kernel.at("instructions").items())
    functions: dict[str, int] = {}
    chains: dict[InlineChain, int] = {}
    every = np.zeros((len(rows), len(reasons)), dtype=np.int64)
    latency = np.zeros_like(every)
    chain_index = np.full(len(rows), -1, dtype=np.int32)
    left = total
    for position, row in enumerate(rows):
        counts = read_reasons(row.at("by_reason"), left)
        left -= sum(count.all_samples for count in counts.values())
        for reason, count in counts.items():
            if reason not in number_of:
                row.at("by_reason").fail(f"has the reason {reason[:40]!r}, which the kernel's reasons do not list")
            every[position, number_of[reason]] = count.all_samples
            latency[position, number_of[reason]] = count.latency_samples
        chain = tuple(_read_frame(frame) for frame in row.at("inline").items())
        if chain:
            chain_index[position] = chains.setdefault(chain, len(chains))
    if rows and left:
        kernel.at("instructions").fail(f"has {total - left} samples, not the kernel's {total}")
    control = np.array([_read_control(row.at("control")) for row in rows], dtype=np.uint8).reshape(len(rows), 6)
    index = [functions.setdefault(row.at("function").text(), len(functions)) for row in rows]
    return InstructionColumns(
        functions=tuple(functions),
        function_index=np.array(index, dtype=np.int32),
        pc_offsets=np.array([row.at("pc_offset").count() for row in rows], dtype=np.int64),
        texts=tuple(row.at("text").text() for row in rows),
        chains=tuple(chains),
        chain_index=chain_index,
        reasons=reasons,
        all_samples=every,
        latency_samples=latency,
        executions=np.array([_read_executions(row.at("executions")) for row in rows], dtype=np.int64),
        loop_depths=np.array([row.at("loop_depth").count(maximum=_MAX_DEPTH) for row in rows], dtype=np.uint16),
        has_control=control[:, 0].astype(np.bool_),
        stall_cycles=control[:, 1].copy(),
        yield_flag=control[:, 2].copy(),
        write_barrier=control[:, 3].copy(),
        read_barrier=control[:, 4].copy(),
        wait_mask=control[:, 5].copy(),
    )


def _read_frame(at: JsonCursor) -> Frame:
    return Frame(
        file=at.at("file").text(), line=at.at("line").count(), function=at.at("function").maybe(JsonCursor.text)
    )


def _read_executions(at: JsonCursor) -> int:
    executions = at.maybe(JsonCursor.count)
    return -1 if executions is None else executions


def _read_control(at: JsonCursor) -> Sequence[int]:
    """Known, stall cycles, yield, write barrier, read barrier, wait mask."""
    return at.maybe(_read_known_control) or (0, 0, 0, NO_BARRIER, NO_BARRIER, 0)


def _read_known_control(at: JsonCursor) -> Sequence[int]:
    write, read = (at.at(name).maybe(_read_barrier) for name in ("write_barrier", "read_barrier"))
    return (
        1,
        at.at("stall_cycles").count(maximum=15),
        at.at("yield").flag(),
        NO_BARRIER if write is None else write,
        NO_BARRIER if read is None else read,
        at.at("wait_mask").count(maximum=255),
    )


def _read_barrier(at: JsonCursor) -> int:
    return at.count(maximum=NO_BARRIER - 1)
