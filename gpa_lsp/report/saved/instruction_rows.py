"""The instructions of a report and its blame as JSON rows, and back into columns that add up to their kernel's samples.

Edges of the blame name instructions by their position in the kernel's ``instructions``: there can be a hundred thousand of them.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import ResourceKind, encode_resource, name_resource
from gpa_lsp.code.binary.sass import read_mnemonic
from gpa_lsp.diagnosis.blame.model import (
    BlameCategory,
    BlameEdges,
    Dependency,
    IssueCounts,
    KernelBlame,
    SingleDependencyCoverage,
    Unattributed,
    UnattributedCause,
    WaitCheck,
)
from gpa_lsp.foundation.figures import sum_known
from gpa_lsp.foundation.json_records import WRITTEN_ONLY, Layout, RowsOf, Shared, StandIn
from gpa_lsp.foundation.json_values import InScope, MisfitError, NameIn, Number, Position, Spelled, Whole
from gpa_lsp.foundation.locations import Frame, InlineChain
from gpa_lsp.foundation.numbers import format_file_value
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.report.changes import ReasonCounts
from gpa_lsp.report.count import rank_reasons
from gpa_lsp.report.model import InstructionColumns, KernelReport

File = Annotated[str, Shared("files")]
Function = Annotated[str, Shared("functions")]
Chain = Annotated[tuple[Annotated[Frame, Shared("frames")], ...], Shared("chains")]
Barrier = Annotated[int, Whole(0, 6)]

Columns = Mapping[str, Sequence[Any]]

_NO_BARRIER = 7
_MAX_REASONS = 64  # Real profiles have about twenty; the columns take memory for every reason on every instruction


class Control(Struct, frozen=True, kw_only=True):
    """Scheduling bits of an instruction."""

    stall_cycles: Annotated[int, Whole(0, 15)]  # cycles until the warp's next instruction may issue
    yields: bool  # the scheduler may switch to another warp
    write_barrier: Barrier | None  # scoreboard released when the result is written; null for none
    read_barrier: Barrier | None  # scoreboard released when the operands are read; null for none
    wait_mask: Annotated[int, Whole(0, 255)]  # bit b set: waits for scoreboard b before it issues


class InstructionPlace(Struct, frozen=True, kw_only=True):
    """An instruction, readable without the rest of the report. Repeats ``instructions``; not read back."""

    function: Function  # mangled name of the function section
    pc_offset: int  # bytes from the section's start
    text: str  # disassembly; empty where there is none
    file: File | None  # of the innermost frame, as compiled; null without a line
    line: int | None  # of the innermost frame
    inline: Chain  # the whole inline chain, innermost frame first; empty without a line


class InstructionRow(Struct, frozen=True, kw_only=True):
    """One instruction, in function order and address order within."""

    function: Function  # mangled name of the function section
    pc_offset: int  # bytes from the section's start; the absolute address for foreign code
    # with modifiers, without guard and operands; null where there is no disassembly. Not read back.
    opcode: Annotated[str | None, WRITTEN_ONLY]
    text: str  # disassembly; empty where there is none
    # of the innermost frame, as compiled; null without a line. Not read back.
    file: Annotated[File | None, WRITTEN_ONLY]
    line: Annotated[int | None, WRITTEN_ONLY]  # of the innermost frame. Not read back.
    inline: Chain  # the whole inline chain, innermost frame first; empty without a line
    samples: Annotated[int, WRITTEN_ONLY]  # all samples. Not read back.
    # of these, samples taken when the scheduler issued nothing. Not read back.
    latency_samples: Annotated[int | None, WRITTEN_ONLY]
    by_reason: ReasonCounts  # samples per stall reason, most samples first
    executions: int | None  # by warps, summed over launches; null where not collected
    # loops the instruction is in; 0 outside loops and where there is no disassembly
    loop_depth: Annotated[int, Whole(0, (1 << 16) - 1)]
    control: Control | None  # scheduling bits; null when unknown


class Instructions(ColumnRecord, frozen=True, kw_only=True):
    """The instructions of a kernel."""

    reasons: tuple[str, ...]  # every stall reason the profile measured, also those without a sample
    # every instruction of the kernel's functions, sampled or not
    instructions: Annotated[Columns, RowsOf(InstructionRow)]


def place_instruction(row: int | None, kernel: KernelReport) -> InstructionPlace | None:
    """A row of the kernel's instructions as it is shown elsewhere."""
    if row is None:
        return None
    columns = kernel.instructions
    chain = _find_chain(columns, row)
    return InstructionPlace(
        function=columns.functions[columns.function_index[row]],
        pc_offset=int(columns.pc_offsets[row]),
        text=columns.texts[row],
        file=chain[0].file if chain else None,
        line=chain[0].line if chain else None,
        inline=chain,
    )


