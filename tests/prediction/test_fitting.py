"""Sizes that nobody knows, fitted."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.model import Budget, Fault, FaultKind, PassedEnd
from gpa_lsp.execution.launches.launch import ArrayArgument
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.fault_answer import answer_faults, grow_guessed, part_guessed
from gpa_lsp.execution.prediction.model import KernelPrediction, PredictionSettings
from gpa_lsp.execution.prediction.templates import write_templates
from gpa_lsp.execution.traces.model import AccessGroupKind
from tests.conftest import ROOT
from tests.prediction.kernels import NVRTC, begin_description, predict_described

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SETTINGS = PredictionSettings(budget=Budget(seconds=60.0, warp_instructions=40_000_000))
PITCHED = """\
__global__ void spread(const float* in, float* out, int rows, int pitch)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) out[row * pitch + 3] = in[row + rows];
}
"""
TILED = """\
__global__ void tile(const float* in, float* out, int width)
{
    __shared__ float held[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    held[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    out[x * width + y] = held[threadIdx.x][threadIdx.y];
}
"""
GUARDED = """\
__global__ void eliminate(float* a, float* b, int size, int step)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= size - 1 - step || y >= size - step) return;
    a[size * (x + 1 + step) + y] -= a[size * step + y];
    if (y == 0) b[x + 1 + step] -= b[step];
}
"""
INDIRECT = """\
__global__ void gather(const int* first, const int* column, const float* value, float* out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = first[row]; k < first[row + 1]; ++k) sum += value[column[k]];
    out[row] = sum;
}
"""
DYNAMIC = """\
__global__ void fold(const int* in, int* out, int n)
{
    extern __shared__ int held[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    held[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = held[blockDim.x - 1];
}
"""


TABLES = """\
__global__ void add(const double* const* a, float* b[], int rows, int n)
{
    int row = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && i < n) b[row][i] += (float)a[row][2 * i];
}
"""


def describe(folder: Path, text: str) -> str:
    return begin_description(folder / "kernels.cu", text, SETTINGS)


@pytest.mark.parametrize("text", [PITCHED, TILED, GUARDED, INDIRECT, DYNAMIC, TABLES])
def test_what_is_described_has_volumes_and_no_fault(text: str, tmp_path: Path) -> None:
    (kernel,) = predict_described(tmp_path / "kernels.cu", describe(tmp_path, text), SETTINGS).kernels
    assert kernel.faults == () and kernel.volumes is not None


def test_arrays_are_as_large_as_what_is_touched(tmp_path: Path) -> None:
    text = describe(tmp_path, PITCHED)
    lines = {line.split('"')[1]: line for line in text.splitlines() if line.startswith("  {")}
    assert 'value = "threads_x"' in lines["rows"] and "value = 16" in lines["pitch"]
    assert f"count = {2 * 1048576}, " in lines["in"] and lines["in"].endswith("# fitted: as much as is touched")
    assert f"count = {1048575 * 16 + 4}, guessed = true " in lines["out"]


def test_blocks_of_tiles_have_two_axes(tmp_path: Path) -> None:
    text = describe(tmp_path, TILED)
    assert "\nblock = [16, 16]" in text and "\nthreads = [1024, 1024]" in text


DEEP = """\
__global__ void deep(const float* x, float* y, int width)
{
    int row = blockIdx.y * 8 + 4 * threadIdx.z + threadIdx.y;
    y[row * width + blockIdx.x * 8 + threadIdx.x] = x[row * width + blockIdx.x * 8 + threadIdx.x];
}
dim3 choose(int width);
void start(const float* x, float* y, int width) { deep<<<choose(width), dim3(8, 4, 2)>>>(x, y, width); }
"""


def test_there_is_one_block_along_an_axis_whose_blocks_the_kernel_does_not_tell_apart(tmp_path: Path) -> None:
    path = tmp_path / "deep.cu"
    path.write_text(DEEP)
    text = write_templates(path, launches_text="", settings=NVRTC, fits=SETTINGS)
    (line,) = [one for one in text.splitlines() if one.startswith(("threads = ", "grid = "))]
    assert line.startswith("threads = [") and ", 2]" in line


def test_a_second_block_is_tried_where_the_first_goes_wrong_and_no_time_is_left(tmp_path: Path) -> None:
    path = tmp_path / "kernels.cu"
    shutil.copy(ROOT / "fixtures" / "kernels" / "bank_conflict" / "original.cu", path)
    late = replace(SETTINGS, budget=replace(SETTINGS.budget, seconds=1e-3))
    assert "\nblock = [32, 8]" in write_templates(path, launches_text="", settings=NVRTC, fits=late)


def test_dynamic_shared_memory_is_what_is_touched(tmp_path: Path) -> None:
    assert "\nshared_bytes = 1024  # fitted" in describe(tmp_path, DYNAMIC)


LAUNCHED = (
    TABLES
    + """
void start(const double* const* unknown)
{
    const int rows = 48, n = 3000;
    float** b;
    cudaMalloc(&b, rows * sizeof(float*));
    add<<<dim3((n + 255) / 256, rows), 256>>>(unknown, b, rows, n);
}
"""
)


def test_pointers_in_arrays_lead_to_memory_of_their_own(tmp_path: Path) -> None:
    text = describe(tmp_path, LAUNCHED)
    launch = read_launches(tmp_path / "k.launch.toml", text=text)[0]
    a, b = (one for one in launch.arguments if isinstance(one, ArrayArgument))
    assert (a.type, a.count, a.is_guessed) == (ScalarType.U64, 1024, True)
    assert (b.type, b.count, b.is_guessed) == (ScalarType.U64, 48, False)
    of_a, of_b = (one for one in launch.memory if isinstance(one, ArrayArgument))
    assert (of_a.name, of_a.type, of_a.base_address) == ("a_i", ScalarType.F64, a.low)
    assert (of_b.name, of_b.type, of_b.base_address) == ("b_i", ScalarType.F32, b.low)
    assert of_b.count * 4 == 47 * b.step + 3000 * 4, "up to the last element of the last row"
    assert {"a", "b", "a_i", "b_i"} <= set(launch.guesses)
    (kernel,) = predict_described(tmp_path / "kernels.cu", text, SETTINGS).kernels
    assert kernel.faults == ()
    (guessed,) = kernel.problems
    assert "guessed in the launch description: the size of a" in guessed.message
    sectors = {(one.arrays, one.kind.value): one.sectors_per_request for one in kernel.accesses}
    assert sectors[("a_i",), "loads"] > 15 and 3.9 < sectors[("b_i",), "stores"] <= 4


IN_STRUCTURES = """\
struct Job { const float* in; float* out; double* sums; int unused, n; };
__global__ void run(const Job* jobs, const int factor)
{
    const Job job = jobs[blockIdx.y];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < job.n) { job.out[i] = factor * job.in[i]; job.sums[i / 32] += 1.0; }
}
"""
CHOSEN = """\
enum class Mode { Add = 3, Scale = 5 };
__global__ void choose(float* a, const float* b, int n, Mode mode)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && mode == Mode::Add) a[i] += b[i];
    if (i < n && mode == Mode::Scale) a[i] *= b[i];
}
"""
SHAPED = """\
struct Shape { int sizes[4]; };
__global__ void fill(float* a, Shape shape)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < shape.sizes[0] * shape.sizes[1] * shape.sizes[2] * shape.sizes[3]) a[i] = i;
}
"""


def test_pointers_in_structures_lead_to_memory_of_their_own(tmp_path: Path) -> None:
    text = describe(tmp_path, IN_STRUCTURES)
    launch = read_launches(tmp_path / "k.launch.toml", text=text)[0]
    jobs = launch.arguments[0]
    assert isinstance(jobs, ArrayArgument) and jobs.is_guessed and "jobs" in launch.guesses
    led = {one.base_address: one for one in launch.memory if isinstance(one, ArrayArgument)}
    assert [(led[int(word)].name, led[int(word)].type) for word in jobs.values[:3]] == [
        ("jobs_0", ScalarType.F32), ("jobs_8", ScalarType.F32), ("jobs_16", ScalarType.F64)
    ]  # fmt: skip
    assert jobs.values[3:] == (1048576 << 32,), "the size is the upper half of the last word"


@pytest.mark.parametrize("text", [IN_STRUCTURES, CHOSEN, SHAPED])
def test_a_description_makes_the_kernel_store_what_it_is_for(text: str, tmp_path: Path) -> None:
    """A null pointer, a mode that is none and a product beyond an integer are no faults, and nothing is done."""
    (kernel,) = predict_described(tmp_path / "kernels.cu", describe(tmp_path, text), SETTINGS).kernels
    stores = [one for one in kernel.accesses if one.kind is not AccessGroupKind.LOADS]
    assert kernel.faults == () and stores and all(one.lanes_per_request == 32 for one in stores)


HALF = """\
__global__ void mark(char* mask, int n)
{
    int i = blockIdx.x * 512 + threadIdx.x;
    if (i < n) mask[i] = 1;
}
"""


def test_blocks_that_were_not_tried_touch_as_much_as_their_neighbours(tmp_path: Path) -> None:
    (line,) = [one for one in describe(tmp_path, HALF).splitlines() if '"mask"' in one]
    assert f"count = {2047 * 512 + 256}, " in line


BEYOND = """\
[[launch]]
kernel = "spread"
block = 256
threads = 65536
arguments = [
  { name = "in", type = "float", count = 131072 },
  { name = "out", type = "float", count = COUNT },
  { name = "rows", type = "int", value = "threads_x" },
  { name = "pitch", type = "int", value = 16 },
]
"""


def predict_beyond(folder: Path, count: str) -> KernelPrediction:
    (folder / "kernels.cu").write_text(PITCHED)
    found = predict_described(folder / "kernels.cu", BEYOND.replace("COUNT", count), SETTINGS)
    assert found.problems == ()
    return found.kernels[0]


def test_what_lies_beyond_a_guessed_size_is_no_fault(tmp_path: Path) -> None:
    assert [one.kind for one in predict_beyond(tmp_path, "1048560").faults] == [FaultKind.OUT_OF_BOUNDS]
    kernel = predict_beyond(tmp_path, "1048560, guessed = true")
    assert kernel.faults == () and kernel.volumes is not None
    assert "sizes are guesses were made larger" in str(kernel.problems)


def test_what_is_beyond_a_guess_is_said(tmp_path: Path) -> None:
    launch = predict_beyond(tmp_path, "1048564, guessed = true").launch
    beyond = Fault(
        kind=FaultKind.OUT_OF_BOUNDS,
        message="store of 4 bytes at 0x8: element 1048568 of out, which has 1048564",
        passed=PassedEnd(array="out", offset_bytes=4 * 1048568, size_bytes=4 * 1048564),
    )
    nowhere = replace(beyond, passed=PassedEnd())
    given = replace(beyond, passed=PassedEnd(array="in", offset_bytes=4 * 131072, size_bytes=4 * 131072))
    before = replace(beyond, passed=PassedEnd(array="out", offset_bytes=-4, size_bytes=4 * 1048564))
    kept, notes = part_guessed(launch, (beyond, nowhere, given, before))
    assert kept == (given, before) and len(notes) == 2
    assert "out was given 1,048,564 elements, a guess, and more is touched" in notes[0].message
    grown = grow_guessed(launch, (beyond, given))
    assert grown is not None
    assert [one.count for one in grown.arguments if isinstance(one, ArrayArgument)] == [131072, 4 * 1048564]
    summary = str(answer_faults((), is_beyond_guesses=True).summary)
    assert summary.startswith("No fault of the program was seen that guesses about the launch do not explain")
