"""Facts that the text of a CUDA C++ file proves: functions, names, types, uses, loops."""

import pytest

from gpa_lsp.code.sources.cuda_declarations import (
    Names,
    ValueType,
    list_words,
    read_file_names,
    read_macros,
    read_names,
    read_number,
)
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
from gpa_lsp.code.sources.trees import SourceTree, read_text, read_tree, walk
from gpa_lsp.diagnosis.rewrites.code import ExpressionTypes, load_known_functions
from gpa_lsp.diagnosis.rewrites.cuda_loops import LOOPS, find_loops_beginning, find_unroll_pragma, is_constant
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
    ("kind", "levels", "declarations"),
    [
        ("float", 0, "float v | const float v = 1 | const float &v = a | float v(2.0f) | float v{2.0f}"),
        ("float", 1, "float a, *v | float v[4] | __shared__ float v[32] | extern __shared__ float v[]"),
        ("float", 2, "float v[4][4]"),
        ("double", 2, "double *v[2]"),
        ("integer", 0, "unsigned long long v | bool v | size_t v | uint32_t v"),
        ("unknown", 0, "long double v | __half v | T v | auto [u, v] = g() | float v(int)"),
        ("unknown", 1, "void *v"),
        ("float vector", 0, "float4 v"),
        ("double vector", 1, "double2 *v"),
        ("integer vector", 0, "uint3 v"),
        ("auto", 0, "auto v = 1"),
    ],
)
def test_declared_types(kind: str, levels: int, declarations: str) -> None:
    for declaration in declarations.split(" | "):
        (found,) = names_of(f"void f(float a) {{ {declaration}; }}").by_name["v"]
        assert (found.type.scalar.value, found.type.levels) == (kind, levels), declaration


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
    ("line", "meanings"),
    [
        (1, {"a": "float", "inner": None, "file": "float", "later": None}),
        *((line, {"a": kind}) for line, kind in enumerate(("double", "float", "double", "auto", "double"), start=2)),
        (7, {"b": None}),
    ],
)
def test_a_name_means_the_nearest_declaration_in_sight(line: int, meanings: dict[str, str | None]) -> None:
    names = names_of(SCOPES)
    row = SCOPES[: SCOPES.index(f"// {line}")].count("\n")
    for name, kind in meanings.items():
        found = names.find([node for node in names.places[name] if node.start_point[0] == row][-1])
        assert (None if found is None else found.type.scalar.value) == kind


def test_a_lambdas_own_names() -> None:
    names = names_of(SCOPES)
    inside = [names.find(node) for node in names.places["a"] if node.start_point[0] == 9]
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
    ("kind", "expressions"),
    [
        (
            "float",
            "a | -a | a + n | p[n] | *p | *(p + n) | *(n + p) | (&p[n])[0] | v.x | q->w | q[n].z | float(n) | a = d",
        ),
        (
            "float",
            "reinterpret_cast<float4 *>(p)[0].x | sinf(d) | sin(a) | std::fmax(a, 1.0f) | __ldg(p) | __half2float(s)",
        ),
        ("float", "automatic | automatic_pointer[1] | blockDim.x / 2.0f"),
        ("float*", "(float *)d"),
        ("double", "a + d | (double)a | n ? a : d | pow(a, d) | __shfl_sync(n, d, 1)"),
        (
            "integer",
            "!a | n / 2 | n % 2 | a < d | n++ | 'c' | sizeof(float) | threadIdx.x * warpSize | __float_as_int(a) | N",
        ),
        (
            "unknown",
            "a % n | p[n][n] | p[n, n] | v.xy | a.x | q.x | float(n, n) | n ? a : s | 1.0L | sin(n) | m::fmax(a, a)",
        ),
        ("unknown", "__ldg(a) | atomicAdd(p, a) | unknown(a) | s.a | a, d | [&] { return a; }()"),
    ],
)
def test_types_of_expressions(kind: str, expressions: str) -> None:
    for expression in expressions.split(" | "):
        text = (
            "template <class T, int N>\nvoid f(float a, double d, int n, float *p, float4 v, float4 *q, T s) {\n"
            f"auto automatic = p[0]; auto automatic_pointer = p + 1;\nreturn {expression}; }}"
        )
        found = type_of_result(text)
        assert f"{found.scalar.value}{'*' * found.levels}" == kind, expression


