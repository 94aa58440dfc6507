"""Hostile texts: each gives a module or an InputError, in bounded time and memory."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import read_ptx_text
from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.static_instructions import list_static_instructions
from gpa_lsp.foundation.errors import InputError
from tests.conftest import ROOT, examples
from tests.ptx.notation import HEAD

BLANKS = " " * 300_000


def read_fixture(name: str) -> str:
    path = ROOT / "fixtures" / "cubins" / "sm_90" / f"{name}.cubin"
    return "\n".join(read_ptx_text(read_cubin(path.read_bytes(), path=Path(name))))


REAL = [read_fixture(name) for name in ("device_calls_original", "jump_table_original", "async_copy_improved")]
PIECES = st.sampled_from(
    [
        *'{}[]();,.:%@!"|<>+-*/#_\0\n',
        "/*",
        "//",
        "0x",
        "0f",
        "1e999",
        "9" * 60,
        ".param",
        ".reg .b32 %r<5>;",
        "= {",
        ".loc 1 2 3",
        "%tid",
        "generic(",
        "(1 << ",
        "call",
        "bra $L__BB0_1;",
        "ret;",
        ".branchtargets",
        ".section .x {",
        "é",
        "١",
    ]
)


def look_at_all(module: PtxModule) -> None:
    for function in module.functions.values():
        find_blocks(function)
    for kernel in module.entries:
        list_static_instructions(module, kernel.name)


@given(
    st.sampled_from(REAL), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60), PIECES | st.just("")), max_size=5)
)
@examples(150)
def test_damaged_text_is_refused_or_read(text: str, edits: list[tuple[float, int, str]]) -> None:
    for where, length, piece in edits:
        place = int(where * len(text))
        text = text[:place] + piece + text[place + length :]
    try:
        look_at_all(parse_ptx(text, name="damaged.ptx"))
    except InputError as error:
        assert error.message
        assert error.remedy
        assert str(error.path) == "damaged.ptx"


@given(st.text() | st.lists(PIECES).map("".join))
@examples(150)
def test_no_text_breaks_it(text: str) -> None:
    for whole in (text, HEAD + text, f"{HEAD}.entry k() {{ {text} }}", f"{HEAD}.global .b32 x = {text};"):
        try:
            look_at_all(parse_ptx(whole, name="any.ptx"))
        except InputError as error:
            assert error.remedy


@pytest.mark.parametrize(
    "text",
    [
        ".entry k() {" + BLANKS + "!}",
        ".entry k() { .reg .b32 %r<9>; add.s32" + BLANKS + "!; }",
        ".entry k() { .reg .b32 %r<9>; ld.u32" + BLANKS + "%r1,[" + BLANKS + "; }",
        ".entry k() { call f" + BLANKS + "!; }",
        ".entry k() { p: .callprototype _ ." + "1" * 300_000 + "!; }",
        ".section " + "a" * 300_000,
        ".entry " + "a" * 300_000 + "((( {",
        ".entry a" + BLANKS + ")( {",
        ".global .b32" + BLANKS + "!;",
        ".global .b64 x = {a" + BLANKS + "!};",
        ".global .b64 x[2] = " + "{" * 300_000 + ";",
        ".global .b32 x" + "[1]" * 100_000 + ";",
        ".global .b8 x[2][1000000000000] = {{1}, {1}};",
        ".entry k() {" + "{" * 1000 + "}" * 1000 + "}",
        ".entry k() { .reg .b32 %r<9>; mov.b32 {" + "%r1," * 100_000 + "%r1}, %r2; }",
        ".entry k() { .reg .b32 %r<9>; mov.u32 %r1, " + "9" * 300_000 + "; }",
        ".entry k() { .reg .b32 %r<9>; mov.u32 %r1, " + "-" * 300 + "1; }",
        ".entry k(" + ",".join(f".param .u32 p{number}" for number in range(5000)) + ") { ret; }",
        "/*" + "*" * 300_000,
        '"' * 300_001,
        ".entry k() { .reg .b32 %r<9>; "
        + "".join(f"A{number}: brx.idx %r1, T;" for number in range(3000))
        + "T: .branchtargets "
        + ",".join(["A0"] * 3000)
        + "; }",
    ],
    ids=range(21),
)
def test_what_is_made_to_hurt_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        look_at_all(parse_ptx(HEAD + text, name="hostile.ptx"))


def test_what_is_huge_only_in_words_costs_nothing() -> None:
    text = f"""{HEAD}
    .shared .align 4 .b8 tile[1000000000];
    .global .b8 heap[100000000000];
    .entry k() {{
    .reg .b32 %r<4000000000>;
    .local .b8 stack[10000000000];
    mov.u32 %r3999999999, 1;
    {"".join(f"L{number}:" for number in range(20_000))}
    ret; }}"""
    tracemalloc.start()
    try:
        module = parse_ptx(text, name="wide.ptx")
        look_at_all(module)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert module.functions["k"].register_names == ("%r3999999999",)
    assert module.variables["heap"].size_bytes == 100_000_000_000
    assert peak_bytes < 20 << 20


def test_inlining_that_names_itself_ends() -> None:
    lines = ".loc 1 1 1, function_name x, inlined_at 1 1 1\nret;\n" * 500
    module = parse_ptx(f'{HEAD}.entry k() {{\n{lines}}}\n.file 1 "a"\n', name="loop.ptx")
    chains = [one.chain for one in module.functions["k"].instructions]
    assert max(len(chain) for chain in chains if chain) == 64


def test_long_chains_of_branches_are_gone_through() -> None:
    count = 3000
    forward = "".join(f"@%p1 bra A{number}; mov.u32 %r{number}, 0; A{number}:" for number in range(count))
    back = "".join(f"B{number}: mov.u32 %r{number}, %r{number + 1};" for number in range(count))
    loops = "".join(f"@%p1 bra B{number};" for number in reversed(range(count)))
    for body in (forward, back + loops):
        module = parse_ptx(f"{HEAD}.entry k() {{ .reg .pred %p<2>; .reg .b32 %r<9999>; {body} ret; }}", name="long.ptx")
        blocks = find_blocks(module.functions["k"])
        assert sorted(blocks.ranks) == list(range(len(blocks.first)))


def test_more_text_than_any_compiler_writes_is_refused_unread() -> None:
    with pytest.raises(InputError, match="split the module"):
        parse_ptx("x" * ((64 << 20) + 1), name="long.ptx")
