"""Trees of texts: kept, walked without recursion, and honest about what did not parse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.sources.directives import find_directives, find_loop_macros, find_pragmas, hide_directives
from gpa_lsp.code.sources.trees import (
    LARGEST_SOURCE_BYTES,
    SourceTree,
    is_sound,
    list_ancestors,
    read_text,
    read_tree,
    walk,
    walk_lines,
)


def tree(text: str, file: str = "k.cu") -> SourceTree:
    found = read_tree(file, text)
    assert found is not None
    return found


def test_a_tree_is_parsed_once_for_all_names_of_its_language() -> None:
    text = "int first;"
    assert tree(text) is tree(text, "other.cuh")
    assert tree(text) is not tree(text, "k.py")
    assert tree(text) != tree("int second;")


def test_old_trees_are_let_go() -> None:
    first = tree("int kept;")
    for number in range(20):
        tree(f"int other{number};")
    assert tree("int kept;") is not first


def test_texts_without_a_tree() -> None:
    assert read_tree("k.ptx", "a") is None
    assert read_tree("k.cu", "x" * (LARGEST_SOURCE_BYTES + 1)) is None


def test_lines_and_bytes() -> None:
    found = tree("// ä\nint a;\n")
    assert found.line_count == 3
    assert found.content == b"// \xc3\xa4\nint a;\n"
    assert [read_text(node) for node in walk_lines(found.root, {2})] == ["int a;", "int", "a"]
    assert list(walk_lines(found.root, ())) == []
    assert read_text(None) == ""


def test_walking_is_bounded() -> None:
    found = tree("int a;" * 50)
    assert len(list(walk(found.root, most=10))) == 10


def test_a_deep_text_is_walked() -> None:
    found = tree("int a = " + "(" * 2000 + "1" + ")" * 2000 + ";")
    deepest = list(walk(found.root))[-1]
    assert read_text(deepest) == "1"
    assert len(list(list_ancestors(deepest))) > 2000


@pytest.mark.parametrize(
    ("text", "sound"),
    [("void f() {}", True), ("void f() { a = ; }", False), ("void f( { void g() {} }", False), ("void f() {", False)],
)
def test_what_is_sound(text: str, sound: bool) -> None:
    definitions = [node for node in walk(tree(text).root) if node.type == "function_definition"]
    assert all(is_sound(node) for node in definitions) is (sound or not definitions)


def test_pragmas_are_hidden_from_the_grammar_of_the_language_that_has_them() -> None:
    text = "void f(int n) {\n  if (n)\n#pragma unroll 2\n    for (;;) n--;\n}\n"
    assert not tree(text).root.has_error
    assert tree(text).content == text.encode()
    python = "a = '''\n#pragma unroll\n'''\n"
    assert "#pragma unroll" in read_text(tree(python, "k.py").root)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"#pragma unroll 4", ["unroll 4"]),
        (b" \t# pragma\tunroll(4) // four\r\n", ["unroll(4)"]),
        (b"#pragma unroll \\\n  4\n#pragma once", ["unroll 4", "once"]),
        (b"#pragma unroll \\\r\n  4\r\nint a;", ["unroll 4"]),
        (b"#pragma", [""]),
        (b"int a; #pragma no", []),
        (b"// #pragma no", []),
        (b"#pragmatic no", []),
        (b"#define x pragma", []),
        (b"#pragma unroll /* opens\n", []),
        (b"#pragma unroll \\", ["unroll \\"]),
    ],
)
def test_pragmas_of_a_text(text: bytes, words: list[str]) -> None:
    assert [one.words for one in find_pragmas(text)] == words


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"LIB_PRAGMA_UNROLL\nfor (;;);", ["LIB_PRAGMA_UNROLL"]),
        (b"  GEMM_LOOP \r\n\r\n  while (n);", ["GEMM_LOOP"]),
        (b"UNROLL_LOOP\ndo {", ["UNROLL_LOOP"]),
        (b"UNROLL\nfor(int i;;);\nUNROLL\nfor (;;);", ["UNROLL", "UNROLL"]),
        (b"UNROLL\nform(2);", []),
        (b"UNROLL\na = 1;", []),
        (b"UNROLL for (;;);", []),
        (b"UNROLL(4)\nfor (;;);", []),
        (b"a = UNROLL\nfor (;;);", []),
        (b"Unroll_LOOP\nfor (;;);", []),
        (b"#define UNROLL\nfor (;;);", []),
        (b"// UNROLL\nfor (;;);", []),
        (b"UNROLL", []),
        (b"UNROLL\nLIB_LOOP\nfor (;;);", ["UNROLL", "LIB_LOOP"]),
        (b"UNROLL\nwhile_not(2);", []),
        (b"SOMETHING\nfor (;;);", []),
    ],
)
def test_macros_in_front_of_loops(text: bytes, names: list[str]) -> None:
    assert [one.words for one in find_loop_macros(text)] == names


@given(
    st.lists(
        st.sampled_from(
            ["#pragma unroll", " # pragma x \\", "int a;", "", "// ä", "\r", "LIB_UNROLL_LOOP", "for (;;);"]
        ),
        max_size=8,
    )
)
def test_hiding_keeps_every_place(lines: list[str]) -> None:
    content = "\n".join(lines).encode()
    hidden = hide_directives(content)
    assert len(hidden) == len(content)
    assert [at for at, one in enumerate(hidden) if one in b"\r\n"] == [
        at for at, one in enumerate(content) if one in b"\r\n"
    ]
    assert find_directives(hidden) == ()
    for directive in find_directives(content):
        assert content.count(b"\n", 0, directive.start_byte) == directive.row
        assert content[directive.start_byte : directive.start_byte + 1] == (b"L" if directive.is_macro else b"#")
        assert directive.start_byte <= directive.words_byte <= directive.end_byte