def _find_chain(columns: InstructionColumns, row: int) -> InlineChain:
    number = int(columns.chain_index[row])
    return columns.chains[number] if number >= 0 else ()


def _make_instructions(columns: InstructionColumns, kernel: KernelReport) -> Instructions:
    del kernel
    inlines = [columns.chains[number] if number >= 0 else () for number in columns.chain_index.tolist()]
    every = columns.all_samples.tolist()
    unknown = [None] * len(columns.reasons)
    quiets = [unknown] * len(every) if columns.latency_samples is None else columns.latency_samples.tolist()
    table = {
        "function": [columns.functions[number] for number in columns.function_index.tolist()],
        "pc_offset": columns.pc_offsets.tolist(),
        "opcode": [read_mnemonic(text) or None for text in columns.texts],
        "text": columns.texts,
        "file": [chain[0].file if chain else None for chain in inlines],
        "line": [chain[0].line if chain else None for chain in inlines],
        "inline": inlines,
        "samples": [sum(row) for row in every],
        "latency_samples": [sum_known(row) for row in quiets],
        "by_reason": [rank_reasons(columns.reasons, *row) for row in zip(every, quiets, strict=True)],
        "executions": [count if count >= 0 else None for count in columns.executions.tolist()],
        "loop_depth": columns.loop_depths.tolist(),
        "control": _list_controls(columns),
    }
    return Instructions(reasons=columns.reasons, instructions=table)


def _list_controls(columns: InstructionColumns) -> list[Control | None]:
    names = ("has_control", "stall_cycles", "yield_flag", "write_barrier", "read_barrier", "wait_mask")
    rows = list(zip(*(getattr(columns, name).tolist() for name in names), strict=True))
    made = {
        (known, stall, yields, write, read, mask): Control(
            stall_cycles=stall,
            yields=bool(yields),
            write_barrier=None if write == _NO_BARRIER else write,
            read_barrier=None if read == _NO_BARRIER else read,
            wait_mask=mask,
        )
        if known
        else None
        for known, stall, yields, write, read, mask in set(rows)
    }
    return [made[row] for row in rows]


def _restore_instructions(found: Instructions, scope: InScope) -> InstructionColumns:
    reasons, rows = found.reasons, found.instructions
    if len(set(reasons)) != len(reasons):
        raise MisfitError("names a reason twice").within("reasons")
    if len(reasons) > _MAX_REASONS:
        raise MisfitError(f"has {len(reasons)} reasons, more than {_MAX_REASONS}").within("reasons")
    is_split = scope["latency_samples"] is not None
    every, latency = _fill_samples(rows["by_reason"], reasons, is_split)
    functions: dict[str, int] = {}
    chains: dict[InlineChain, int] = {}
    known = {id(chain): chain for chain in rows["inline"]}
    numbers = {key: chains.setdefault(chain, len(chains)) if chain else -1 for key, chain in known.items()}
    control = np.array([_list_bits(one) for one in rows["control"]], dtype=np.uint8).reshape(-1, 6)
    return InstructionColumns(
        function_index=np.array(
            [functions.setdefault(name, len(functions)) for name in rows["function"]], dtype=np.int32
        ),
        functions=tuple(functions),
        pc_offsets=np.array(rows["pc_offset"], dtype=np.int64),
        texts=tuple(rows["text"]),
        chains=tuple(chains),
        chain_index=np.array([numbers[id(chain)] for chain in rows["inline"]], dtype=np.int32),
        reasons=reasons,
        all_samples=every,
        latency_samples=latency if is_split else None,
        executions=np.array([-1 if count is None else count for count in rows["executions"]], dtype=np.int64),
        loop_depths=np.array(rows["loop_depth"], dtype=np.uint16),
        has_control=control[:, 0].astype(np.bool_),
        stall_cycles=control[:, 1].copy(),
        yield_flag=control[:, 2].copy(),
        write_barrier=control[:, 3].copy(),
        read_barrier=control[:, 4].copy(),
        wait_mask=control[:, 5].copy(),
    )


def _fill_samples(rows: Sequence[ReasonCounts], reasons: Sequence[str], is_split: bool) -> tuple[Any, Any]:
    """int64[n, k] each: samples and, of these, those without issue."""
    number_of = {reason: number for number, reason in enumerate(reasons)}
    every = np.zeros((len(rows), len(reasons)), dtype=np.int64)
    latency = np.zeros_like(every)
    for position, counts in enumerate(rows):
        for reason, count in counts.items():
            if reason not in number_of:
                message = f"has the reason {reason[:40]!r}, which the kernel's reasons do not list"
                raise MisfitError(message).within("by_reason", position, "instructions")
            if (count.latency_samples is not None) != is_split:
                message = "has not-issued samples where the kernel has none, or the other way round"
                raise MisfitError(message).within("by_reason", position, "instructions")
            every[position, number_of[reason]] = count.all_samples
            latency[position, number_of[reason]] = count.latency_samples or 0
    return every, latency


