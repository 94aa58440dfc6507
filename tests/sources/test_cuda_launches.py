"""Block sizes out of host code: numbers, constants, macros and dim3; nothing is guessed."""

import pytest

from gpa_lsp.code.sources.cuda_declarations import find_array_declaration, list_line_arrays
from gpa_lsp.code.sources.host_launches import find_launch_sizes


def read(host: str, before: str = "") -> list[tuple[tuple[int, int, int], int | None]]:
    text = f"{before}\n__global__ void k(float* x) {{}}\nint main() {{ {host} }}\n"
    return [size[1:] for size in find_launch_sizes("k.cu", text, "k")]


@pytest.mark.parametrize(
    ("host", "before", "block"),
    [
        ("k<<<10, 256>>>(p);", "", (256, 1, 1)),
        ("k<<<n / 64, 2 * 64 + 32>>>(p);", "", (160, 1, 1)),
        ("k<<<10, B>>>(p);", "#define B 128", (128, 1, 1)),
        ("k<<<10, B>>>(p);", "#define B (128)", (128, 1, 1)),
        ("k<<<10, B>>>(p);", "constexpr int B = 1 << 7;", (128, 1, 1)),
        ("const int b = 96; k<<<10, b>>>(p);", "", (96, 1, 1)),
        ("dim3 block(16, 8); k<<<grid, block>>>(p);", "", (16, 8, 1)),
        ("dim3 block(T, T); k<<<grid, block>>>(p);", "#define T 16", (16, 16, 1)),
        ("dim3 block{4, 4, 4}; k<<<grid, block>>>(p);", "", (4, 4, 4)),
        ("dim3 block = dim3(32, 2); k<<<grid, block>>>(p);", "", (32, 2, 1)),
        ("k<<<grid, dim3(8, 8)>>>(p);", "", (8, 8, 1)),
        ("ns::k<float, 3><<<grid, 64>>>(p);", "", (64, 1, 1)),
        ("int b = 64; b += 32; k<<<10, b>>>(p);", "", (96, 1, 1)),
        ("{ int b = 32; } { int b = 64; k<<<10, b>>>(p); }", "", (64, 1, 1)),
        ("int b = 64; { int b = 32; } k<<<10, b>>>(p);", "", (64, 1, 1)),
    ],
)
def test_sizes_made_of_numbers(host: str, before: str, block: tuple[int, int, int]) -> None:
    assert read(host, before) == [(block, 0)]


@pytest.mark.parametrize(
    "host",
    [
        "k<<<10, threads>>>(p);",
        "int b = 64; b = read(); k<<<10, b>>>(p);",
        "int b = 64; read(&b); k<<<10, b>>>(p);",
        "dim3 block(16, 8); block.y = n; k<<<grid, block>>>(p);",
        "dim3 block(16, n); k<<<grid, block>>>(p);",
        "k<<<10, 4096>>>(p);",
        "k<<<10, 0>>>(p);",
        "k<<<10, 64 / 0>>>(p);",
        "other<<<10, 64>>>(p);",
        "int b = b; k<<<10, b>>>(p);",
    ],
)
def test_what_the_text_does_not_say_is_not_said(host: str) -> None:
    assert read(host) == []


def test_dynamic_shared_memory() -> None:
    assert read("k<<<1, 64, 1024>>>(p); k<<<1, 64, n * 4>>>(p); k<<<1, 64, 0, stream>>>(p);") == [
        ((64, 1, 1), 1024),
        ((64, 1, 1), None),
        ((64, 1, 1), 0),
    ]


def test_lines_of_launches_and_other_languages() -> None:
    text = "void f() {\n  k<<<1, 32>>>();\n\n  k<<<1, 64>>>();\n}\n"
    assert [(line, block[0]) for line, block, _ in find_launch_sizes("k.cu", text, "k")] == [(2, 32), (4, 64)]
    assert find_launch_sizes("k.unknown", text, "k") == ()
    assert find_launch_sizes("k.cu", "k<<<" * 3000, "k") == ()


ARRAYS = """\
__global__ void k(int* x, int n) {
    int first[4], second[8];
    __shared__ int tile[32];
    {
        int first[2];
        first[n] = x[0]; // second
    }
    x[0] = first[n] + second[n] + tile[n];
}
__device__ int other(int* first) { return first[0]; }
"""


def test_arrays_are_found_by_scope() -> None:
    assert find_array_declaration("k.cu", ARRAYS, 8, "second") == 2
    assert find_array_declaration("k.cu", ARRAYS, 8, "first") == 2
    assert find_array_declaration("k.cu", ARRAYS, 8, "tile") is None
    assert find_array_declaration("k.cu", ARRAYS, 8, "x") is None
    assert find_array_declaration("k.cu", ARRAYS, 6, "first") is None  # two are in sight
    assert find_array_declaration("k.cu", ARRAYS, 10, "first") is None  # a parameter
    assert find_array_declaration("k.cu", ARRAYS, 999, "first") is None
    assert list_line_arrays("k.cu", ARRAYS, 8) == ((2, "first"), (2, "second"))
    assert list_line_arrays("k.cu", ARRAYS, 6) == ()
    assert list_line_arrays("k.cu", ARRAYS, 0) == ()
