"""``f`` behind double literals: where the arithmetic is single precision but for them."""

import pytest

from tests.rewrites.notation import offer, rewrite

HEAD = "__constant__ float table[4];\n__device__ float g(const float *x, float a, float4 v, int n, double d, const double *y) {\n"


def body(statement: str) -> str:
    return f"{HEAD}  {statement}  //!\n}}\n"


def offer_for(statement: str, head: str = HEAD) -> list[str]:
    return [one.title for one in offer("strength_reduction", f"{head}  {statement}  //!\n}}\n")]


def changed(statement: str) -> str:
    after = rewrite("strength_reduction", body(statement), kind="single_precision_literals")
    return after.removeprefix(f"{HEAD}  ").removesuffix("\n}\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = a * 0.5;", "a = a * 0.5f;"),
        ("a = x[n] * 2.0;", "a = x[n] * 2.0f;"),
        ("a = *x * 2.0;", "a = *x * 2.0f;"),
        ("a = *(x + n) * 2.0;", "a = *(x + n) * 2.0f;"),
        ("a = table[n] + 1.;", "a = table[n] + 1.f;"),
        ("a = v.x - .5;", "a = v.x - .5f;"),
        ("a = a * 1e2;", "a = a * 1e2f;"),
        ("a = a * 0x1p-3;", "a = a * 0x1p-3f;"),
        ("a = a * 1'000.0;", "a = a * 1'000.0f;"),
        ("a = -1.5 * a;", "a = -1.5f * a;"),
        ("a = -(a * 2 * 1.5);", "a = -(a * 2 * 1.5f);"),
        ("a += 0.5;", "a += 0.5f;"),
        ("a /= 4.0 + x[0];", "a /= 4.0f + x[0];"),
        ("float b = a * 0.5, c = n;", "float b = a * 0.5f, c = n;"),
        ("auto b = v.y; a = b * 0.5;", "auto b = v.y; a = b * 0.5f;"),
        ("a = n ? a : a * 0.5;", "a = n ? a : a * 0.5f;"),
        ("a = max(a, 0.0);", "a = max(a, 0.0f);"),
        ("a = std::fma(a, 0.5, v.z);", "a = std::fma(a, 0.5f, v.z);"),
        ("a = (float)n * 0.5;", "a = (float)n * 0.5f;"),
        ("a = float(n) * 0.5;", "a = float(n) * 0.5f;"),
        ("a = static_cast<float>(n) * 0.5;", "a = static_cast<float>(n) * 0.5f;"),
        ("a = __ldg(x + n) * 0.5;", "a = __ldg(x + n) * 0.5f;"),
        ("a = __shfl_xor_sync(~0u, a, 1) * 0.5;", "a = __shfl_xor_sync(~0u, a, 1) * 0.5f;"),
        ("a = sinf(a * 0.5);", "a = sinf(a * 0.5f);"),
        ("d = (float)(a * 0.5);", "d = (float)(a * 0.5f);"),
        ("d = static_cast<float>(a * 0.5);", "d = static_cast<float>(a * 0.5f);"),
        ("return a * 0.5;", "return a * 0.5f;"),
        ("if (a > 0.5) n = 1;", "if (a > 0.5f) n = 1;"),
        ("for (float t = 0; t < a * 0.5; t += a) n = 1;", "for (float t = 0; t < a * 0.5f; t += a) n = 1;"),
    ],
)
def test_a_suffix_where_all_else_is_float(before: str, after: str) -> None:
    assert changed(before) == after


def test_all_literals_of_an_expression_at_once() -> None:
    assert changed("a = x[0] * 0.7 + 0.1;") == "a = x[0] * 0.7f + 0.1f;"
    (found,) = offer("strength_reduction", body("a = x[0] * 0.7 + 0.1;"))
    assert found.title == "Write `0.7f` and `0.1f` (rounds to float)"
    assert "`0.7` becomes `0.699999988`, `0.1` becomes `0.100000001`" in found.explanation
    assert found.changes_results


def test_an_expression_over_two_lines_is_one() -> None:
    text = f"{HEAD}  a = x[0] * 0.5  //!\n    + 0.25;\n}}\n"
    assert "0.5f\n    + 0.25f;" in rewrite("strength_reduction", text)


def test_a_literal_a_float_holds_is_not_said_to_be_rounded() -> None:
    (found,) = offer("strength_reduction", body("a = a * 0.5 + 0.25;"))
    assert found.title == "Write `0.5f` and `0.25f`"
    assert found.changes_results
    assert not found.is_preferred