def _list_bits(control: Control | None) -> tuple[int, ...]:
    """Known, stall cycles, yield, write barrier, read barrier, wait mask."""
    if control is None:
        return 0, 0, 0, _NO_BARRIER, _NO_BARRIER, 0
    write, read = (
        _NO_BARRIER if barrier is None else barrier for barrier in (control.write_barrier, control.read_barrier)
    )
    return 1, control.stall_cycles, control.yields, write, read, control.wait_mask


INSTRUCTION_LAYOUTS: Mapping[Any, Layout | StandIn] = {
    Control: Layout(names={"yields": "yield"}),
    InstructionPlace: Layout(),
    InstructionRow: Layout(),
    Instructions: Layout(scoped=("reasons",)),
    InstructionColumns: StandIn(Instructions, _make_instructions, _restore_instructions),
}


_REGISTERS = 256
_TOLERANCE_SAMPLES = 0.01  # Blame is shared out in fractions of a sample, which add up to whole ones but for rounding

Amount = Annotated[float, Number(0)]
Ratio = Annotated[float, Number(0, 1)]
Row = Annotated[int, Position("instructions")]
Category = Annotated[BlameCategory, Spelled({one: one.name.lower() for one in BlameCategory})]
Resource = Annotated[
    int,
    Spelled(
        {
            number: name_resource(number)
            for number in (encode_resource(kind, index) for kind in ResourceKind for index in range(_REGISTERS))
        },
        "register or predicate",
    ),
]
_Dependency = Annotated[Dependency, Spelled({one: one.name.lower() for one in Dependency})]
_Cause = Annotated[UnattributedCause, Spelled({one: one.name.lower() for one in UnattributedCause})]
Reason = Annotated[str, NameIn("reasons")]
_Int32 = Annotated[int, Whole(0, (1 << 31) - 1)]


class UnattributedSum(Struct, frozen=True, kw_only=True):
    """Samples of one reason without a cause."""

    all_samples: Amount  # samples
    latency_samples: Amount | None  # of these, samples taken when the scheduler issued nothing
    cause: _Cause  # why most of them have none


def _make_edges(edges: BlameEdges, kernel: KernelReport) -> Columns:
    columns = _list_columns(edges, kernel)
    for name in ("resource", "distance_cycles", "distance_instructions"):
        columns[name] = [None if number < 0 else number for number in columns[name]]
    return columns


def _restore_edges(rows: Columns, scope: InScope) -> BlameEdges:
    columns = _restore_columns(rows, scope)
    for name in ("resource", "distance_cycles", "distance_instructions"):
        columns[name] = [-1 if value is None else value for value in rows[name]]
    return BlameEdges.from_columns(**columns).sort()


def _restore_unattributed(rows: Columns, scope: InScope) -> Unattributed:
    return Unattributed.from_columns(**_restore_columns(rows, scope))


def _list_columns(table: BlameEdges | Unattributed, kernel: KernelReport) -> dict[str, Any]:
    """Field → its value in each row, reasons by name."""
    columns = {name: getattr(table, name) for name in table.__struct_fields__}
    unknown = [None] * len(table)
    listed = {name: unknown if column is None else column.tolist() for name, column in columns.items()}
    return {**listed, "reason": [kernel.instructions.reasons[number] for number in table.reason.tolist()]}


def _restore_columns(rows: Columns, scope: InScope) -> dict[str, Any]:
    every, latency = _restore_samples(rows, scope)
    return {**rows, "reason": _number_reasons(rows, scope), "all_samples": every, "latency_samples": latency}


def _number_reasons(rows: Columns, scope: InScope) -> list[int]:
    numbers = {reason: number for number, reason in enumerate(scope["reasons"])}
    return [numbers[reason] for reason in rows["reason"]]


def _restore_samples(rows: Columns, scope: InScope) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
    """float64[n] each: samples and, of these, those without issue; None where the kernel's are unknown, and then all are null."""
    every = np.array(rows["all_samples"], dtype=np.float64)
    is_split = scope["latency_samples"] is not None
    for number, value in enumerate(rows["latency_samples"]):
        if (value is not None) != is_split:
            message = (
                "is null, not a number" if is_split else "is known, though the kernel's not-issued samples are not"
            )
            raise MisfitError(message).within("latency", number)
    if not is_split:
        return every, None
    latency = np.array(rows["latency_samples"], dtype=np.float64)
    wrong = np.flatnonzero(latency > every + _TOLERANCE_SAMPLES)
    if len(wrong):
        raise MisfitError(f"has more not-issued samples than samples in element {wrong[0]}")
    return every, latency


