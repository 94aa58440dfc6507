"""What the text of a CUDA C++ file proves: functions, names, types, uses, loops."""

import pytest

from gpa_lsp.code.sources.cuda_declarations import Names, list_words, read_file_names, read_macros, read_names
from gpa_lsp.code.sources.cuda_functions import (
    count_declarations,
    find_function_around,
    find_function_names,
    find_functions_on_lines,
    find_kernel_calls,
    find_kernels,
    find_parameter,
    has_internal_linkage,
    has_own_headers,
)
from gpa_lsp.code.sources.cuda_values import read_number
from gpa_lsp.code.sources.trees import SourceTree, read_text, read_tree, walk
from gpa_lsp.diagnosis.rewrites.cuda_loops import LOOPS, find_loops_beginning, find_unroll_pragma, is_constant
from gpa_lsp.diagnosis.rewrites.cuda_types import ExpressionTypes, load_known_functions
from gpa_lsp.diagnosis.rewrites.cuda_uses import Deed, classify_use, find_uses, is_in_lambda

FUNCTIONS = """
#include <cuda.h>
namespace outer { namespace {
template <typename T> __global__ void hidden(T *x) {}
} }
static __global__ void local(int n) {}
extern "C" __global__ void __launch_bounds__(128) plain(float *x) { x[0] = 1; }
#ifdef A
__global__ void either(int a) {}
#else
__global__ void either(int b) {}
#endif
struct S {
  __device__ float member(float a) const { return a; }
  static __host__ __device__ int both() { return 1; }
};
float &S::outside(float &x) { return x; }
constexpr __device__ int known() { return 2; }
float *pointer(float *p) { return p; }
__global__ void declared(float *);
auto lambda = [](float v) { return v; };
"""


def tree(text: str) -> SourceTree:
    found = read_tree("k.cu", text)
    assert found is not None
    return found


def names_of(text: str) -> Names:
    found = read_names(tree(text), text.index("void f"))
    assert found is not None
    return found


def test_kernels_of_a_name() -> None:
    found = tree(FUNCTIONS)
    for name, count in (
        ("hidden", 1),
        ("local", 1),
        ("plain", 1),
        ("either", 2),
        ("declared", 0),
        ("known", 0),
        ("S", 0),
    ):
        assert len(find_kernels(found, name)) == count, name


@pytest.mark.parametrize(
    ("name", "is_kernel", "is_device_only", "is_member", "is_internal"),
    [
        ("hidden", True, True, False, True),
        ("local", True, True, False, True),
        ("plain", True, True, False, False),
        ("member", False, True, True, False),
        ("both", False, False, True, True),
        ("outside", False, False, True, False),
        ("known", False, False, False, False),
        ("pointer", False, False, False, False),
    ],
)
def test_what_functions_are(
    name: str, is_kernel: bool, is_device_only: bool, is_member: bool, is_internal: bool
) -> None:
    found = tree(FUNCTIONS)
    definitions = (find_function_around(node) for node in walk(found.root) if node.type == "function_definition")
    (function,) = (one for one in definitions if one is not None and one.name == name)
    assert function.is_kernel is is_kernel
    assert function.is_device_only is is_device_only
    assert function.is_member is is_member
    assert has_internal_linkage(function) is is_internal


def test_functions_by_line() -> None:
    text = "void a() {\n  int x;\n}\nvoid b() {} void c() {}\nint d;\n"
    for line, expected in ((1, ["a"]), (2, ["a"]), (4, ["b", "c"]), (5, [])):
        assert [one.name for one in find_functions_on_lines(tree(text), frozenset({line}))] == expected


def test_names_and_counts_of_declarations() -> None:
    found = tree(FUNCTIONS)
    assert find_function_names(found) >= {
        "hidden",
        "local",
        "plain",
        "either",
        "outside",
        "known",
        "pointer",
        "declared",
    }
    assert "member" not in find_function_names(found)
    assert count_declarations(found, "either") == 2
    assert count_declarations(tree("template <class T> void g(T) {}\ntemplate void g<int>(int);\n"), "g") == 2
    assert not has_own_headers(found)
    assert has_own_headers(tree('#ifdef A\n#include "own.h"\n#endif\n'))


