"""The least that global accesses have to move: what stays of each level's traffic when every access is coalesced."""

from collections.abc import Mapping

import numpy as np

from gpa_lsp.advice.subject import Subject
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.binary.opcodes import Access
from gpa_lsp.dataflow.accesses import GLOBAL_SPACES, SECTOR_BYTES, mark_accesses

_SECTORS_PER_LINE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficFloor:
    """What stays of the traffic.

    Attributes:
        sectors: the least sectors of loads and stores over those they touch, 0..1.
        lines: the fewest lines over those they touch: passes through L1; 1 where not counted.
        leaves: unit → the part of its work that stays. A level below L1 keeps what it moves for other reasons: never less than the least bytes of
            all accesses, unless caches answer them already.
    """

    sectors: float
    lines: float
    leaves: Mapping[str, float]


def measure_floor(subject: Subject) -> TrafficFloor | None:
    """The floor of global loads and stores; None where sectors were not counted."""
    return subject.once(_measure_floor)


def _measure_floor(subject: Subject) -> TrafficFloor | None:
    rows = subject.rows
    accesses = mark_accesses(rows, GLOBAL_SPACES, (Access.LOAD, Access.STORE, Access.COPY))
    sectors, ideal, tags = (
        rows.counter(name) for name in ("global_sectors", "global_sectors_ideal", "global_tag_requests")
    )
    if sectors is None or ideal is None or not accesses.any():
        return None
    touched, least = (int(np.maximum(column[accesses], 0).sum()) for column in (sectors, ideal))
    if touched <= 0:
        return None
    lines = 1.0
    if tags is not None:
        executed = np.maximum(rows.executions[accesses], 0)
        counted = np.maximum(tags[accesses], 0)
        fewest = np.where(counted > 0, np.maximum(executed, np.maximum(ideal[accesses], 0) / _SECTORS_PER_LINE), 0)
        lines = min(1.0, float(np.minimum(fewest, counted).sum()) / max(1, int(counted.sum())))
    launches = sum(launch.failure is None for launch in subject.kernel.launches)
    bytes_each = least * SECTOR_BYTES / max(1, launches)
    leaves = {"l1": lines if tags is not None else least / touched}
    moved = {
        "dram": _add(subject, "dram__bytes_read.sum", "dram__bytes_write.sum"),
        "l2": _scale(_add(subject, "lts__t_sectors_srcunit_tex.sum"), SECTOR_BYTES),
    }
    leaves |= {unit: min(1.0, bytes_each / most) for unit, most in moved.items() if most}
    return TrafficFloor(sectors=min(1.0, least / touched), lines=lines, leaves=leaves)


def _add(subject: Subject, *names: str) -> float | None:
    """Counters of the longest launch together; None where one is missing."""
    found = [subject.kernel.metric(name) for name in names]
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def _scale(value: float | None, by: float) -> float | None:
    return None if value is None else value * by
