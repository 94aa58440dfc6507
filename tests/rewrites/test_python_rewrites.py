"""Rewrites of Python kernels: Triton's loops, Numba's options and literals."""

import ast

import pytest

from gpa_lsp.diagnosis.rewrites.edits import apply_edits
from tests.rewrites.notation import offer, read_marked

TRITON = "import triton\nimport triton.language as tl\n"


def triton(
    loop: str, *, head: str = TRITON, body: str = "acc += tl.load(x + i)", decorator: str = "@triton.jit"
) -> str:
    return (
        f"{head}{decorator}\ndef k(x, n, BLOCK: tl.constexpr, M: tl.constexpr = 4):\n    {loop}  #!\n        {body}\n"
    )


def loops(optimizer: str, text: str, **context: object) -> list[str]:
    """The line of the loop after each rewrite; every rewritten text is Python."""
    found = []
    for one in offer(optimizer, text, file="k.py", **context):
        after = apply_edits(read_marked(text)[0], one.edits)
        ast.parse(after)
        found += [line.strip() for line in after.split("\n") if line.strip().startswith("for")]
    return found


@pytest.mark.parametrize(
    ("loop", "after"),
    [
        ("for i in range(n):", "for i in tl.range(n, loop_unroll_factor=4):"),
        ("for i in range(0, n, BLOCK,):", "for i in tl.range(0, n, BLOCK, loop_unroll_factor=4,):"),
        ("for i in tl.range(n, num_stages=2):", "for i in tl.range(n, num_stages=2, loop_unroll_factor=4):"),
    ],
)
def test_triton_unrolls_by_a_factor(loop: str, after: str) -> None:
    assert loops("loop_unrolling", triton(loop), unroll_copies=4) == [after]


@pytest.mark.parametrize(
    ("loop", "after"),
    [
        ("for i in range(8):", "for i in tl.static_range(8):"),
        ("for i in range(0, M * 2):", "for i in tl.static_range(0, M * 2):"),
        ("for i in tl.range(BLOCK):", "for i in tl.static_range(BLOCK):"),
    ],
)
def test_triton_unrolls_completely_where_the_range_is_constant(loop: str, after: str) -> None:
    assert loops("loop_unrolling", triton(loop)) == [after]


@pytest.mark.parametrize(
    "loop",
    [
        "for i in range(n):",
        "for i in range(64):",
        "for i in range(8 * 1024):",
        "for i in range(0, 8, 0):",
        "for i in range(100000000000000000000000000):",
        "for i in range(x.shape[0]):",
        "for i in tl.range(8, num_stages=2):",
        "for i in range(*sizes):",
        "for i in other(8):",
        "for i in tl.static_range(8):",
        "for i in [1, 2]:",
    ],
)
def test_triton_does_not_unroll_other_ranges_completely(loop: str) -> None:
    assert loops("loop_unrolling", triton(loop)) == []


def test_triton_does_not_unroll_what_is_left_early() -> None:
    assert loops("loop_unrolling", triton("for i in range(8):", body="break")) == []


def test_triton_is_told_once() -> None:
    assert loops("loop_unrolling", triton("for i in tl.range(n, loop_unroll_factor=2):"), unroll_copies=4) == []
    assert loops("loop_unrolling", triton("for i in range(n):"), unroll_copies=1) == []
    assert loops("code_reordering", triton("for i in tl.range(n, num_stages=2):")) == []


def test_triton_loads_ahead() -> None:
    for optimizer in ("code_reordering", "async_copy"):
        assert loops(optimizer, triton("for i in range(0, n, BLOCK):")) == [
            "for i in tl.range(0, n, BLOCK, num_stages=3):"
        ]
    assert loops("code_reordering", triton("for i in range(0, n, BLOCK):", body="acc += i")) == []


@pytest.mark.parametrize(
    ("head", "language"),
    [
        ("import triton\nfrom triton import language as lang\n", "lang"),
        ("try:\n    import triton\nexcept ImportError:\n    pass\nimport triton.language as tl\n", "tl"),
    ],
)
def test_names_of_imports_are_the_files_own(head: str, language: str) -> None:
    text = triton("for i in range(n):", head=head, body="pass").replace("tl.constexpr", f"{language}.constexpr")
    assert loops("loop_unrolling", text, unroll_copies=2) == [f"for i in {language}.range(n, loop_unroll_factor=2):"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@triton.jit", "@other.jit"),
        ("@triton.jit\n", ""),
        ("import triton\n", "import trident as triton\n"),
        ("import triton.language as tl\n", ""),
        ("def k(x,", "def k(range, x,"),
        ("def k(x,", "def k(tl, x,"),
        ("@triton.jit", "def range(n): return n\n@triton.jit"),
        ("acc += tl.load(x + i)", "acc += = 1"),
    ],
)
def test_not_where_a_name_may_mean_something_else(before: str, after: str) -> None:
    text = triton("for i in range(n):").replace(before, after)
    assert offer("loop_unrolling", text, file="k.py", unroll_copies=4) == ()