def test_parameters_of_called_functions() -> None:
    found = tree("void g(const float *a, int &b = c);\nvoid h(int); void h(float);\n")
    assert read_text(find_parameter(found, "g", 1)) == "int &b = c"
    assert find_parameter(found, "g", 2) is None
    assert find_parameter(found, "h", 0) is None
    assert find_parameter(found, "unknown", 0) is None


def test_launches() -> None:
    text = (
        "void f() { k<<<1, 2>>>(a); n::k<float><<<g, b, 0, s>>>(b); other<<<1, 1>>>(c); // k<<<1>>>(d)\n a << b << c; }"
    )
    assert [read_text(call.child_by_field_name("arguments")) for call in find_kernel_calls(tree(text), "k")] == [
        "(a)",
        "(b)",
    ]


@pytest.mark.parametrize(
    ("declaration", "kind", "levels"),
    [
        ("float v", "float", 0),
        ("const float v = 1", "float", 0),
        ("float a, *v", "float", 1),
        ("float v[4]", "float", 1),
        ("float v[4][4]", "float", 2),
        ("const float &v = a", "float", 0),
        ("double *v[2]", "double", 2),
        ("unsigned long long v", "integer", 0),
        ("bool v", "integer", 0),
        ("size_t v", "integer", 0),
        ("uint32_t v", "integer", 0),
        ("long double v", "unknown", 0),
        ("void *v", "unknown", 1),
        ("float4 v", "float vector", 0),
        ("double2 *v", "double vector", 1),
        ("uint3 v", "integer vector", 0),
        ("__half v", "unknown", 0),
        ("T v", "unknown", 0),
        ("auto v = 1", "auto", 0),
        ("auto [u, v] = g()", "unknown", 0),
        ("float v(int)", "unknown", 0),
        ("float v(2.0f)", "float", 0),
        ("float v{2.0f}", "float", 0),
        ("__shared__ float v[32]", "float", 1),
        ("extern __shared__ float v[]", "float", 1),
    ],
)
def test_declared_types(declaration: str, kind: str, levels: int) -> None:
    (found,) = names_of(f"void f(float a) {{ {declaration}; }}").by_name["v"]
    assert (found.type.scalar.value, found.type.levels) == (kind, levels)


def test_what_is_an_array_and_what_only_points() -> None:
    names = names_of("void f(float p[4]) { float a[2], *b, (*c)[2], *d[2]; int &r = e; }")
    found = {name: names.by_name[name][0].is_array for name in "abcd"}
    assert found == {"a": True, "b": False, "c": False, "d": True}
    assert names.by_name["r"][0].is_reference


SCOPES = """
float file;
void f(float a, void (*callback)(double inner)) {
  use(a, inner, file, later);            // 1
  { double a = 1; use(a); }              // 2
  use(a);                                // 3
  for (double a = 0; a < 1; a++) use(a); // 4
  for (auto &a : list) use(a);           // 5
  if (double a = 1) use(a);              // 6
  auto l = [a = 3](double b) { use(a, b); };
  use(b);                                // 7
  double later;
}
"""


@pytest.mark.parametrize(
    ("line", "name", "kind"),
    [
        (1, "a", "float"),
        (1, "inner", None),
        (1, "file", "float"),
        (1, "later", None),
        (2, "a", "double"),
        (3, "a", "float"),
        (4, "a", "double"),
        (5, "a", "auto"),
        (6, "a", "double"),
        (7, "b", None),
    ],
)
def test_a_name_means_the_nearest_declaration_in_sight(line: int, name: str, kind: str | None) -> None:
    names = names_of(SCOPES)
    row = SCOPES[: SCOPES.index(f"// {line}")].count("\n")
    place = [node for node in names.places[name] if node.start_point[0] == row][-1]
    found = names.find(place)
    assert (None if found is None else found.type.scalar.value) == kind


def test_a_lambdas_own_names() -> None:
    names = names_of(SCOPES)
    inside = [names.find(node) for node in names.places["a"] if node.start_point[0] == 9]
    assert inside[-1] is not None
    assert inside[-1].type.scalar.value == "unknown"


