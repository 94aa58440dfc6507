"""One division before a loop in place of one in every turn."""

import pytest

from gpa_lsp.diagnosis.rewrites.edits import apply_edits
from tests.rewrites.notation import offer, plain, read_marked, rewrite

KIND = "reciprocal_before_loop"

LOOP = """
    __global__ void k(const float *x, float *y, float b, int n) {
      float c = b + 1;
      for (int i = 0; i < n; ++i) {
        y[i] = x[i] / b;  //!
      }
    }
"""


def offer_loop(text: str) -> list[str]:
    return [one.title for one in offer("fast_math", text, kind=KIND)]


def test_the_division_moves_before_the_loop() -> None:
    assert rewrite("fast_math", LOOP, kind=KIND) == plain("""
        __global__ void k(const float *x, float *y, float b, int n) {
          float c = b + 1;
          const float inv_b = 1.0f / b;
          for (int i = 0; i < n; ++i) {
            y[i] = x[i] * inv_b;
          }
        }
    """)
    (found,) = offer("fast_math", LOOP, kind=KIND)
    assert found.title == "Divide once before the loop and multiply by `inv_b` in `x[i] / b`"
    assert "last bit" in found.explanation
    assert found.changes_results
    assert set(found.optimizers) == {"fast_math", "strength_reduction"}


def test_all_divisions_of_the_loop_by_the_same() -> None:
    text = LOOP.replace(
        "y[i] = x[i] / b;  //!", "y[i] = x[i] / b;  //!\n        y[i] /= b;\n        y[i] += c / b / c;"
    )
    after = rewrite("fast_math", text, kind=KIND)
    assert "y[i] = x[i] * inv_b;" in after
    assert "y[i] *= inv_b;" in after
    assert "y[i] += c * inv_b / c;" in after
    (found,) = offer("fast_math", text, kind=KIND)
    assert found.title == "Divide once before the loop and multiply by `inv_b` in 3 divisions"


def test_a_divisor_that_divides_itself_is_moved_as_a_whole() -> None:
    text = """
        __global__ void k(double *y, double b, int n) {
          for (int i = 0; i < n; ++i)
            y[i] /= 0.5 / sqrt(b);  //!
        }
    """
    offers = offer("fast_math", text, kind=KIND)
    assert len(offers) == 2
    outer, inner = (apply_edits(read_marked(text)[0], one.edits) for one in offers)
    assert "const double inv_divisor = 1.0 / (0.5 / sqrt(b));" in outer
    assert "y[i] *= inv_divisor;" in outer
    assert "const double inv_divisor = 1.0 / sqrt(b);" in inner
    assert "y[i] /= 0.5 * inv_divisor;" in inner


def test_the_outermost_loop_that_leaves_the_divisor_alone() -> None:
    text = """
        __global__ void k(float *x, float b, int n) {
          #pragma unroll 2
          // rows
          for (int j = 0; j < n; ++j) {
            for (int i = 0; i < n; ++i)
              x[i] /= b;  //!
          }
        }
    """
    assert "{\n  const float inv_b = 1.0f / b;\n  #pragma unroll 2\n  // rows\n" in rewrite(
        "fast_math", text, kind=KIND
    )
    changed = text.replace("for (int i", "b += 1;\n            for (int i")
    assert "    const float inv_b = 1.0f / b;\n    for (int i" in rewrite("fast_math", changed, kind=KIND)


@pytest.mark.parametrize(
    ("divisor", "declared"),
    [
        ("n", "const float inv_n = 1.0f / n;"),
        ("(c + 1.0f)", "const float inv_divisor = 1.0f / (c + 1.0f);"),
        ("(float)n", "const float inv_divisor = 1.0f / (float)n;"),
        ("fmaxf(b, c)", "const float inv_divisor = 1.0f / fmaxf(b, c);"),
        ("blockDim.x", "const float inv_divisor = 1.0f / blockDim.x;"),
        ("-b", "const float inv_divisor = 1.0f / (-b);"),
    ],
)
def test_divisors_of_several_shapes(divisor: str, declared: str) -> None:
    assert f"  {declared}\n  for" in rewrite("fast_math", LOOP.replace("/ b", f"/ {divisor}"), kind=KIND)


def test_a_sum_behind_an_assigning_division_keeps_together() -> None:
    text = LOOP.replace("y[i] = x[i] / b;", "y[i] /= b + c;")
    assert "= 1.0f / (b + c);\n" in rewrite("fast_math", text, kind=KIND)


def test_double_precision() -> None:
    text = LOOP.replace("float", "double")
    after = rewrite("fast_math", text, kind=KIND)
    assert "const double inv_b = 1.0 / b;" in after


def test_the_name_is_new_in_the_whole_file() -> None:
    text = f"int inv_b, inv_b2;  // not inv_b3\n{plain(LOOP)}"
    assert "const float inv_b4 = 1.0f / b;" in rewrite("fast_math", text, kind=KIND)


