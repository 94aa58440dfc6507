"""Code-centric view: accesses and branches by source line, and by the call path that leads to them.

A *call path* begins at a line of the kernel; then come the lines of the functions inlined there or called from there, down to the user's line that
names the instruction; what a library's code does inside it follows in brackets. Where the trace does not know the calls that led to a function,
the path begins in it, with an ellipsis.

Source: CUDAAdvisor (CGO 2018), section 3.2.1, for the part of the path on the device.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count as count_from

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.accesses.lane_addresses import LanePattern
from gpa_lsp.execution.traces.branch_divergence import BranchTotals
from gpa_lsp.execution.traces.keyed_sums import AccessGroup
from gpa_lsp.execution.traces.model import OUTSIDE_NAME, AccessGroupKind, AccessTotals, add_totals
from gpa_lsp.execution.traces.results import GLOBAL_SPACES, TraceAnalyses
from gpa_lsp.foundation.locations import Frame, InlineChain, SourceLine, write_place
from gpa_lsp.foundation.ownership import choose_frame, describe_stand_in, find_library_frame
from gpa_lsp.foundation.prose import Code, Place, Sentence, count, join, say

# Branch statements: which conditional branches of one line are one statement, and which are a mathematical function's that is inlined there.
#
# Compilers give the code of their mathematical functions, and every statement of a line, that line and one column, so neither tells branches
# apart. The condition does: the comparison that a branch depends on, and the parameters and special registers that its operands come from.
# Copies that unrolling makes of a statement have these in common. A function is known by a comparison with a constant of its own.

# Most instructions in which the sources of one condition are searched
_MOST_SOURCES = 2000
_REGISTER = re.compile(r"%[A-Za-z]\w*(?:\.[xyz])?")
_SOURCE = re.compile(r"%n?(?:tid|ctaid|laneid|warpid|clock)\w*(?:\.[xyz])?|\b\w+_param_\d+")
_TRIGONOMETRY = ("0f7F800000", "%, 0")
_DOUBLE_LOG = ("1048575", "2146435071", "1073127583")
_DOUBLE_EXP = ("0f4086232B", "0f40874800")
# Constant of a function's own → the functions with it, and ends of their other comparisons.
# Source: PTX of NVRTC 13 for each function of libdevice alone, compute capability 8.0.
_FUNCTIONS = {
    "f32 %, 0f47CE4780": ("sinf, cosf or tanf", _TRIGONOMETRY),
    "u32 %, 2139095040": ("logf or its like", ("-1082130431",)),
    "gtu.f32 %, 0f7F800000": ("powf or its like", ("0f7F800000", "0f00000000", "0f3F800000", "0f43180000")),
    "f32 %, 0f3F807B28": ("erff", ()),
    "f32 %, 0fC1033333": ("erfinvf", ()),
    "f32 %, 0f3FFF9097": ("erfcinvf or normcdfinvf", ()),
    "f32 %, 0f4120E148": ("erfcxf", ("0f00000000",)),
    "f32 %, 0fC2246666": ("tgammaf", ("0f3FC00000", "0f00000000", "%, 0", "%, %")),
    "f32 %, 0f40F9999A": ("lgammaf", ("0f40400000", "0f3FC00000", "0f3F333333", "0f1FEC1E4A", "0f00000000", "%, 0", "%, %")),
    "f64 %, 0d41E0000000000000": ("sin, cos or tan", ("0d7FF0000000000000", "2047", "%, 0", "%, 1", "s32 %, %")),
    "u32 %, 2146435071": ("log or its like", (*_DOUBLE_LOG, "0fBFD99999")),
    "f32 %, 0f4086232B": ("exp or pow", (*_DOUBLE_EXP, "1073127583", "2146435072", "0d7FF0000000000000", "0d0000000000000000")),
    "f32 %, 0f408FF000": ("exp2", ("0f4090CC00",)),
    "f32 %, 0f40733A71": ("exp10", ("0f407439B8",)),
    "f32 %, 0fC04A8000": ("expm1", ()),
    "u32 %, 1082536911": ("cosh", ()),
    "f64 %, 0d3FE4F92224DD2F1A": ("tanh", ()),
    "f32 %, 0f3FE26666": ("asin", ()),
    "s32 %, 1071801958": ("acos", ("s32 %, 0", "s32 %, 1", "%, -1")),
    "u32 %, -2038431743": ("cospi", ("%, 0",)),
}  # fmt: skip
# In front of the comparison with its constant, some functions make another one.
_ANNOUNCED = ("0d7FF0000000000000", "1048575", "eq.f32 %, 0f00000000", "eq.f32 %, 0f3F800000")

Condition = tuple[str, frozenset[str]]  # The comparison without registers, and the sources of its operands


def find_conditions(instructions: Sequence[StaticInstruction], branches: Sequence[int]) -> dict[int, Condition]:
    """Condition of each branch, by its index; the comparison is empty where none is found."""
    writers: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for one in instructions:
        if one.same_as is None:
            for register in _list_written(one.text):
                writers[one.function, register].append(one.index)
    return {branch: _find_condition(instructions, writers, branch) for branch in branches}


def _list_written(text: str) -> list[str]:
    name, _, operands = text.partition(" ")
    if name.startswith(("st.", "bra", "red.", "bar", "ret", "call")):
        return []
    first = operands.partition("}")[0] if operands.startswith("{") else operands.partition(",")[0]
    return _REGISTER.findall(first)


def _find_condition(
    instructions: Sequence[StaticInstruction], writers: dict[tuple[str, str], list[int]], branch: int
) -> Condition:
    branch = _find_original(instructions, branch)
    function = instructions[branch].function
    compared = next((at for at in range(branch - 1, -1, -1) if instructions[at].text.startswith("setp")), None)
    if compared is None or instructions[compared].function != function:
        return "", frozenset()
    sources: set[str] = set()
    waiting, seen = [compared], {compared}
    while waiting and len(seen) < _MOST_SOURCES:
        text = instructions[waiting.pop()].text
        sources.update(_SOURCE.findall(text))
        for register in _REGISTER.findall(text.partition(",")[2]):
            new = [at for at in writers.get((function, register), ()) if at not in seen]
            seen.update(new)
            waiting += new
    text = instructions[compared].text
    return f"{text.partition(' ')[0]} {_REGISTER.sub('%', text.partition(', ')[2])}", frozenset(sources)


def name_functions(conditions: Sequence[Condition]) -> Iterator[str]:
    """The mathematical functions that branches of one place, in the order of the code, belong to; an empty name for the program's own."""
    texts = [text for text, _ in conditions]
    starts: dict[str, int] = {}
    for at, text in enumerate(texts):
        for constant in _FUNCTIONS:
            if text.endswith(constant) and constant not in starts:
                starts[constant] = at - 1 if at and texts[at - 1].endswith(_ANNOUNCED) else at
    for at, text in enumerate(texts):
        yield next(
            (
                _FUNCTIONS[constant][0]
                for constant, start in starts.items()
                if at >= start and text.endswith((constant, *_FUNCTIONS[constant][1]))
            ),
            "",
        )


