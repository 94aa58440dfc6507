"""Arrays and variables that live in local memory, because their index or their address is taken at run time."""

from collections.abc import Iterator, Sequence

from gpa_lsp.code.sources.cuda_declarations import list_line_arrays
from gpa_lsp.diagnosis.advice.naming import LOCAL_CAUSES, LOCAL_REMEDIES, name_code, quote
from gpa_lsp.diagnosis.advice.static_checks import StaticCheck
from gpa_lsp.diagnosis.advice.static_model import Certainty, StaticFacts, StaticFinding
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, join, say
from gpa_lsp.kernel.dataflow.local_accesses import LocalAccess, LocalUse, find_marked_accesses

NAME = "local-arrays"


def find_local_arrays(facts: StaticFacts) -> Iterator[StaticFinding]:
    """One finding per array, on the line that declares it; where a line names several or none, one per line that accesses it with an index.

    Accesses at fixed places belong to the array whose name stands on their line. Without such a name nothing is said of them as long as
    something else in the kernel is indexed: they may be that.
    """
    accesses = [one for one in find_marked_accesses(facts.subject.rows, facts.limits) if one.use is LocalUse.ARRAY]
    finder = _ArrayFinder(facts)
    declared: dict[tuple[Frame, str], list[LocalAccess]] = {}
    unclear: list[LocalAccess] = []
    indexed: set[tuple[Frame, str]] = set()
    for access in accesses:
        arrays = finder.find(access.row)
        indexed.update(arrays if access.is_indexed else ())
        if len(arrays) == 1:
            declared.setdefault(arrays[0], []).append(access)
        else:
            unclear.append(access)
    for (place, name), members in declared.items():
        yield _report_declared(facts, place, name, members, is_indexed=(place, name) in indexed)
    is_indexed = any(one.is_indexed for one in accesses)
    left = {one.row: one for one in unclear if one.is_indexed or not is_indexed}
    for rows in facts.group_by_line(left):
        arrays = tuple(dict.fromkeys(array for row in rows for array in finder.find(row)))
        if not arrays or not declared.keys() >= set(arrays):
            yield _report_unclear(facts, [name for _, name in arrays], [left[row] for row in rows])


class _ArrayFinder:
    """Finds the declarations of arrays that lines name; each line is looked at once."""

    def __init__(self, facts: StaticFacts) -> None:
        self._facts = facts
        self._known: dict[tuple[str, int], tuple[tuple[int, str], ...]] = {}

    def find(self, row: int) -> tuple[tuple[Frame, str], ...]:
        """The arrays an instruction may access: those its line names, else those the call names through which that line was inlined."""
        for frame in self._facts.subject.rows.chain(row) or ():
            arrays = self._list(frame.file, frame.line)
            if arrays:
                return tuple(
                    (Frame(file=frame.file, line=line, function=frame.function), name) for line, name in arrays
                )
        return ()

    def _list(self, file: str, line: int) -> tuple[tuple[int, str], ...]:
        if (file, line) not in self._known:
            text = self._facts.subject.read_text(file)
            self._known[file, line] = () if text is None else list_line_arrays(file, text, line)
        return self._known[file, line]


def _report_declared(
    facts: StaticFacts, place: Frame, name: str, members: Sequence[LocalAccess], *, is_indexed: bool
) -> StaticFinding:
    return facts.make_finding(
        NAME,
        [one.row for one in members],
        message=say(
            "{array} is in local memory ({accesses}) because {why}.",
            array=name_code(name),
            accesses=_count(facts, members),
            why=LOCAL_CAUSES[is_indexed],
        ),
        remedy=LOCAL_REMEDIES[is_indexed],
        certainty=Certainty.CERTAIN if is_indexed else Certainty.LIKELY,
        place=place,
    )


def _report_unclear(facts: StaticFacts, names: Sequence[str], members: Sequence[LocalAccess]) -> StaticFinding:
    is_indexed = any(one.is_indexed for one in members)
    what = "An array indexed here" if is_indexed else "A variable accessed here"
    return facts.make_finding(
        NAME,
        [one.row for one in members],
        message=say(
            "{what} is in local memory ({accesses}) because {why}.",
            what=join([what, say("({names})", names=quote(names)) if names else NOTHING]),
            accesses=_count(facts, members),
            why=LOCAL_CAUSES[is_indexed],
        ),
        remedy=LOCAL_REMEDIES[is_indexed],
        certainty=Certainty.CERTAIN if is_indexed else Certainty.LIKELY,
    )


def _count(facts: StaticFacts, members: Sequence[LocalAccess]) -> Sentence:
    in_loops = sum(facts.count_loops(one.row) > 0 for one in members)
    accesses = say("{accesses}", accesses=count(len(members), "access"))
    return say("{accesses}, {loops} in loops", accesses=accesses, loops=count(in_loops)) if in_loops else accesses


STATIC_CHECK = StaticCheck(name=NAME, title="Array in local memory", find=find_local_arrays)
