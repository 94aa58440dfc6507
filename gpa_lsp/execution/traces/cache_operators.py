"""Which loads L1 does not keep: :func:`bypasses_l1`. Predicted hits and predicted volumes both ask here.

And which accesses must reach memory each time, since others write or wait meanwhile: :func:`is_strong`, :func:`is_read_anew`.
"""

from functools import lru_cache

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction

_BYPASSING = frozenset({"cg", "cv"})
_STRONG_WORDS = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})


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
    return instruction.cache_operator in _BYPASSING or is_strong(instruction)


def is_kept_by_l1(instruction: StaticInstruction) -> bool:
    """Whether it is a load whose lines L1 keeps; an access that states no kind is a load."""
    return instruction.kind in (None, AccessKind.LOAD) and not bypasses_l1(instruction)


def is_strong(instruction: StaticInstruction) -> bool:
    """Whether an access is volatile, relaxed, acquire or release: its value must not be kept from one to the next."""
    return not _STRONG_WORDS.isdisjoint(_list_words(instruction.text))


def is_read_anew(instruction: StaticInstruction) -> bool:
    """Whether a load is there to see what others wrote meanwhile: a strong one, ``ld.cv`` or ``ld.cg``; copies (``cp.async.cg``) are not."""
    is_past_l1 = instruction.cache_operator in _BYPASSING and _list_words(instruction.text)[0] == "ld"
    return is_strong(instruction) or is_past_l1


@lru_cache(maxsize=1 << 12)  # analyses ask of each instruction for each piece of a trace
def _list_words(text: str) -> tuple[str, ...]:
    """Opcode and suffixes: ``ld``, ``volatile``, ``global``, ``f32``."""
    return tuple(text.split(" ", 1)[0].split("."))