def type_of_result(text: str) -> ValueType:
    names = names_of(text)
    (returned, *_) = (node for node in walk(names.function.body) if node.type == "return_statement")
    return ExpressionTypes(tree=tree(text), names=names).find(returned.named_children[0])


def test_an_automatic_variable_that_begins_with_itself() -> None:
    assert type_of_result("void f() { auto a = a + 1; return a; }").scalar.value == "unknown"


def test_the_groups_of_functions_are_apart() -> None:
    known = load_known_functions()
    groups = (known.single, known.converting, known.overloaded, known.integer, known.loads, known.second)
    assert sum(len(group) for group in groups) == len(known.reading)
    assert all(groups)


@pytest.mark.parametrize(
    ("deed", "is_element", "texts"),
    [
        (
            Deed.WRITTEN,
            True,
            "p[1] = 2; p[1].x += 2; p->x = 2; p->y.x = 2; *(p + 1) = 2; ++*p; p[1]--; ((float *)p)[1] = 2",
        ),
        (Deed.WRITTEN, True, "(n ? p : q)[1] = 2"),
        (Deed.WRITTEN, False, "p = q; p++"),
        (Deed.READ, True, "a = p[1]; a = p[1] + 2; if (p[1] > 2) a = 1; T t = p[1]"),
        (Deed.READ, False, "a = q[p]; while (p) a = 1; a = (p, q); float(p); sizeof(p)"),
        (Deed.COPIED, False, "a = p; a = p + 1; a = (q, p); T *t = p; T t = {p}; return p; a = &p[1] - q"),
        (Deed.COPIED, False, "auto l = [p] { }; auto l = [t = p] { }"),
        (Deed.COMPARED, False, "p == q"),
        (Deed.BOUND, True, "T &t = p[1]; p[1].run()"),
        (Deed.BOUND, False, f"&p; p.run(); for (auto x : p) a = 1; auto l = [&p] {{ }}; a = {'(' * 100}p{')' * 100}"),
        (Deed.PASSED, True, "g(p[1])"),
        (Deed.PASSED, False, "g(p); g(&p[1]); g(reinterpret_cast<int *>(p))"),
        (Deed.ASSEMBLED, True, 'asm("" : : "r"(p[1]))'),
        (Deed.ASSEMBLED, False, 'asm("" : "+r"(p))'),
    ],
)
def test_what_happens_to_a_variable(deed: Deed, is_element: bool, texts: str) -> None:
    for text in texts.split("; "):
        found = tree(f"void f() {{ {text}; }}")
        (place,) = (node for node in walk(found.root) if node.type == "identifier" and read_text(node) == "p")
        use = classify_use(place)
        assert (use.deed, use.is_element) == (deed, is_element), text


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
    ("pragma", "expected"),
    [
        ("#pragma unroll", (None, True)),
        ("#pragma unroll 4", (4, False)),
        ("#pragma unroll(N)", (None, False)),
        ("#pragma nounroll", (1, False)),
        ("#pragma unroll 2\n#pragma other", (2, False)),
        ("#pragma unroll 2 // two\n/* #pragma unroll 3 */", (2, False)),
        *(
            (one, None)
            for one in ("", "#pragma omp simd", "// #pragma unroll", "#pragma unrolled", "#pragma unroll\ng();")
        ),
    ],
)
def test_unroll_pragmas(pragma: str, expected: tuple[int | None, bool] | None) -> None:
    found = tree(f"void f() {{\n{pragma}\n  for (;;) g();\n}}\n")
    (loop,) = (node for node in walk(found.root) if node.type in LOOPS)
    read = find_unroll_pragma(found, loop)
    assert (read and (read.copies, read.is_complete)) == expected


@pytest.mark.parametrize(
    ("constant", "expressions"),
    [(True, "16 | (c + 1) * N | k | SIZE"), (False, "m | n | CALL | EMPTY | g() | unknown | real")],
)
def test_constants(constant: bool, expressions: str) -> None:
    for expression in expressions.split(" | "):
        text = (
            "#define SIZE (4 * 8)\n#define CALL g()\n#define EMPTY\nconstexpr int c = 4;\ntemplate <int N>\n"
            f"void f(int n) {{ const int k = c; const int m = n; const float real = 2; return {expression}; }}"
        )
        names = names_of(text)
        (returned,) = (node for node in walk(names.function.body) if node.type == "return_statement")
        assert is_constant(returned.named_children[0], names) is constant, expression


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
