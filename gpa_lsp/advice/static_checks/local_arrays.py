"""Arrays and variables that live in local memory, because their index or their address is taken at run time."""

import re
from collections.abc import Iterable, Iterator, Sequence

from gpa_lsp.advice.hint_words import count_things
from gpa_lsp.advice.local_accesses import LocalAccess, LocalUse
from gpa_lsp.advice.source_words import read_parts
from gpa_lsp.advice.spilled_values import find_marked_accesses
from gpa_lsp.advice.static_checks import StaticCheck
from gpa_lsp.advice.static_model import Certainty, StaticFacts, StaticFinding
from gpa_lsp.locations import Frame
from gpa_lsp.sources.cuda_arrays import find_array_declaration

NAME = "local-arrays"

_BASE = re.compile(r"[*(&\s]*([A-Za-z_]\w*)")

_INDEXED_REMEDY = "Unroll the loops that index it completely, so that it fits into registers, or give each thread a column of shared memory."
_ADDRESSED_REMEDY = "Pass it by value, or let the function that takes its address be inlined."


def find_local_arrays(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per array, on the line that declares it; where no declaration is found, one per line that accesses it with an index.

    Accesses at fixed places belong to the array whose name stands on their line. Without such a name nothing is said of them as long as
    something else in the kernel is indexed: they may be that.
    """
    accesses = [one for one in find_marked_accesses(facts.subject, facts.limits) if one.use is LocalUse.ARRAY]
    declared: dict[tuple[Frame, str], list[LocalAccess]] = {}
    unnamed: list[LocalAccess] = []
    for access in accesses:
        found = _find_declaration(facts, access)
        if found is None:
            unnamed.append(access)
        else:
            declared.setdefault(found, []).append(access)
    for (place, name), members in declared.items():
        yield _report_declared(facts, place, name, members)
    is_indexed = any(one.is_indexed for one in accesses)
    left = {one.row: one for one in unnamed if one.is_indexed or not is_indexed}
    for rows in facts.group_by_line(left):
        yield _report_unnamed(facts, [left[row] for row in rows])


def _find_declaration(facts: StaticFacts, access: LocalAccess) -> tuple[Frame, str] | None:
    """Where the array of an access is declared, and its name; None where its line names none or several."""
    frame = facts.find_frame(access.row)
    text = None if frame is None else facts.subject.read_source(frame.file)
    parts = read_parts(facts.subject, access.row)
    if frame is None or text is None or parts is None:
        return None
    found: dict[int, str] = {}
    for name in _list_names([*parts.stores, *parts.loads, *parts.assigned]):
        line = find_array_declaration(frame.file, text, frame.line, name)
        if line is not None:
            found[line] = name
    if len(found) != 1:
        return None
    ((line, name),) = found.items()
    return Frame(file=frame.file, line=line, function=frame.function), name


def _list_names(expressions: Iterable[str]) -> tuple[str, ...]:
    """The variables that expressions begin with, each once."""
    matches = (_BASE.match(expression) for expression in expressions)
    return tuple(dict.fromkeys(match[1] for match in matches if match is not None))


def _report_declared(facts: StaticFacts, place: Frame, name: str, members: Sequence[LocalAccess]) -> StaticFinding:
    is_indexed = any(one.is_indexed for one in members)
    why = "it is indexed by what is known only at run time" if is_indexed else "its address is taken"
    return facts.make_finding(
        NAME,
        [one.row for one in members],
        message=f"`{name}` lives in local memory, because {why} ({_count(facts, members)}).",
        remedy=_INDEXED_REMEDY if is_indexed else _ADDRESSED_REMEDY,
        certainty=Certainty.CERTAIN if is_indexed else Certainty.LIKELY,
        place=place,
    )


def _report_unnamed(facts: StaticFacts, members: Sequence[LocalAccess]) -> StaticFinding:
    is_indexed = any(one.is_indexed for one in members)
    what = (
        "An array that is indexed here lives in local memory, because the index is known only at run time"
        if is_indexed
        else "A variable that is accessed here lives in local memory, because its address is taken"
    )
    return facts.make_finding(
        NAME,
        [one.row for one in members],
        message=f"{what} ({_count(facts, members)}).",
        remedy=_INDEXED_REMEDY if is_indexed else _ADDRESSED_REMEDY,
        certainty=Certainty.CERTAIN if is_indexed else Certainty.LIKELY,
    )


def _count(facts: StaticFacts, members: Sequence[LocalAccess]) -> str:
    in_loops = sum(facts.count_loops(one.row) > 0 for one in members)
    count = count_things(len(members), "access").replace("accesss", "accesses")
    return f"{count}, {in_loops} of them in loops" if in_loops else count


STATIC_CHECK = StaticCheck(name=NAME, title="Array in local memory", find=find_local_arrays)
