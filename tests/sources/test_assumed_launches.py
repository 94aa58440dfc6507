"""Launches whose shape follows from what a program reads: numbers belong together as the program has them, and are told to be guesses."""

import re

import pytest

from gpa_lsp.code.sources.assumed_launches import find_assumed_launches
from gpa_lsp.code.sources.host_launches import find_host_launches
from gpa_lsp.code.sources.host_values import HostLaunch

KERNEL = "__global__ void k(float *x, int n) {}\n"
ALLOCATED = "float *p; cudaMalloc(&p, n * sizeof(float));"


def read(text: str) -> tuple[HostLaunch, ...]:
    return find_assumed_launches("k.cu", KERNEL + text)


OPTIONS = """
int Size; float *p;
void run() { cudaMalloc(&p, Size * sizeof(float)); int grid = Size / 256 + !(!(Size % 256)); k<<<grid, 256>>>(p, Size); }
int main(int argc, char **argv) {
  if (argc < 2) { usage(); exit(0); }
  for (int i = 1; i < argc; i++)
    if (argv[i][0] == '-')
      switch (argv[i][1]) { case 's': i++; Size = atoi(argv[i]); break; case 'q': quiet = 1; break; }
  run();
}
"""


def test_an_option_that_a_loop_looks_for_is_read() -> None:
    (launch,) = read(OPTIONS)
    assert (launch.grid, launch.arguments[1].value) == ((4096, 1, 1), 1 << 20)
    assert launch.inputs == (("argv[i] (Size)", 1 << 20),)


@pytest.mark.parametrize(
    ("read_in", "inputs"),
    [
        ("int n = atoi(argv[1]);", (("argv[1] (n)", 1048576),)),
        ("int n; n = std::stoi(argv[2]);", (("argv[2] (n)", 1048576),)),
        ("int n = 3; sscanf(argv[1], \"%d\", &n);", (("n", 1048576),)),
        ("int n; FILE *f = fopen(\"x\", \"r\"); fscanf(f, \"%d\", &n);", (("n", 1048576),)),
        ("int n = 3; std::cin >> n;", (("n", 1048576),)),
        ("int n; std::ifstream in(\"x\"); in >> n;", (("n", 1048576),)),
        ("Data *all = load(argv[1]); const size_t n = all->count;", (("all->count (n)", 1048576),)),
        ("const char *words = argv[1]; int n = words ? count(words) / 2 + count(words) % 2 : 1;", (("n", 1048576),)),
        ("size_t n = 0; n = rows.size();", (("rows.size() (n)", 1048576),)),
        ("int state = start(); if (state != 0) return 1; int n = atoi(argv[1]);", (("argv[1] (n)", 1048576),)),
        (
            "int repeat = atoi(argv[1]); int n = atoi(argv[2]);",
            (("argv[1] (repeat)", 16), ("argv[2] (n)", 1048576)),
        ),
    ],
)  # fmt: skip
def test_what_is_read_is_a_guess_and_the_rest_follows(read_in: str, inputs: tuple[tuple[str, int], ...]) -> None:
    text = f"int main(int argc, char **argv) {{ {read_in} {ALLOCATED} k<<<(n + 255) / 256, 256>>>(p, n); }}"
    (launch,) = read(text)
    assert (launch.grid, launch.block, launch.inputs) == ((4096, 1, 1), (256, 1, 1), inputs)
    assert launch.guessed == {"grid"}
    assert [(one.value or one.size_bytes, one.is_guess) for one in launch.arguments] == [
        (4194304, True),
        (1048576, True),
    ]
    (known,) = find_host_launches("k.cu", KERNEL + text)
    assert (known.grid, [one.value or one.size_bytes for one in known.arguments]) == (None, [None, None])


def test_a_size_that_is_squared_is_smaller() -> None:
    text = "int main(int c, char **argv) { int n = atoi(argv[1]); dim3 b(16, 16); dim3 g(n / 16, n / 16); k<<<g, b>>>(0, n); }"
    (launch,) = read(text)
    assert (launch.grid, launch.arguments[1].value) == ((64, 64, 1), 1024)


