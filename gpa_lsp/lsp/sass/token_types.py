"""How the words of a SASS document are coloured: the protocol's own types as far as they go, so that every theme has colours for them.

Imports nothing heavy: what is here is said in the answer to initialize.
"""

from enum import IntEnum

from lsprotocol import types


class TokenType(IntEnum):
    """What a word is; the number is its place in the legend."""

    COMMENT = 0
    """Addresses, remarks, scheduling."""
    STRING = 1
    """Quoted source text."""
    NUMBER = 2
    """Shares and immediates."""
    ENUM_MEMBER = 3
    """Stall reasons."""
    FUNCTION = 4
    """Opcodes, and the names of functions (with ``declaration``)."""
    KEYWORD = 5
    """Guards, and opcodes that change where control goes."""
    PROPERTY = 6
    """An opcode's modifiers."""
    VARIABLE = 7
    """Registers; uniform ones are ``static``, constants and special registers ``readonly``."""
    PARAMETER = 8
    """Predicates, convergence barriers, scoreboards."""
    LABEL = 9
    """Labels (with ``declaration``) and where branches go."""


class TokenModifier(IntEnum):
    """What is special about a word; the number is its bit in the legend."""

    DECLARATION = 0
    READONLY = 1
    """Its value is the same for the whole kernel, or always."""
    STATIC = 2
    """Its value is the same for the whole warp."""
    MODIFICATION = 3
    """A result."""
    HOT = 4
    """At least a twentieth of the kernel's samples; our own."""
    WARM = 5
    """At least a hundredth; our own."""


_TYPE_NAMES = {
    TokenType.COMMENT: types.SemanticTokenTypes.Comment.value,
    TokenType.STRING: types.SemanticTokenTypes.String.value,
    TokenType.NUMBER: types.SemanticTokenTypes.Number.value,
    TokenType.ENUM_MEMBER: types.SemanticTokenTypes.EnumMember.value,
    TokenType.FUNCTION: types.SemanticTokenTypes.Function.value,
    TokenType.KEYWORD: types.SemanticTokenTypes.Keyword.value,
    TokenType.PROPERTY: types.SemanticTokenTypes.Property.value,
    TokenType.VARIABLE: types.SemanticTokenTypes.Variable.value,
    TokenType.PARAMETER: types.SemanticTokenTypes.Parameter.value,
    TokenType.LABEL: "label",
}
_MODIFIER_NAMES = {
    TokenModifier.DECLARATION: types.SemanticTokenModifiers.Declaration.value,
    TokenModifier.READONLY: types.SemanticTokenModifiers.Readonly.value,
    TokenModifier.STATIC: types.SemanticTokenModifiers.Static.value,
    TokenModifier.MODIFICATION: types.SemanticTokenModifiers.Modification.value,
    TokenModifier.HOT: "hot",
    TokenModifier.WARM: "warm",
}

LEGEND = types.SemanticTokensLegend(
    token_types=[_TYPE_NAMES[one] for one in TokenType], token_modifiers=[_MODIFIER_NAMES[one] for one in TokenModifier]
)
"""What the numbers of :func:`gpa_lsp.lsp.sass.tokens.encode_tokens` mean."""