Look = tuple[tuple[str, ...], LanePattern | None, int]  # Arrays, commonest pattern, and its stride in bytes


class CodePlace(Struct, frozen=True, kw_only=True):
    """Call path that leads to some instructions."""

    function: str  # mangled name of the function that was compiled
    # frames, outermost first, down to the one that names the instructions; empty for code without lines
    path: tuple[Frame, ...]
    is_whole: bool = True  # False where the path does not begin in the kernel
    # ``in our stand-in for curand_kernel.h``, which is called at the end of the path; empty elsewhere
    stand_in: str = ""
    # the line of a library that was inlined at the end of the path; None in the user's own code and in a stand-in
    library: Frame | None = None

    @property
    def line(self) -> SourceLine | None:
        """The line that names it; None without lines."""
        return self.path[-1].source_line if self.path else None

    def __str__(self) -> str:
        return self.write({})

    def write(self, short_files: Mapping[str, str]) -> str:
        """The path in a cell of a table."""
        if not self.path:
            return self.function if self.is_whole else "…"
        words = [f"{short_files.get(frame.file, frame.file)}:{frame.line}" for frame in self.path]
        path = " → ".join(words if self.is_whole else ["…", *words])
        inside = self._name_inside(short_files)
        return f"{path} ({inside})" if inside else path

    def say(self, short_files: Mapping[str, str]) -> Sentence:
        """The path in a sentence, where it follows "at"; a file is named where it changes."""
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


