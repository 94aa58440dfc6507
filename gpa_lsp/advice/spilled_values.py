"""Which accesses to local memory are spills: by the compiler's own marks, or by their addresses where it left none."""

from collections.abc import Mapping
from dataclasses import replace

from gpa_lsp.advice.local_accesses import LocalAccess, LocalUse, find_local_accesses
from gpa_lsp.advice.subject import Subject
from gpa_lsp.binary.compiled_limits import CompiledLimits

_SLOT_BYTES = 4


def find_spills(subject: Subject, limits: Mapping[str, CompiledLimits]) -> tuple[LocalAccess, ...]:
    """Stores and reloads of spilled registers, by row."""
    return tuple(one for one in find_marked_accesses(subject, limits) if one.use is LocalUse.SPILL)


def find_marked_accesses(subject: Subject, limits: Mapping[str, CompiledLimits]) -> tuple[LocalAccess, ...]:
    """Every access to local memory of a kernel, by row; the compiler's marks decide what is a spill in functions that have any."""
    last = _LAST[0] if _LAST else None
    if last is None or last[0] is not subject or last[1] is not limits:
        last = (subject, limits, _mark(subject, limits))
        _LAST[:] = [last]
    return last[2]


_LAST: list[tuple[Subject, Mapping[str, CompiledLimits], tuple[LocalAccess, ...]]] = []
"""The last answer: several checks ask the same, one after the other."""


def _mark(subject: Subject, limits: Mapping[str, CompiledLimits]) -> tuple[LocalAccess, ...]:
    marked = {name: frozenset(one.spill_offsets) for name, one in limits.items() if one.spill_offsets}
    found = []
    for access in find_local_accesses(subject):
        function = subject.function_of(access.row)
        offsets = marked.get(function.name)
        if offsets is None:
            found.append(access)
            continue
        is_spill = int(function.pc_offsets[subject.index_of(access.row)]) in offsets
        kept = LocalUse.ARRAY if access.use is LocalUse.SPILL else access.use
        found.append(replace(access, use=LocalUse.SPILL if is_spill else kept))
    return tuple(found)


def list_slots(subject: Subject, access: LocalAccess) -> list[tuple[int, int]]:
    """The words an access touches: their routine and offset, because each routine has a frame of its own."""
    routine = subject.scopes.routine_of(access.row)
    return [(routine, slot) for slot in access.slots]


def count_slots(subject: Subject, limits: Mapping[str, CompiledLimits]) -> int:
    """Words of all frames that hold spilled registers."""
    return len({slot for access in find_spills(subject, limits) for slot in list_slots(subject, access)})


def measure_spills(subject: Subject, limits: Mapping[str, CompiledLimits]) -> int:
    """Bytes of all frames of a thread that hold spilled registers."""
    return count_slots(subject, limits) * _SLOT_BYTES
