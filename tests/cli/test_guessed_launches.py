"""Answers for a launch whose description guesses say so, in every format; a grid of nothing is refused with one sentence."""

import json
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from tests.prediction.measuring import LAUNCHES, count_accesses, write_measured

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
pytest.importorskip("pyarrow", reason="needs pyarrow (the extra [traces])")

SOURCE = """\
__global__ void scale(float *p, const float *q, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = 2 * q[i];
}
"""
KNOWN = """\
[[launch]]
kernel = "scale"
block = 128
threads = 1024
arguments = [
  { name = "p", type = "float", count = 1024 },
  { name = "q", type = "float", count = 1024, fill = "uniform" },
  { name = "n", type = "int", value = 1024 },
]
"""
GUESSED = KNOWN.replace("arguments", 'guesses = ["threads", "n", "q"]\narguments').replace(
    "1024 },", "1024, guessed = true },", 1
)
NOTE = (
    "k.launch.toml: line 1: guessed in the launch description: threads, n, the size of p and the contents of q; "
    "results hold for these guesses only; correct them and take what is right out of guesses"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE)
    Path("k.launch.toml").write_text(GUESSED)
    return tmp_path


def test_a_source_alone_is_predicted_with_sizes_that_are_assumed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Threads follow from a size that is told, as the kernel compares their places with it."""
    Path("k.launch.toml").unlink()
    assert main(["predict", "k.cu"]) == 0
    printed = capsys.readouterr()
    assert "  grid 4,096, block 256, " in printed.out and "note: guessed: block, threads, n, " in printed.out
    told = 'note: k.cu: launches are as the source says, and threads = 1048576 is assumed; give others with --sizes "threads = 1048576"; '
    assert printed.err == f"{told}describe them: gpa-lsp predict trace --template k.cu > k.launch.toml\n"
    assert main(["predict", "k.cu", "--sizes", "n = 1000"]) == 0
    printed = capsys.readouterr()
    assert "  grid 4, block 256, " in printed.out and "note: guessed: block, the size of p, " in printed.out
    assert not Path("k.launch.toml").exists()


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("", "k.cu: its launches are described, so --sizes assumes nothing; leave out --sizes"),
        ("k.launch.toml", "no size is called m; there are n and threads"),
    ],
)
def test_sizes_that_mean_nothing_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], missing: str, expected: str
) -> None:
    if missing:
        Path(missing).unlink()
    assert main(["predict", "k.cu", "--sizes", "m = 3"]) == 2
    assert expected in capsys.readouterr().err


COMMANDS = [
    "predict k.cu",
    "predict k.cu --format html",
    "predict k.cu --format json",
    "predict trace k.cu",
    "predict stalls k.cu",
    "predict stalls k.cu --mode paper",
    "predict explore k.cu --block 64",
    "predict explore k.cu --block 64 -o found.json",
    "predict explore k.cu --block 64 -o found.html",
    "predict explore k.cu --by simulation --block 64 --jobs 1",
]


def answer(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command and return its output and its file, with single spaces."""
    assert main(command.split()) == 0
    printed = capsys.readouterr()
    output = command.partition(" -o ")[2]
    return " ".join((printed.out + printed.err + (Path(output).read_text() if output else "")).split())


@pytest.mark.parametrize("command", COMMANDS)
def test_answers_say_what_of_the_launch_is_guessed(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    said = answer(command, capsys)
    if "json" in command:
        said = said.replace('", "path": "', "")
        assert NOTE.partition("guessed in")[2].partition(";")[0] in said
    else:
        assert said.count(NOTE) == 1
    Path("k.launch.toml").write_text(KNOWN)
    assert "guessed" not in answer(command, capsys)


def test_a_problem_of_the_prediction_carries_the_guesses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "k.cu", "--format", "json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    (problem,) = kernel["problems"]
    assert (problem["severity"], problem["place"]) == ("note", "line 1")
    assert Path(problem["path"]).name == "k.launch.toml" and problem["message"] in NOTE


@pytest.mark.parametrize("command", ["", "trace", "stalls", "explore", "explore --by simulation"])
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("grid = 0", "grid is 0; give a number of at least 1"),
        ("grid = [4, 0, 1]", "grid is 0; give a number of at least 1"),
        ('grid = "n // 2048"', "grid is 0; give a number of at least 1"),
        ('threads = "n - 1024"', "threads is 0; give a number of at least 1"),
        ("grid = -1", "grid is -1; give a number of at least 1"),
    ],
)
def test_a_described_grid_of_nothing_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, shape: str, words: str
) -> None:
    Path("k.launch.toml").write_text(KNOWN.replace("threads = 1024", shape))
    part, _, options = command.partition(" ")
    assert main(["predict", *part.split(), "k.cu", *options.split()]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert printed.out == "" and line.endswith(f"k.launch.toml: line 4: {words}")


@pytest.mark.parametrize("grid", [(0, 0, 0), (4, 0, 1)])
@pytest.mark.parametrize("command", ["", "trace", "trace --template"])
def test_a_measured_grid_of_nothing_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, grid: tuple[int, int, int]
) -> None:
    write_measured(Path("k.gpa-profile.json"), count_accesses(), grid=grid)
    Path("k.gpa-profile.launch.toml").write_text(LAUNCHES)
    part, _, options = command.partition(" ")
    assert main(["predict", *part.split(), "k.gpa-profile.json", *options.split()]) == 2
    printed = capsys.readouterr()
    expected = "gpa-lsp: error: k.gpa-profile.json: it has no launch with a known grid and block; record it again"
    assert (printed.out, printed.err.splitlines()) == ("", [expected])


def test_of_many_messages_of_the_compiler_the_first_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "wrong.cu"
    source.write_text("".join(f"__global__ void k{n}(int* a) {{ a[0] = b{n}; }}\n" for n in range(30)))
    assert main(["predict", str(source)]) == 2
    told = capsys.readouterr().err
    assert told.count("is undefined") == 20 and "and 10 more messages of the compiler" in told
