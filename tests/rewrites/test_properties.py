"""Properties of every rewrite of every text: it parses no worse, changes nothing else, and is not offered again."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.code.sources.trees import read_tree
from gpa_lsp.diagnosis.rewrites.find import find_rewrites, load_kinds
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteContext, apply_edits
from tests.conftest import examples
from tests.fixtures_manifest.manifest import FIXTURES

CONTEXT = RewriteContext(optimizer="", unroll_copies=4, threads_per_block=128, min_blocks=2, max_registers=64)
FIXTURE_SOURCES = sorted((FIXTURES / "kernels").glob("*/*.cu*"))


@cache
def list_optimizers() -> tuple[str, ...]:
    return tuple(sorted({optimizer for kind in load_kinds().values() for optimizer in kind.optimizers}))


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A rewrite, and the advice it was asked for with."""

    optimizer: str
    rewrite: Rewrite


@cache
def find_in_fixture(path: Path) -> list[Offer]:
    """Every rewrite of a fixture's source."""
    return find_all(path.name, path.read_text(encoding="utf-8"), replace(CONTEXT, kernel=path.parent.name))


def find_all(file: str, text: str, context: RewriteContext = CONTEXT) -> list[Offer]:
    """Every rewrite there is, line by line so that none is left off, each once for each advice."""
    found: dict[object, Offer] = {}
    for optimizer in list_optimizers():
        for line in range(1, text.count("\n") + 2):
            for one in find_rewrites(file, text, [line], replace(context, optimizer=optimizer)):
                found.setdefault((optimizer, one.name, one.edits), Offer(optimizer=optimizer, rewrite=one))
    return list(found.values())


def count_alike(offers: Sequence[Offer], offer: Offer) -> int:
    return sum((one.optimizer, one.rewrite.name) == (offer.optimizer, offer.rewrite.name) for one in offers)


def count_errors(file: str, text: str) -> int:
    tree = read_tree(file, text)
    stack, errors = [tree.root], 0
    while stack:
        node = stack.pop()
        errors += node.is_error or node.is_missing
        stack.extend(node.children)
    return errors


def check(file: str, text: str, found: Sequence[Offer]) -> None:
    """The properties, for every rewrite of a text."""
    errors = count_errors(file, text)
    for offer in found:
        after = apply_edits(text, offer.rewrite.edits)
        assert after != text
        assert count_errors(file, after) <= errors, (offer, after)
        check_places(text, after, offer.rewrite)
        assert count_alike(find_all(file, after), offer) < count_alike(found, offer), (offer, after)


def check_places(before: str, after: str, one: Rewrite) -> None:
    """Taking what was put in away again, and putting back what was taken, gives the text as it was."""
    lines = before.split("\n")
    position, rest = 0, after
    restored = ""
    for edit in one.edits:
        start = sum(len(line) + 1 for line in lines[: edit.start.line - 1]) + edit.start.column
        end = sum(len(line) + 1 for line in lines[: edit.end.line - 1]) + edit.end.column
        untouched = before[position:start]
        assert rest.startswith(untouched + edit.text)
        restored += untouched + before[start:end]
        rest = rest[len(untouched) + len(edit.text) :]
        position = end
    assert restored + rest == before


