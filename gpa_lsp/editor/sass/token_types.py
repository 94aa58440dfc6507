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


# What the numbers of types are called, in their order
TYPE_NAMES = (
    "comment",
    "string",
    "number",
    "enumMember",
    "function",
    "keyword",
    "property",
    "variable",
    "parameter",
    "label",
)

# What the bits of modifiers are called, in their order
MODIFIER_NAMES = ("declaration", "readonly", "static", "modification", "hot", "warm")