def test_other_decorators_may_stand_around() -> None:
    text = triton("for i in range(n):", decorator="@triton.autotune(configs=[], key=['n'])\n@triton.jit")
    assert len(offer("loop_unrolling", text, file="k.py", unroll_copies=4)) == 1


NUMBA = "import numpy as np\nfrom numba import cuda, float32, void\n"


def options(optimizer: str, decorator: str, *, head: str = NUMBA, **context: object) -> list[str]:
    """The decorator after each rewrite."""
    text = f"{head}{decorator}\ndef k(x, y):\n    x[0] = y[0] / 3  #!\n"
    found = []
    for one in offer(optimizer, text, file="k.py", **context):
        after = apply_edits(read_marked(text)[0], one.edits)
        ast.parse(after)
        found.append(after.removeprefix(head).partition("\ndef")[0])
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@cuda.jit", "@cuda.jit(fastmath=True)"),
        ("@cuda.jit()", "@cuda.jit(fastmath=True)"),
        ("@cuda.jit(opt=True)", "@cuda.jit(opt=True, fastmath=True)"),
        (
            '@cuda.jit("void(float32[:], float32[:])",\n  # why\n)',
            '@cuda.jit("void(float32[:], float32[:])", fastmath=True,\n  # why\n)',
        ),
        ("@cuda.jit(device=False)", "@cuda.jit(device=False, fastmath=True)"),
    ],
)
def test_numba_fast_math(before: str, after: str) -> None:
    assert options("fast_math", before) == [after]


def test_numba_registers() -> None:
    assert options("thread_increase", "@cuda.jit", max_registers=64) == ["@cuda.jit(max_registers=64)"]
    assert options("thread_increase", "@cuda.jit") == []
    assert options("thread_increase", "@cuda.jit(max_registers=32)", max_registers=64) == []


@pytest.mark.parametrize(
    "decorator",
    [
        "@cuda.jit(fastmath=False)",
        "@cuda.jit(**options)",
        "@cuda.jit(device=True)",
        "@cuda.jit(device=flag)",
        "@other.jit",
        "@cuda.reduce",
    ],
)
def test_numba_is_not_told_twice_and_device_functions_not_at_all(decorator: str) -> None:
    assert options("fast_math", decorator) == []


def test_numba_under_other_names() -> None:
    assert options("fast_math", "@jit", head="from numba.cuda import jit\n") == ["@jit(fastmath=True)"]
    assert options("fast_math", "@numba.cuda.jit", head="import numba.cuda\n") == ["@numba.cuda.jit(fastmath=True)"]
    assert options("fast_math", "@cuda.jit", head="from pycuda import cuda\n") == []
    assert options("fast_math", "@cuda.jit", head="from numba import cuda\nfrom other import cuda\n") == []


def test_the_kernel_of_the_name_wherever_the_line_is() -> None:
    text = f"{NUMBA}@cuda.jit(device=True)\ndef f(x):\n    return x / 3  #!\n@cuda.jit\ndef k(x):\n    x[0] = f(x[0])\n"
    (found,) = offer("fast_math", text, file="k.py", kernel="k")
    assert found.title == "Compile `k` with `fastmath=True`"
    assert offer("fast_math", text, file="k.py") == ()


SIGNED = '@cuda.jit("void(float32[:], float32[:, ::1], float32, int32)")'


