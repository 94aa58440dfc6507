"""Which loads L1 does not keep: :func:`bypasses_l1`. Predicted hits and predicted volumes both ask here."""

from gpa_lsp.emulator.ptx.model import Space
from gpa_lsp.emulator.trace import AccessKind, StaticInstruction

_BYPASSING = frozenset({"cg", "cv"})
_STRONG_WORDS = frozenset({"volatile", "relaxed", "acquire", "mmio"})


def bypasses_l1(instruction: StaticInstruction) -> bool:
    """Whether it is a load that L1 does not keep: ``.cg``, ``.cv``, volatile and the other strong ones.

    Loads of local memory are kept whatever they say; of generic ones only the addresses tell that they are local, which the caller looks at.

    >>> text = "ld.volatile.global.f32 %f1, [%rd1]"
    >>> bypasses_l1(
    ...     StaticInstruction(
    ...         index=0, function="k", text=text, kind=AccessKind.LOAD, space=Space.GLOBAL, bytes_per_lane=4
    ...     )
    ... )
    True
    """
    if instruction.kind is not AccessKind.LOAD or instruction.space == Space.LOCAL:
        return False
    words = instruction.text.split(" ", 1)[0].split(".")
    return instruction.cache_operator in _BYPASSING or not _STRONG_WORDS.isdisjoint(words)