def test_names_of_the_file_and_of_namespaces() -> None:
    text = "namespace n { float inner; }\nfloat outer;\nvoid f() { inner; outer; }\n"
    assert set(read_file_names(tree(text))) == {"inner", "outer"}
    names = names_of(text)
    assert names.find(names.places["inner"][0]) is None
    assert names.find(names.places["outer"][0]) is not None


def test_macros_wherever_they_are_defined() -> None:
    text = "#define A 1\n# define B(x) (x + C)\nvoid f() {\n#define D\n  A;\n}\n#define A 2\n// #define E\n"
    assert dict(read_macros(tree(text))) == {"A": "1 2", "B": "(x + C)", "D": ""}
    names = names_of(text)
    assert names.is_in_macros("A")
    assert names.is_in_macros("C")
    assert not names.is_in_macros("E")
    assert list_words("a->b1 + 2*c_d") == {"a", "b1", "2", "c_d"}


def test_no_function_begins_there() -> None:
    text = "int a; void f() {}"
    assert read_names(tree(text), 0) is None
    assert read_names(tree(text), len(text)) is None


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("a", "float"),
        ("-a", "float"),
        ("!a", "integer"),
        ("a + n", "float"),
        ("a + d", "double"),
        ("n / 2", "integer"),
        ("n % 2", "integer"),
        ("a % n", "unknown"),
        ("a < d", "integer"),
        ("p[n]", "float"),
        ("*p", "float"),
        ("*(p + n)", "float"),
        ("*(n + p)", "float"),
        ("(&p[n])[0]", "float"),
        ("p[n][n]", "unknown"),
        ("p[n, n]", "unknown"),
        ("v.x", "float"),
        ("v.xy", "unknown"),
        ("q->w", "float"),
        ("q[n].z", "float"),
        ("a.x", "unknown"),
        ("q.x", "unknown"),
        ("(double)a", "double"),
        ("(float *)d", "float*"),
        ("reinterpret_cast<float4 *>(p)[0].x", "float"),
        ("float(n)", "float"),
        ("float(n, n)", "unknown"),
        ("n ? a : d", "double"),
        ("n ? a : s", "unknown"),
        ("a = d", "float"),
        ("n++", "integer"),
        ("'c'", "integer"),
        ("sizeof(float)", "integer"),
        ("1.0L", "unknown"),
        ("threadIdx.x * warpSize", "integer"),
        ("sinf(d)", "float"),
        ("sin(a)", "float"),
        ("sin(n)", "unknown"),
        ("pow(a, d)", "double"),
        ("std::fmax(a, 1.0f)", "float"),
        ("m::fmax(a, a)", "unknown"),
        ("__ldg(p)", "float"),
        ("__ldg(a)", "unknown"),
        ("__shfl_sync(n, d, 1)", "double"),
        ("__float_as_int(a)", "integer"),
        ("__half2float(s)", "float"),
        ("atomicAdd(p, a)", "unknown"),
        ("unknown(a)", "unknown"),
        ("s.a", "unknown"),
        ("a, d", "unknown"),
        ("[&] { return a; }()", "unknown"),
        ("automatic", "float"),
        ("automatic_pointer[1]", "float"),
        ("N", "integer"),
        ("blockDim.x / 2.0f", "float"),
    ],
)
def test_types_of_expressions(expression: str, kind: str) -> None:
    text = (
        "template <class T, int N>\nvoid f(float a, double d, int n, float *p, float4 v, float4 *q, T s) {\n"
        f"auto automatic = p[0]; auto automatic_pointer = p + 1;\nreturn {expression}; }}"
    )
    names = names_of(text)
    returned = [node for node in walk(names.function.body) if node.type == "return_statement"]
    found = ExpressionTypes(tree=tree(text), names=names).find(returned[0].named_children[0])
    assert f"{found.scalar.value}{'*' * found.levels}" == kind


def test_an_automatic_variable_that_begins_with_itself() -> None:
    text = "void f() { auto a = a + 1; return a; }"
    names = names_of(text)
    (returned,) = (node for node in walk(names.function.body) if node.type == "return_statement")
    assert ExpressionTypes(tree=tree(text), names=names).find(returned.named_children[0]).scalar.value == "unknown"


