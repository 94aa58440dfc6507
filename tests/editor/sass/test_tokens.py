"""Semantic tokens stand on the words they colour, in whatever units the client counts."""

import pytest
from pygls.workspace import PositionCodec

from gpa_lsp.editor.sass.library import SassDocument
from gpa_lsp.editor.sass.token_types import MODIFIER_NAMES, TYPE_NAMES, TokenModifier, TokenType
from gpa_lsp.editor.sass.tokens import InstructionEncoder, encode_tokens, read_run
from tests.editor.sass.documents import LOOP, SOURCES, find_line, open_document, write_document

ENCODINGS = ("utf-8", "utf-16", "utf-32")


def cut_units(text: str, start: int, length: int, encoding: str) -> str:
    """A piece of a line, by code units."""
    size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    name = encoding if encoding == "utf-8" else f"{encoding}-le"
    return text.encode(name)[start * size : (start + length) * size].decode(name)


def read_tokens(document: SassDocument, encoding: str = "utf-16") -> list[tuple[int, str, str, tuple[str, ...]]]:
    """The 1-based line, text, type and modifiers of every token."""
    data = encode_tokens(document, open_document(document, encoding=encoding).positions.units)
    found = []
    line = start = length = 0
    for index in range(0, len(data), 5):
        down, right, units, kind, bits = data[index : index + 5]
        assert down > 0 or right >= length or not found, "tokens overlap"
        line, start, length = line + down, right if down else start + right, units
        names = tuple(name for bit, name in enumerate(MODIFIER_NAMES) if bits >> bit & 1)
        text = cut_units(document.lines[line], start, length, encoding)
        found.append((line + 1, text, TYPE_NAMES[kind], names))
    return found


def show_line(document: SassDocument, words: str) -> list[str]:
    """The tokens of the first line with some words in it."""
    line = find_line(document, words)
    return [" ".join([text, kind, *names]) for number, text, kind, names in read_tokens(document) if number == line]


def test_a_hot_instruction() -> None:
    assert show_line(write_document(LOOP), "FFMA") == [
        "/*0030*/ comment",
        "84 % number hot",
        "FFMA function",
        "R0 variable modification",
        "R2 variable",
        "R3 variable",
        "R0 variable",
        "//     5 comment",
        "long_scoreboard enumMember hot",
        "waits SB2 · stall 4 · yield comment",
    ]


def test_predicates_targets_and_modifiers() -> None:
    document = write_document(LOOP)
    assert show_line(document, "ISETP")[2:7] == [
        "ISETP function", ".LT.AND property", "P0 parameter modification", "PT parameter readonly", "R6 variable",
    ]  # fmt: skip
    assert show_line(document, "@P0 BRA")[1:4] == ["@P0 keyword", "BRA keyword", "0x20 label"]
    assert "SR_TID.X variable readonly" in show_line(document, "S2R")


def test_headings_and_quotes() -> None:
    document = write_document(LOOP)
    assert show_line(document, "kernel:")[0] == "kernel function declaration"
    assert show_line(document, ".L_0020:") == [
        ".L_0020 label declaration", "// 98 % · long_scoreboard · back from .L_0020 comment",
    ]  # fmt: skip
    assert show_line(document, ".L_0060:") == [".L_0060 label declaration"]
    assert show_line(document, "m.h:7") == ["// m.h:7 in k.cu:5 comment", "return x[i]; // größer string"]
    assert show_line(document, "// loop") == ["// loop k.cu:4-5 · depth 1 · 98 % · long_scoreboard comment"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_units(encoding: str) -> None:
    sources = {**SOURCES, "m.h": "\n" * 6 + "x = '𝔘' | y; // größer\n"}
    document = write_document(LOOP, sources)
    tokens = read_tokens(document, encoding)
    assert (tokens == read_tokens(document, "utf-32")) and len(tokens) > 60
    words = {text: kind for _, text, kind, _ in tokens}
    assert words["x = '𝔘' | y; // größer"] == "string"
    assert words["FFMA"] == "function"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_names_of_any_letters(encoding: str) -> None:
    document = write_document("@!P0 CALL.REL.NOINC `(größe𝔘)  # - | wait=5\nEXIT")
    assert [text for line, text, *_ in read_tokens(document, encoding) if line == find_line(document, "CALL")][:5] == [
        "/*0000*/", "100 %", "@!P0", "CALL", ".REL.NOINC",
    ]  # fmt: skip
    assert ("`(größe𝔘)", "label") in [(text, kind) for _, text, kind, _ in read_tokens(document, encoding)]


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


def test_a_document_without_instructions_has_remarks() -> None:
    assert {kind for _, _, kind, _ in read_tokens(write_document("EXIT"))} >= {"comment", "keyword"}
    assert (len(TYPE_NAMES), len(MODIFIER_NAMES)) == (len(TokenType), len(TokenModifier))


def test_columns_are_asked_for_once_per_character() -> None:
    class Units(PositionCodec):
        calls = 0

        def client_num_units(self, text: str) -> int:  # type: ignore[override]
            Units.calls += 1
            return super().client_num_units(text)

    from gpa_lsp.editor.sass.tokens import encode_tokens

    encode_tokens(write_document(LOOP), Units())
    assert Units.calls < 10