def test_launches_are_no_larger_than_is_asked_for() -> None:
    text = f"{KERNEL}int main(int c, char **argv) {{ int n = atoi(argv[1]); {ALLOCATED} k<<<(n + 255) / 256, 256>>>(p, n); }}"
    for threads in (65536, 4096, 256):
        (launch,) = find_assumed_launches("k.cu", text, most_threads=threads)
        assert (launch.grid, launch.arguments[1].value) == ((threads // 256, 1, 1), threads)


def test_what_the_text_says_stays_as_it_is() -> None:
    text = "int main() { int n = 1000; float *p; cudaMalloc(&p, n); k<<<n, 128>>>(p, n); }"
    assert read(text) == find_host_launches("k.cu", KERNEL + text)


def test_parameters_of_functions_that_nothing_calls_are_guessed() -> None:
    (launch,) = read("void run(float *x, int width, int height) { k<<<width * height / 64, 64>>>(x, width); }")
    assert launch.inputs == (("width", 1024), ("height", 1024))
    assert (launch.grid, launch.arguments[1].value, launch.arguments[1].is_guess) == ((16384, 1, 1), 1024, True)


def test_what_a_gpu_is_asked_for_is_a_guess_but_for_what_all_have() -> None:
    text = "int main() { cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); k<<<SMS, p.maxThreadsPerBlock>>>(0, 1); }"
    (launch,) = read(text.replace("SMS", "p.multiProcessorCount"))
    assert (launch.grid, launch.block, launch.guessed) == ((108, 1, 1), (1024, 1, 1), {"grid"})
    assert launch.inputs == (("SMs of the GPU", 108),)
    (known,) = find_host_launches("k.cu", KERNEL + text.replace("SMS", "p.warpSize"))
    assert (known.grid, known.block) == ((32, 1, 1), (1024, 1, 1))


def test_as_many_blocks_as_fit_are_guessed_by_threads() -> None:
    query = "int per; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, k, 256, 0);"
    (launch,) = read(f"int main() {{ {query} k<<<std::min<int>(per * 3, 99), 256>>>(0, 1); }}")
    assert (launch.grid, launch.guessed) == ((24, 1, 1), {"grid"})


def test_a_program_that_refuses_an_assumed_input_goes_on_with_it() -> None:
    read_in = "int n = atoi(v[1]), mode = atoi(v[2]); if (mode > 1) return 0;"
    (launch,) = read(
        f"int main(int c, char **v) {{ {read_in} {ALLOCATED} run(p, n); }}".replace("run", "k<<<n / 64, 64>>>")
    )
    assert (launch.grid, launch.inputs) == ((16384, 1, 1), (("v[1] (n)", 1 << 20), ("v[2] (mode)", 16)))


def test_options_are_not_given() -> None:
    loop = "while (1) { int c = getopt_long(argc, argv, \"n:\", all, 0); if (c == -1) break; switch (c) { case 'n': n = atoi(optarg); break; } }"
    text = f"int main(int argc, char **argv) {{ int n = 512; {loop} {ALLOCATED} k<<<n / 64, 64>>>(p, n); }}"
    (launch,) = find_host_launches("k.cu", KERNEL + text)
    assert (launch.grid, launch.arguments[0].size_bytes, launch.arguments[1].value) == ((8, 1, 1), 2048, 512)


VOLUME = """
void run(int n, int c, int m, int w, int h, int k)
{
    int wo = w - k + 1, ho = h - k + 1;
    float *in, *out;
    cudaMalloc(&in, sizeof(float) * n * c * h * w);
    cudaMalloc(&out, sizeof(float) * n * m * ho * wo);
    int tiles = (wo + 15) / 16, z = (ho + 15) / 16 * tiles;
    k<<<dim3(n, m, z), dim3(16, 16)>>>(in, c, m, k, h, w, tiles);
}
""".replace("    k<<<", "    volume<<<")


@pytest.mark.parametrize("names", ["ncmwhk", "abcdef", "pqrstu"])
def test_what_a_grid_covers_is_large_and_what_is_taken_off_it_is_small(names: str) -> None:
    """Each image and map is a block more; a filter makes the output smaller: whatever their names are."""
    text = VOLUME
    for old, new in zip("ncmwhk", names, strict=True):
        text = re.sub(rf"\b{old}\b", f"<{new}>", text)
    text = re.sub(r"<(\w)>", r"\1", text)
    (launch,) = read(text)
    count, channels, maps, width, height, size = (dict(launch.inputs)[name] for name in names)
    assert (launch.grid, launch.block) == ((16, 16, 16), (16, 16, 1))
    assert (count, channels, maps, width, height, size) == (16, 16, 16, 64, 64, 16)
    assert launch.guessed == {"grid"}


@pytest.mark.parametrize("most_threads", [1 << 20, 65536, 1024, 16])
def test_no_grid_is_made_of_nothing_while_others_fit(most_threads: int) -> None:
    (launch,) = find_assumed_launches("k.cu", KERNEL + VOLUME, most_threads=most_threads)
    assert launch.grid is not None and min(launch.grid) > 0


def test_of_a_loop_whose_launches_grow_with_an_input_the_largest_is_taken() -> None:
    host = "int n = atoi(argv[1]); cudaMalloc(&p, n * 4); for (int i = 1; i <= n / 64; i++) k<<<i, 64>>>(p, i);"
    first, largest = find_assumed_launches("k.cu", f"int main(int argc, char **argv) {{ float *p; {host} }}")
    assert first.grid == (1, 1, 1) and not first.guessed
    assert largest.grid == (64, 1, 1) and largest.guessed == {"grid", "block", "shared_bytes"}


@pytest.mark.parametrize(("tile", "height"), [(16, 2), (256, 16)])
def test_the_height_of_a_pyramid_of_tiles_is_no_size(tile: int, height: int) -> None:
    read_in = "int cols = atoi(argv[1]); int pyramid_height = atoi(argv[2]); int small = TILE - 2 * pyramid_height;"
    host = f"{read_in.replace('TILE', str(tile))} int blocks = cols / small + (cols % small == 0 ? 0 : 1);"
    text = f"int main(int argc, char **argv) {{ float *p; {host} k<<<blocks, {tile}>>>(p, cols, pyramid_height); }}"
    (launch,) = find_assumed_launches("k.cu", text)
    _, cols, steps = launch.arguments
    assert launch.grid is not None and cols.value is not None and launch.grid[0] >= cols.value // tile > 100
    assert steps.value == height