def test_the_groups_of_functions_are_apart() -> None:
    known = load_known_functions()
    groups = (known.single, known.converting, known.overloaded, known.integer, known.loads, known.second)
    assert sum(len(group) for group in groups) == len(known.reading)
    assert all(groups)


@pytest.mark.parametrize(
    ("text", "deed", "is_element"),
    [
        ("p[1] = 2", Deed.WRITTEN, True),
        ("p[1].x += 2", Deed.WRITTEN, True),
        ("p->x = 2", Deed.WRITTEN, True),
        ("p->y.x = 2", Deed.WRITTEN, True),
        ("*(p + 1) = 2", Deed.WRITTEN, True),
        ("++*p", Deed.WRITTEN, True),
        ("p[1]--", Deed.WRITTEN, True),
        ("((float *)p)[1] = 2", Deed.WRITTEN, True),
        ("(n ? p : q)[1] = 2", Deed.WRITTEN, True),
        ("p = q", Deed.WRITTEN, False),
        ("p++", Deed.WRITTEN, False),
        ("a = p[1]", Deed.READ, True),
        ("a = p[1] + 2", Deed.READ, True),
        ("a = q[p]", Deed.READ, False),
        ("if (p[1] > 2) a = 1", Deed.READ, True),
        ("while (p) a = 1", Deed.READ, False),
        ("a = p", Deed.COPIED, False),
        ("a = p + 1", Deed.COPIED, False),
        ("a = (q, p)", Deed.COPIED, False),
        ("a = (p, q)", Deed.READ, False),
        ("T *t = p", Deed.COPIED, False),
        ("T t = p[1]", Deed.READ, True),
        ("T &t = p[1]", Deed.BOUND, True),
        ("T t = {p}", Deed.COPIED, False),
        ("return p", Deed.COPIED, False),
        ("p == q", Deed.COMPARED, False),
        ("a = &p[1] - q", Deed.COPIED, False),
        ("&p", Deed.BOUND, False),
        ("p[1].run()", Deed.BOUND, True),
        ("p.run()", Deed.BOUND, False),
        ("g(p)", Deed.PASSED, False),
        ("g(p[1])", Deed.PASSED, True),
        ("g(&p[1])", Deed.PASSED, False),
        ("g(reinterpret_cast<int *>(p))", Deed.PASSED, False),
        ("float(p)", Deed.READ, False),
        ("sizeof(p)", Deed.READ, False),
        ("for (auto x : p) a = 1", Deed.BOUND, False),
        ("auto l = [&p] { }", Deed.BOUND, False),
        ("auto l = [p] { }", Deed.COPIED, False),
        ("auto l = [t = p] { }", Deed.COPIED, False),
        ('asm("" : "+r"(p))', Deed.ASSEMBLED, False),
        ('asm("" : : "r"(p[1]))', Deed.ASSEMBLED, True),
    ],
)
def test_what_happens_to_a_variable(text: str, deed: Deed, is_element: bool) -> None:
    found = tree(f"void f() {{ {text}; }}")
    (place,) = (node for node in walk(found.root) if node.type == "identifier" and read_text(node) == "p")
    use = classify_use(place)
    assert (use.deed, use.is_element) == (deed, is_element)


def test_a_use_too_deep_to_be_followed_counts_as_the_worst() -> None:
    found = tree(f"void f() {{ a = {'(' * 100}p{')' * 100}; }}")
    (place,) = (node for node in walk(found.root) if node.type == "identifier" and read_text(node) == "p")
    assert classify_use(place).deed is Deed.BOUND


def test_uses_of_one_variable_and_not_of_another_with_its_name() -> None:
    text = "void f(float *p) { p[0] = 1; { int p = 2; p = 3; } auto l = [=] { return p[1]; }; g(p); }"
    names = names_of(text)
    (declaration, _) = names.by_name["p"]
    uses = list(find_uses(names, declaration))
    assert [use.deed for use in uses] == [Deed.WRITTEN, Deed.READ, Deed.PASSED]
    assert [is_in_lambda(use, names.function.node) for use in uses] == [False, True, False]