def _check_blame(blame: KernelBlame, scope: InScope) -> None:
    """Check that blamed and unattributed samples add up to those sampled, of each instruction and reason, in all and latency samples."""
    columns = scope["instructions"]
    if len(blame.issue_counts.counts) != len(columns):
        message = f"has {len(blame.issue_counts.counts)} numbers for {len(columns)} instructions"
        raise MisfitError(message).within("counts", "issue_counts")
    for word, name in (("", "all_samples"), ("not-issued ", "latency_samples")):
        sampled, blamed, lost = (getattr(one, name) for one in (columns, blame.edges, blame.unattributed))
        if sampled is None:
            continue  # unknown in all three, as they were read
        sums = np.zeros(sampled.shape)
        np.add.at(sums, (blame.edges.use_row, blame.edges.reason), blamed)
        np.add.at(sums, (blame.unattributed.row, blame.unattributed.reason), lost)
        wrong = np.argwhere(np.abs(sums - sampled) > _TOLERANCE_SAMPLES + 1e-9 * sampled)
        if len(wrong):
            row, reason = wrong[0].tolist()
            place = f"instruction {row} has {format_file_value(sums[row, reason])} {word}samples of {columns.reasons[reason][:40]}"
            raise MisfitError(f"{place} in edges and unattributed, not the {sampled[row, reason]} that were taken")


def _sum_unattributed(blame: KernelBlame, kernel: KernelReport) -> Mapping[str, UnattributedSum]:
    """Reason → samples without a cause, and why most of them have none; most samples first."""
    lost = blame.unattributed
    sums: dict[str, dict[int, tuple[float, float | None]]] = {}
    listed = _list_columns(lost, kernel)
    columns = [listed[name] for name in ("reason", "cause", "all_samples", "latency_samples")]
    for reason, cause, every, latency in zip(*columns, strict=True):
        of_reason = sums.setdefault(reason, {})
        before = of_reason.get(cause, (0.0, 0.0))
        of_reason[cause] = (before[0] + every, sum_known([before[1], latency]))
    rows = {
        reason: UnattributedSum(
            all_samples=sum(every for every, _ in causes.values()),
            latency_samples=sum_known(latency for _, latency in causes.values()),
            cause=UnattributedCause(max(causes, key=lambda cause: (causes[cause][0], -cause))),
        )
        for reason, causes in sums.items()
    }
    return dict(sorted(rows.items(), key=lambda row: (-row[1].all_samples, row[0])))


_SAMPLES = {"all_samples": "all", "latency_samples": "latency"}
_EDGE = Layout(
    names=_SAMPLES,
    hints={
        "use_row": Row,
        "def_row": Row,
        "reason": Reason,
        "all_samples": Amount,
        "latency_samples": Amount | None,
        "category": Category,
        "dependency": _Dependency,
        "resource": Resource | None,
        "group": _Int32,
        "distance_cycles": _Int32 | None,
        "distance_instructions": _Int32 | None,
    },
)
_UNATTRIBUTED = Layout(
    names=_SAMPLES,
    hints={"row": Row, "reason": Reason, "cause": _Cause, "all_samples": Amount, "latency_samples": Amount | None},
)
_COUNTS = Annotated[
    Any,
    StandIn(
        tuple[Amount, ...],
        lambda counts, kernel: counts.tolist(),
        lambda counts, scope: np.array(counts, dtype=np.float64),
    ),
]

BLAME_LAYOUTS: Mapping[Any, Layout | StandIn] = {
    UnattributedSum: Layout(names=_SAMPLES),
    BlameEdges: StandIn(Annotated[Columns, RowsOf(BlameEdges, _EDGE)], _make_edges, _restore_edges),
    Unattributed: StandIn(
        Annotated[Columns, RowsOf(Unattributed, _UNATTRIBUTED)], _list_columns, _restore_unattributed
    ),
    IssueCounts: Layout(hints={"counts": _COUNTS}),
    SingleDependencyCoverage: Layout(
        names={
            "before_ratio": "before",
            "after_ratio": "after",
            "group_ratio": "group",
            "explained_ratio": "explained",
        },
        hints=dict.fromkeys(("before_ratio", "after_ratio", "group_ratio", "explained_ratio"), Ratio | None),
    ),
    WaitCheck: Layout(hints={"predicted_samples": Amount}),
    KernelBlame: Layout(
        names={"coverage": "single_dependency_coverage", "unattributed": "unattributed_rows"},
        derived={"unattributed": (Mapping[str, UnattributedSum], _sum_unattributed)},
        check=_check_blame,
    ),
}
