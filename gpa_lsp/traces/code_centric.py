"""Code-centric view: accesses and branches by source line, and by the call path that leads to them.

A *call path* begins at a line of the kernel; then come the lines of the functions inlined there or called from there, down to the user's line that
names the instruction; what a library's code does inside it follows in brackets. Where the trace does not know the calls that led to a function,
the path begins in it, with an ellipsis.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count as count_from

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import Frame, InlineChain, SourceLine, write_place
from gpa_lsp.basis.ownership import choose_frame, describe_stand_in, find_library_frame
from gpa_lsp.basis.prose import Code, Place, Sentence, count, join, say
from gpa_lsp.binary.linkage_names import find_bare_name
from gpa_lsp.traces.branch_divergence import BranchTotals
from gpa_lsp.traces.branch_statements import find_conditions, name_functions
from gpa_lsp.traces.group_sums import AccessGroup
from gpa_lsp.traces.model import OUTSIDE_NAME, AccessGroupKind, AccessTotals, add_totals
from gpa_lsp.traces.patterns import LanePattern
from gpa_lsp.traces.results import GLOBAL_SPACES, TraceAnalyses

Look = tuple[tuple[str, ...], LanePattern | None, int]
"""Arrays, commonest pattern, and its stride in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePlace:
    """Where instructions come from.

    Attributes:
        function: mangled name of the function that was compiled.
        path: frames, outermost first, down to the one that names the instructions; empty for code without lines.
        is_whole: False where the path does not begin in the kernel.
        stand_in: ``in our stand-in for curand_kernel.h``, which is called at the end of the path; empty elsewhere.
        library: the line of a library that was inlined at the end of the path; None in the user's own code and in a stand-in.
    """

    function: str
    path: tuple[Frame, ...]
    is_whole: bool = True
    stand_in: str = ""
    library: Frame | None = None

    @property
    def line(self) -> SourceLine | None:
        """The line that names it; None without lines."""
        return self.path[-1].source_line if self.path else None

    def __str__(self) -> str:
        return self.write({})

    def write(self, short_files: Mapping[str, str]) -> str:
        """The path in a cell of a table.

        Args:
            short_files: by the full name, what a file is called; one that is not in it keeps its full name.
        """
        if not self.path:
            return self.function if self.is_whole else "…"
        words = [f"{short_files.get(frame.file, frame.file)}:{frame.line}" for frame in self.path]
        path = " → ".join(words if self.is_whole else ["…", *words])
        inside = self._name_inside(short_files)
        return f"{path} ({inside})" if inside else path

    def say(self, short_files: Mapping[str, str]) -> Sentence:
        """The path in a sentence, where it follows "at"; a file is named where it changes.

        Args:
            short_files: as for :meth:`write`.
        """
        if not self.path:
            return say("an unknown line of {function}", function=Code(text=self.function))
        steps = [] if self.is_whole else ["…"]
        before = ""
        for frame in self.path:
            shown = "" if frame.file == before else short_files.get(frame.file, frame.file)
            steps.append(say("{place}", place=Place(file=frame.file, line=frame.line, shown_file=shown)))
            before = frame.file
        path = join(steps, " → ")
        inside = self._name_inside(short_files)
        return say("{path} ({where})", path=path, where=inside) if inside else path

    def _name_inside(self, short_files: Mapping[str, str]) -> str:
        library = self.library
        if library is None:
            return self.stand_in
        return f"in {write_place(short_files.get(library.file, library.file), library.line)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathAccesses:
    """The requests to global memory and textures of one kind at one place, to the same arrays and in one pattern.

    Attributes:
        place: its call path.
        kind: of the requests.
        totals: their sums.
        share_ratio: of all sectors of the kernel's requests to global memory, 0..1.
        arrays: names, most sectors first.
        instructions: indexes.
    """

    place: CodePlace
    kind: AccessGroupKind
    totals: AccessTotals
    share_ratio: float
    arrays: tuple[str, ...]
    instructions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathBranches:
    """The executions of one branch statement, with the copies that unrolling made of it.

    Two statements of one line with one condition are not told apart from copies of one: compilers give both the same place and column.

    Attributes:
        place: its call path.
        which: of several statements at the place: ``branch 2 of 3 there``, ``condition 1 of 2 in pick`` where one stands for several branches, or
            ``in sinf, cosf or tanf``; empty for the only one.
        count: branches in the code.
        executions: by warps.
        divergent: that went both ways.
        active_lanes: over all executions.
        taken_lanes: of them, those that jumped.
    """

    place: CodePlace
    which: str
    count: int
    executions: int
    divergent: int
    active_lanes: int
    taken_lanes: int

    @property
    def counts_copies(self) -> bool:
        """It stands for several branches of the program's own, which have one condition."""
        return self.count > 1 and not self.which.startswith("in ")

    def write(self, short_files: Mapping[str, str]) -> str:
        """Its place in a cell of a table."""
        parts = ", ".join(filter(None, (self.which, f"{self.count} branches" if self.counts_copies else "")))
        return self.place.write(short_files) + (parts and f" ({parts})")

    def say(self, short_files: Mapping[str, str]) -> Sentence:
        """What it is, and its place, in a sentence: ``branch at line 5 of kernel.cu``."""
        place = self.place.say(short_files)
        what = say("branch") if self.count == 1 else say("branches")
        if self.counts_copies:
            what = say("{branches} with one condition", branches=count(self.count, "branch"))
        at = say("{what} at {place}", what=what, place=place)
        return say("{at} ({which})", at=at, which=self.which) if self.which else at