@pytest.mark.parametrize(
    "statement",
    [
        "b = x[i];",
        "b += 1;",
        "++b;",
        "(b) = 1;",
        "(n ? b : c) = 1;",
        "change(b);",
        "change(&b);",
        "MACRO(b);",
        "std::swap(b, c);",
        "float &r = b;",
        "float *p = &b;",
        'asm("" : "+f"(b));',
        "auto f = [&b] { g(); };",
        "auto f = [&] { b = 1; };",
    ],
)
def test_not_where_the_loop_may_change_the_divisor(statement: str) -> None:
    assert offer_loop(LOOP.replace("y[i] =", f"{statement} y[i] =")) == []


@pytest.mark.parametrize(
    "statement",
    ["float *p = &b;", "float &r = b;", "auto f = [&] { b = 1; };", "auto f = [&b] { g(); };", "lab: if (n) goto lab;"],
)
def test_not_where_something_before_the_loop_lets_it_change(statement: str) -> None:
    assert offer_loop(LOOP.replace("float c = b + 1;", f"float c = b + 1; {statement}")) == []


@pytest.mark.parametrize(
    "statement",
    ["b = c;", "change(b);", "c = b;", "if (b > c) return;", "auto f = [=] { return b; };"],
)
def test_before_the_loop_much_is_harmless(statement: str) -> None:
    assert len(offer_loop(LOOP.replace("float c = b + 1;", f"float c = b + 1; {statement}"))) == 1


@pytest.mark.parametrize(
    "statement", ["c = b;", "c = fmaxf(b, c);", "if (b > c) continue;", "{ float b = 2; b += 1; }"]
)
def test_reading_the_divisor_in_the_loop_is_harmless(statement: str) -> None:
    assert len(offer_loop(LOOP.replace("y[i] =", f"{statement} y[i] ="))) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/ b", "/ x[0]"),
        ("/ b", "/ *x"),
        ("/ b", "/ x[i]"),
        ("/ b", "/ i"),
        ("/ b", "/ f(b)"),
        ("/ b", "/ 3.0f"),
        ("/ b", "/ (3.0f + 1)"),
        ("/ b", "/ unknown"),
        ("/ b", "/ (c = b)"),
        ("x[i] / b", "i / n"),
        ("float b", "float &b"),
        ("float b", "volatile float b"),
        ("float b", "T b"),
        ("float c = b + 1;", "__shared__ float b;"),
        ("float c = b + 1;", "static float b;"),
        ("for (int i", "if (n) for (int i"),
        ("for (int i", "c += 1; for (int i"),
    ],
)
def test_not_what_the_text_does_not_prove(before: str, after: str) -> None:
    assert offer_loop(LOOP.replace(before, after)) == []


def test_a_loop_in_the_middle_of_a_line_belongs_to_the_one_that_begins_it() -> None:
    text = LOOP.replace("for (int i", "while (n) for (int i")
    assert "  const float inv_b = 1.0f / b;\n  while (n) for (int i" in rewrite("fast_math", text, kind=KIND)


def test_a_variable_declared_in_the_loop() -> None:
    assert offer_loop(LOOP.replace("y[i] =", "float b = x[0]; y[i] =")) == []
    assert offer_loop(LOOP.replace("int i = 0;", "float b = 2;")) == []


def test_variables_of_the_file_must_be_constant() -> None:
    for qualifier, expected in (("__device__", 0), ("", 0), ("__constant__", 1), ("static const", 1), ("constexpr", 1)):
        text = f"{qualifier} float rate = 3;\n{plain(LOOP).replace('/ b', '/ rate')}"
        assert len(offer_loop(text)) == expected, qualifier


def test_a_macro_that_mentions_the_divisor() -> None:
    assert offer_loop(f"#define STEP (b += 1)\n{plain(LOOP)}") == []
    assert len(offer_loop(f"#define STEP (bb += 1)\n{plain(LOOP)}")) == 1
    assert offer_loop(f"#define b c\n{plain(LOOP)}") == []


def test_a_division_in_a_lambda_is_not_the_loops() -> None:
    text = LOOP.replace("y[i] = x[i] / b;", "auto f = [=](float v) { return v / b; };")
    assert offer_loop(text) == []
    other = LOOP.replace(
        "y[i] = x[i] / b;  //!", "y[i] = x[i] / b;  //!\n        auto f = [b](float v) { return v / b; };"
    )
    assert "return v / b; };" in rewrite("fast_math", other, kind=KIND)


def test_another_variable_of_the_same_name_keeps_its_division() -> None:
    text = LOOP.replace("y[i] = x[i] / b;  //!", "y[i] = x[i] / b;  //!\n        { float b = x[i]; y[i] += c / b; }")
    after = rewrite("fast_math", text, kind=KIND)
    assert "y[i] = x[i] * inv_b;" in after
    assert "y[i] += c / b;" in after


def test_a_switch_has_no_room_before_the_loop() -> None:
    text = LOOP.replace("for (int i", "switch (n) { case 1:\n      for (int i").replace(
        "      }\n    }", "      } }\n    }"
    )
    assert offer_loop(text) == []


def test_outside_loops() -> None:
    assert offer_loop("__device__ float f(float a, float b) {\n  return a / b;  //!\n}\n") == []
