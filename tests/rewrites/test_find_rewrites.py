"""Rules for every kind of rewrite: which texts, which lines, which advice; edits and how they are applied."""

import pytest

from gpa_lsp.code.sources.trees import LARGEST_SOURCE_BYTES, find_language
from gpa_lsp.diagnosis.advice import optimizers
from gpa_lsp.diagnosis.advice.optimizers import Optimizer
from gpa_lsp.diagnosis.rewrites.find import MOST_LINES, MOST_REWRITES, find_rewrites, load_kinds
from gpa_lsp.diagnosis.rewrites.model import RewriteContext, TextEdit, TextPlace, apply_edits, find_line_end
from gpa_lsp.foundation.catalogue import load_catalogue

UNROLL = RewriteContext(optimizer="loop_unrolling", unroll_copies=2)
FAST = RewriteContext(optimizer="fast_math")
LOOP = "__device__ void f(int n) {\n  for (;;)\n    n++;\n}\n"


def test_every_kind_answers_advice_there_is_in_a_language_there_is() -> None:
    known = set(load_catalogue(optimizers, "OPTIMIZER", Optimizer))
    suffixes = {"cuda": ".cu", "python": ".py"}
    for name, kind in load_kinds().items():
        assert kind.optimizers, name
        assert set(kind.optimizers) <= known, name
        language = find_language(f"k{suffixes[kind.language]}")
        assert language.name == kind.language


def test_other_advice_other_languages_other_lines() -> None:
    assert len(find_rewrites("k.cu", LOOP, [2], UNROLL)) == 1
    assert find_rewrites("k.cu", LOOP, [2], RewriteContext(optimizer="tail_effect", unroll_copies=2)) == ()
    assert find_rewrites("k.cu", LOOP, [2], RewriteContext(optimizer="no_such", unroll_copies=2)) == ()
    for file in ("k.py", "k.f90", "k.jl", "k.ptx", "k"):
        assert find_rewrites(file, LOOP, [2], UNROLL) == ()
    for line in (-1, 0, 1, 3, 99):
        assert find_rewrites("k.cu", LOOP, [line], UNROLL) == ()
    assert find_rewrites("k.cu", LOOP, [], UNROLL) == ()
    assert find_rewrites("k.cu", "", [1], UNROLL) == ()


def test_a_text_that_is_too_large_is_not_parsed() -> None:
    assert find_rewrites("k.cu", LOOP + " " * LARGEST_SOURCE_BYTES, [2], UNROLL) == ()


def test_line_ends() -> None:
    windows = LOOP.replace("\n", "\r\n")
    (found,) = find_rewrites("k.cu", windows, [2], UNROLL)
    assert apply_edits(windows, found.edits) == windows.replace("  for", "  #pragma unroll 2\r\n  for")
    mixed = LOOP.replace("{\n", "{\r\n")
    (found,) = find_rewrites("k.cu", mixed, [2], UNROLL)
    assert "{\r\n  #pragma unroll 2\n  for" in apply_edits(mixed, found.edits)
    # Editors count a carriage return alone as a line end, compilers and grammars do not.
    assert find_rewrites("k.cu", LOOP.replace("\n", "\r"), [2], UNROLL) == ()
    assert find_rewrites("k.cu", f"// a\rb\n{LOOP}", [2, 3, 4], UNROLL) == ()


@pytest.mark.parametrize("before", ["\ufeff// x\n", "// \x0c \x0b \u2028 \x85\n", '// "\U0001f680" äöü\n', "\x0c\n"])
def test_unusual_characters_above(before: str) -> None:
    text = before + LOOP
    (found,) = find_rewrites("k.cu", text, [3], UNROLL)
    assert apply_edits(text, found.edits) == before + LOOP.replace("  for", "  #pragma unroll 2\n  for")


def test_a_lone_surrogate_is_survived() -> None:
    text = "__device__ float f(float a) {\n  /* \ud800 */ return sinf(a);\n}\n"
    (found,) = find_rewrites("k.cu", text, [2], FAST)
    assert apply_edits(text, found.edits) == text.replace("sinf", "__sinf")


def test_tabs_are_characters() -> None:
    text = "__device__ float f(float a) {\n\t\treturn\tsinf(a);\n}\n"
    (found,) = find_rewrites("k.cu", text, [2], FAST)
    assert found.edits == (
        TextEdit(start=TextPlace(line=2, column=9), end=TextPlace(line=2, column=13), text="__sinf"),
    )