class PathAccesses(Struct, frozen=True, kw_only=True):
    """The requests to global memory and textures of one kind at one place, to the same arrays and in one pattern."""

    place: CodePlace  # its call path
    kind: AccessGroupKind  # of the requests
    totals: AccessTotals  # their sums
    share_ratio: float  # of all sectors of the kernel's requests to global memory, 0..1
    arrays: tuple[str, ...]  # names, most sectors first
    instructions: tuple[int, ...]  # indexes


class PathBranches(Struct, frozen=True, kw_only=True):
    """The executions of one branch statement, with the copies that unrolling made of it.

    Two statements of one line with one condition are not told apart from copies of one: compilers give both the same place and column.
    """

    place: CodePlace  # its call path
    # of several statements at the place: ``branch 2 of 3 there``, ``condition 1 of 2 in pick`` where one stands for several branches, or ``in sinf,
    # cosf or tanf``; empty for the only one
    which: str
    count: int  # branches in the code
    executions: int  # by warps
    divergent: int  # that went both ways
    active_lanes: int  # over all executions
    taken_lanes: int  # of them, those that jumped

    @property
    def counts_copies(self) -> bool:
        """Whether it stands for several branches of the program's own with one condition."""
        return self.count > 1 and not self.which.startswith("in ")

    def write(self, short_files: Mapping[str, str]) -> str:
        """The statement in a cell of a table."""
        parts = ", ".join(filter(None, (self.which, f"{self.count} branches" if self.counts_copies else "")))
        return self.place.write(short_files) + (parts and f" ({parts})")

    def say(self, short_files: Mapping[str, str]) -> Sentence:
        """The statement in a sentence: ``branch at line 5 of kernel.cu``."""
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
    """The chain; empty for one that begins with line 0, which has no lines."""
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
    """The line that names an instruction, without the calls that lead to it."""
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
    """Key that tells the accesses of one line apart; equal for all to shared memory.

    Args:
        group: the requests of an instruction; None for those to shared memory.
    """
    if group is None or not group.patterns:
        return ((), None, 0)
    pattern = group.patterns[0][0]
    is_strided = pattern in (LanePattern.STRIDED, LanePattern.STRIDED_PIECES)
    stride = group.strides[0][0] if is_strided and group.strides else 0
    return (name_arrays(analyses, {group.instruction}), pattern, stride)


def list_path_accesses(analyses: TraceAnalyses) -> tuple[PathAccesses, ...]:
    """Requests to global memory by call path; most excess sectors first, then most sectors.

    Accesses to different arrays, or in different patterns, are apart; what the compiler unrolled is together.
    """
    groups: dict[tuple[CodePlace, AccessGroupKind, Look], list[AccessGroup]] = {}
    for group in analyses.accesses.instructions:
        if group.space in GLOBAL_SPACES:
            place = find_place(analyses, group.instruction)
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
    """Keys that tell the branches of a line apart, by instruction.

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


def list_path_branches(analyses: TraceAnalyses) -> tuple[PathBranches, ...]:
    """Conditional branches by statement, that is call path and condition; most divergent executions first."""
    keys = find_statements(analyses)
    statements: dict[CodePlace, dict[tuple[object, ...], list[BranchTotals]]] = {}
    for branch in sorted(analyses.branches.branches, key=lambda one: one.instruction):
        groups = statements.setdefault(_find_branch_place(analyses, branch.instruction), {})
        groups.setdefault(keys[branch.instruction], []).append(branch)
    found = [
        PathBranches(
            place=place,
            which=which,
            count=len({_find_original(analyses.instructions, one.instruction) for one in members}),
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


def _find_branch_place(analyses: TraceAnalyses, instruction: int) -> CodePlace:
    """The place of a branch; in a function without lines that of the call."""
    is_called = bool(_name_called(analyses, instruction))
    return find_place(analyses, analyses.instructions[instruction].calls[0] if is_called else instruction)


def _find_original(instructions: Sequence[StaticInstruction], instruction: int) -> int:
    same = instructions[instruction].same_as
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
