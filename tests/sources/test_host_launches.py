"""Launches read out of host code: what the text decides, and nothing else."""

import pytest

from gpa_lsp.code.sources.host_launches import find_host_launches
from gpa_lsp.code.sources.host_statements import Statements
from gpa_lsp.code.sources.host_values import HostLaunch

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
        ("for (int s = 64; s > elsewhere(); s /= 2) k<<<s, 32>>>(p, s);", "", (64, 1, 1), 64),
        ("int s = 1; while (s * s < 60) s *= 2; k<<<s, 32>>>(p, s);", "", (8, 1, 1), 8),
        ("k<<<UP(N, 32), 32>>>(p, N);", "#define UP(a, b) (((a) + (b) - 1) / (b))\n#define N 100", (4, 1, 1), 100),
        (
            "k<<<T, 32>>>(p, B);",
            "#ifdef OTHER\n#define T 9\n#else\n#define T 3\n#endif\nenum { A = 4, B };",
            (3, 1, 1),
            5,
        ),
        ("int sizes[] = {3, 5}; k<<<sizes[1], 32>>>(p, sizes[0]);", "", (5, 1, 1), 3),
        (
            "Shape s; s.n = 6; k<<<twice(s), 32>>>(p, s.n);",
            "struct Shape { int n; };\nint twice(Shape s) { s.n *= 2; return s.n; }",
            (12, 1, 1),
            6,
        ),
        ("int n = 5; void *all[] = {&p, &n}; cudaLaunchKernel((void *)k, 2, 32, all, 0, 0);", "", (2, 1, 1), 5),
        ("dim3 g; g.x = 3; g.y = 2; k<<<g, 32>>>(p, g.x * g.y);", "", (3, 2, 1), 6),
        ("int n; set(n); k<<<n, 32>>>(p, n);", "void set(int &v) { v = 7; }", (7, 1, 1), 7),
        ("int n = (int)ceil(1000 / 256.0); k<<<n, 32>>>(p, n);", "", (4, 1, 1), 4),
        ("int n = 2, m = 64; for (; m > 8; m /= 2, n *= 2) {} k<<<n, 32>>>(p, m);", "", (16, 1, 1), 8),
        ("int n = 4; for (;;) { if (n == 4) break; n = 9; } k<<<n, 32>>>(p, n);", "", (4, 1, 1), 4),
        ("int n = 3; switch (n) { case 3: { n = 6; break; } default: n = 1; } k<<<n, 32>>>(p, n);", "", (6, 1, 1), 6),
        ("start(p, 5);", "void start(float *p, int blocks, int n = 9) { k<<<blocks, 32>>>(p, n); }", (5, 1, 1), 9),
        (
            "start(p);",
            "const int N = 4;\nvoid start(float *p, int = 3, int n = N * 2);\nvoid start(float *p, int b, int n) { k<<<b, 32>>>(p, n); }",
            (3, 1, 1),
            8,
        ),
        ("k << <6, 32 >> > (p, 7);", "", (6, 1, 1), 7),
        (
            "dim3 g(1, 2); for (int i = 0; i < elsewhere(); i++) g.x = i; g.x = 3; k<<<g, 32>>>(p, g.y);",
            "",
            (3, 2, 1),
            2,
        ),
        (
            "halve(p, 16);",
            "void halve(float *p, int n) { if (n > 4) halve(p, n / 2); else k<<<n, 32>>>(p, n); }",
            (4, 1, 1),
            4,
        ),
        (
            "const Shape s(1); k<<<s.a, 32>>>(p, s.b);",
            "struct Shape { int n, a = 6, b = 7; Shape(int m) { n = m; } };",
            (6, 1, 1),
            7,
        ),
        (
            "Solver s(5); s.go(p);",
            "struct S { int n, m; };\nstruct Solver { S s; Solver(int n) { s.n = n; s.m = 2 * n; } void go(float *p) { k<<<s.n, 32>>>(p, s.m); } };",
            (5, 1, 1),
            10,
        ),
        (
            "int n = 0; for (int i = 0; i < 20; i++) for (int j = 0; j < 20; j++) n++; k<<<n / 100, 32>>>(p, n);",
            "",
            (4, 1, 1),
            400,
        ),
        ("int n = 6; time_it([&](int m) { k<<<n, 32>>>(p, n + 1); });", "", (6, 1, 1), 7),
        (
            "for (int s = 0; s < 500; s++) { int n = 1; for (int i = 0; i < 3; i++) n *= 2; k<<<n, 32>>>(p, 9); }",
            "",
            (8, 1, 1),
            9,
        ),
        (
            "Options o = Options::parse(argc, argv); k<<<o.n, 32>>>(p, o.n);",
            "struct Options { int n = 6; static Options parse(int, char **) { Options o; o.n = 3; return o; } };",
            (3, 1, 1),
            3,
        ),
        ("k<<<(int)Kind::B, 32>>>(p, Kind::C);", "enum class Kind { A, B = 5, C };", (5, 1, 1), 6),
    ],
)
def test_numbers_follow_the_program(host: str, before: str, grid: tuple[int, int, int], number: int) -> None:
    launch = read_one(host, before)
    assert (launch.grid, launch.arguments[1].value) == (grid, number)


