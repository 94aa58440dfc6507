"""What the words of an instruction's name say: its types, and how many of its operands are results."""

from enum import Enum

from msgspec import Struct

from gpa_lsp.code.ptx.scalar_types import ScalarType

TYPES = {kind.value: kind for kind in ScalarType}  # Types by name


class Form(Enum):
    """How the operands of an instruction are to be read."""

    ORDINARY = "operands"
    BRANCH = "label"
    TABLE = "index and table of labels"
    CALL = "call"


class OpcodeForm(Struct, frozen=True, kw_only=True):
    """An instruction's name taken apart."""

    opcode: str  # the first word
    suffixes: tuple[str, ...]  # the words behind it
    types: tuple[ScalarType, ...]  # those suffixes that are types
    form: Form  # how its operands are read
    has_result: bool  # the first operand is a result


def read_opcode(text: str) -> OpcodeForm:
    """Take a name apart.

    >>> form = read_opcode("cvt.rn.f32.s32")
    >>> form.opcode, form.suffixes, [kind.name for kind in form.types], form.has_result
    ('cvt', ('rn', 'f32', 's32'), ['F32', 'S32'], True)
    """
    opcode, *suffixes = text.split(".")
    if opcode == "bra":
        form = Form.BRANCH
    elif opcode == "brx":
        form = Form.TABLE
    elif opcode == "call":
        form = Form.CALL
    else:
        form = Form.ORDINARY
    return OpcodeForm(
        opcode=opcode,
        suffixes=tuple(suffixes),
        types=tuple(TYPES[word] for word in suffixes if word in TYPES),
        form=form,
        has_result=form is Form.ORDINARY and _has_result(opcode, suffixes),
    )


_NO_RESULT = frozenset(
    {
        "applypriority",
        "brkpt",
        "cp",
        "discard",
        "exit",
        "fence",
        "griddepcontrol",
        "membar",
        "nanosleep",
        "pmevent",
        "prefetch",
        "prefetchu",
        "red",
        "ret",
        "setmaxnreg",
        "st",
        "stackrestore",
        "stmatrix",
        "sured",
        "sust",
        "tensormap",
        "trap",
    }
)
# Instructions of which only some kinds give a result
_WITH_RESULT = {
    "bar": {"red"},
    "barrier": {"red"},
    "mbarrier": {"arrive", "arrive_drop", "test_wait", "try_wait", "pending_count"},
    "wgmma": {"mma_async"},
    "tcgen05": {"ld"},
    "clusterlaunchcontrol": {"query_cancel"},
    "multimem": {"ld_reduce"},
}


def _has_result(opcode: str, suffixes: list[str]) -> bool:
    if opcode in _WITH_RESULT:
        return bool(_WITH_RESULT[opcode].intersection(suffixes))
    if opcode == "wmma":
        return suffixes[:1] != ["store"]
    return opcode not in _NO_RESULT