def list_frames(analyses: TraceAnalyses, instruction: int) -> tuple[Frame, ...]:
    """The frames of an instruction, innermost first, with those of the calls that lead to it; none for code without lines."""
    one = analyses.instructions[instruction]
    own = _clean(one.chain)
    calls = [_clean(analyses.instructions[call].chain) for call in one.calls]
    return (*own, *(frame for chain in calls for frame in chain)) if own else ()


def _clean(chain: InlineChain | None) -> InlineChain:
    """A chain that is empty or begins with line 0 has no lines."""
    return chain if chain and chain[0].line != 0 else ()


def find_place(analyses: TraceAnalyses, instruction: int) -> CodePlace:
    """The call path of an instruction."""
    one = analyses.instructions[instruction]
    frames = list_frames(analyses, instruction)
    is_whole = bool(one.calls) or one.function == analyses.kernel
    if not frames:
        return CodePlace(function=one.function, path=(), is_whole=is_whole)
    path = tuple(reversed(frames[frames.index(choose_frame(frames)) :]))
    library = find_library_frame(frames)
    stand_in = "" if library is None else describe_stand_in(frames)
    return CodePlace(
        function=one.function, path=path, is_whole=is_whole, stand_in=stand_in, library=None if stand_in else library
    )


def find_caller(analyses: TraceAnalyses, instruction: int) -> CodePlace | None:
    """The call path to the function that holds an instruction's line; None in the kernel's own code, and without lines."""
    place = find_place(analyses, instruction)
    if not place.path or (len(place.path) == 1 and place.is_whole):
        return None
    return replace(place, path=place.path[:-1])


def build_place(function: str, chain: InlineChain | None) -> CodePlace:
    """The call path of code of a function, without lines where it has none."""
    return CodePlace(function=function, path=tuple(reversed(_clean(chain))))


def find_line_place(analyses: TraceAnalyses, instruction: int) -> CodePlace:
    """The line that names it alone."""
    place = find_place(analyses, instruction)
    function = "" if place.path else place.function
    return CodePlace(function=function, path=place.path[-1:], stand_in=place.stand_in)


def name_arrays(analyses: TraceAnalyses, instructions: set[int]) -> tuple[str, ...]:
    """The arrays some instructions access, most sectors first."""
    sectors: dict[str, int] = {}
    for group in analyses.accesses.arrays:
        if group.instruction in instructions and group.array is not None:
            name = analyses.buffers[group.array].name if group.array >= 0 else OUTSIDE_NAME
            sectors[name] = sectors.get(name, 0) + group.totals.sectors
    return tuple(sorted(sectors, key=lambda name: (-sectors[name], name)))


def find_look(analyses: TraceAnalyses, group: AccessGroup | None) -> Look:
    """What tells the accesses of one line apart; nothing does in shared memory.

    Args:
        analyses: of the trace.
        group: the requests of an instruction; None for those to shared memory.
    """
    if group is None or not group.patterns:
        return ((), None, 0)
    pattern = group.patterns[0][0]
    is_strided = pattern in (LanePattern.STRIDED, LanePattern.STRIDED_PIECES)
    stride = group.strides[0][0] if is_strided and group.strides else 0
    return (name_arrays(analyses, {group.instruction}), pattern, stride)