def test_code_in_comments_and_strings_is_no_code() -> None:
    text = (
        '__device__ float f(float a) {\n  // a = sinf(a) / a;\n  /* sinf(a) */ printf("sinf(a) / a");\n  return a;\n}\n'
    )
    assert find_rewrites("k.cu", text, [2, 3], FAST) == ()


def test_nothing_is_offered_in_a_function_that_did_not_parse() -> None:
    text = "__device__ float f(float a) {\n  return sinf(a);\n}\n"
    for broken in (
        text.replace("a);", "a;"),
        text.replace("}", ""),
        text.replace("float a", "float a b"),
        f"void g( {{ {text}",
    ):
        assert find_rewrites("k.cu", broken, [2], FAST) == ()
    assert len(find_rewrites("k.cu", f"{text}void g( {{ }}\n", [2], FAST)) == 1


def test_a_function_with_conditions_of_the_preprocessor_inside() -> None:
    text = "__device__ float f(float a) {\n#ifdef FAST\n  return sinf(a);\n#else\n  return cosf(a);\n#endif\n}\n"
    (found,) = find_rewrites("k.cu", text, [5], FAST)
    assert apply_edits(text, found.edits) == text.replace("cosf", "__cosf")


def test_a_function_too_long_to_be_looked_through() -> None:
    one = "__device__ float f(float a) {{\n  return sinf(a);\n{}}}\n"
    assert len(find_rewrites("k.cu", one.format("  a = a + 1;\n" * 10), [2], FAST)) == 1
    assert find_rewrites("k.cu", one.format("  a = a + 1;\n" * 5000), [2], FAST) == ()


def test_an_expression_nested_too_deep_is_of_unknown_type() -> None:
    deep = "(" * 3000 + "a" + ")" * 3000
    assert find_rewrites("k.cu", f"__device__ float f(float a) {{\n  return exp({deep});\n}}\n", [2], FAST) == ()


def test_bounded_lines_and_rewrites() -> None:
    calls = "  a = sinf(a);\n" * (MOST_LINES + 10)
    text = f"__device__ void f(float a) {{\n{calls}}}\n"
    lines = range(1, MOST_LINES + 20)
    assert len(find_rewrites("k.cu", text, lines, FAST)) == MOST_REWRITES
    assert find_rewrites("k.cu", text.replace("sinf", "gggg", MOST_LINES), lines, FAST) == ()


def test_the_same_edits_are_offered_once() -> None:
    text = "__device__ float f(float a) {\n  return a * 0.5\n    + a * 0.25;\n}\n"
    assert len(find_rewrites("k.cu", text, [2, 3], RewriteContext(optimizer="strength_reduction"))) == 1


def test_edits_are_in_the_order_of_the_text() -> None:
    text = "__device__ float f(float a, float b) {\n  return a / (a / b);\n}\n"
    for found in find_rewrites("k.cu", text, [2], FAST):
        assert found.edits == tuple(sorted(found.edits))


def place(line: int, column: int) -> TextPlace:
    return TextPlace(line=line, column=column)


def test_applying_edits() -> None:
    text = "ab\r\n\ncd"
    edits = [
        TextEdit(start=place(3, 2), end=place(3, 2), text="!"),
        TextEdit(start=place(1, 0), end=place(1, 1), text="XY"),
        TextEdit(start=place(2, 0), end=place(3, 1), text=""),
    ]
    assert apply_edits(text, edits) == "XYb\r\nd!"
    assert apply_edits(text, []) == text


@pytest.mark.parametrize(
    "edits",
    [
        [TextEdit(start=place(1, 0), end=place(1, 2), text=""), TextEdit(start=place(1, 1), end=place(1, 2), text="")],
        [TextEdit(start=place(9, 0), end=place(9, 0), text="")],
        [TextEdit(start=place(0, 0), end=place(1, 0), text="")],
        [TextEdit(start=place(1, 40), end=place(1, 40), text="")],
        [TextEdit(start=place(1, 1), end=place(1, 0), text="")],
    ],
)
def test_edits_that_do_not_fit(edits: list[TextEdit]) -> None:
    with pytest.raises(ValueError, match=r"edit|text|line"):
        apply_edits("abc\ndef\n", edits)


def test_the_last_line_ends_like_the_first() -> None:
    assert find_line_end(b"a\r\nb\nc", 5) == "\r\n"
    assert find_line_end(b"a\r\nb\nc", 3) == "\n"
    assert find_line_end(b"abc", 1) == "\n"