def literals(statement: str, *, decorator: str = SIGNED, head: str = NUMBA) -> list[str]:
    """The statement after each rewrite."""
    start = (
        f"{head}{decorator}\ndef k(x, y, s, n):\n    t = cuda.shared.array((4, 4), dtype=float32)\n    u = cuda.local.array(8, np.float32)\n"
        "    v = np.float32(n)\n    w = x[n]\n    d = cuda.local.array(8, np.float64)\n    "
    )
    text = f"{start}{statement}  #!\n"
    found = []
    for one in offer("strength_reduction", text, file="k.py"):
        after = apply_edits(read_marked(text)[0], one.edits)
        ast.parse(after)
        found.append(after.removeprefix(start).rstrip("\n"))
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x[0] = x[1] * 0.5", "x[0] = x[1] * np.float32(0.5)"),
        ("x[0] = x[1] * 0.7 + s - 1.5", "x[0] = x[1] * np.float32(0.7) + s - np.float32(1.5)"),
        ("y[1, 2] = y[0, 0] * -2.5", "y[1, 2] = y[0, 0] * -np.float32(2.5)"),
        ("y[1, 2] += 0.5", "y[1, 2] += np.float32(0.5)"),
        ("t[1, 2] = (t[0, 0] + v) * 2.5", "t[1, 2] = (t[0, 0] + v) * np.float32(2.5)"),
        ("u[1] = u[2] / 3.0 + w", "u[1] = u[2] / np.float32(3.0) + w"),
        ("h = (x[1] + s) * v; u[1] = u[2] * 0.5 - h", "h = (x[1] + s) * v; u[1] = u[2] * np.float32(0.5) - h"),
        ("h = -s; u[1] = h * 0.5", "h = -s; u[1] = h * np.float32(0.5)"),
        ("d[1] = np.float32(x[0] * 0.5)", "d[1] = np.float32(x[0] * np.float32(0.5))"),
    ],
)
def test_numba_literals_among_single_precision(before: str, after: str) -> None:
    assert literals(before) == [after]


@pytest.mark.parametrize(
    "statement",
    [
        "x[0] = x[1] * np.float32(0.5)",
        "x[0] = 0.5",
        "x[0] = x[1] * 2",
        "x[0] = x[1] * 0.5 * 2",
        "x[0] = x[1] * 0.5 + n",
        "x[0] = y[1] * 0.5",
        "x[0] = x[0:1] * 0.5",
        "x[0] = x[1] ** 0.5",
        "x[0] = x[1] * 1e300",
        "x[0] = d[1] * 0.5",
        "d[0] = x[1] * 0.5",
        "z = x[1] * 0.5",
        "x[0] **= x[1] * 0.5",
        "h = x[1] ** s; x[0] = h * 0.5",
        "h = x[1] * n; x[0] = h * 0.5",
        "h = g; g = h; x[0] = h * 0.5",
        "h += x[1]; x[0] = h * 0.5",
        "x[0] = f(x[1]) * 0.5",
        "f(x[1] * 0.5)",
        "v = 2.0; x[0] = v * 0.5",
        "x = d; x[0] = x[1] * 0.5",
    ],
)
def test_numba_literals_of_which_that_is_not_certain(statement: str) -> None:
    assert literals(statement) == []


def test_numba_literals_that_are_rounded_are_said_to_be() -> None:
    text = f'{NUMBA}@cuda.jit("void(float32[:])")\ndef k(x):\n    x[0] = x[1] * {{}}  #!\n'
    (exact,) = offer("strength_reduction", text.format("0.5"), file="k.py")
    (rounded,) = offer("strength_reduction", text.format("0.1"), file="k.py")
    assert exact.title == "Write `np.float32(0.5)`"
    assert rounded.title == "Write `np.float32(0.1)` (rounds to float)"
    assert exact.changes_results


def test_numba_signatures_as_objects_and_none_at_all() -> None:
    objects = "@cuda.jit(void(float32[:], float32[:, :], float32, int32))"
    assert literals("x[0] = x[1] * 0.5", decorator=objects) == ["x[0] = x[1] * np.float32(0.5)"]
    assert literals("x[0] = x[1] * 0.5", decorator="@cuda.jit") == []
    assert literals("u[0] = u[1] * 0.5", decorator="@cuda.jit") == ["u[0] = u[1] * np.float32(0.5)"]
    assert literals("x[0] = x[1] * 0.5", decorator='@cuda.jit("void(float32[:])")') == []
    assert literals("x[0] = x[1] * 0.5", decorator='@cuda.jit(["void(float32[:])"])') == []
    assert literals("x[0] = x[1] * 0.5", decorator='@cuda.jit("void(float32[:], float32[:, :], float32, int32")') == []


def test_numba_needs_a_name_for_the_conversion() -> None:
    head = "from numba import cuda, float32\n"
    text = f'{head}@cuda.jit("void(float32[:])")\ndef k(x):\n    x[0] = x[1] * 0.5  #!\n'
    (found,) = offer("strength_reduction", text, file="k.py")
    assert found.title == "Write `float32(0.5)`"
    assert offer("strength_reduction", text.replace(", float32", "", 1), file="k.py") == ()