def list_path_accesses(analyses: TraceAnalyses, *, by_line: bool = False) -> tuple[PathAccesses, ...]:
    """Requests to global memory by call path, or by innermost line; most excess sectors first, then most sectors.

    Accesses to different arrays, or in different patterns, are apart; what the compiler unrolled is together.
    """
    find = find_line_place if by_line else find_place
    groups: dict[tuple[CodePlace, AccessGroupKind, Look], list[AccessGroup]] = {}
    for group in analyses.accesses.instructions:
        if group.space in GLOBAL_SPACES:
            place = find(analyses, group.instruction)
            key = (place, analyses.find_kind(group.instruction), find_look(analyses, group))
            groups.setdefault(key, []).append(group)
    whole = max(1, analyses.count_global_sectors())
    found = []
    for (place, kind, _), members in groups.items():
        totals = add_totals([one.totals for one in members])
        instructions = {one.instruction for one in members}
        found.append(
            PathAccesses(
                place=place,
                kind=kind,
                totals=totals,
                share_ratio=totals.sectors / whole,
                arrays=name_arrays(analyses, instructions),
                instructions=tuple(sorted(instructions)),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.totals.excess_sectors, -one.totals.sectors, str(one.place))))


def find_statements(analyses: TraceAnalyses) -> dict[int, tuple[object, ...]]:
    """What tells the branches of a line apart, by instruction.

    The first part names the mathematical functions that a branch is inlined from; it is empty for the program's own. Branches that were not
    executed tell functions, too.
    """
    executed = {one.instruction for one in analyses.branches.branches}
    branches = [one.index for one in analyses.instructions if one.index in executed or one.text.startswith("bra ")]
    conditions = find_conditions(analyses.instructions, branches)
    places: dict[tuple[CodePlace, int], list[int]] = {}
    for branch in branches:
        places.setdefault((find_place(analyses, branch), analyses.instructions[branch].column), []).append(branch)
    found: dict[int, tuple[object, ...]] = {}
    for (place, column), members in places.items():
        for branch, name in zip(members, name_functions([conditions[one] for one in members]), strict=True):
            function = "" if place.stand_in else name or _name_called(analyses, branch)
            is_one = bool(place.stand_in or function)
            found[branch] = (function,) if is_one else ("", column, conditions[branch])
    return found


def list_path_branches(analyses: TraceAnalyses, *, by_line: bool = False) -> tuple[PathBranches, ...]:
    """Conditional branches by statement: call path, or innermost line, and condition; most divergent executions first."""
    find = find_line_place if by_line else find_place
    keys = find_statements(analyses)
    statements: dict[CodePlace, dict[tuple[object, ...], list[BranchTotals]]] = {}
    for branch in sorted(analyses.branches.branches, key=lambda one: one.instruction):
        groups = statements.setdefault(_find_branch_place(analyses, branch.instruction, find), {})
        groups.setdefault(keys[branch.instruction], []).append(branch)
    found = [
        PathBranches(
            place=place,
            which=which,
            count=len({_find_original(analyses, one.instruction) for one in members}),
            executions=sum(one.executions for one in members),
            divergent=sum(one.divergent for one in members),
            active_lanes=sum(one.active_lanes for one in members),
            taken_lanes=sum(one.taken_lanes for one in members),
        )
        for place, groups in statements.items()
        for which, members in zip(_name_statements(place, groups), groups.values(), strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (-one.divergent, -one.executions, str(one.place), one.which)))


def _name_called(analyses: TraceAnalyses, instruction: int) -> str:
    """The called function that holds an instruction, where it has no lines; empty elsewhere."""
    one = analyses.instructions[instruction]
    return find_bare_name(one.function) if one.calls and not _clean(one.chain) else ""


def _find_branch_place(
    analyses: TraceAnalyses, instruction: int, find: Callable[[TraceAnalyses, int], CodePlace]
) -> CodePlace:
    """The place of a branch; in a function without lines that of the call."""
    is_called = bool(_name_called(analyses, instruction))
    return find(analyses, analyses.instructions[instruction].calls[0] if is_called else instruction)


def _find_original(analyses: TraceAnalyses, instruction: int) -> int:
    same = analyses.instructions[instruction].same_as
    return instruction if same is None else same


def _name_statements(place: CodePlace, groups: Mapping[tuple[object, ...], Sequence[BranchTotals]]) -> Iterator[str]:
    own = [members for key, members in groups.items() if not key[0]]
    what = "branch" if all(len(members) == 1 for members in own) else "condition"
    inlined = place.path[-1].function if place.path else None
    where = "there" if inlined in (None, place.function) else f"in {find_bare_name(inlined or '')}"
    number = count_from(1)
    for key in groups:
        named = f"in {key[0]}" if key[0] else ""
        yield named or (f"{what} {next(number)} of {len(own)} {where}" if len(own) > 1 else "")