def test_uses_that_may_be_of_either_count() -> None:
    text = "void f() {\n#if A\n  float *p = a;\n#else\n  int p = b;\n#endif\n  p = c;\n}"
    names = names_of(text)
    for declaration in names.by_name["p"]:
        assert Deed.WRITTEN in {use.deed for use in find_uses(names, declaration)}


LOOP_TEXT = """void f(int n) {
  for (int i = 0;
       i < n;
       ++i) {
    g(i);
  }
  do
    g(1);
  while (n--);
  while (n)
    for (;;) g(2);
}
"""


@pytest.mark.parametrize(
    ("line", "loops"),
    [
        (2, ["for_statement"]),
        (3, ["for_statement"]),
        (4, ["for_statement"]),
        (5, []),
        (7, ["do_statement"]),
        (8, []),
        (10, ["while_statement"]),
        (11, ["for_statement"]),
        (1, []),
    ],
)
def test_loops_by_the_lines_of_their_heads(line: int, loops: list[str]) -> None:
    assert [node.type for node in find_loops_beginning(tree(LOOP_TEXT), frozenset({line}))] == loops


@pytest.mark.parametrize(
    ("pragma", "copies", "is_complete"),
    [
        ("#pragma unroll", None, True),
        ("#pragma unroll 4", 4, False),
        ("#pragma unroll(N)", None, False),
        ("#pragma nounroll", 1, False),
        ("#pragma unroll 2\n#pragma other", 2, False),
        ("#pragma unroll 2 // two\n/* #pragma unroll 3 */", 2, False),
    ],
)
def test_unroll_pragmas(pragma: str, copies: int | None, is_complete: bool) -> None:
    found = tree(f"void f() {{\n{pragma}\n  for (;;) g();\n}}\n")
    (loop,) = (node for node in walk(found.root) if node.type in LOOPS)
    read = find_unroll_pragma(found, loop)
    assert read is not None
    assert (read.copies, read.is_complete) == (copies, is_complete)


@pytest.mark.parametrize(
    "pragma", ["", "#pragma omp simd", "// #pragma unroll", "#pragma unrolled", "#pragma unroll\ng();"]
)
def test_no_unroll_pragma(pragma: str) -> None:
    found = tree(f"void f() {{\n{pragma}\n  for (;;) g();\n}}\n")
    (loop,) = (node for node in walk(found.root) if node.type in LOOPS)
    assert find_unroll_pragma(found, loop) is None


@pytest.mark.parametrize(
    ("expression", "constant"),
    [
        ("16", True),
        ("(c + 1) * N", True),
        ("k", True),
        ("m", False),
        ("n", False),
        ("SIZE", True),
        ("CALL", False),
        ("EMPTY", False),
        ("g()", False),
        ("unknown", False),
        ("real", False),
    ],
)
def test_constants(expression: str, constant: bool) -> None:
    text = (
        "#define SIZE (4 * 8)\n#define CALL g()\n#define EMPTY\nconstexpr int c = 4;\ntemplate <int N>\n"
        f"void f(int n) {{ const int k = c; const int m = n; const float real = 2; return {expression}; }}"
    )
    names = names_of(text)
    (returned,) = (node for node in walk(names.function.body) if node.type == "return_statement")
    assert is_constant(returned.named_children[0], names) is constant


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("017", "integer", 15.0),
        ("0b101", "integer", 5.0),
        ("0x10p1", "double", 32.0),
        ("0x1.8p3f", "float", 12.0),
        ("1e3", "double", 1000.0),
        ("1'0.5'0", "double", 10.5),
        ("10ull", "integer", 10.0),
        ("1.0bf16", "unknown", 1.0),
        ("2.5_x", "unknown", 2.5),
        ("09", "integer", None),
        ("1e", "double", None),
    ],
)
def test_numbers(text: str, kind: str, value: float | None) -> None:
    found = read_number(text)
    if value is not None:
        assert (found.type.scalar.value, found.value) == (kind, value)
    else:
        assert not found.fits_float
