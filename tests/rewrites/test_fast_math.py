"""Approximate functions, divisions and roots, and reciprocals of literals."""

import pytest

from gpa_lsp.diagnosis.rewrites.edits import apply_edits
from tests.rewrites.notation import offer, read_marked

HEAD = "__device__ float g(float *x, float a, float b, float4 v, int n, double d) {\n"


def changed(kind: str, statement: str, head: str = HEAD) -> list[str]:
    """The statement after each rewrite of a kind that is offered for it."""
    text = f"{head}  {statement}  //!\n}}\n"
    found = offer("fast_math", text, kind=kind)
    return [
        apply_edits(read_marked(text)[0], one.edits).removeprefix(f"{head}  ").removesuffix("\n}\n") for one in found
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = sinf(b);", "a = __sinf(b);"),
        ("a = ::cosf(x[n]);", "a = __cosf(x[n]);"),
        ("a = std::exp(b);", "a = __expf(b);"),
        ("a = log(v.x);", "a = __logf(v.x);"),
        ("a = powf(d, 1.7f);", "a = __powf(d, 1.7f);"),
        ("a = pow(b, 1.7f);", "a = __powf(b, 1.7f);"),
        ("sincosf(a, &x[0], &x[1]);", "__sincosf(a, &x[0], &x[1]);"),
        ("a = exp10f(b) * 2;", "a = __exp10f(b) * 2;"),
    ],
)
def test_functions_with_an_intrinsic(before: str, after: str) -> None:
    assert changed("fast_functions", before) == [after]


@pytest.mark.parametrize(
    "statement",
    [
        "a = __sinf(b);",
        "d = sin(d);",
        "a = pow(b, 2.0);",
        "a = pow(b, 2);",
        "a = pow(b, n);",
        "a = log(unknown);",
        "a = n::sinf(b);",
        "a = s.sinf(b);",
        "a = sqrtf(b);",
        "a = sinpif(b);",
        "a = (sinf)(b);",
        "sincos(d, p, q);",
    ],
)
def test_functions_without_one_or_of_another_precision(statement: str) -> None:
    assert changed("fast_functions", statement) == []


def test_each_call_is_a_choice_of_its_own() -> None:
    assert changed("fast_functions", "a = sinf(cosf(b));") == ["a = __sinf(cosf(b));", "a = sinf(__cosf(b));"]


def test_the_error_is_named() -> None:
    (found,) = offer("fast_math", f"{HEAD}  a = sinf(b);  //!\n}}\n")
    assert found.title == "Use `__sinf` for `sinf`"
    assert "within 2^-21.4 for angles from -π to π" in found.explanation
    assert "-use_fast_math" in found.explanation
    assert found.changes_results
    assert not found.is_preferred


@pytest.mark.parametrize("marks", ["", "__host__ __device__ ", "__host__ ", "constexpr __device__ ", "static "])
def test_intrinsics_are_for_the_device_only(marks: str) -> None:
    head = f"{marks}float g(float a, float b) {{\n"
    assert changed("fast_functions", "a = sinf(b);", head) == []
    assert changed("fast_division", "a = a / b;", head) == []


def test_a_name_the_file_gives_a_meaning() -> None:
    for before in (
        "#define sinf(x) mine(x)\n",
        "__device__ float sinf(float, int);\n",
        "namespace q { float sinf(int) {} }\n",
    ):
        assert changed("fast_functions", "a = sinf(b);", f"{before}{HEAD}") == []
    assert changed("fast_functions", "float (*sinf)(float) = h; a = sinf(b);") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = a / b;", "a = __fdividef(a, b);"),
        ("a = (a + 1)/(b - x[0]);", "a = __fdividef((a + 1), (b - x[0]));"),
        ("a = n / b;", "a = __fdividef(n, b);"),
        ("a = b * a / x[n];", "a = __fdividef(b * a, x[n]);"),
        ("a /= b;", "a = __fdividef(a, b);"),
        ("a /= b + 1;", "a = __fdividef(a, b + 1);"),
        ("d = d + a / -b;", "d = d + __fdividef(a, -b);"),
    ],
)
def test_divisions_of_floats(before: str, after: str) -> None:
    assert changed("fast_division", before) == [after]


@pytest.mark.parametrize(
    "statement",
    [
        "n = n / 3;",
        "a = d / b;",
        "a = b / d;",
        "a = b / 2.0;",
        "a = b / 3.0f;",
        "a = b / unknown;",
        "x[0] /= b;",
        "a /= d;",
        "a = b / /* why */ a;",
        "a = n / n;",
        "a = __fdividef(a, b);",
        "a = a % b;",
        "x = x / a;",
    ],
)
def test_not_other_divisions(statement: str) -> None:
    assert changed("fast_division", statement) == []


def test_divisions_over_two_lines_are_found_on_both() -> None:
    for first, second in (("  //!", ""), ("", "  //!")):
        text = f"{HEAD}  a = x[n]{first}\n    / b;{second}\n}}\n"
        assert len(offer("fast_math", text, kind="fast_division")) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1.0f / sqrtf(b);", "a = rsqrtf(b);"),
        ("a = 1/sqrt(b + x[0]);", "a = rsqrtf(b + x[0]);"),
        ("a = b / std::sqrt(a);", "a = b * rsqrtf(a);"),
        ("a = 2.0f / sqrtf(d);", "a = 2.0f * rsqrtf(d);"),
        ("a = b * 1.0f / sqrtf(a);", "a = b * 1.0f * rsqrtf(a);"),
    ],
)
def test_divisions_by_a_root(before: str, after: str) -> None:
    assert changed("reciprocal_root", before) == [after]


@pytest.mark.parametrize(
    "statement",
    [
        "a = 1.0 / sqrtf(b);",
        "a = 1.0f / sqrt(d);",
        "a = 1 / cbrtf(b);",
        "a /= sqrtf(b);",
        "a = sqrtf(b) / a;",
        "a = a * rsqrtf(b);",
    ],
)
def test_not_other_roots(statement: str) -> None:
    assert changed("reciprocal_root", statement) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = b / 12.0f;", "a = b * (1.0f / 12.0f);"),
        ("a = x[n] / 3;", "a = x[n] * (1.0f / 3);"),
        ("d = d / 12.0;", "d = d * (1.0 / 12.0);"),
        ("x[n] /= 0.3f;", "x[n] *= (1.0f / 0.3f);"),
        ("a = a / 3.0f / b;", "a = a * (1.0f / 3.0f) / b;"),
    ],
)
def test_divisions_by_a_literal(before: str, after: str) -> None:
    assert changed("reciprocal_of_literal", before) == [after]


@pytest.mark.parametrize(
    "statement",
    [
        "a = b / 8.0f;",
        "a = b / 0.25f;",
        "a = b / 0.0f;",
        "n = n / 3;",
        "a = b / 3.0;",
        "a = 1.0f / 3.0f;",
        "a = unknown / 3.0f;",
        "a = b * (1.0f / 12.0f);",
        "a = a / 3.0L;",
    ],
)
def test_not_other_literals(statement: str) -> None:
    assert changed("reciprocal_of_literal", statement) == []
