"""``gpa-lsp predict explore``: tables, files, journals, interruption."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from tests.collect.processes import find_children, hear_interrupts
from tests.patience import LIMIT_S, wait_until
from tests.prediction.kernels import write_project

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

GATHER = """\
__global__ void gather(const int* index, float* a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 100; ++k)
        sum += a[index[(i + k) % n] % n];
    if (i < n)
        a[i] = sum;
}
"""
GATHERED = """\
[[launch]]
kernel = "gather"
threads = [2048, 4, 4]
block = 128
arguments = [
  { name = "index", type = "int", count = 20000, fill = "permutation" },
  { name = "a", type = "float", count = 20000 },
  { name = "n", type = "int", value = 20000 },
]
"""


FIXED = """\
__global__ void fixed(const float* from, float* to)
{
    __shared__ float kept[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    kept[threadIdx.x] = from[i];
    __syncthreads();
    to[i] = kept[blockDim.x - 1 - threadIdx.x];
}
"""
FIXED_LAUNCH = """\
[[launch]]
kernel = "fixed"
threads = 65536
block = 256
arguments = [{ name = "from", type = "float", count = 65536 }, { name = "to", type = "float", count = 65536 }]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_project(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["predict", "explore", *arguments, "--jobs", "1"])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_blocks_that_do_not_fit_are_listed_with_why(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shared memory follows the block: 256 bytes for each thread."""
    code, out, err = run(capsys, "kernels.cu", "--kernel", "reversed", "--block", "64,256,1024")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "reversed"
    table = lines[lines.index("  Not predicted") :]
    assert table[2].split(None, 1)[0] == "1024"
    assert table[2].split(None, 1)[1] == "the block needs 262,144 bytes of shared memory; at most 232,448 are possible"
    (current,) = (line.split() for line in lines if line.startswith("    →"))
    assert current[2] == "128"


def test_blocks_that_a_kernel_goes_wrong_with_are_not_recommended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Global addresses follow the block, and the shared array does not: 512 threads write behind its end."""
    monkeypatch.chdir(tmp_path)
    Path("fixed.cu").write_text(FIXED)
    Path("fixed.launch.toml").write_text(FIXED_LAUNCH)
    code, out, err = run(capsys, "fixed.cu", "--block", "64,256,512")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert not any("try block" in line for line in lines)
    table = lines[lines.index("  Not predicted") :]
    assert [row.split(None, 1)[0] for row in table[2:]] == ["512"]
    assert "the kernel faults with this block: out-of-bounds access (fixed.cu:5)" in table[2]


def test_blocks_that_leave_threads_over_are_not_recommended_to_kernels_without_a_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(
        "__global__ void k(const float* a, float* b)\n{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  b[i] = a[i];\n}\n"
    )
    arrays = ", ".join(f'{{ name = "{name}", type = "float", count = 100_000 }}' for name in "ab")
    Path("k.launch.toml").write_text(
        f'[[launch]]\nkernel = "k"\nthreads = 100_000\nblock = 250\narguments = [{arrays}]\n'
    )
    code, out, err = run(capsys, "k.cu", "--block", "125,256,500,1024")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    refused = [line for line in lines if "the kernel faults with this block: out-of-bounds access (k.cu:4)" in line]
    assert [line.split("  ")[2] for line in refused] == ["256, 1024"]


def test_the_launch_as_it_is_is_always_compared(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "kernels.cu", "--kernel", "saxpy", "--launch", "1", "--block", "32", "-o", "e.json")[0] == 0
    found = json.loads(Path("e.json").read_text())
    assert found["format"] == "gpa-lsp/exploration-result/1"
    assert found["current"]["block"] == [256, 1, 1]
    assert {tuple(one["configuration"]["block"]) for one in found["configurations"]} == {(32, 1, 1), (256, 1, 1)}
    seconds = [one["seconds"] for one in found["configurations"]]
    assert seconds == sorted(seconds) and seconds[0] > 0


def test_pages_and_pictures(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, start in (("e.html", b"<!doctype html>"), ("e.svg", b"<svg"), ("e.png", b"\x89PNG")):
        assert run(capsys, "kernels.cu", "--kernel", "saxpy", "--launch", "1", "-o", name)[0] == 0
        assert Path(name).read_bytes().startswith(start)
    assert "Launch configurations of saxpy" in Path("e.html").read_text(encoding="utf-8")


def test_a_whole_name_and_the_first_gpu_of_a_name_are_chosen_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    kernel = "__global__ void {0}(float* a) {{ a[blockIdx.x * blockDim.x + threadIdx.x] += 1; }}\n"
    launch = '[[launch]]\nkernel = "{0}"\nthreads = 4096\nblock = 128\narguments = [{{ name = "a", type = "float", count = 4096 }}]\n'
    names = ("star4_2z", "star4", "star4_4z")
    Path("stars.cu").write_text("".join(kernel.format(name) for name in names))
    Path("stars.launch.toml").write_text("".join(launch.format(name) for name in names))
    code, out, err = run(capsys, "stars.cu", "--kernel", "star4", "--machine", "A100", "--block", "64,128")
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if line.startswith("star4")] == ["star4"]
    assert "A100 was taken as the A100 PCIe 40GB; it could be the A100 PCIe 80GB, " in out
    assert "on A100 PCIe 40GB" in out


def test_what_is_done_is_not_done_again(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("kernels.cu", "--kernel", "saxpy", "--launch", "1", "--resume", "j")
    assert run(capsys, *arguments, "--block", "64,128")[0] == 0
    code, out, _ = run(capsys, *arguments, "--block", "64,128,512")
    assert code == 0 and "  3 configurations resumed" in out
    assert len(Path("j").read_text().splitlines()) == 1 + 4
    code, _, err = run(capsys, "kernels.cu", "--kernel", "saxpy", "--launch", "2", "--resume", "j")
    assert code == 2 and "was made for another threads" in err


def test_another_file_is_no_journal_and_kept(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = b'{"format": 7}\n'
    Path("j").write_bytes(content)
    code, out, err = run(capsys, "kernels.cu", "--kernel", "saxpy", "--launch", "1", "--block", "64", "--resume", "j")
    assert (code, out) == (2, "")
    assert err.startswith("gpa-lsp: error: j: ") and "choose another file" in err
    assert Path("j").read_bytes() == content


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux, which tells the children of a process")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interruption_keeps_what_is_done(tmp_path: Path, jobs: str) -> None:
    """The signal goes to all processes of the group, as Ctrl-C in a terminal does."""
    (tmp_path / "gather.cu").write_text(GATHER)
    (tmp_path / "gather.launch.toml").write_text(GATHERED)
    command = f"-m gpa_lsp.cli.main predict explore gather.cu --resume j --jobs {jobs} --threads 32..1024"
    process = subprocess.Popen(
        [sys.executable, *command.split()],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - there are no threads here
    )  # fmt: skip
    journal = tmp_path / "j"

    def is_under_way() -> bool:
        is_begun = journal.exists() and len(journal.read_bytes().splitlines()) > 3
        return process.poll() is not None or (is_begun and (jobs == "1" or len(find_children(process.pid)) > 2))

    wait_until(is_under_way, "configurations in the journal")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    lines = journal.read_text().splitlines()
    assert len(lines) > 3
    assert all("configuration" in json.loads(line) for line in lines[1:])


def test_a_scheduler_that_does_not_answer_is_named(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpa_lsp.execution.prediction.exploration.explore._CONNECT_TIMEOUT_S", 0.2)
    code, out, err = run(capsys, "kernels.cu", "--kernel", "reversed", "--scheduler", "tcp://127.0.0.1:1")
    assert (code, out) == (2, "") and "no Dask scheduler answers" in " ".join(err.split())


TILED = """\
#ifndef TILE
#define TILE 16
#endif
__global__ void sums(const float* from, float* to)
{
    __shared__ float kept[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    kept[threadIdx.x] = from[i];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < TILE; ++k)
        sum += kept[k];
    to[i] = sum;
}
"""
TILED_LAUNCH = """\
[[launch]]
kernel = "sums"
threads = 4096
block = 16
arguments = [{ name = "from", type = "float", count = 4096 }, { name = "to", type = "float", count = 4096 }]
"""


@pytest.fixture
def tiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tiled.cu").write_text(TILED)
    Path("tiled.launch.toml").write_text(TILED_LAUNCH)
    return tmp_path


def simulate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return run(capsys, "tiled.cu", "--by", "simulation", "--machine", "A100", *arguments)


def test_tiles_are_ranked_by_simulation(tiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--define", "TILE=32,64", "--block", "TILE", "-o", "found.json")
    code, out, err = simulate(capsys, *arguments)
    assert (code, out, err) == (0, "", "")
    found = json.loads(Path("found.json").read_text())
    assert found["mode"] == "simulation"
    ranked = found["configurations"]
    named = {(one["configuration"]["block"][0], str(one["configuration"]["definitions"])) for one in ranked}
    assert named == {(16, "[]"), (32, "[['TILE', '32']]"), (64, "[['TILE', '64']]")}
    assert all(one["cycles"] > 0 and one["limiter"] and one["executed_blocks"] > 0 for one in ranked)
    by_block = sorted(ranked, key=lambda one: one["configuration"]["block"])
    assert [one["grid_blocks"] for one in by_block] == [256, 128, 64]
    assert [one["seconds"] for one in ranked] == sorted(one["seconds"] for one in ranked)


def test_tiles_are_ranked_as_the_paper_estimates_them(tiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--define", "TILE=32,64", "--block", "TILE", "-o", "found.json")
    assert run(capsys, "tiled.cu", "--by", "hybrid", "--machine", "A100", *arguments) == (0, "", "")
    found = json.loads(Path("found.json").read_text())
    assert found["mode"] == "hybrid"
    ranked = found["configurations"]
    assert len(ranked) == 3 and all(one["cycles"] > 0 and one["limiter"] for one in ranked)
    assert [one["seconds"] for one in ranked] == sorted(one["seconds"] for one in ranked)


def test_a_dask_cluster_simulates_as_one_process_does(tiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed")
    arguments = ("--define", "TILE=32,64", "--block", "TILE", "-o")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address=None
    ) as cluster:
        assert simulate(capsys, *arguments, "there.json", "--scheduler", cluster.scheduler_address)[0] == 0
    assert simulate(capsys, *arguments, "here.json", "--jobs", "1")[0] == 0
    there, here = (json.loads(Path(name).read_text())["configurations"] for name in ("there.json", "here.json"))
    assert len(here) == 3 and all(one["cycles"] > 0 for one in here)
    assert there == here


def test_what_was_not_simulated_says_why(tiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tile stays 16, and threads of a larger block write behind its end."""
    code, out, err = simulate(capsys, "--block", "16,64", "--threads", "16..64", "--unroll", "11=1,4")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "Launch configurations (simulated)" in lines
    table = lines[lines.index("  Not simulated") :]
    assert table[2].strip().startswith("64 unroll 11=1, 64 unroll 11=4  ")
    assert "the kernel faults with this block: out-of-bounds access (tiled.cu:8)" in table[2]
    assert any("A100 was taken as the A100 PCIe 40GB; it could be" in line for line in lines)
    assert any("16 unroll 11=4" in line for line in lines[: lines.index("  Not simulated")])


def test_a_fixed_grid_keeps_its_block(tiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("tiled.launch.toml").write_text(TILED_LAUNCH.replace("threads = 4096", "grid = 256"))
    code, out, err = simulate(capsys, "--block", "16,32", "--threads", "16..64")
    assert (code, err) == (0, "")
    assert "the launch fixes its grid; give threads = … in place of grid" in out


SCALED = """\
__global__ void scaled(const float* in, float* out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = 2.0f * in[y * w + x];
}
__global__ void rows(const float* in, float* out, int w)
{
    float sum = 0;
    for (int i = threadIdx.x; i < w; i += blockDim.x) sum += in[blockIdx.x * w + i];
    atomicAdd(&out[blockIdx.x], sum);
}
__global__ void tiles(const float* in, float* out, int w, int h)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = in[y * w + x];
}
int main()
{
    const int w = 512, h = 256;
    float *in, *out;
    cudaMalloc(&in, w * h * sizeof(float));
    cudaMalloc(&out, w * h * sizeof(float));
    scaled<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(in, out, w, h);
    rows<<<h, 256>>>(in, out, w);
    tiles<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(in, out, w, h);
}
"""


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SCALED)
    assert main(["predict", "trace", "--template", "k.cu", "-o", "k.launch.toml"]) == 0
    assert "\ngrid = [32, 16, 1]\n" in Path("k.launch.toml").read_text()
    capsys.readouterr()
    return tmp_path


def test_a_description_that_was_written_for_the_host_code_is_explored(
    described: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The grid is given in blocks; other blocks cover the same threads."""
    code, _, err = run(capsys, "k.cu", "--kernel", "scaled", "--block", "32x8", "--block", "64x4", "-o", "k.json")
    assert (code, err) == (0, "")
    found = {
        tuple(one["configuration"]["block"]): one for one in json.loads(Path("k.json").read_text())["configurations"]
    }
    assert found.keys() == {(16, 16, 1), (32, 8, 1), (64, 4, 1)}
    assert {round(one["dram_load_bytes"]) for one in found.values()} == {512 * 256 * 4}


def test_a_grid_in_blocks_keeps_its_block_where_more_than_the_threads_decides(
    described: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A block works on a row, or on a tile of a size of its own: as many threads in other blocks do other work."""
    for kernel, own, other in (("rows", "256", "512"), ("tiles", "16x16", "32x8")):
        code, out, err = run(capsys, "k.cu", "--kernel", kernel, "--block", other)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert f"The launch uses {own}, rank 1" in out and "Try block" not in out
        table = " ".join(" ".join(lines[lines.index("  Not predicted") :]).split())
        assert f"{other} the grid for this block is not known; give threads = … in place of grid" in table


@pytest.mark.parametrize("way", [[], ["--by", "simulation"], ["--by", "hybrid"]])
def test_a_source_alone_is_explored_with_a_launch_that_is_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], way: list[str]
) -> None:
    """Threads follow from the size that is told, and the note says how to give others."""
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SCALED.partition("int main")[0])
    code, out, err = run(capsys, "k.cu", "--kernel", "scaled", "--block", "32x8", *way, "-o", "k.json")
    assert (code, out) == (0, "") and err.startswith("note: k.cu: launches are as the source says, and threads = ")
    code, _, err = run(
        capsys, "k.cu", "--kernel", "scaled", "--block", "32x8", *way, "--sizes", "w = 512, h = 256", "-o", "k.json"
    )
    assert code == 0 and "is assumed" not in err
    found = json.loads(Path("k.json").read_text())["configurations"]
    assert sorted(one["configuration"]["block"] for one in found) == [[16, 16, 1], [32, 8, 1]]
    if not way:
        assert {round(one["dram_load_bytes"]) for one in found} == {512 * 256 * 4}
    assert not Path("k.launch.toml").exists()


def test_several_kernels_without_a_description_are_refused_before_any_is_emulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SCALED.partition("int main")[0])
    monkeypatch.setattr("gpa_lsp.execution.prediction.templates.predict_launches", None)
    code, out, err = run(capsys, "k.cu")
    expected = (
        "gpa-lsp: error: k.cu: 3 kernels match (scaled, rows, tiles), and one is asked for; choose one with --kernel\n"
    )
    assert (code, out, err) == (2, "", expected)
    code, out, err = run(capsys, "k.cu", "--kernel", "absent")
    assert (code, out, err) == (
        2,
        "",
        "gpa-lsp: error: k.cu: no kernel is named absent; there are: scaled, rows, tiles\n",
    )
