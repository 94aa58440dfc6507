"""Find the architecture of a compute capability.

The tables lie in ``tables/``, one per architecture and complete in itself. A capability without a table is an error that lists those there
are: numbers of another architecture would look just as good and be wrong.
"""

import re
from functools import cache
from pathlib import Path

from gpa_lsp.arch.figures import parse_compute_capability
from gpa_lsp.arch.model import Architecture
from gpa_lsp.arch.opcodes import OpcodeClasses
from gpa_lsp.arch.read_table import read_architecture, read_opcode_classes
from gpa_lsp.basis.errors import CatalogueError, UnknownArchitectureError

TABLES = Path(__file__).parent / "tables"

_CAPABILITY = re.compile(r'^compute_capability = "([^"]*)"', re.MULTILINE)
"""The capability a table is of, and after it those it also serves; matched in the text because a whole table takes longer to parse."""


@cache
def find_architecture(compute_capability: tuple[int, int]) -> Architecture:
    """The architecture of a compute capability.

    Args:
        compute_capability: (major, minor), e.g. (8, 6).

    Returns:
        The same object for the same capability.

    Raises:
        UnknownArchitectureError: there is no table for it; the message lists those there are.
        CatalogueError: its table is malformed.

    >>> find_architecture((7, 5)).occupancy.max_warps_per_sm.value
    32
    >>> find_architecture((12, 1)).table_of
    (12, 0)
    """
    path = _find_table(compute_capability)
    if path is None:
        known = ", ".join(f"{major}.{minor}" for major, minor in list_architectures())
        raise UnknownArchitectureError(
            f"compute capability {compute_capability[0]}.{compute_capability[1]} is not supported; supported are {known}",
            remedy="profile on a GPU of one of these",
        )
    return read_architecture(path, load_opcode_classes(), compute_capability)


@cache
def list_architectures() -> tuple[tuple[int, int], ...]:
    """Every compute capability :func:`find_architecture` knows, ascending.

    >>> (9, 0) in list_architectures()
    True
    """
    return tuple(sorted(capability for path in list_tables() for capability in _read_capabilities(path)))


@cache
def load_opcode_classes() -> OpcodeClasses:
    """Latency classes and producer groups of opcodes, which are the same on every architecture.

    Raises:
        CatalogueError: their table is malformed.

    >>> load_opcode_classes().find_latency_class("IMAD.WIDE.U32").value
    'imad_wide'
    """
    return read_opcode_classes(TABLES / "opcode_classes.toml")


def list_tables() -> tuple[Path, ...]:
    """The architecture tables, by file name."""
    return tuple(sorted(TABLES.glob("sm_*.toml")))


def _find_table(compute_capability: tuple[int, int]) -> Path | None:
    major, minor = compute_capability
    own = TABLES / f"sm_{major}{minor}.toml"
    if own in list_tables():
        return own
    return next((path for path in list_tables() if compute_capability in _read_capabilities(path)), None)


@cache
def _read_capabilities(path: Path) -> tuple[tuple[int, int], ...]:
    found = _CAPABILITY.findall(path.read_text(encoding="utf-8"))
    if not found:
        raise CatalogueError(f"{path.name}: compute_capability is missing")
    return tuple(parse_compute_capability(text, path.name) for text in found)
