"""Launches read out of host code: what the text decides, and nothing else."""

import pytest

from gpa_lsp.sources.host_launch import HostLaunch
from gpa_lsp.sources.host_launches import find_host_launches

KERNEL = "__global__ void k(float *x, int n) {}\n"


def read(text: str) -> tuple[HostLaunch, ...]:
    return find_host_launches("k.cu", KERNEL + text)


def read_one(host: str, before: str = "") -> HostLaunch:
    (launch,) = read(f"{before}\nint main(int argc, char **argv) {{ float *p; {host} }}\n")
    return launch


@pytest.mark.parametrize(
    ("host", "before", "grid", "number"),
    [
        ("int n = 1000; k<<<(n + 255) / 256, 256>>>(p, n);", "", (4, 1, 1), 1000),
        ("int n = argc > 1 ? atoi(argv[1]) : 512; k<<<n / 64, 64>>>(p, n);", "", (8, 1, 1), 512),
        ("int n = 100; if (argc > 1) n = atoi(argv[1]); k<<<1, n>>>(p, n);", "", (1, 1, 1), 100),
        (
            "k<<<div_up(N, 32), 32>>>(p, N);",
            "#define N (10 * 10)\nint div_up(int a, int b) { return (a + b - 1) / b; }",
            (4, 1, 1),
            100,
        ),
        ("for (int s = 64; s > 0; s /= 2) k<<<s, 32>>>(p, s);", "", (64, 1, 1), 64),
        ("dim3 g; g.x = 3; g.y = 2; k<<<g, 32>>>(p, g.x * g.y);", "", (3, 2, 1), 6),
        ("int n; set(n); k<<<n, 32>>>(p, n);", "void set(int &v) { v = 7; }", (7, 1, 1), 7),
        ("int n = (int)ceil(1000 / 256.0); k<<<n, 32>>>(p, n);", "", (4, 1, 1), 4),
    ],
)
def test_numbers_follow_the_program(host: str, before: str, grid: tuple[int, int, int], number: int) -> None:
    launch = read_one(host, before)
    assert (launch.grid, launch.arguments[1].value) == (grid, number)


@pytest.mark.parametrize(
    "host",
    [
        'int n; scanf("%d", &n); k<<<n, 32>>>(p, n);',
        "int n = atoi(argv[1]); k<<<n, 32>>>(p, n);",
        "int n = 4; if (elsewhere()) n = 8; k<<<n, 32>>>(p, n);",
        "int n = 4; for (int i = 0; i < elsewhere(); i++) n *= 2; k<<<n, 32>>>(p, n);",
        "int n = 4; switch (elsewhere()) { case 1: n = 3; } k<<<n, 32>>>(p, n);",
        "int n = n_of_another_file; k<<<n, 32>>>(p, n);",
        "int n = 1 / 0; k<<<n, 32>>>(p, n);",
        "int n = 1 << 62; n = n * n; k<<<n, 32>>>(p, n);",
    ],
)
def test_what_the_text_does_not_decide_is_unknown(host: str) -> None:
    launch = read_one(host)
    assert launch.grid is None and launch.arguments[1].value is None


@pytest.mark.parametrize(
    ("host", "size_bytes"),
    [
        ("cudaMalloc(&p, 100 * sizeof(float));", 400),
        ("CHECK(cudaMalloc((void **)&p, sizeof(Pair) * 10));", 160),
        ("allocate(&p, 25);", 100),
        ("std::vector<double> v(30); cudaMalloc(&p, v.size() * sizeof(double));", 240),
        ("std::vector<double> v(30); v.push_back(1); cudaMalloc(&p, v.size() * sizeof(double));", None),
        ("size_t bytes = 7; bytes *= sizeof *p; cudaMallocManaged(&p, bytes);", 28),
        ("cudaMalloc(&p, elsewhere());", None),
    ],
)
def test_sizes_of_arrays(host: str, size_bytes: int | None) -> None:
    before = "struct Pair { float a; double b; };\nvoid allocate(float **q, int n) { cudaMalloc(q, n * 4); }"
    launch = read_one(f"{host} k<<<1, 1>>>(p, 1);", before)
    assert (launch.arguments[0].is_array, launch.arguments[0].size_bytes) == (True, size_bytes)


def test_launches_of_functions_that_main_does_not_call_and_without_a_main() -> None:
    text = "void run(float *p, int n) {\n  k<<<n, 64, 2 * 128>>>(p, 3);\n}\n"
    (launch,) = read(text)
    assert (launch.line, launch.grid, launch.block, launch.shared_bytes) == (3, None, (64, 1, 1), 256)
    assert launch.arguments[1].value == 3


@pytest.mark.parametrize(
    "text",
    [
        "int f() { return f(); } int main() { int n = f(); k<<<n, 1>>>(0, n); }",
        "#define A B\n#define B A\nint main() { k<<<A, 1>>>(0, A); }",
        "int main() { " + "{" * 300 + "k<<<1, 1>>>(0, 1);" + "}" * 300 + " }",
        "int main() { int n = " + "(" * 400 + "1" + ")" * 400 + "; k<<<n, 1>>>(0, n); }",
        "int main() { for (;;) for (;;) for (;;) k<<<1, 1>>>(0, 1); }",
        "k<<<" * 2000,
    ],
)
def test_hostile_texts_end(text: str) -> None:
    assert len(read(text)) <= 1
