"""Global data that could be stored in fewer bytes: which accesses move it, by what computes with it, and what halving it leaves of the traffic."""

from collections.abc import Collection, Sequence
from enum import Enum

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Access, Opcode, Pipe, describe_mnemonic
from gpa_lsp.diagnosis.advice.blamed_stalls import build_counted_regions, find_edges
from gpa_lsp.diagnosis.advice.matches import EliminationRegion
from gpa_lsp.diagnosis.advice.naming import describe_place
from gpa_lsp.diagnosis.advice.work_left import Marks, Parts
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Sentence, list_of, say
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, count_access_bytes, mark_accesses
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow

HALF = 0.5  # Of the bytes that stay
SHARED_ARRAYS = say("Other code that reads or writes these arrays has to change, too.")

_REASONS = ("long_scoreboard", "lg_throttle", "drain")
_TRAFFIC = ("dram", "l2")  # Units that have less to do with fewer bytes; L1 takes a line of a warp whole
_MOST_FOLLOWED = 200  # Instructions behind a load in which its reader is looked for
_MOST_NAMED = 2  # Places of data
_MOST_COPIES = 4  # Moves between a load and what computes with its value


class Value(Enum):
    """Type of the values that a global access moves."""

    DOUBLE = "FP64"
    SINGLE = "FP32"
    HALF = "FP16"
    INTEGER = "integers"
    UNKNOWN = "values that are only moved"


# First letters of floating-point arithmetic that pipes alone do not tell: comparisons and conversions run elsewhere
_ARITHMETIC = {
    "D": Value.DOUBLE,
    "F": Value.SINGLE,
    "H": Value.HALF,
    "MUFU": Value.SINGLE,
}
_NO_ARITHMETIC = frozenset({"FLO", "FENCE", "DEPBAR", "HMMA", "HGMMA", "DMMA", "FCHK", "FSWZADD"})
_MOVING = frozenset({"MOV", "SEL", "PRMT", "SHFL", "R2UR", "IMAD.MOV", "IMAD.MOV.U32"})


class NarrowerData(Struct, frozen=True, kw_only=True):
    """Accesses to data that could be halved, and the traffic that would stay."""

    rows: tuple[int, ...]  # kernel rows of its accesses
    regions: tuple[EliminationRegion, ...]  # where its stalls are
    left: dict[str, float]  # unit → the part of its work that stays


def explain_no_traffic(subject: Subject) -> Sentence | None:
    """Explain that no traffic limits the kernel, so that fewer bytes are no remedy; None where it does (memory side, Starlight's rule)."""
    limiter = find_limiter(subject)
    if limiter.kind is LimiterKind.UNKNOWN:
        return say("what limits the kernel is unknown")
    is_traffic = limiter.kind is LimiterKind.UNIT and limiter.unit in _TRAFFIC
    return None if is_traffic else say("neither DRAM nor L2 limits the kernel")


def find_narrower_data(subject: Subject, wanted: Collection[Value], least_bytes: int) -> NarrowerData | None:
    """The global loads and stores of some values, and what is left when each takes half its bytes; None without any.

    Of an access's sectors half of those that its data fills go, and those that it wastes stay. L2 and DRAM keep of their traffic what the sectors of
    all global accesses keep. A load of fewer bytes is waited for as long where no queue is: no sample is known to go. ``least_bytes``: of one value;
    smaller ones are narrow already.
    """
    rows = subject.rows
    accesses = mark_accesses(rows, GLOBAL_SPACES, (Access.LOAD, Access.STORE))
    found = np.zeros(len(rows), dtype=np.bool_)
    for row in np.flatnonzero(accesses & (rows.executions != 0)).tolist():
        if count_access_bytes(rows.mnemonic(row)) >= least_bytes and classify_access(subject, row) in wanted:
            found[row] = True
    if not found.any():
        return None
    sectors, gone = _count_sectors(subject, accesses, found)
    every = float(sectors.sum())
    left = 1 - float((sectors * gone).sum()) / every if every else 1.0
    regions = build_counted_regions(
        subject, np.where(found, sectors * gone, 0.0), edges=find_edges(subject, found, _REASONS)
    )
    return NarrowerData(rows=tuple(np.flatnonzero(found).tolist()), regions=regions, left=dict.fromkeys(_TRAFFIC, left))


