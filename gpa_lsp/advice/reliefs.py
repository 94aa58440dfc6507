"""What each optimizer relieves: bytes, operations, issues, latency, or idle hardware. The facts are in ``reliefs.toml``."""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path

import tomli

from gpa_lsp.advice.model import MemoryLevel
from gpa_lsp.basis.lazy_dataclass import dataclass


class Relief(Enum):
    """What gets less."""

    BYTES = "bytes"
    OPERATIONS = "operations"
    """Arithmetic of threads."""
    ISSUES = "issues"
    """Warp instructions, with the arithmetic of the threads as it is."""
    LATENCY = "latency"
    PARALLELISM = "parallelism"
    """Hardware without work."""


class OccupancyUse(Enum):
    """When a remedy makes more warps resident and does no more than that."""

    NEVER = "never"
    FULL_GRID = "full_grid"
    """Where every SM has a block already."""
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliefs:
    """What one optimizer relieves.

    Attributes:
        relieves: at least one.
        levels: of the memory whose traffic gets less; empty without :attr:`Relief.BYTES`.
        occupancy: when it only makes more warps resident.
    """

    relieves: frozenset[Relief]
    levels: frozenset[MemoryLevel] = frozenset()
    occupancy: OccupancyUse = OccupancyUse.NEVER


_NOTHING = Reliefs(relieves=frozenset())


def find_reliefs(optimizer: str) -> Reliefs:
    """What an optimizer relieves; nothing for one the table does not know.

    >>> sorted(find_reliefs("global_coalescing").levels)
    [<MemoryLevel.DRAM: 'DRAM'>, <MemoryLevel.L1: 'L1'>, <MemoryLevel.L2: 'L2'>]
    >>> find_reliefs("thread_increase").occupancy
    <OccupancyUse.ALWAYS: 'always'>
    """
    return list_reliefs().get(optimizer, _NOTHING)


@cache
def list_reliefs() -> Mapping[str, Reliefs]:
    """What every optimizer relieves, by its name."""
    table = tomli.loads(Path(__file__).with_name("reliefs.toml").read_text(encoding="utf-8"))
    return {
        name: Reliefs(
            relieves=frozenset(Relief(one) for one in entry["relieves"]),
            levels=frozenset(MemoryLevel(level) for level in entry.get("levels", ())),
            occupancy=OccupancyUse(entry.get("occupancy", "never")),
        )
        for name, entry in table.items()
    }
