"""Unroll pragmas: put in front of a loop, made larger, made smaller."""

import pytest

from tests.rewrites.notation import offer, plain, rewrite

ROLLED = """
    __global__ void k(float *x, int n) {
      float s = 0;
      for (int i = 0; i < n; ++i)  //!
        s += x[i];
      x[0] = s;
    }
"""


def test_a_pragma_with_the_advised_factor() -> None:
    assert rewrite("loop_unrolling", ROLLED, unroll_copies=4) == plain("""
        __global__ void k(float *x, int n) {
          float s = 0;
          #pragma unroll 4
          for (int i = 0; i < n; ++i)
            s += x[i];
          x[0] = s;
        }
    """)


def test_it_is_preferred_and_changes_no_result() -> None:
    (found,) = offer("loop_unrolling", ROLLED, unroll_copies=4)
    assert found.title == "Put `#pragma unroll 4` before the loop"
    assert found.is_preferred
    assert not found.changes_results
    assert found.optimizers == ("loop_unrolling",)


def test_without_a_factor_the_turns_must_be_known() -> None:
    assert offer("loop_unrolling", ROLLED) == ()
    known = ROLLED.replace("i < n", "i < 16")
    assert "  #pragma unroll\n  for (int i = 0; i < 16; ++i)" in rewrite("loop_unrolling", known)


@pytest.mark.parametrize(
    ("declaration", "bound"),
    [
        ("constexpr int m = 8;", "m"),
        ("const int m = 8;", "2 * m"),
        ("#define M 8\n", "M"),
        ("", "(4 + 4)"),
    ],
)
def test_constants_that_count_turns(declaration: str, bound: str) -> None:
    text = f"{declaration}\n__global__ void k(float *x) {{\n  for (int i = 0; i < {bound}; i += 2)  //!\n    x[i] = 0;\n}}\n"
    assert "#pragma unroll\n" in rewrite("loop_unrolling", text)


@pytest.mark.parametrize(
    ("declaration", "loop"),
    [
        ("const int m = f();", "for (int i = 0; i < m; ++i)"),
        ("int m = 8;", "for (int i = 0; i < m; ++i)"),
        ("#define M (n + 1)\n", "for (int i = 0; i < M; ++i)"),
        ("", "for (int i = threadIdx.x; i < 16; ++i)"),
        ("", "for (int i = 0; i < 16; i += n)"),
        ("", "for (int i = 0; i < 16; i *= 2)"),
        ("", "for (int i = 0; n < 16; ++i)"),
        ("int i;", "for (i = 0; i < 16; ++i)"),
        ("", "while (n < 16)"),
    ],
)
def test_turns_that_are_not_counted(declaration: str, loop: str) -> None:
    text = f"{declaration}\n__global__ void k(float *x, int n) {{\n  {loop}  //!\n    x[i] = 0;\n}}\n"
    assert offer("loop_unrolling", text) == ()
    assert len(offer("loop_unrolling", text, unroll_copies=2)) == 1


def test_a_template_parameter_counts_turns() -> None:
    text = """
        template <typename T, int N>
        __global__ void k(T *x) {
          for (int i = 0; i < N; ++i)  //!
            x[i] = 0;
        }
    """
    assert "  #pragma unroll\n  for" in rewrite("loop_unrolling", text)


@pytest.mark.parametrize(
    "loop", ["while (--n)", "for (auto v : list)", "for (;;)", "for (int i = 0, j = 0; i < n; ++i, ++j)"]
)
def test_every_loop_can_have_a_factor(loop: str) -> None:
    text = f"__device__ void f(int n) {{\n\t{loop}  //!\n\t\tn++;\n}}\n"
    assert f"\n\t#pragma unroll 8\n\t{loop}\n" in rewrite("loop_unrolling", text, unroll_copies=8)


@pytest.mark.parametrize("before", ["if (n)", "else_is_no_loop: if (n) n = 1; else", "for (int j = 0; j < n; ++j)"])
def test_a_loop_that_is_the_body_of_something(before: str) -> None:
    text = f"__device__ void f(int n) {{\n  {before}\n    for (int i = 0; i < n; ++i)  //!\n      g(i);\n}}\n"
    assert f"  {before}\n    #pragma unroll 2\n    for" in rewrite("loop_unrolling", text, unroll_copies=2)


def test_only_the_loop_on_the_line() -> None:
    text = """
        __global__ void k(float *x, int n) {
          for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {  //!
              x[i] += j;
            }
            x[i] = 0;
          }
        }
    """
    assert "    #pragma unroll 2\n    for (int j" in rewrite("loop_unrolling", text, unroll_copies=2)


