"""Token types of SASS documents: the protocol's own types as far as they go, so that every theme has colours for them.

Imports nothing heavy: what is here is said in the answer to initialize.
"""

from enum import IntEnum


class TokenType(IntEnum):
    """Types of words; the number is the place in the legend."""

    COMMENT = 0  # Addresses, remarks, scheduling
    STRING = 1  # Quoted source text
    NUMBER = 2  # Shares and immediates
    ENUM_MEMBER = 3  # Stall reasons
    FUNCTION = 4  # Opcodes, and the names of functions (with ``declaration``)
    KEYWORD = 5  # Guards, and opcodes that change where control goes
    PROPERTY = 6  # An opcode's modifiers
    VARIABLE = 7  # Registers; uniform ones are ``static``, constants and special registers ``readonly``
    PARAMETER = 8  # Predicates, convergence barriers, scoreboards
    LABEL = 9  # Labels (with ``declaration``) and where branches go


class TokenModifier(IntEnum):
    """Modifiers of words; the number is the bit in the legend."""

    DECLARATION = 0
    READONLY = 1  # Its value is the same for the whole kernel, or always
    STATIC = 2  # Its value is the same for the whole warp
    MODIFICATION = 3  # A result
    HOT = 4  # At least a twentieth of the kernel's samples; our own
    WARM = 5  # At least a hundredth; our own


def _name(kind: TokenType) -> str:
    """Name in the protocol: ``enumMember``."""
    first, *others = kind.name.lower().split("_")
    return first + "".join(map(str.capitalize, others))


TYPE_NAMES = tuple(map(_name, TokenType))  # the legend of types, in the order of their numbers
MODIFIER_NAMES = tuple(one.name.lower() for one in TokenModifier)  # the legend of modifiers, in the order of their bits
