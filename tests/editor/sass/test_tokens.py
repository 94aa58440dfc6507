"""Semantic tokens stand on the words they colour, in whatever units the client counts."""

import pytest
from pygls.workspace import PositionCodec

from gpa_lsp.editor.sass.token_types import MODIFIER_NAMES, TYPE_NAMES, TokenModifier, TokenType
from gpa_lsp.editor.sass.tokens import InstructionEncoder, encode_tokens, read_run
from tests.editor.sass.documents import LOOP, SOURCES, open_document, write_document
from tests.editor.sass.questions import read_tokens

ENCODINGS = ("utf-8", "utf-16", "utf-32")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_units(encoding: str) -> None:
    document = write_document(LOOP, {**SOURCES, "m.h": "\n" * 6 + "x = '𝔘' | y; // größer\n"})
    tokens = list(read_tokens(open_document(document, encoding=encoding), encoding))
    assert tokens == list(read_tokens(open_document(document, encoding="utf-32"), "utf-32"))
    assert {"`x = '𝔘' | y; // größer` string", "`FFMA` function"} <= {token for _, token in tokens}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_names_of_any_letters(encoding: str) -> None:
    document = write_document("@!P0 CALL.REL.NOINC `(größe𝔘)  # - | wait=5\nEXIT")
    tokens = [token for _, token in read_tokens(open_document(document, encoding=encoding), encoding)]
    call = tokens.index("`@!P0` keyword")
    assert tokens[call + 1 : call + 4] == ["`CALL` keyword", "`.REL.NOINC` property", "``(größe𝔘)` label"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@UP0 UIADD3 UR4, UP1, -UR5, 0x1, URZ", "@UP0 UIADD3 UR4* UP1* UR5 0x1 URZ"),
        ("IMAD.WIDE R2, R3, 0x4, c[0x0][0x160]", "IMAD .WIDE R2* R3 0x4 c[0x0][0x160]"),
        ("STG.E [R2.64], R4", "STG .E R2 R4"),
        ("BSSY B0, 0x100", "BSSY B0 0x100"),
        ("LEA.HI.X R5, R2, c[0x0][0x164], R3, 0x2, P0", "LEA .HI.X R5* R2 c[0x0][0x164] R3 0x2 P0"),
        ("RET.REL.NODEC R20 0x0", "RET .REL.NODEC R20 0x0"),
        ("NOP", "NOP"),
        ("", ""),
        ("@P0", "@P0"),
    ],
)
def test_words_of_an_instruction(text: str, wanted: str) -> None:
    modification = 1 << MODIFIER_NAMES.index("modification")
    words = [
        text[token.start : token.start + token.length] + "*" * bool(token.modifiers & modification)
        for token in read_run(InstructionEncoder().encode(text))
    ]
    assert " ".join(words) == wanted


def test_every_type_and_modifier_has_a_name() -> None:
    assert (len(TYPE_NAMES), len(MODIFIER_NAMES)) == (len(TokenType), len(TokenModifier))


def test_columns_are_asked_for_once_per_character() -> None:
    class Units(PositionCodec):
        calls = 0

        def client_num_units(self, text: str) -> int:  # type: ignore[override]
            Units.calls += 1
            return super().client_num_units(text)

    encode_tokens(write_document(LOOP), Units())
    assert Units.calls < 10