def test_a_line_in_the_body_is_no_loop() -> None:
    text = ROLLED.replace("  //!", "").replace("s += x[i];", "s += x[i];  //!")
    assert offer("loop_unrolling", text, unroll_copies=4) == ()


def test_a_head_of_several_lines() -> None:
    text = """
        __global__ void k(float *x, int n) {
          for (int i = 0;
               i < n;  //!
               ++i) {
            x[i] = 0;
          }
        }
    """
    assert "  #pragma unroll 2\n  for (int i = 0;\n" in rewrite("loop_unrolling", text, unroll_copies=2)


def test_pragmas_at_the_margin_stay_there() -> None:
    text = """
        __global__ void k(float *x, int n) {
        #pragma unroll
          for (int i = 0; i < 4; ++i) x[i] = 0;
          for (int i = 0; i < n; ++i)  //!
            x[i] = 0;
        }
    """
    assert "\n#pragma unroll 2\n  for (int i = 0; i < n" in rewrite("loop_unrolling", text, unroll_copies=2)


@pytest.mark.parametrize(
    "pragma",
    [
        "#pragma unroll",
        "#pragma unroll 8",
        "#  pragma unroll(16)",
        "#pragma unroll N",
        "#pragma unroll\n  // and why",
        "#pragma unroll\n\n  #pragma nv_diag_suppress 177",
        "#pragma unroll \\\n    16",
        "LIB_PRAGMA_UNROLL",
        "LIB_PRAGMA_NO_UNROLL",
        "#pragma unroll\n  lab:",
    ],
)
def test_not_where_the_programmer_has_asked_for_as_much(pragma: str) -> None:
    text = f"__global__ void k(float *x, int n) {{\n  {pragma}\n  for (int i = 0; i < n; ++i)  //!\n    x[i] = 0;\n}}\n"
    expected = 1 if "lab" in pragma else 0  # a label ends what the pragma is about
    assert len(offer("loop_unrolling", text, unroll_copies=8)) == expected


@pytest.mark.parametrize(
    ("pragma", "after"),
    [
        ("#pragma unroll 1", "#pragma unroll 8"),
        ("#pragma unroll(1)", "#pragma unroll 8"),
        ("#pragma nounroll", "#pragma unroll 8"),
        ("#  pragma   unroll   2  ", "#  pragma   unroll 8  "),
    ],
)
def test_a_smaller_factor_is_replaced(pragma: str, after: str) -> None:
    text = f"__global__ void k(float *x, int n) {{\n{pragma}\n  for (int i = 0; i < n; ++i)  //!\n    x[i] = 0;\n}}\n"
    (found,) = offer("loop_unrolling", text, unroll_copies=8)
    assert (
        found.title == f"Replace `#pragma {' '.join(pragma.split()[1:]).removeprefix('pragma ')}` by `#pragma unroll 8`"
    )
    assert f"{{\n{after}\n  for" in rewrite("loop_unrolling", text, unroll_copies=8)


def test_a_macro_for_a_pragma_keeps_nobody_from_reading_the_rest() -> None:
    text = "__global__ void k(float *x, int n) {\n  LIB_UNROLL\n  for (int i = 0; i < n; ++i)\n    x[i] = sinf(x[i]);  //!\n}\n"
    assert "__sinf(x[i])" in rewrite("fast_math", text, kind="fast_functions")
    assert offer("excessive_unrolling", text.replace("++i)", "++i)  //!"), unroll_copies=1) == ()


def test_a_pragma_with_a_comment_or_a_continued_line_is_left_alone() -> None:
    for pragma in ("#pragma unroll 1 // measured", "#pragma unroll \\\n 1"):
        text = (
            f"__global__ void k(float *x, int n) {{\n{pragma}\n  for (int i = 0; i < n; ++i)  //!\n    x[i] = 0;\n}}\n"
        )
        assert offer("loop_unrolling", text, unroll_copies=8) == ()


def test_the_pragma_of_an_earlier_loop_is_not_this_loops() -> None:
    text = """
        __global__ void k(float *x, int n) {
          #pragma unroll
          for (int i = 0; i < 4; ++i) x[i] = 0;
          for (int i = 0; i < n; ++i)  //!
            x[i] = 0;
        }
    """
    assert len(offer("loop_unrolling", text, unroll_copies=2)) == 1


def test_a_pragma_above_a_condition_of_the_preprocessor_counts() -> None:
    text = """
        __global__ void k(float *x, int n) {
          #pragma unroll
        #ifdef LONG
          for (int i = 0; i < n; ++i)  //!
            x[i] = 0;
        #endif
        }
    """
    assert offer("loop_unrolling", text, unroll_copies=2) == ()