@pytest.mark.parametrize("path", FIXTURE_SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_fixture_kernels(path) -> None:  # type: ignore[no-untyped-def]
    check(path.name, path.read_text(encoding="utf-8"), find_in_fixture(path))


def test_fixture_kernels_have_rewrites() -> None:
    """Kernels must have rewrites, or the test above checks nothing."""
    named = {one.rewrite.name for path in FIXTURE_SOURCES for one in find_in_fixture(path)}
    assert named >= {
        "unroll_loop",
        "unroll_less",
        "single_precision_literals",
        "fast_functions",
        "fast_division",
        "launch_bounds",
    }


NAMES = st.sampled_from(["a", "b", "x[i]", "x[0]", "*x", "n", "i", "v.x", "d", "unknown", "y[i]", "blockDim.x"])
LITERALS = st.sampled_from(["0.5", "1.", ".5e-1", "0.1", "2", "3.0f", "1.0L", "0x1p-2", "1e300", "7u"])
OPERATORS = st.sampled_from(["+", "-", "*", "/", "/", "<", "%"])
FUNCTIONS = st.sampled_from(["sinf", "sqrtf", "expf", "pow", "std::max", "sqrt", "f", "float", "MACRO"])
TARGETS = st.sampled_from(["a", "b", "y[i]", "y[n]", "d", "v.y", "float c", "auto e", "double g"])
ASSIGNMENTS = st.sampled_from(["=", "+=", "/=", "*="])
BLANKS = st.sampled_from(["", " ", "  ", " /* ä */ ", "\n      "])

EXPRESSIONS = st.recursive(
    NAMES | LITERALS,
    lambda inner: st.one_of(
        st.builds(
            lambda left, blank, operator, right: f"{left}{blank}{operator} {right}", inner, BLANKS, OPERATORS, inner
        ),
        inner.map(lambda one: f"({one})"),
        inner.map(lambda one: f"-{one}"),
        st.builds(lambda name, one: f"{name}({one})", FUNCTIONS, inner),
        st.builds(lambda one, two, three: f"{one} ? {two} : {three}", inner, inner, inner),
    ),
    max_leaves=6,
)


@st.composite
def statements(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(
        st.sampled_from(
            ["assign", "divide", "for", "while", "if", "call", "pragma", "block"]
            if depth
            else ["assign", "divide", "call"]
        )
    )
    if kind == "divide":
        divisor = draw(st.sampled_from(["3.0f", "12.0", "7", "8.0f", "sqrtf(b)", "std::sqrt(a)", "b", "(a + 2)", "d"]))
        return f"{draw(TARGETS)} {draw(ASSIGNMENTS)} {draw(NAMES | LITERALS)} / {divisor};"
    if kind == "assign":
        return f"{draw(TARGETS)} {draw(ASSIGNMENTS)} {draw(EXPRESSIONS)};"
    if kind == "call":
        return draw(
            st.sampled_from(["__syncthreads();", "f(x, y);", "atomicAdd(&y[0], a);", "b += 1;", "x = y;", "return;"])
        )
    inner = draw(statements(depth=depth - 1))
    head = {
        "for": draw(st.sampled_from(["for (int i = 0; i < n; ++i)", "for (int i = 0; i < 8; i += 2)", "for (;;)"])),
        "while": "while (n-- > 0)",
        "if": f"if ({draw(EXPRESSIONS)})",
        "pragma": draw(st.sampled_from(["#pragma unroll\n", "#pragma unroll 2\n", "#pragma nounroll\n", "// text\n"])),
        "block": "",
    }[kind]
    second = draw(statements(depth=depth - 1))
    return f"{head} {{\n    {inner}\n    {second}\n  }}" if kind != "pragma" else f"\n{head}  {inner}"


@st.composite
def sources(draw: st.DrawFn) -> str:
    head = draw(
        st.sampled_from(
            [
                "__global__ void k(const float *x, float *y, float a, float b, float4 v, double d, int n)",
                "template <typename T>\n__global__ void k(T *x, T* y, float a, float b, float4 v, double d, int n)",
                "static __global__ void __launch_bounds__(512) k(float *x, float *y, float a, float b, float4 v, double d, int n)",
                'extern "C" __device__ float k(float *x, double *y, float a, double b, float4 v, float d, int n)',
                "__host__ __device__ float k(float *x, float *y, float a, float b, float3 v, float d, int n)",
            ]
        )
    )
    before = draw(st.sampled_from(["", "#define MACRO(x) x\n", '#include "k.h"\n', "// 🚀 ü\n", "int broken(;\n"]))
    body = "\n  ".join(draw(st.lists(statements(), min_size=1, max_size=4)))
    return f"{before}{head} {{\n  int i = threadIdx.x;\n  {body}\n}}\n"


@examples(50)
@given(text=sources())
def test_made_up_sources(text: str) -> None:
    check("k.cu", text, find_all("k.cu", text))


@examples(30)
@given(text=sources())
def test_line_ends_of_windows_change_nothing_else(text: str) -> None:
    windows = text.replace("\n", "\r\n")
    plain, other = (find_all("k.cu", one) for one in (text, windows))
    assert [one.rewrite.title for one in plain] == [one.rewrite.title for one in other]
    for one, two in zip(plain, other, strict=True):
        assert apply_edits(windows, two.rewrite.edits) == apply_edits(text, one.rewrite.edits).replace("\n", "\r\n")


@examples(50)
@given(
    text=sources(),
    start=st.integers(0, 400),
    length=st.integers(1, 40),
    put=st.sampled_from(["", "{", ")", '"', "/*", "#if 0\n"]),
)
def test_damaged_sources_are_survived(text: str, start: int, length: int, put: str) -> None:
    damaged = text[:start] + put + text[start + length :]
    errors = count_errors("k.cu", damaged)
    for one in find_all("k.cu", damaged):
        assert count_errors("k.cu", apply_edits(damaged, one.rewrite.edits)) <= errors, (one, damaged)


@examples(50)
@given(text=st.text(max_size=200), file=st.sampled_from(["k.cu", "k.py"]))
def test_any_text_is_survived(text: str, file: str) -> None:
    for one in find_all(file, text):
        assert apply_edits(text, one.rewrite.edits) != text


PYTHON_HEAD = "import numpy as np\nimport triton\nimport triton.language as tl\nfrom numba import cuda, float32\n\n"
PYTHON_FUNCTIONS = st.sampled_from(
    [
        "@triton.jit\ndef k(x, n, B: tl.constexpr):\n",
        "@cuda.jit('void(float32[:], int32, int32)')\ndef k(x, n, B):\n    s = cuda.shared.array(8, float32)\n",
        "@cuda.jit\ndef k(x, n, B):\n    s = cuda.local.array((2, 2), dtype=np.float32)\n",
    ]
)
PYTHON_EXPRESSIONS = st.recursive(
    st.sampled_from(["x[0]", "s[1]", "s[0, 1]", "n", "0.5", "0.1", "2", "np.float32(n)", "tl.load(x + n)"]),
    lambda inner: st.builds(
        lambda left, operator, right: f"({left} {operator} {right})", inner, st.sampled_from("+-*/"), inner
    ),
    max_leaves=4,
)
PYTHON_STATEMENTS = st.one_of(
    st.builds(
        lambda left, operator, number: f"    {left} {operator} {left} * {number}\n",
        st.sampled_from(["x[0]", "s[1]", "s[0, 1]"]),
        st.sampled_from(["=", "+="]),
        st.sampled_from(["0.5", "0.1", "-2.0", "3"]),
    ),
    st.builds(
        lambda target, value: f"    {target} = {value}\n", st.sampled_from(["x[0]", "s[1]", "y"]), PYTHON_EXPRESSIONS
    ),
    st.builds(
        lambda bound, value: f"    for i in {bound}:\n        y = {value}\n",
        st.sampled_from(["range(n)", "range(B)", "range(0, 8)", "tl.range(n, num_stages=2)", "tl.static_range(4)"]),
        PYTHON_EXPRESSIONS,
    ),
)


@examples(50)
@given(head=PYTHON_FUNCTIONS, body=st.lists(PYTHON_STATEMENTS, min_size=1, max_size=4))
def test_made_up_python(head: str, body: list[str]) -> None:
    text = f"{PYTHON_HEAD}{head}{''.join(body)}"
    check("k.py", text, find_all("k.py", text))
