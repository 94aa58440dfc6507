"""A tiny assembler: listings a reader can see become :class:`Instructions` with a :class:`Function` around them.

The notation is nvdisasm's, with or without the offsets::

    start:
        @P0 BRA `(done)
        BRX R2 -0x10 (*"BRANCH_TARGETS start,done"*)
        CALL.REL.NOINC `($kernel$helper)
    done:
        EXIT
    $kernel$helper:
        RET.REL.NODEC R20 `(kernel)

A label that starts with ``$`` opens a sub-function. A name that is no label of the listing is a symbol elsewhere. Only what the flow graph
looks at is filled in: flow, targets, guards, convergence barriers, and the predicates that branches read and comparisons write.
"""

import re
from dataclasses import dataclass, field

import numpy as np

from gpa_lsp.code.binary.model import (
    ControlCodes,
    Flow,
    Function,
    Instructions,
    ResourceKind,
    ResourceLists,
    SubFunction,
    encode_resource,
)

_LINE = re.compile(r"(?:/\*[0-9a-f]+\*/)?\s*(?:@(!?)(U?P)(\d|T)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;?$")
_TARGET = re.compile(r"`\((.*?)\)")
_TARGET_LIST = re.compile(r'BRANCH_TARGETS (.*?)"')
_PREDICATE = re.compile(r"\b(U?P)(\d)\b")
_FLOWS = {
    "BRA": Flow.BRANCH,
    "JMP": Flow.BRANCH,
    "BRX": Flow.INDIRECT_BRANCH,
    "CALL": Flow.CALL,
    "RET": Flow.RETURN,
    "EXIT": Flow.EXIT,
    "KILL": Flow.EXIT,
    "BSSY": Flow.BARRIER_SET,
    "BSYNC": Flow.BARRIER_WAIT,
}
_PREDICATE_KINDS = {"P": ResourceKind.PREDICATE, "UP": ResourceKind.UNIFORM_PREDICATE}


@dataclass
class _Columns:
    texts: list[str] = field(default_factory=list)
    mnemonics: list[str] = field(default_factory=list)
    guards: list[int] = field(default_factory=list)
    negated: list[bool] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def assemble(listing: str, name: str = "kernel") -> tuple[Function, Instructions]:
    """The function and its instructions."""
    columns = _read(listing)
    count = len(columns.texts)
    targets = np.full(count, -1, dtype=np.int64)
    indirect: dict[int, tuple[int, ...]] = {}
    symbols: dict[int, str] = {}
    reads, writes = [], []
    for index, (flow, operands) in enumerate(zip(columns.flows, columns.operands, strict=True)):
        reads.append(_find_reads(columns, index))
        writes.append(_find_writes(columns, index))
        if flow == Flow.INDIRECT_BRANCH and (listed := _TARGET_LIST.search(operands)):
            indirect[index * 16] = tuple(16 * columns.labels[label] for label in listed[1].split(","))
        named = _TARGET.search(operands)
        if named is None or flow in (Flow.RETURN, Flow.INDIRECT_CALL, Flow.NONE):
            continue
        if named[1] in columns.labels:
            targets[index] = 16 * columns.labels[named[1]]
        elif named[1] == name:
            targets[index] = 0
        elif not named[1].startswith("0x"):
            symbols[index * 16] = named[1]
        else:
            targets[index] = int(named[1], 16)
    subs = [(label, at) for label, at in columns.labels.items() if label.startswith("$") and at < count]
    names = tuple(dict.fromkeys(columns.mnemonics))
    zeros = np.zeros(count, dtype=np.uint8)
    instructions = Instructions(
        pc_offsets=np.arange(count, dtype=np.int64) * 16,
        mnemonics=names,
        mnemonic_index=np.array([names.index(mnemonic) for mnemonic in columns.mnemonics], dtype=np.int32),
        texts=tuple(columns.texts),
        guard=np.array(columns.guards, dtype=np.int16),
        guard_negated=np.array(columns.negated, dtype=np.bool_),
        control=ControlCodes(
            stall_cycles=zeros, yield_flag=zeros, write_barrier=zeros, read_barrier=zeros, wait_mask=zeros, reuse=zeros
        ),
        reads=_compress(reads),
        writes=_compress(writes),
        flow=np.array(columns.flows, dtype=np.uint8),
        target=targets,
    )
    return make_function(name, count, subs, indirect, symbols), instructions


def make_function(
    name: str,
    count: int,
    subs: list[tuple[str, int]] | None = None,
    indirect: dict[int, tuple[int, ...]] | None = None,
    symbols: dict[int, str] | None = None,
) -> Function:
    """A function of ``count`` instructions; sub-functions as (name, index of the first instruction)."""
    return Function(
        name=name,
        is_entry=True,
        symbol_index=None,
        section_index=1,
        image=bytes(16 * count),
        code_start=0,
        size_bytes=16 * count,
        registers=32,
        barriers=0,
        frame_bytes=0,
        stack_bytes=0,
        shared_static_bytes=0,
        sub_functions=tuple(SubFunction(name=sub, start_offset=16 * at, size_bytes=16) for sub, at in subs or ()),
        indirect_branch_targets=indirect or {},
        call_symbols=symbols or {},
    )


def _read(listing: str) -> _Columns:
    columns = _Columns()
    for raw in listing.splitlines():
        line = raw.partition("//")[0].strip()
        if not line:
            continue
        if line.endswith(":"):
            columns.labels[line[:-1]] = len(columns.texts)
            continue
        parts = _LINE.match(line)
        assert parts is not None, line
        negated, kind, guard, mnemonic, operands = parts.groups()
        is_unguarded = guard in (None, "T")
        flow = Flow.TRAP if mnemonic.startswith("BPT.TRAP") else _FLOWS.get(mnemonic.partition(".")[0], Flow.NONE)
        if flow == Flow.CALL and re.match(r"U?R\d", operands):
            flow = Flow.INDIRECT_CALL
        columns.texts.append(line)
        columns.mnemonics.append(mnemonic)
        columns.guards.append(-1 if is_unguarded else encode_resource(_PREDICATE_KINDS[kind], int(guard)))
        columns.negated.append(negated == "!")
        columns.flows.append(flow)
        columns.operands.append(operands)
    return columns


def _find_reads(columns: _Columns, index: int) -> list[int]:
    found = [columns.guards[index]] if columns.guards[index] >= 0 else []
    if columns.flows[index] == Flow.BRANCH:
        operands = _TARGET.sub("", columns.operands[index])
        found += [encode_resource(_PREDICATE_KINDS[kind], int(number)) for kind, number in _PREDICATE.findall(operands)]
    if columns.flows[index] == Flow.BARRIER_WAIT:
        found += _find_barriers(columns.operands[index])
    return sorted(set(found))


def _find_writes(columns: _Columns, index: int) -> list[int]:
    if columns.flows[index] == Flow.BARRIER_SET:
        return _find_barriers(columns.operands[index])
    result = _PREDICATE.match(columns.operands[index]) if "SETP" in columns.mnemonics[index] else None
    return [encode_resource(_PREDICATE_KINDS[result[1]], int(result[2]))] if result else []


def _find_barriers(operands: str) -> list[int]:
    return [
        encode_resource(ResourceKind.CONVERGENCE_BARRIER, int(number)) for number in re.findall(r"^B(\d+)", operands)
    ]


def _compress(lists: list[list[int]]) -> ResourceLists:
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int32)
    return ResourceLists(starts=starts, numbers=np.array([n for row in lists for n in row], dtype=np.int16))
