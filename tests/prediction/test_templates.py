"""Descriptions that are begun with sizes that can be emulated."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.launches.launch import LaunchDescription, ScalarArgument, list_arrays
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.launches.told_sizes import list_guessed_sizes
from gpa_lsp.execution.prediction.model import EDITOR_PREDICTION, PredictionSettings
from gpa_lsp.execution.prediction.templates import write_templates
from gpa_lsp.foundation.errors import InputError
from tests.conftest import ROOT
from tests.prediction.kernels import NVRTC, begin_description, predict_described

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SOURCE = """\
__global__ void forces(const float* x, float* f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += x[j] - x[i];
    f[i] = sum;
}
__global__ void copy(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
"""
SETTINGS = replace(EDITOR_PREDICTION, budget=Budget(seconds=240.0, warp_instructions=100_000))
LARGER = replace(EDITOR_PREDICTION, budget=Budget(seconds=240.0, warp_instructions=4_000_000))


def describe(folder: Path, kernel: str, fits: PredictionSettings = SETTINGS) -> str:
    path = folder / "pairs.cu"
    path.write_text(SOURCE)
    return write_templates(path, kernel=kernel, launches_text="", settings=NVRTC, fits=fits)


def test_work_that_grows_with_the_square_is_described_so_small_that_it_ends(tmp_path: Path) -> None:
    text = describe(tmp_path, "forces")
    (line,) = [one for one in text.splitlines() if one.startswith("threads = ")]
    assert line.endswith(
        "# 1,048,576 would take too long to emulate; the grid is threads / block, rounded up; or give grid = …"
    )
    assert int(line.split()[2]) in (256, 1024, 4096)
    (kernel,) = predict_described(tmp_path / "pairs.cu", text, SETTINGS).kernels
    assert kernel.execution.is_complete and kernel.faults == () and kernel.volumes is not None


BY_REFERENCE = """
__global__ void scale(float* out, const float* in, const int& n, const float& factor)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] * factor;
}
"""


def test_a_size_by_reference_is_one_number_as_large_as_the_launch(tmp_path: Path) -> None:
    """Arrays of numbers below 100 in its place left nearly all threads without work."""
    path = tmp_path / "scale.cu"
    path.write_text(BY_REFERENCE)
    text = write_templates(path, kernel="scale", launches_text="", settings=NVRTC, fits=SETTINGS)
    assert '{ name = "n", type = "int", count = 1, fill = "constant", value = "threads_x"' in text
    assert '{ name = "factor", type = "float", count = 1, fill = "uniform"' in text
    (kernel,) = predict_described(path, text, SETTINGS).kernels
    stores = [one for one in kernel.accesses if one.kind.value == "stores"]
    assert 32 * stores[0].requests == 256 * kernel.execution.grid_blocks


HOST = """
int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    KERNEL<<<(n + 127) / 128, 128>>>(x, y, n);
}
"""


def test_what_a_program_reads_is_told_and_the_launch_follows_from_it(tmp_path: Path) -> None:
    path = tmp_path / "pairs.cu"
    path.write_text(SOURCE + HOST.replace("KERNEL", "copy"))
    text = write_templates(path, kernel="copy", launches_text="", settings=NVRTC, fits=LARGER)
    lines = text.splitlines()
    assert "# Guessed: argv[1] (n) = 1048576; grid, sizes and numbers follow from that." in lines
    assert {"block = 128", "grid = 8192  # guess"} <= set(lines)
    assert 'guesses = ["grid", "x", "n"]  # correct them, and take out what is right' in lines
    (count,) = [one for one in lines if '"y"' in one and "count" in one]
    assert "count = 1048576, guessed = true },  # allocated at line" in count and count.endswith(
        "; its size is a guess"
    )
    (number,) = [one for one in lines if 'name = "n"' in one]
    assert "value = 1048576 },  # guess; line" in number


def test_numbers_are_passed_as_c_converts_them(tmp_path: Path) -> None:
    kernel = "__global__ void fill(int* x, int pattern, unsigned char none) { x[threadIdx.x] = pattern + none; }\n"
    host = "int main() { int* x; cudaMalloc(&x, 128); fill<<<1, 32>>>(x, 0xDEADBEEF, -1); }\n"
    text = begin_description(tmp_path / "k.cu", kernel + host)
    assert {"block = 32", "grid = 1"} <= set(text.splitlines())
    assert "value = -559038737 },  # line 2" in text and "value = 255 },  # line 2" in text


def test_a_launch_that_follows_from_what_is_read_is_as_small_as_it_has_to_be(tmp_path: Path) -> None:
    path = tmp_path / "pairs.cu"
    path.write_text(SOURCE + HOST.replace("KERNEL", "forces"))
    text = write_templates(path, kernel="forces", launches_text="", settings=NVRTC, fits=SETTINGS)
    (line,) = [one for one in text.splitlines() if one.startswith("grid = ")]
    blocks = int(line.split()[2])
    assert blocks in (2, 8, 32)
    assert f"argv[1] (n) = {128 * blocks};" in text


CUBE = """
__global__ void fill(float *p, int nx, int ny, int nz)
{
    for (int k = 0; k < nz; ++k)
        for (int j = 0; j < ny; ++j)
            for (int i = 0; i < nx; ++i) p[(k * ny + j) * nx + i] = 1;
}
void run(float *p, int nx, int ny, int nz) { fill<<<1, 1>>>(p, nx, ny, nz); }
"""
ROWS = """
__global__ void rows(const unsigned *row, const float *x, float *y, unsigned n, unsigned first)
{
    for (unsigned r = blockIdx.x; r < n; r += gridDim.x) {
        float sum = 0;
        for (unsigned i = row[r] - first; i < row[r + 1] - first; ++i) sum += x[i % 64];
        y[r] = sum;
    }
}
void run(unsigned *r, float *x, float *y, unsigned n, unsigned first) { rows<<<64, 32>>>(r, x, y, n, first); }
"""


@pytest.mark.parametrize("text", [CUBE, ROWS], ids=["loops in loops", "loops as long as what is read"])
def test_loops_that_nobody_bounds_are_described_so_short_that_they_end(text: str, tmp_path: Path) -> None:
    path = tmp_path / "loops.cu"
    described = begin_description(path, text, SETTINGS)
    (kernel,) = predict_described(path, described, SETTINGS).kernels
    assert kernel.faults == () and kernel.volumes is not None


FOLLOWED = """
__global__ void follow(CONST int* next, const int* head, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
}
"""


@pytest.mark.parametrize(
    ("body", "fill"),
    [
        ("int sum = 0; for (int at = head[i]; at >= 0; at = next[at]) sum++; out[i] = sum;", '"sequence", low = -1'),
        ("unsigned at = i % 8; while (at != 0xffffffffu) at = next[at]; out[i] = at;", '"sequence", low = -1'),
        ("int p = i; while (p != next[p]) p = next[p]; next[i] = p; out[i] = head[i];", '"sequence"'),
        (
            "int at = i % 64; while (next[at] != -3) at = (at + 1) % 64; out[i] = head[at];",
            '"uniform", low = -3, high = 4',
        ),
        ("int at = i; while (next[at] == head[i]) at++; out[i] = at;", '"uniform", high = 100'),
    ],
    ids=["list", "list that ends in all bits", "parents", "table with empty places", "neither"],
)
def test_what_is_read_ends_the_loops_that_follow_it(body: str, fill: str, tmp_path: Path) -> None:
    """Random numbers ended none of them: endless loops were cut off, and sizes fell to 16 threads."""
    path = tmp_path / "follow.cu"
    path.write_text(FOLLOWED.replace("BODY", body).replace("CONST", "" if "next[i] =" in body else "const"))
    text = write_templates(path, launches_text="", settings=NVRTC, fits=LARGER)
    (line,) = [one for one in text.splitlines() if 'name = "next"' in one]
    assert f"fill = {fill}, guessed" in line
    assert "\nthreads = 1048576  # the grid is" in text
    (kernel,) = predict_described(path, text, LARGER).kernels
    assert kernel.faults == () and kernel.volumes is not None


LOCK = """
__global__ void lock(int* mutex, int* total, const int* in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || threadIdx.x) return;
    while (atomicCAS(mutex, 0, 1) != 0);
    *total += in[i];
    __threadfence();
    atomicExch(mutex, 0);
}
"""


def test_zeros_that_end_a_loop_are_tried_before_fewer_threads(tmp_path: Path) -> None:
    path = tmp_path / "lock.cu"
    path.write_text(LOCK)
    text = write_templates(path, launches_text="", settings=NVRTC, fits=LARGER)
    assert '{ name = "mutex", type = "int", count = 1, guessed = true }' in text
    (line,) = [one for one in text.splitlines() if one.startswith("threads = ")]
    assert int(line.split()[2]) in (4096, 16384, 65536)


def test_other_work_keeps_the_usual_size(tmp_path: Path) -> None:
    assert "\nthreads = 1048576  # the grid is" in describe(tmp_path, "copy", LARGER)


def write_profile(folder: Path, kernel: str) -> Path:
    path = folder / "p.gpa-profile.json"
    profile = json.loads((ROOT / "fixtures" / "example.gpa-profile.json").read_text())
    launch = {"kernel": kernel, "grid": [3, 1, 1], "block": [64, 1, 1], "device": profile["launches"][0]["device"]}
    path.write_text(json.dumps(profile | {"modules": [], "launches": [launch]}))
    return path


def test_a_kernel_that_a_profile_does_not_have_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pairs.cu"
    path.write_text(SOURCE)
    profile = write_profile(tmp_path, "_Z4copyPKfPfi")
    text = write_templates(path, launches_text="", settings=NVRTC, profile_path=profile)
    forces, copy = text.split("[[launch]]")[1:]
    assert "# p.gpa-profile.json has no launch of this kernel." in text.split("[[launch]]")[0]
    assert 'guesses = ["block", "threads"' in forces and "no launch" not in forces
    assert "block = 64\nthreads = [192, 1, 1]" in copy and 'guesses = ["n", "x"]' not in copy


def test_a_profile_without_any_of_the_kernels_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "pairs.cu"
    path.write_text(SOURCE)
    profile = write_profile(tmp_path, "_Z5otherv")
    with pytest.raises(InputError, match="it has no launch of forces, copy") as refused:
        write_templates(path, launches_text="", settings=NVRTC, profile_path=profile)
    assert refused.value.remedy == "it has launches of other; without a profile sizes are guessed"


FOLDS = """\
template <typename T, int size> __global__ void fold(const T* in, T* out)
{
    __shared__ T held[size];
    held[threadIdx.x] = in[blockIdx.x * size + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = held[size - 1];
}
void run(float* in, float* out, int threads)
{
    switch (threads) {
    case 256: fold<float, 256><<<8, threads>>>(in, out); break;
    case 64: fold<float, 64><<<8, threads>>>(in, out); break;
    }
}
template __global__ void fold<float, 32>(const float*, float*);
int main() { float *in, *out; cudaMalloc(&in, 8192); cudaMalloc(&out, 32); run(in, out, 256); }
"""


def test_each_instance_of_a_template_gets_its_own_launches(tmp_path: Path) -> None:
    path = tmp_path / "folds.cu"
    text = begin_description(path, FOLDS, LARGER)
    parts = {one.split('"')[1]: one.partition("arguments")[0] for one in text.split("[[launch]]")[1:]}
    assert len(parts) == 3
    (large,) = [one for name, one in parts.items() if "Li256E" in name]
    (small,) = [one for name, one in parts.items() if "Li64E" in name]
    (other,) = [one for name, one in parts.items() if "Li32E" in name]
    assert "block = 256\ngrid = 8" in large and "block = 64\ngrid = 8" in small and "grid = 8" not in other
    assert text.count("The host code chooses another case or branch.") == 1
    found = predict_described(path, text, LARGER).kernels
    assert [(one.faults, one.volumes is not None) for one in found[:2]] == [((), True), ((), True)]


def test_a_launch_of_nobody_knows_which_instance_is_a_guess(tmp_path: Path) -> None:
    path = tmp_path / "folds.cu"
    unknown = FOLDS.partition("void run(")[0]
    unknown += (
        "void run(float* in, float* out) { cudaMalloc(&out, 32); fold<float, NOBODY_KNOWS><<<8, 64>>>(in, out); }\n"
    )
    unknown += "template __global__ void fold<float, 32>(const float*, float*);\ntemplate __global__ void fold<float, 64>(const float*, float*);\n"
    unknown += "template __global__ void fold<double, 64>(const double*, double*);\n"
    text = begin_description(path, unknown)
    assert text.count("It may be one of another instance of the kernel: a guess.") == 2
    assert text.count("Inferred from line") == 2


def test_a_fragment_has_the_launches_of_the_file_that_includes_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    kernels, _, host = FOLDS.partition("void run(")
    path = tmp_path / "folds_kernel.cu"
    path.write_text(kernels)
    (tmp_path / "folds.cu").write_text(f'#include "folds_kernel.cu"\nvoid run({host}')
    text = write_templates(path, launches_text="", settings=NVRTC)
    assert "block = 256\ngrid = 8" in text and "block = 64\ngrid = 8" in text
    assert text.count("count = 2048") == 2 and "# allocated at line 10 of folds.cu" in text


MOVED = """\
__global__ void near(const float* in, float* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i - 3] + in[i + 3];
}
int main()
{
    float *in, *out; const int n = 1 << 12;
    cudaMalloc(&in, (n + 6) * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    near<<<n / 256, 256>>>(in + 3, out);
}
"""


def test_a_pointer_into_an_array_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "near.cu"
    text = begin_description(path, MOVED)
    (line,) = [one for one in text.splitlines() if '"in"' in one and "name" in one]
    assert "count = 4102, offset = 3, " in line and line.endswith("# allocated at line 9")
    (kernel,) = predict_described(path, text, SETTINGS).kernels
    assert kernel.faults == () and kernel.volumes is not None
    unknown = begin_description(path, MOVED.replace("in + 3, out", "in + elsewhere(), out"))
    (line,) = [one for one in unknown.splitlines() if '"in"' in one and "name" in one]
    assert "guessed = true" in line and "# guess" in line


GUESSES = """\
__global__ void known(const int* in, int* out) { out[threadIdx.x] = in[int(threadIdx.x) - 1]; }
__global__ void led(const int* in, int* out) { out[in[threadIdx.x] - 200] = 1; }
int main()
{
    int *in, *out;
    cudaMalloc(&in, 256); cudaMalloc(&out, 256);
    known<<<1, 64>>>(in, out);
    led<<<1, 64>>>(in, out);
}
"""


def test_only_faults_that_no_guess_leads_to_are_faults(tmp_path: Path) -> None:
    path = tmp_path / "guesses.cu"
    text = begin_description(path, GUESSES)
    known, led = predict_described(path, text, SETTINGS).kernels
    assert [one.message.partition(":")[2] for one in known.faults] == [" 4 bytes before in, which has 256 bytes"]
    assert led.faults == () and led.volumes is not None
    (note,) = [one.message for one in led.problems if "it depends on what is a guess in the launch (in)" in one.message]
    assert "take what is right out of its guesses" in note
    again = predict_described(path, text.replace("guesses = ", "guesses = []  # was "), SETTINGS).kernels
    assert [len(one.faults) for one in again] == [1, 1]


TEXTURES = """\
texture<float4, 1, cudaReadModeElementType> quads;
texture<unsigned char, 2, cudaReadModeNormalizedFloat> shades;
__global__ void fetch(float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch(quads, i).w + tex2D(shades, i % 16, i / 16);
}
int main() { float* out; cudaMalloc(&out, 4096); fetch<<<4, 256>>>(out, 1024); }
"""


def test_texture_references_are_described_and_read(tmp_path: Path) -> None:
    path = tmp_path / "fetch.cu"
    text = begin_description(path, TEXTURES)
    assert (
        '{ name = "quads", type = "f32", width = "grid_x * block_x", channels = 4, fill = "uniform" },  # guess' in text
    )
    assert (
        '{ name = "shades", type = "u8", width = 256, height = 256, reads_normalized = true, fill = "uniform" }' in text
    )
    assert 'guesses = ["quads", "shades"]' in text
    (kernel,) = predict_described(path, text, SETTINGS).kernels
    assert kernel.faults == () and kernel.volumes is not None


CONSTANTS = """\
struct Part { int* data; int count; };
__constant__ Part parts[4];
__constant__ int factors[2] = { 3, 4 };
__device__ int offsets[4];
__device__ int total;
__global__ void add()
{
    Part part = parts[blockIdx.x];
    for (int i = threadIdx.x; i <= part.count; i += blockDim.x) part.data[i + offsets[blockIdx.x]] += factors[0];
    if (threadIdx.x == 0) atomicAdd(&total, 1);
}
int main()
{
    int from[4]; cudaMemcpyToSymbol(offsets, from, sizeof(from));
    add<<<4, 64>>>();
}
"""


def test_what_the_host_copies_to_variables_is_a_guess(tmp_path: Path) -> None:
    path = tmp_path / "add.cu"
    text = begin_description(path, CONSTANTS)
    assert 'guesses = ["offsets", "parts"]' in text
    (kernel,) = predict_described(path, text, SETTINGS).kernels
    assert kernel.faults == ()
    assert any("it depends on what is a guess in the launch (offsets, parts)" in one.message for one in kernel.problems)


SHARED_STATE = """\
struct Step { __device__ virtual int take(int value) { return value + 1; } };
__device__ Step* step;
__device__ int turns;
__global__ void create() { step = new Step; }
__global__ void take(int* out) { out[threadIdx.x] = step->take(threadIdx.x); }
__global__ void count() { if (atomicAdd(&turns, 1) < 0) *(volatile int*)nullptr = 0; }
int main()
{
    int* out; cudaMalloc(&out, 128);
    create<<<1, 1>>>(); take<<<1, 32>>>(out); count<<<1, 32>>>();
}
"""


def test_what_another_kernel_leaves_in_a_variable_is_a_guess(tmp_path: Path) -> None:
    """A call through a table that nobody has filled is no fault of the kernel that makes it."""
    path = tmp_path / "step.cu"
    text = begin_description(path, SHARED_STATE)
    assert 'guesses = ["step"]' in text and "turns" not in text
    kernels = predict_described(path, text, SETTINGS).kernels
    assert len(kernels) == 3 and all(kernel.faults == () for kernel in kernels)
    said = [one.message for kernel in kernels for one in kernel.problems]
    assert any("it depends on what is a guess in the launch (step)" in one for one in said)


SURFACE = """\
__global__ void draw(cudaSurfaceObject_t target)
{
    surf2Dwrite(1.0f, target, int(4 * (blockIdx.x * blockDim.x + threadIdx.x)), int(blockIdx.y));
}
int main() { cudaSurfaceObject_t target; draw<<<dim3(2, 4), 256>>>(target); }
"""


def test_what_lies_beyond_a_surface_of_guessed_size_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "draw.cu"
    text = begin_description(path, SURFACE)
    assert "width = 256, height = 256" in text and 'guesses = ["target"]' in text
    (kernel,) = predict_described(path, text, SETTINGS).kernels
    assert kernel.faults == ()
    assert any("coordinates outside the surface target; it depends" in one.message for one in kernel.problems)


IMAGE = """\
__global__ void blur(const float* in, float* out, int width, int height, int radius)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width - radius || y >= height - radius) return;
    float sum = 0;
    for (int i = 0; i < radius; ++i) sum += in[y * width + x + i];
    out[y * width + x] = sum;
}
"""


@pytest.mark.parametrize("names", [("width", "height", "radius"), ("a", "b", "n")])
def test_numbers_that_bound_the_place_of_a_thread_are_sizes_and_bounds_of_loops_are_small(
    tmp_path: Path, names: tuple[str, str, str]
) -> None:
    """Names do not matter."""
    text = IMAGE
    for old, new in zip(("width", "height", "radius"), names, strict=True):
        text = text.replace(old, new)
    described = begin_description(tmp_path / "blur.cu", text, replace(SETTINGS, budget=Budget()))
    (launch,) = read_launches(tmp_path / "blur.launch.toml", text=described)
    numbers = {one.name: one.value for one in launch.arguments if isinstance(one, ScalarArgument)}
    assert list(numbers.values()) == [1024, 1024, 16]
    assert (launch.block, launch.grid) == ((16, 16, 1), (64, 64, 1))
    assert {"block", "threads", *names, "in"} == set(launch.guesses)


NOTHING = """\
__global__ void scale(float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] *= 2; }
int main()
{
    const int n = 100;
    float* p; cudaMalloc(&p, n * sizeof(float));
    GRID
}
"""


@pytest.mark.parametrize(
    "launch",
    [
        "scale<<<n / 256, 256>>>(p, n);",
        "scale<<<dim3(n / 256, 4), 256>>>(p, n);",
        "scale<<<-1, 256>>>(p, n);",
        "scale<<<1, 0>>>(p, n);",
        "scale<<<1, 256>>>(p, 3000000000 * 3);",
        "scale<<<n, 256, -4>>>(p, n);",
    ],
)
def test_what_no_launch_can_have_is_guessed(tmp_path: Path, launch: str) -> None:
    """A grid of nothing, or a number that does not fit its type, is in the host code; the description can be read."""
    path = tmp_path / "k.cu"
    text = begin_description(path, NOTHING.replace("GRID", launch), SETTINGS if "dim3" in launch else None)
    (read,) = read_launches(tmp_path / "k.launch.toml", text=text)
    assert min(*read.grid, *read.block) > 0
    (kernel,) = predict_described(path, text, SETTINGS).kernels
    assert kernel.volumes is not None


RANKS = """
__global__ void ranked(float* x)
{
    int rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    x[blockIdx.x * 256 + rank] = rank;
}
int main() { int blocks, threads; choose(&blocks, &threads); float *x; cudaMalloc(&x, 1 << 20); LAUNCH }
"""


@pytest.mark.parametrize("fits", [None, SETTINGS], ids=["as it stands", "fitted"])
@pytest.mark.parametrize(
    ("launch", "axes"),
    [
        ("dim3 block(threads, 1, 1); ranked<<<blocks, block>>>(x);", 1),
        ("ranked<<<blocks, dim3(threads)>>>(x);", 1),
        ("ranked<<<blocks, dim3(threads, threads)>>>(x);", 2),
    ],
)
def test_a_guessed_block_is_one_along_axes_that_the_launch_leaves_at_one(
    tmp_path: Path, launch: str, axes: int, fits: PredictionSettings | None
) -> None:
    text = begin_description(tmp_path / "k.cu", RANKS.replace("LAUNCH", launch), fits)
    (read,) = read_launches(tmp_path / "k.launch.toml", text=text)
    assert read.block[axes:] == (1, 1, 1)[axes:]
    assert min(read.block[:axes]) > 1 or fits is None


READING = """
#include <cstdlib>
int main(int argc, char **argv)
{
    int count = atoi(argv[1]), steps = atoi(argv[2]);
    float *x, *y;
    cudaMalloc(&x, 4 * count);
    cudaMalloc(&y, 4 * count);
    walk<<<(count + 255) / 256, 256>>>(x, y, count, steps);
}
"""
WALK = """
__global__ void walk(const float* x, float* y, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < rounds; ++k) sum += x[i] * k;
    y[i] = sum;
}
"""


def tell(folder: Path, source: str, said: str) -> tuple[str, LaunchDescription]:
    path = folder / "walk.cu"
    path.write_text(source)
    text = write_templates(path, launches_text="", settings=NVRTC, fits=SETTINGS, told=said)
    return text, read_launches(folder / "walk.launch.toml", text=text)[0]


def test_what_the_host_code_reads_is_asked_for_and_is_no_guess_once_it_is_told(tmp_path: Path) -> None:
    """Grid, arrays and numbers follow from what was said, as the program makes them of it."""
    text, guessed = tell(tmp_path, WALK + READING, "")
    assert [name for name, _ in list_guessed_sizes(text)] == ["count", "steps"] and "grid" in guessed.guesses
    text, launch = tell(tmp_path, WALK + READING, "count = 5000, steps = 7")
    assert list_guessed_sizes(text) == () and launch.guesses == ("x",)
    assert launch.grid == (20, 1, 1) and [one.count for one in list_arrays(launch)] == [5000, 5000]
    assert [one.value for one in launch.arguments if isinstance(one, ScalarArgument)] == [5000, 7]
    text, _ = tell(tmp_path, WALK + READING, "count = 5000")
    assert list_guessed_sizes(text) == (("steps", "16"),) and "argv[1]" not in text


def test_without_host_code_threads_and_what_bounds_a_loop_are_asked_for(tmp_path: Path) -> None:
    text, _ = tell(tmp_path, WALK, "")
    asked = dict(list_guessed_sizes(text))
    assert set(asked) == {"threads", "rounds"} and asked["rounds"] == "16"
    text, launch = tell(tmp_path, WALK, "threads = 700, rounds = 3")
    assert list_guessed_sizes(text) == () and "threads" not in launch.guesses and "rounds" not in launch.guesses
    assert launch.grid == (3, 1, 1)
    assert [one.value for one in launch.arguments if isinstance(one, ScalarArgument)] == [700, 3]


@pytest.mark.parametrize(
    ("said", "source", "complaint"),
    [
        ("n 5", WALK, "“n 5” is no size"),
        ("threads = 0", WALK, "“threads = 0” is no size"),
        ("n = 2x3", WALK, "“n = 2x3” is no size"),
        ("length = 5", WALK, "no size is called length; there are n, rounds and threads"),
        ("threads = 64", WALK + READING, "no size is called threads; there are count, steps, n and rounds"),
    ],
)
def test_sizes_that_cannot_be_are_refused(said: str, source: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        tell(tmp_path, source, said)
    assert complaint in str(refused.value), str(refused.value)