@pytest.mark.parametrize(
    ("host", "blocks"),
    [
        ("const int sizes[] = {32, 64}; for (int b : sizes) { int n = 256 / b; k<<<n, b>>>(p, n); }", [32, 64]),
        ("for (const auto &b : {32, 64}) k<<<256 / b, b>>>(p, b);", [32, 64]),
        ("int sizes[] = {32, 64}; read_in(sizes); for (int b : sizes) k<<<256 / b, b>>>(p, b);", [None]),
        ("int sizes[] = {32, 64}; for (int b : sizes) { if (elsewhere()) break; k<<<256 / b, b>>>(p, b); }", [None]),
    ],
)
def test_a_loop_over_listed_values_launches_with_each(host: str, blocks: list[int | None]) -> None:
    launches = read(f"int main() {{ float *p; {host} }}")
    assert [one.block[0] if one.block else None for one in launches] == blocks
    assert [one.grid[0] if one.grid else None for one in launches] == [one and 256 // one for one in blocks]


def test_nested_loops_that_fill_an_array_take_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[None] = []
    monkeypatch.setattr(Statements, "step", lambda _: steps.append(None))
    fill = "for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++) p[i * 64 + j] = rand() % 10;"
    assert read_one(f"{fill} k<<<2, 32>>>(p, 1);").grid == (2, 1, 1)
    assert len(steps) < 5000


def test_of_the_launches_of_a_loop_the_first_ones_and_the_largest_are_kept() -> None:
    grows = "for (int i = 1; i <= 20; i++) k<<<i, 32>>>(p, i);"
    found = read(f"int main() {{ float *p; {grows} for (int i = 20; i > 0; i--) k<<<i, 64>>>(p, i); }}")
    blocks = [[one.grid[0] for one in found if one.grid and one.block == (size, 1, 1)] for size in (32, 64)]
    assert blocks == [[1, 2, 3, 20], [20, 19, 18, 17]]


USAGE = """
void usage() { printf("usage: k N"); exit(1); }
int read_count(int argc, char **argv) { int n = 0; if (argc == 2) n = 4; else usage(); return n; }
void report() { k<<<1, 32>>>(0, 1); }
"""


@pytest.mark.parametrize(
    ("host", "blocks"),
    [
        ('if (argc != 3) { printf("usage: k N M"); return 1; } k<<<4, 32>>>(p, 4);', 4),
        ("if (argc < 2) usage(); k<<<4, 32>>>(p, 4);", 4),
        ("int n = 1; if (argc > 1) { n = 4; if (elsewhere()) exit(1); } else usage(); k<<<n, 32>>>(p, n);", 4),
        ("int n = read_count(argc, argv); k<<<n, 32>>>(p, n);", 4),
        ("if (argc == 1) { report(); return 0; } k<<<4, 32>>>(p, 4);", 1),
    ],
)
def test_a_program_that_refuses_to_run_without_arguments_is_given_some(host: str, blocks: int) -> None:
    launch = read(f"{USAGE}\nint main(int argc, char **argv) {{ float *p; {host} }}\n")[0]
    assert launch.grid == (blocks, 1, 1) and not launch.is_assumed


@pytest.mark.parametrize(
    "host",
    [
        'int n; scanf("%d", &n); k<<<n, 32>>>(p, n);',
        "int n = atoi(argv[1]); k<<<n, 32>>>(p, n);",
        "int n = 4; if (elsewhere()) n = 8; k<<<n, 32>>>(p, n);",
        "if (argc != 2) { usage(); exit(1); } int n = 4; if (argc > 1) n = atoi(argv[1]); k<<<n, 32>>>(p, n);",
        "if (elsewhere()) N = 8; k<<<N, 32>>>(p, N);",
        "for (int i = 0; i < 1000; i++) grow(); k<<<N, 32>>>(p, N);",
        "int n = 4; int *q = &n; *q = 8; k<<<n, 32>>>(p, n);",
        "int a[] = {1, 2}; read_in(a); k<<<a[0], 32>>>(p, a[0]);",
        "int a[] = {1, 2}; a[elsewhere()] = 8; k<<<a[0], 32>>>(p, a[0]);",
        "Shape s; s.n = 4; if (elsewhere()) s.n = 8; k<<<s.n, 32>>>(p, s.n);",
        "int n = 4; for (int i = 0; i < elsewhere(); i++) n *= 2; k<<<n, 32>>>(p, n);",
        "int n = 4; switch (elsewhere()) { case 1: n = 3; } k<<<n, 32>>>(p, n);",
        "int n = n_of_another_file; k<<<n, 32>>>(p, n);",
        "int n = 1 / 0; k<<<n, 32>>>(p, n);",
        "int n = 1 << 62; n = n * n; k<<<n, 32>>>(p, n);",
    ],
)
def test_what_the_text_does_not_decide_is_unknown(host: str) -> None:
    launch = read_one(host, "int N = 4;\nstruct Shape { int n; };\nvoid grow() { N *= 2; }")
    assert launch.grid is None and launch.arguments[1].value is None


@pytest.mark.parametrize(
    ("host", "size_bytes"),
    [
        ("cudaMalloc(&p, 100 * sizeof(float));", 400),
        ("CHECK(cudaMalloc((void **)&p, sizeof(Pair) * 10));", 160),
        ("allocate(&p, 25);", 100),
        ("std::vector<double> v(30); cudaMalloc(&p, v.size() * sizeof(double));", 240),
        ("std::vector<double> v(30); v.push_back(1); cudaMalloc(&p, v.size() * sizeof(double));", 248),
        ("std::vector<double> v(30); v.insert(v.begin(), 3); cudaMalloc(&p, v.size() * sizeof(double));", None),
        ("std::vector<int> v; if (elsewhere()) v.push_back(1); cudaMalloc(&p, v.size() * sizeof(int));", None),
        ("std::vector<int> v(9); v.pop_back(); v.reserve(50); cudaMalloc(&p, v.size() * sizeof(int));", 32),
        ("std::vector<int> v; v.resize(9); cudaMalloc(&p, v.size() * sizeof(int));", 36),
        ("std::vector<int> v(9); v.clear(); v.assign(3, 1); cudaMalloc(&p, v.size() * sizeof(int));", 12),
        ("std::vector<int> v{7}; for (int i = 0; i < 500; i++) v.push_back(i); cudaMalloc(&p, v.size() * 4);", 2004),
        ("std::vector<int> v; for (int i = 499; i >= 0; --i) v.push_back(i); cudaMalloc(&p, v.size() * 4);", 2000),
        (
            "std::vector<int> v; for (int i = 0; i < 500; i++) for (int j = 0; j < 300; j++) v.push_back(j);"
            "cudaMalloc(&p, v.size() * 4);",
            600_000,
        ),
        (
            "std::vector<int> v; for (int i = 0; i < 500; i++) for (int j = 0; j < i; j++) v.push_back(j);"
            "cudaMalloc(&p, v.size() * 4);",
            None,
        ),
        (
            "std::vector<int> v; for (int i = 0; i < 500; i++) if (i % 3 == 0) v.push_back(i);"
            "cudaMalloc(&p, v.size() * 4);",
            None,
        ),
        (
            "std::vector<int> v; for (int i = 0; i < 500; i++) { v.clear(); v.push_back(i); } cudaMalloc(&p, v.size() * 4);",
            None,
        ),
        ("std::vector<int> v; for (int i = 0; i < 500; i += 2) v.push_back(i); cudaMalloc(&p, v.size() * 4);", None),
        ("cudaMallocFromPoolAsync(&p, 48, pool, stream);", 48),
        (
            "cudaPitchedPtr q; cudaExtent e = make_cudaExtent(40, 3, 2); cudaMalloc3D(&q, e); p = (float *)q.ptr;",
            3072,
        ),
        (
            "cudaExtent e; e.width = e.height = 600; e.depth = argc; cudaPitchedPtr q; cudaMalloc3D(&q, e);"
            "cudaMalloc(&p, q.pitch);",
            1024,
        ),
        ("size_t bytes = 7; bytes *= sizeof *p; cudaMallocManaged(&p, bytes);", 28),
        ("cudaMalloc(&p, elsewhere());", None),
        ("float *all[2]; for (int i = 0; i < 2; i++) cudaMalloc(&all[i], 8 * (i + 1)); p = all[1];", 16),
        ("const int w = 3; std::vector<double> v(w * w), u(w); p = upload(v);", 72),
        ("float *h; cudaHostAlloc(&h, 64, cudaHostAllocMapped); cudaHostGetDevicePointer(&p, h, 0);", 64),
        ("float *h = (float *)malloc(64) + 4; cudaHostGetDevicePointer(&p, h, 0);", None),
        ("cudaMalloc(&p, sizeof(ELEMENT) * 10);", 80),
    ],
)
def test_sizes_of_arrays(host: str, size_bytes: int | None) -> None:
    before = "#define ELEMENT double\ntemplate <typename T> T *upload(const std::vector<T> &v) "
    before += "{ T *q; cudaMalloc(&q, v.size() * sizeof(T)); return q; }\n"
    before += "struct Pair { float a; double b; };\nvoid allocate(float **q, int n) { cudaMalloc(q, n * 4); }"
    launch = read_one(f"{host} k<<<1, 1>>>(p, 1);", before)
    assert (launch.arguments[0].is_array, launch.arguments[0].size_bytes) == (True, size_bytes)


@pytest.mark.parametrize(
    ("defined", "count"),
    [
        ("#define N 2048>>2", 2048 >> 3),
        ("#define N (2048>>2)", 513),
        ("#define M 2048\n#define N M>>2", 2048 >> 3),
        ("#define N BIG ? 4 : 8\n#define BIG 1", 4),
    ],
)
def test_macros_without_brackets_bind_as_the_preprocessor_has_them(defined: str, count: int) -> None:
    launch = read_one("float *p; cudaMalloc(&p, (N+1) * sizeof(float)); k<<<1, 32>>>(p, N+1);", f"{defined}\n")
    assert (launch.arguments[0].size_bytes, launch.arguments[1].value) == (4 * count, count)


def test_what_was_set_to_zero_is_zero_until_something_writes_to_it() -> None:
    launches = read(
        "int main() { float *p, *q; cudaMalloc(&p, 64); cudaMalloc(&q, 64); cudaMemset(p, 0, 64); cudaMemset(q, 1, 64); k<<<1, 16>>>(p, 1); "
        "k<<<2, 16>>>(p, 1); k<<<3, 16>>>(q, 1); cudaMemset(p, 0, 64); cudaMemcpy(p, h, 64, cudaMemcpyHostToDevice); k<<<4, 16>>>(p, 1); }"
    )
    assert [(one.grid, one.arguments[0].is_zero) for one in launches] == [
        ((1, 1, 1), True), ((2, 1, 1), False), ((3, 1, 1), False), ((4, 1, 1), False),
    ]  # fmt: skip


def test_a_loop_that_changes_the_grid_launches_several() -> None:
    launches = read("int main() { float *p; for (int s = 64; s > 0; s /= 4) k<<<s, 32>>>(p, s); }")
    assert [(one.grid, one.arguments[1].value) for one in launches] == [((n, 1, 1), n) for n in (64, 16, 4, 1)]
    launches = read("int main() { float *p; for (int t = 0; t < 9; t++) k<<<2, 32>>>(p, t); }")
    assert [(one.grid, one.arguments[1].value) for one in launches] == [((2, 1, 1), 0)]


def test_variables_that_another_function_may_have_written_are_unknown() -> None:
    text = "int blocks = 16, threads = 32;\nvoid set_up(int n) { blocks = n; }\nvoid run(float *p) { k<<<blocks, threads>>>(p, 1); }\n"
    (launch,) = read(text)
    assert (launch.grid, launch.block) == (None, (32, 1, 1))


def test_functions_that_others_call_are_read_from_their_callers() -> None:
    (launch,) = read("void inner(float *p, int n) { k<<<n, 32>>>(p, n); }\nvoid outer(float *p) { inner(p, 40); }\n")
    assert launch.grid == (40, 1, 1)


def test_members_of_structures() -> None:
    text = "struct View { int n; double scale; float *data; };\n"
    text += "int main() { View v; v.n = 6; cudaMalloc(&v.data, v.n * 4); view<<<1, 32>>>(v); }\n"
    ((argument,),) = (one.arguments for one in read(text))
    assert [(at, one.value, one.size_bytes) for at, one in argument.members] == [(0, 6, None), (16, None, 24)]


def test_headers_and_the_compile_command_say_what_names_are() -> None:
    text = '#include "sizes.h"\n#include "more/run.cuh"\nint main() { run(ROWS); }\n'
    included = (
        ("/p/sizes.h", "#ifndef _SIZES_H_\n#define _SIZES_H_\n#ifndef ROWS\n#define ROWS 9\n#endif\n#endif\n"),
        ("/p/more/run.cuh", "void run(int n) {\n  k<<<n, 16>>>(p, n);\n}\n"),
    )
    (launch,) = find_host_launches("k.cu", text, included)
    assert (launch.grid, launch.line, launch.file) == ((9, 1, 1), 2, "/p/more/run.cuh")
    (launch,) = find_host_launches("k.cu", text, included, ("ROWS=5",))
    assert launch.grid == (5, 1, 1)


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


FOLDS = """\
template <class T, unsigned int size> __global__ void fold(T *in, T *out, int n) {}
template <class T> void run(T *in, int n, int threads)
{
    T *out; cudaMalloc(&out, 16 * sizeof(T));
    int bytes = threads * sizeof(T);
    switch (threads) {
    case 512: fold<T, 512><<<16, threads, bytes>>>(in, out, n); break;
    case 256: { fold<T, 256><<<16, threads, bytes>>>(in, out, n); break; }
    default: other();
    }
}
"""


def test_launches_in_a_switch_keep_their_template_arguments() -> None:
    host = "int main() { float *p; double *q; run(p, 1000, 512); run<double>(q, 500, 256); }"
    found = find_host_launches("k.cu", FOLDS + host)
    assert [(one.template_arguments, one.block, one.shared_bytes, one.is_assumed) for one in found] == [
        (("float", "512"), (512, 1, 1), 2048, False),
        (("double", "512"), (512, 1, 1), 4096, True),
        (("float", "256"), (256, 1, 1), 1024, True),
        (("double", "256"), (256, 1, 1), 2048, False),
    ]


def test_each_case_of_a_switch_is_read_with_its_value_where_nobody_knows_it() -> None:
    found = find_host_launches("k.cu", FOLDS + "int main() { float *p; run(p, 1000, elsewhere()); }")
    assert [(one.template_arguments[1], one.block, one.shared_bytes, one.is_assumed) for one in found] == [
        ("512", (512, 1, 1), 2048, False),
        ("256", (256, 1, 1), 1024, False),
    ]


def test_what_the_chosen_case_writes_is_known() -> None:
    launch = read_one(
        "int n = 4; switch (n) { case 1: n = 2; break; case 4: n = 3; case 5: n++; break; default: n = 9; } k<<<n, 32>>>(p, n);"
    )
    assert launch.grid == (4, 1, 1)
    launch = read_one(
        "int n = 4; switch (n) { case 4: if (elsewhere()) { break; } n = 3; default: n = 9; } k<<<n, 32>>>(p, n);"
    )
    assert launch.grid is None


@pytest.mark.parametrize(
    ("host", "before", "told"),
    [
        ("t<16, float><<<1, 2>>>(p);", "", ("16", "float")),
        ("t<N * 2, real><<<1, 2>>>(p);", "typedef double real;\nconst int N = 4;", ("8", "double")),
        ("t<SIZE><<<1, 2>>>(p);", "#define SIZE 32", ("32", "float")),
        ("t<sizeof(int) == 4, Pair><<<1, 2>>>(q);", "struct Pair { int a, b; };", ("1", "Pair")),
        ("t<elsewhere(), Other><<<1, 2>>>(q);", "", (None, None)),
        ("t<2, Word><<<1, 2>>>(q);", "typedef unsigned short int Word;", ("2", "unsigned short")),
        ("t<2, REAL><<<1, 2>>>(q);", "#define REAL double", ("2", "double")),
        ("t<sizeof(Quad), Quad><<<1, 2>>>(q);", "typedef struct __align__(16) { int a, b, c; } Quad;", ("16", "Quad")),
        ("t<sizeof(Quad), Quad><<<1, 2>>>(q);", "struct alignas(8) Quad { float a; };", ("8", "Quad")),
        ("t<(1 << 3), std::uint32_t><<<1, 2>>>(q);", "", ("8", "unsigned int")),
    ],
)
def test_template_arguments_are_read_as_far_as_they_can_be(
    host: str, before: str, told: tuple[str | None, ...]
) -> None:
    text = f"{before}\ntemplate <int n, typename T> __global__ void t(T *x) {{}}\nint main() {{ float *p; {host} }}\n"
    (launch,) = find_host_launches("k.cu", text)
    assert launch.template_arguments == told


BRANCHES = """\
template <int size> __global__ void fold(float *in, int n) {}
__global__ void large(float *in, int n) {}
__global__ void small(float *in, int n) {}
int main()
{
    const int n = 1 << 14;
    int threads = THREADS;
    float *in; cudaMalloc(&in, n * 4);
    if (threads == 512) fold<512><<<n / threads, threads>>>(in, n);
    else if (threads == 256) { fold<256><<<n / threads, threads>>>(in, n); }
    else fold<64><<<n / 64, 64>>>(in, n);
    if (n > 100000) large<<<n / 32, 32>>>(in, n); else small<<<n / 32, 32>>>(in, n);
}
"""


def test_branches_that_are_not_taken_are_read_for_what_nothing_else_launches() -> None:
    found = find_host_launches("k.cu", BRANCHES.replace("THREADS", "256"))
    told = {(one.kernel, one.template_arguments): one for one in found}
    assert len(told) == len(found)
    assert {key[1]: (one.grid, one.block, one.is_assumed) for key, one in told.items() if key[0] == "fold"} == {
        ("256",): ((64, 1, 1), (256, 1, 1), False),
        ("512",): ((32, 1, 1), (512, 1, 1), True),  # with the size that leads there
        ("64",): ((256, 1, 1), (64, 1, 1), True),
    }
    assert [told[name, ()].is_assumed for name in ("small", "large")] == [False, True]


def test_branches_on_what_nobody_knows_are_read_with_the_size_that_leads_there() -> None:
    found = find_host_launches("k.cu", BRANCHES.replace("THREADS", "elsewhere()"))
    known = {one.template_arguments: one.block for one in found if one.kernel == "fold" and one.grid is not None}
    assert known == {("512",): (512, 1, 1), ("256",): (256, 1, 1), ("64",): (64, 1, 1)}


def test_what_a_branch_that_is_not_taken_writes_is_not_believed() -> None:
    found = find_host_launches(
        "k.cu", "int main() { float *p; int n = 4; if (n > 9) { n = 1; other<<<n, 32>>>(p); } k<<<n, 32>>>(p, n); }"
    )
    assert {one.kernel: one.grid for one in found} == {"k": (4, 1, 1), "other": (1, 1, 1)}
    through = "void go(int n) { other<<<n, 32>>>(n); } int main() { int n = 4; if (n > 9) { n = 1; go(n); } k<<<n, 32>>>(0, n); }"
    found = find_host_launches("k.cu", through)
    assert {one.kernel: (one.grid, one.is_assumed) for one in found} == {
        "k": ((4, 1, 1), False),
        "other": ((1, 1, 1), True),
    }


@pytest.mark.parametrize(
    ("passed", "offset"),
    [
        ("x", 0),
        ("x + 8", 8),
        ("8 + x", 8),
        ("&x[n]", 16),
        ("x + n - 4", 12),
        ("x + elsewhere()", None),
        ("y", 3),
        ("(int *)(x + 2)", None),
    ],
)
def test_how_far_in_an_array_a_pointer_points(passed: str, offset: int | None) -> None:
    launch = read_one(f"int n = 16; float *x; cudaMalloc(&x, 64 * 4); float *y = x + 3; k<<<1, 32>>>({passed}, n);")
    assert (launch.arguments[0].size_bytes, launch.arguments[0].offset) == (256, offset)


@pytest.mark.parametrize(
    ("host", "before"),
    [
        ("RUN(k, 4, p, 9);", "#define RUN(f, g, ...) do { f<<<g, 32>>>(__VA_ARGS__); \\\n check(); } while (0)"),
        ("void (*f)(float *, int) = &k; f<<<4, 32>>>(p, 9);", ""),
        ("run(k, p);", "void run(void (*f)(float *, int), float *x) { f<<<4, 32>>>(x, 9); }"),
        ("run(&k, p);", "void run(void (*f)(float *, int), float *x) { f<<<4, 32>>>(x, 9); }"),
    ],
)
def test_kernels_that_are_launched_by_another_name(host: str, before: str) -> None:
    launch = read_one(host, before)
    assert (launch.kernel, launch.grid, launch.arguments[1].value) == ("k", (4, 1, 1), 9)


def test_a_switch_in_a_loop_chooses_each_of_its_kernels() -> None:
    cases = "switch (i) { case 0: f = &k; break; case 1: f = &other; break; }"
    found = read(
        "__global__ void other(float *x, int n) {}\n"
        f"int main() {{ float *p; void (*f)(float *, int); for (int i = 0; i < 2; i++) {{ {cases} f<<<4, 32>>>(p, i); }} }}"
    )
    assert [(one.kernel, one.grid, one.arguments[1].value) for one in found] == [
        ("k", (4, 1, 1), 0),
        ("other", (4, 1, 1), 1),
    ]


@pytest.mark.parametrize("cast", ["(void **)", "reinterpret_cast<void **>"])
def test_arrays_are_allocated_through_casts(cast: str) -> None:
    launch = read_one(f"cudaMalloc({cast}(&p), 64); k<<<1, 32>>>(p, 9);")
    assert launch.arguments[0].size_bytes == 64


def test_what_a_program_reads_is_not_known() -> None:
    launch = read_one("int n = 8; std::cin >> n; k<<<n, 32>>>(p, n);")
    assert (launch.grid, launch.arguments[1].value) == (None, None)


def test_an_array_of_pointers_is_no_pointer() -> None:
    launch = read_one(
        "float *rows[6]; float **held; cudaMalloc(&held, sizeof(rows)); k<<<sizeof(rows) / 8, 32>>>(held, 1);"
    )
    assert (launch.grid, launch.arguments[0].size_bytes) == ((6, 1, 1), 48)


def test_a_header_beside_the_source_comes_before_others_of_its_name() -> None:
    included = (("/p/other/sizes.h", "#define N 9\n"), ("/p/src/sizes.h", "#define N 3\n"))
    text = '#include "sizes.h"\n__global__ void k(int n) {}\nint main() { k<<<N, 32>>>(N); }\n'
    (launch,) = find_host_launches("/p/src/k.cu", text, included)
    assert launch.grid == (3, 1, 1)


def test_a_function_that_main_reaches_is_not_read_again_without_its_arguments() -> None:
    chosen = "if (b == 16) { k<16><<<n / b, b>>>(p, n); } else { k<32><<<n / b, b>>>(p, n); }"
    text = f"void start(float *p, int b, int n) {{ {chosen} for (int i = 0; i < 300; i++) {{ {chosen} }} }}\n"
    found = find_host_launches(
        "k.cu", f"template <int B> {KERNEL}{text}int main() {{ float *p; start(p, 32, 640); }}\n"
    )
    assert [(one.grid, one.template_arguments, one.is_assumed) for one in found] == [
        ((20, 1, 1), ("32",), False),
        ((20, 1, 1), ("32",), False),
        ((40, 1, 1), ("16",), True),
    ]


def test_a_case_that_a_lambda_assumes_ends_with_it() -> None:
    text = "template <int B> __global__ void t(int n) {}\n__global__ void z(int n) {}\n"
    host = "int n = 32; auto run = [&]() { if (n == 64) t<64><<<2, n>>>(1); }; run(); z<<<9, n>>>(n);"
    found = find_host_launches("k.cu", f"{text}int main() {{ {host} }}\n")
    assert [one.block for one in found if one.kernel == "z"] == [(32, 1, 1)]