def _count_sectors(subject: Subject, accesses: Marks, found: Marks) -> tuple[Parts, Parts]:
    """float64[n] sectors of the accesses (bytes over a sector's where they were not counted), and the part of each that goes."""
    rows = subject.rows
    actual, ideal = subject.read_counter("global_sectors"), subject.read_counter("global_sectors_ideal")
    if actual is None or ideal is None:
        widths = rows.spread_by_mnemonic(count_access_bytes, unknown=0)
        sectors = np.where(accesses, subject.executed * widths, 0).astype(np.float64)
        return sectors, np.where(found, HALF, 0.0)
    sectors = np.where(accesses, actual, 0).astype(np.float64)
    used = np.minimum(ideal, sectors) / np.maximum(sectors, 1)
    return sectors, np.where(found, HALF * used, 0.0)


def classify_access(subject: Subject, row: int) -> Value:
    """Classify an access by the arithmetic that made a stored value or computes with a loaded one."""
    number = int(subject.rows.function_index[row])
    flow = build_flow(subject.rows, number)
    if flow is None:
        return Value.UNKNOWN
    own = row - flow.first_row
    return _find_maker(flow, own) if flow.opcode(own).access is Access.STORE else _find_reader(flow, own)


def _find_reader(flow: FunctionFlow, load: int) -> Value:
    """The first arithmetic, through few moves, that reads what a load brings."""
    live = set(flow.writes_of[load])
    moves = 0
    for row in flow.rows_after(load, _MOST_FOLLOWED):
        if live.isdisjoint(flow.reads_of[row]):
            if flow.guard_of[row] < 0:
                live.difference_update(flow.writes_of[row])
            if not live:
                break
            continue
        value = _classify(flow.mnemonic(row))
        if value is not Value.UNKNOWN:
            return value
        if _is_move(flow.mnemonic(row)) and moves < _MOST_COPIES:
            live.update(flow.writes_of[row])
            moves += 1
    return Value.UNKNOWN


def _find_maker(flow: FunctionFlow, store: int) -> Value:
    """The arithmetic, through few moves, that made a stored value; an address is made by integers, and counts where nothing else did."""
    frontier, values = flow.find_defs(store), []
    for _ in range(_MOST_COPIES):
        values += [_classify(flow.mnemonic(row), makes=True) for row in frontier]
        frontier = [one for row in frontier if _is_move(flow.mnemonic(row)) for one in flow.find_defs(row)]
    floats = (value for value in values if value in (Value.DOUBLE, Value.SINGLE, Value.HALF))
    return next(floats, Value.UNKNOWN)


def _is_move(mnemonic: str) -> bool:
    return mnemonic.split(".", maxsplit=1)[0] in _MOVING


_CONVERTED = {"F64": Value.DOUBLE, "F32": Value.SINGLE, "F16": Value.HALF, "BF16": Value.HALF}


def _classify(mnemonic: str, *, makes: bool = False) -> Value:
    """Type that an instruction computes with; for a conversion the type that it makes, or the one that it reads.

    >>> [_classify(one).value for one in ("DFMA", "FFMA.FTZ", "HADD2.F32", "IADD3", "LDS", "F2F.F64.F32")]
    ['FP64', 'FP32', 'FP16', 'integers', 'values that are only moved', 'FP32']
    >>> _classify("I2F.F64", makes=True).value, _classify("I2F.F64").value
    ('FP64', 'integers')
    """
    opcode: Opcode = describe_mnemonic(mnemonic)
    name, *modifiers = mnemonic.split(".")
    if name in ("I2F", "F2F", "F2I"):
        types = [_CONVERTED[one] for one in modifiers if one in _CONVERTED]
        if name[0 if not makes else 2] == "I":
            return Value.INTEGER
        return (types[0] if makes else types[-1]) if types else Value.SINGLE
    if opcode.memory is not None or name in _MOVING or name in _NO_ARITHMETIC or not opcode.is_known:
        return Value.UNKNOWN
    if name in _ARITHMETIC:
        return _ARITHMETIC[name]
    if name[0] in _ARITHMETIC and opcode.pipe is not Pipe.CONTROL:
        return _ARITHMETIC[name[0]]
    return Value.INTEGER if name[:1] in ("I", "L", "V", "S", "P") and opcode.pipe is not Pipe.CONTROL else Value.UNKNOWN


def name_places(subject: Subject, rows: Sequence[int]) -> Sentence:
    """The rows that move most, one of each line."""
    by_line: dict[object, int] = {}
    for row in sorted(rows, key=lambda one: (-int(subject.executed[one]), one)):
        by_line.setdefault(subject.rows.place(row), row)
    return list_of(describe_place(subject, row) for row in [*by_line.values()][:_MOST_NAMED])