def test_code_in_a_comment_is_no_pragma() -> None:
    text = """
        __global__ void k(float *x, int n) {
          /*
          #pragma unroll
          */
          for (int i = 0; i < n; ++i)  //!
            x[i] = 0;
        }
    """
    assert "*/\n  #pragma unroll 2\n  for" in rewrite("loop_unrolling", text, unroll_copies=2)


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(int n) {\n  if (n) for (int i = 0; i < n; ++i) f(i);  //!\n}\n",
        "__global__ void k(int n) { for (int i = 0; i < n; ++i) f(i); }  //!\n",
        "__global__ void k(int n) {\n  [[unrolled]]\n  for (int i = 0; i < n; ++i) f(i);  //!\n}\n",
        "__global__ void k(int n) {\n  /* x */ for (int i = 0; i < n; ++i) f(i);  //!\n}\n",
    ],
)
def test_a_loop_that_does_not_begin_its_line_cannot_have_a_directive(text: str) -> None:
    assert offer("loop_unrolling", text, unroll_copies=2) == ()


def test_a_loop_in_a_macro_or_a_comment_is_none() -> None:
    text = """
        #define LOOP \\
          for (int i = 0; i < n; ++i)  //!
        // for (int i = 0; i < n; ++i) f(i);  //!
        int a;
    """
    assert offer("loop_unrolling", text, unroll_copies=2) == ()


def test_text_that_does_not_parse_in_the_same_function() -> None:
    broken = ROLLED.replace("x[0] = s;", "x[0] = ;")
    assert offer("loop_unrolling", broken, unroll_copies=4) == ()
    elsewhere = f"{ROLLED}\nvoid broken() {{ a = ; }}\n"
    assert len(offer("loop_unrolling", elsewhere, unroll_copies=4)) == 1


def test_less_unrolling() -> None:
    text = """
        __global__ void k(float *x, int n) {
          #pragma unroll
          for (int i = 0; i < 1024; ++i)  //!
            x[i] = 0;
        }
    """
    assert "  #pragma unroll 4\n  for" in rewrite("excessive_unrolling", text, unroll_copies=4)
    assert "  #pragma unroll 4\n  for" in rewrite(
        "excessive_unrolling", text.replace("unroll\n", "unroll 64\n"), unroll_copies=4
    )
    bare = text.replace("          #pragma unroll\n", "")
    assert "  #pragma unroll 1\n  for" in rewrite("excessive_unrolling", bare, unroll_copies=1)


@pytest.mark.parametrize("factor", ["4", "2", "N"])
def test_not_less_than_there_is(factor: str) -> None:
    text = f"void f(int n) {{\n#pragma unroll {factor}\n  for (int i = 0; i < n; ++i)  //!\n    g(i);\n}}\n"
    assert offer("excessive_unrolling", text, unroll_copies=4) == ()


def test_less_of_a_loop_inside_that_left_no_loop_of_its_own() -> None:
    text = """
        __global__ void k(float *x, int n) {
          #pragma unroll 1
          for (int i = 0; i < n; ++i) {  //!
            #pragma unroll
            for (int j = 0; j < 1024; ++j)
              x[j] = 0;
            #pragma unroll 2
            for (int j = 0; j < 1024; ++j)
              x[j] = 0;
            for (int j = 0; j < 64; ++j)
              x[j] = 0;
            for (int j = 0; j < n; ++j)
              x[j] = 0;
          }
        }
    """
    found = offer("excessive_unrolling", text, unroll_copies=8)
    assert [(one.edits[0].start.line, one.title) for one in found] == [
        (4, "Replace `#pragma unroll` by `#pragma unroll 8`"),
        (10, "Put `#pragma unroll 8` before the loop"),
    ]


def test_not_less_without_a_number() -> None:
    assert offer("excessive_unrolling", ROLLED) == ()


INDEXED = """
    __global__ void k(float *x, int n) {
      float state[8];
      for (int i = 0; i < 8; ++i)
        state[i] = x[i];  //!
      x[0] = state[n];
    }
"""


def test_a_loop_whose_counter_indexes_a_local_array() -> None:
    assert "  #pragma unroll\n  for (int i" in rewrite("register_reuse", INDEXED, kind="unroll_indexing_loop")
    (found,) = offer("register_reuse", INDEXED)
    assert found.title == "Put `#pragma unroll` before the loop that indexes `state`"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("float state[8];", "__shared__ float state[8];"),
        ("float state[8];", "float *state = x;"),
        ("i < 8", "i < n"),
        ("state[i] = x[i]", "state[n] = x[i]"),
        ("      for (int i", "#pragma unroll 1\n      for (int i"),
    ],
)
def test_loops_that_do_not_keep_an_array_from_registers(before: str, after: str) -> None:
    assert offer("register_reuse", INDEXED.replace(before, after)) == ()
