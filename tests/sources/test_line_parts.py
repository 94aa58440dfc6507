"""Lines of source taken apart, in each language a kernel can be written in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.code.sources.line_parts import LineParts, read_line_parts
from gpa_lsp.code.sources.trees import LARGEST_SOURCE_BYTES, find_language, load_parser

CUDA = """__global__ void k(const float* x, float* y, int n, Pair* s) {
  for (int i = threadIdx.x; i < n; i += 32) {
    float a = x[i * 4 + 1] / 2.0 + *y;
    y[i] += __ldg(&x[i]) * s->v[3].z;
    grid[i][j] = sqrtf(a) / (float)n;
    b = x[idx[i]];
  }
}
"""


def parts(file: str, text: str, line: int) -> LineParts:
    found = read_line_parts(file, text, line)
    assert found is not None
    return found


def test_loads_and_literals_of_cuda() -> None:
    found = parts("a/k.cu", CUDA, 3)
    assert found.loads == ("x[i * 4 + 1]", "*y")
    assert found.divisions == ("x[i * 4 + 1] / 2.0",)
    assert found.divisors == ("2.0",)
    assert found.doubles == ("2.0",)
    assert found.assigned == ("a",)
    assert found.stores == ()


def test_a_compound_assignment_loads_what_it_stores() -> None:
    found = parts("k.cu", CUDA, 4)
    assert found.stores == ("y[i]",)
    assert found.loads == ("y[i]", "&x[i]", "x[i]", "s->v[3]")


def test_a_plain_store_does_not_load_and_levels_count_once() -> None:
    found = parts("k.cu", CUDA, 5)
    assert found.stores == ("grid[i][j]",)
    assert found.loads == ()
    assert found.calls == ("sqrtf",)
    assert found.divisors == ("(float)n",)


def test_an_index_that_is_loaded_is_a_load_too() -> None:
    assert parts("k.cu", CUDA, 6).loads == ("x[idx[i]]", "idx[i]")


def test_loops_are_seen_where_they_begin() -> None:
    assert parts("k.cu", CUDA, 2).begins_loop
    assert not parts("k.cu", CUDA, 3).begins_loop


@pytest.mark.parametrize("literal", ["2.0f", "2", "0x1f", "1u"])
def test_what_is_no_double(literal: str) -> None:
    assert parts("k.cu", f"void f() {{ a = {literal} * b; }}", 1).doubles == ()


@pytest.mark.parametrize("literal", ["2.0", "1.", ".5", "1e-3", "1.5e10"])
def test_what_is_a_double(literal: str) -> None:
    assert parts("k.cu", f"void f() {{ a = {literal} * b; }}", 1).doubles == (literal,)


def test_python() -> None:
    text = "def k(p):\n    x = tl.load(p + offs, mask=m) / scale\n    y[i] += x[i, j]\n    tl.store(p, x)\n"
    load = parts("k.py", text, 2)
    assert (load.loads, load.divisors, load.assigned) == (("p + offs",), ("scale",), ("x",))
    update = parts("k.py", text, 3)
    assert (update.stores, update.loads) == (("y[i]",), ("y[i]", "x[i, j]"))
    assert parts("k.py", text, 4).stores == ("p",)


def test_fortran_tells_arrays_from_functions() -> None:
    text = "subroutine s(a,n)\n do i=1,n\n  a(i) = sqrt(b(i+1,j)) / c(i) + 2.0d0\n end do\nend subroutine\n"
    found = parts("k.f90", text, 3)
    assert found.stores == ("a(i)",)
    assert found.loads == ("b(i+1,j)", "c(i)")
    assert found.calls == ("sqrt",)
    assert found.divisors == ("c(i)",)
    assert found.doubles == ("2.0d0",)
    assert parts("k.f90", text, 2).begins_loop


def test_julia() -> None:
    found = parts("k.jl", "function k(a,b)\n  a[i] += b[i+1, j] / 2.0\nend\n", 2)
    assert (found.stores, found.loads, found.divisors) == (("a[i]",), ("a[i]", "b[i+1, j]"), ("2.0",))


def test_long_expressions_are_shortened() -> None:
    (load,) = parts("k.cu", f"void f() {{ a = x[{'i + ' * 50}1]; }}", 1).loads
    assert len(load) == 60
    assert load.endswith("…")


@pytest.mark.parametrize("file", ["k.ptx", "noext", "k.rs"])
def test_other_languages_are_left_alone(file: str) -> None:
    assert read_line_parts(file, "a = b[i]", 1) is None


def test_lines_that_are_not_there() -> None:
    assert read_line_parts("k.cu", "int a;\n", 0) is None
    assert read_line_parts("k.cu", "int a;\n", 3) is None
    assert read_line_parts("k.cu", "x" * (LARGEST_SOURCE_BYTES + 1), 1) is None


def test_a_broken_text_still_gives_what_can_be_seen() -> None:
    assert "x[i]" in parts("k.cu", "void f( { a = x[i]; ", 1).loads


@given(text=st.text(max_size=300), file=st.sampled_from(["a.cu", "a.py", "a.f90", "a.jl"]))
def test_any_text_is_survived(text: str, file: str) -> None:
    found = read_line_parts(file, text, 1)
    assert found is None or all(len(load) <= 60 for load in found.loads)


def test_hostile_nesting_is_bounded() -> None:
    found = read_line_parts("a.cu", "void f() { a = " + "(" * 50_000 + "x[i]" + ")" * 50_000 + "; }", 1)
    assert found is not None


def test_every_grammar_loads_and_knows_the_names_of_the_table() -> None:
    for suffix in (".cu", ".py", ".f90", ".jl"):
        language = find_language("a" + suffix)
        assert language is not None
        parser = load_parser(language)
        assert parser is not None
        grammar = parser.language
        assert grammar is not None
        named = language.subscripts | language.assignments | language.binary | language.calls | language.loops
        unknown = {name for name in named if grammar.id_for_node_kind(name, True) is None}
        assert not unknown


def test_a_grammar_that_is_not_installed_only_costs_the_words(caplog: pytest.LogCaptureFixture) -> None:
    language = find_language("a.cu")
    assert language is not None
    assert load_parser(replace(language, module="tree_sitter_of_nobody")) is None
    assert "tree_sitter_of_nobody" in caplog.text
