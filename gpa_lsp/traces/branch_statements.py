"""Branch statements: which conditional branches of one line are one statement, and which are a mathematical function's that is inlined there.

Compilers give the code of their mathematical functions, and every statement of a line, that line and one column, so neither tells branches
apart. The condition does: the comparison that a branch depends on, and the parameters and special registers that its operands come from.
Copies that unrolling makes of a statement have these in common. A function is known by a comparison with a constant of its own.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from gpa_lsp.emulator.trace import StaticInstruction

# Instructions that the sources of one condition are looked for in.
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

Condition = tuple[str, frozenset[str]]
"""The comparison, registers left out, and what its operands come from."""


def find_conditions(instructions: Sequence[StaticInstruction], branches: Sequence[int]) -> dict[int, Condition]:
    """What each of some branches depends on, by its index; the comparison is empty where none is seen."""
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
    branch = branch if instructions[branch].same_as is None else instructions[branch].same_as or 0
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