def test_comparing_with_a_number_a_float_holds_changes_nothing() -> None:
    (found,) = offer("strength_reduction", body("if (a > 0.5) n = 1;"))
    assert not found.changes_results
    assert found.is_preferred
    assert found.explanation.endswith("The result is the same.")
    (rounded,) = offer("strength_reduction", body("if (a > 0.1) n = 1;"))
    assert rounded.changes_results
    (computed,) = offer("strength_reduction", body("if (a * v.x > 0.5) n = 1;"))
    assert computed.changes_results


@pytest.mark.parametrize(
    "statement",
    [
        "a = a * 0.5f;",
        "a = a * 2;",
        "a = a * 0.5L;",
        "a = 0.5;",
        "float b = 0.1;",
        "a = fmaxf(a, 0.0);",
        "a = d * 0.5;",
        "a = a * 0.5 + d;",
        "a = y[n] * 0.5;",
        "a = n * 0.5;",
        "a = a * 0.5 + n;",
        "d = a * 0.5;",
        "double b = a * 0.5;",
        "auto b = a * 0.5;",
        "unknown = a * 0.5;",
        "a = unknown * 0.5;",
        "a = s.field * 0.5;",
        "a = v.x.y * 0.5;",
        "a = f(a) * 0.5;",
        "g(a * 0.5);",
        "a = pow(a, n) * 0.5;",
        "a = max(a, n) * 0.5;",
        "a = a * 1e300;",
        "a = a * 1e-300;",
        "a = a * 1e-40;",
        "a = x * 0.5;",
        "x[0.5];",
        "int i = a * 0.5;",
        "float *p = {a * 0.5};",
        "float b{a * 0.5};",
        "auto f = [](float z) { return z * 0.5; };",
        "a = n > 0.5 ? a : v.x;",
        "a = (a < v.x) * 0.5;",
        'asm("" : : "f"(a * 0.5));',
        "a = sinpi(a * 0.5);",
    ],
)
def test_not_where_something_else_is_not_float(statement: str) -> None:
    assert offer_for(statement) == []


def test_a_declaration_nearer_by_counts() -> None:
    assert offer_for("{ double a = d; a = a * 0.5; }") == []
    assert len(offer_for("{ double a = d; } a = a * 0.5;")) == 1
    assert len(offer_for("double q = d; { float q = a; a = q * 0.5; }")) == 1
    assert offer_for("auto f = [](double a) { float c = a * 0.5; };") == []
    assert offer_for("for (double a = 0; a < n; ++a) v.x = a * 0.5;") == []
    assert offer_for("if (double a = d) v.x = a * 0.5;") == []


def test_declarations_that_disagree_prove_nothing() -> None:
    text = """
        __device__ float f(int n) {
        #ifdef WIDE
          double a = n;
        #else
          float a = n;
        #endif
          return a * 0.5;  //!
        }
    """
    assert offer("strength_reduction", text) == ()
    agreeing = text.replace("double", "float")
    assert len(offer("strength_reduction", agreeing)) == 1


def test_types_a_template_or_an_alias_chooses_are_unknown() -> None:
    text = "template <typename T>\n__device__ float f(T a) {\n  return a * 0.5;  //!\n}\n"
    assert offer("strength_reduction", text) == ()
    assert len(offer("strength_reduction", text.replace("T a", "float a"))) == 1
    alias = "using real = double;\n__device__ float f(real a) {\n  return a * 0.5;  //!\n}\n"
    assert offer("strength_reduction", alias) == ()


def test_names_of_macros_and_own_functions_are_not_taken_for_what_they_look_like() -> None:
    assert offer_for("a = max(a, 0.0);", f"#define max(a, b) ((double)(a))\n{HEAD}") == []
    assert offer_for("a = max(a, 0.0);", f"double max(double, double);\n{HEAD}") == []
    assert offer_for("a = a * 0.5;", f"#define a d\n{HEAD}") == []


def test_members_of_a_class_hide_variables_of_the_file() -> None:
    text = "__device__ float scale;\nstruct S : T {\n  __device__ float f(float a) {\n    return scale * 0.5;  //!\n  }\n};\n"
    assert offer("strength_reduction", text) == ()
    free = "__device__ float scale;\n__device__ float f(float a) {\n  return scale * 0.5;  //!\n}\n"
    assert len(offer("strength_reduction", free)) == 1


def test_a_result_that_is_no_float() -> None:
    text = "__device__ {} f(float a) {{\n  return a * 0.5;  //!\n}}\n"
    for kind in ("double", "auto", "float&", "float*", "T"):
        assert offer("strength_reduction", text.format(kind)) == ()


def test_text_before_on_the_line_may_be_any_unicode() -> None:
    assert changed("/* äöü 🚀 */ a = a * 0.5;") == "/* äöü 🚀 */ a = a * 0.5f;"
    assert changed("/* 🚀 */ a = a * 0.5 + /* ü */ 0.25;") == "/* 🚀 */ a = a * 0.5f + /* ü */ 0.25f;"
