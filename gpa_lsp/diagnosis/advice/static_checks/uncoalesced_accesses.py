"""Accesses to global memory whose addresses, by the code alone, make a warp ask for more sectors than its data needs."""

from collections.abc import Iterator

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess, WarpPattern
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import StaticFacts, StaticFinding
from gpa_lsp.diagnosis.advice.warp_facts import WarpFacts, describe_access, describe_cost, describe_distance
from gpa_lsp.diagnosis.analyses.access import REMEDIES, Pattern
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, number, say
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES

NAME = "uncoalesced-accesses"
_LEAST_FACTOR = 2.0  # So many times the sectors needed, and more, are worth a word; pairs of numbers make twice as many
_LEAST_EXCESS = 4.0
_LEAST_MISALIGNED = 1.2


def find_uncoalesced_accesses(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per line and message.

    Not told: structures of which the thread accesses the other members as well, since those use the rest of the sectors; a shifted access
    beside another of the same row, as stencils make; atomics, whose addresses are what the data says.
    """
    warps = facts.warps
    if warps is None:
        return
    every = [one for one in warps.found.accesses if one.space == Space.GLOBAL]
    accesses = [one for one in every if not (warps.is_lifted and _may_be_another_value(one))]
    neighbours = _Neighbours(accesses)
    yield from facts.report_accesses(
        NAME,
        warps,
        [(one, _describe(facts, warps, one), _choose_remedy(one)) for one in accesses if _is_costly(one, neighbours)],
    )


def _may_be_another_value(access: SymbolicAccess) -> bool:
    """Whether an address register may hold another value: it was loaded under one guard, and is computed under another."""
    is_guarded = access.loads is not None and access.instruction.text.startswith("@")
    return is_guarded and access.loads is not None and access.loads.text.startswith("@")


class _Neighbours:
    """Bytes that a thread accesses by addresses that differ in their constant alone."""

    def __init__(self, accesses: list[SymbolicAccess]) -> None:
        self._bytes: dict[object, set[int]] = {}
        for access in accesses:
            start = access.address.terms.get((), 0)
            self._bytes.setdefault(_find_key(access), set()).update(range(start, start + access.bytes_each))

    def fills_stride(self, access: SymbolicAccess) -> bool:
        """Half of what lies between neighbouring threads, or more, is accessed by the thread itself."""
        if len(access.stride) != 1 or access.stride[0].factors:
            return False
        return 2 * len(self._bytes[_find_key(access)]) >= abs(access.stride[0].bytes)

    def has_others(self, access: SymbolicAccess) -> bool:
        """The thread accesses something beside it."""
        return len(self._bytes[_find_key(access)]) > access.bytes_each


def _find_key(access: SymbolicAccess) -> object:
    terms = tuple(sorted((key, factor) for key, factor in access.address.terms.items() if key))
    return access.kind is AccessKind.LOAD, terms


def _is_costly(access: SymbolicAccess, neighbours: _Neighbours) -> bool:
    if access.kind in (AccessKind.ATOMIC, AccessKind.REDUCTION):
        return False
    if access.pattern is WarpPattern.SCATTERED:
        return access.loads is not None
    if access.cost is None:
        return False
    if access.pattern is WarpPattern.MISALIGNED:
        return access.cost >= _LEAST_MISALIGNED * access.ideal and not neighbours.has_others(access)
    is_wasteful = access.cost > _LEAST_FACTOR * access.ideal and access.cost - access.ideal >= _LEAST_EXCESS
    return access.pattern is WarpPattern.STRIDED and is_wasteful and not neighbours.fills_stride(access)


def _name_load(facts: StaticFacts, access: SymbolicAccess) -> Sentence:
    """Name the line where the index was loaded; nothing where that is the same line, or in no source at hand."""
    own = facts.find_frame_at_hand(access.instruction.chain)
    frame = None if access.loads is None else facts.find_frame_at_hand(access.loads.chain)
    if frame is None or own is None or frame.source_line == own.source_line or frame.file != own.file:
        return NOTHING
    return say(" in line {line}", line=str(frame.line))


def _describe(facts: StaticFacts, warps: WarpFacts, access: SymbolicAccess) -> Sentence:
    subject = describe_access(warps, access)
    if access.pattern is WarpPattern.SCATTERED:
        return say(
            "{access} is scattered, by what was loaded{where}: up to {most} per request, {ideal} at best.",
            access=subject,
            where=_name_load(facts, access),
            most=count(32, "sector"),
            ideal=number(access.ideal),
        )
    if access.pattern is WarpPattern.MISALIGNED:
        return say(
            "{access} starts inside a sector: {cost}, {ideal} where it is aligned{assumption}.",
            access=subject,
            cost=describe_cost(access, "sector"),
            ideal=number(access.ideal),
            assumption=warps.assumption,
        )
    return say(
        "{access} is strided: {distance}, {cost}{condition}, {ideal} where coalesced{assumption}.",
        access=subject,
        distance=describe_distance(warps, access),
        cost=describe_cost(access, "sector"),
        condition=warps.describe_condition(access),
        ideal=number(access.ideal),
        assumption=warps.assumption,
    )


def _choose_remedy(access: SymbolicAccess) -> Sentence:
    if access.pattern is WarpPattern.SCATTERED:
        return NOTHING
    if access.pattern is WarpPattern.MISALIGNED:
        return REMEDIES[Pattern.MISALIGNED]
    is_apart = any(term.factors or abs(term.bytes) >= SECTOR_BYTES for term in access.stride) or not access.stride
    return REMEDIES[Pattern.APART if is_apart else Pattern.STRIDE]


STATIC_CHECK = StaticCheck(name=NAME, title="Uncoalesced global accesses", find=find_uncoalesced_accesses)
