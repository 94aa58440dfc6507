"""Accesses to shared memory whose addresses, by the code alone, put threads of a warp into one bank."""

from collections.abc import Iterator

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess, WarpPattern
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.diagnosis.advice.warp_facts import WarpFacts, describe_access, describe_cost, describe_distance
from gpa_lsp.diagnosis.analyses.access import CONFLICT_REMEDY
from gpa_lsp.foundation.prose import Sentence, number, say

NAME = "bank-conflicts"
_LEAST_FACTOR = 2.0
# Where a warp reaches over several rows of a tile, those that are padded already often share a bank or two
_LEAST_OF_ROWS = 4.0


def find_bank_conflicts(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line and message; atomics, whose addresses are what the data says, are not told."""
    warps = facts.warps
    if warps is None:
        return
    yield from facts.report_accesses(
        NAME,
        warps,
        [(one, _describe(warps, one), CONFLICT_REMEDY) for one in warps.found.accesses if _has_conflicts(one)],
    )


def _has_conflicts(access: SymbolicAccess) -> bool:
    is_plain = access.kind in (AccessKind.LOAD, AccessKind.STORE) and access.space == Space.SHARED
    is_strided = is_plain and access.pattern is WarpPattern.STRIDED
    least = _LEAST_FACTOR if access.stride else _LEAST_OF_ROWS
    return is_strided and access.cost is not None and access.cost >= least * access.ideal


def _describe(warps: WarpFacts, access: SymbolicAccess) -> Sentence:
    return say(
        "{access} has bank conflicts: {distance}, {cost}, {ideal} without conflicts{assumption}.",
        access=describe_access(warps, access),
        distance=describe_distance(warps, access),
        cost=describe_cost(access, "wavefront"),
        ideal=number(access.ideal),
        assumption=warps.assumption,
    )


STATIC_CHECK = StaticCheck(name=NAME, title="Bank conflicts", find=find_bank_conflicts)
