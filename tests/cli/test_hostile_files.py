"""Special files and system errors: one line of complaint, bounded work and no hang."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.report.history.model import find_database
from tests.conftest import ROOT
from tests.patience import LIMIT_S

if sys.platform == "win32":
    pytest.skip("devices, pipes and signals of POSIX", allow_module_level=True)

EXAMPLE = ROOT / "fixtures" / "example.gpa-profile.json"
GIB = 1 << 30


@pytest.fixture(autouse=True)
def never_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interrupt a test that blocks, as Ctrl-C does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def run_to(stream: str, *words: str) -> tuple[int, str]:
    with Path(stream).open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gpa_lsp", *words], stdout=out, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False
        )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "words", [["report", str(EXAMPLE)], ["report", str(EXAMPLE), "--format", "json"], ["doctor"], ["report", "sass", str(EXAMPLE)]]
)  # fmt: skip
def test_a_full_standard_output_is_told_in_a_line(words: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    code, said = run_to("/dev/full", *words)
    assert code == 2
    assert (
        said
        == "gpa-lsp: error: standard output cannot be written: No space left on device; make room, or send it elsewhere\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["advise"], ["check"], ["compare"], ["gate", "--base", str(EXAMPLE)], ["report", "graph"], ["history", "--record"], ["predict"], ["report"],
        ["roofline"], ["report", "sass"], ["predict", "stalls"], ["predict", "trace"], ["predict", "explore"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + ".cu", "y/" * 2500], ids=["long", "source", "deep"])
def test_a_path_that_no_system_takes_is_no_bug_of_ours(
    words: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([words[0], name, *words[1:]] if words[0] == "gate" else [*words, name]) == 2
    printed = capsys.readouterr()
    assert "internal error" not in printed.err and "Traceback" not in printed.err


@pytest.mark.parametrize(
    "name", ["a.ncu-rep", "a.gpa-profile.json", "a.cu", "a.cubin", "a.ptx", "a.json", "a.launch.toml"]
)
@pytest.mark.parametrize("command", ["report", "check", "predict", "predict stalls", "predict trace", "advise"])
def test_a_pipe_is_no_input(name: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(name)
    assert main([*command.split(), name]) == 2
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err and "internal error" not in printed.err


@pytest.mark.parametrize("file", ["trace.json", "accesses.parquet", "blocks.parquet"])
def test_a_pipe_in_a_trace_is_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow (the extra [traces])")
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    Path("k.cu").write_text("__global__ void k(float* x) { x[threadIdx.x] = 1; }\n")
    arguments = 'arguments = [{ name = "x", type = "float", count = 64 }]'
    Path("k.launch.toml").write_text(f'[[launch]]\nkernel = "k"\nblock = 64\nthreads = 64\n{arguments}\n')
    assert main(["predict", "trace", "k.cu", "-o", "t"]) == 0
    Path("t", file).unlink()
    os.mkfifo(Path("t", file))
    assert main(["predict", "t"]) == 2
    assert f"{file}: " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pipe.launch.toml", "journal"])
def test_a_pipe_is_no_description_and_no_journal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    Path("k.cu").write_text("__global__ void k(float* x) { x[threadIdx.x] = 1; }\n")
    os.mkfifo(name)
    if name == "journal":
        Path("k.launch.toml").write_text(
            '[[launch]]\nkernel = "k"\nblock = 64\nthreads = 64\narguments = [{ name = "x", type = "float", count = 64 }]\n'
        )
    option = ["--resume", name] if name == "journal" else ["--launches", name]
    assert main(["predict", "explore", "k.cu", "--block", "32", "--jobs", "1", *option]) == 2
    assert name in capsys.readouterr().err


def test_a_pipe_named_as_a_source_does_not_hang_the_search_for_sources(capsys: pytest.CaptureFixture[str]) -> None:
    for kernel in ("short_def_use", "inline_chain"):
        Path("cubins/sm_80").mkdir(parents=True, exist_ok=True)
        Path(f"cubins/sm_80/{kernel}_original.cubin").write_bytes(
            (EXAMPLE.parent / f"cubins/sm_80/{kernel}_original.cubin").read_bytes()
        )
    Path("p.gpa-profile.json").write_text(EXAMPLE.read_text())
    os.mkfifo("original.cu")
    assert main(["report", "p.gpa-profile.json", "--html", "-o", "p.html"]) == 0
    assert capsys.readouterr().err == ""


def test_a_huge_file_is_refused_by_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    """Digesting 50 GiB takes a hundred seconds of the processor; its header one read."""
    for name, head in (
        ("zeros.ncu-rep", b""),
        ("named.gpa-profile.json", b""),
        ("magic.ncu-rep", b"NVR\0"),
        ("zeros.cubin", b""),
    ):
        with Path(name).open("wb") as stream:
            stream.write(head)
            stream.truncate(50 * GIB)
        before = os.times()
        assert main(["report", name]) == 2
        after = os.times()
        Path(name).unlink()
        assert after.user + after.system - before.user - before.system < 10, name
        assert name in capsys.readouterr().out


def test_a_history_that_never_ends_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
    assert main(["history", "--record", str(EXAMPLE)]) == 0
    with sqlite3.connect(find_database()) as connection:
        connection_columns = [row[1] for row in connection.execute("PRAGMA table_info(run)")]
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("ALTER TABLE run RENAME TO other")
        columns = ", ".join(f"x AS {name}" for name in connection_columns)
        connection.execute(f"CREATE VIEW run AS {rows} SELECT {columns} FROM n")
    connection.close()
    capsys.readouterr()
    for words in (["history"], ["history", "--html", "-o", "h.html"]):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert "measurements are not remembered" in said and "Traceback" not in said, said


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ("low = 10, high = 1", "high is 1, below low, 10"),
        ("low = nan, high = 1", "low is nan"),
        ("low = 0, high = inf", "high is inf"),
        ('low = "-inf"', "low is -inf"),
    ],
)
def test_a_range_of_values_is_one(members: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    Path("k.cu").write_text("__global__ void k(float* x) { x[threadIdx.x] = 1; }\n")
    argument = f'{{ name = "x", type = "float", count = 64, fill = "uniform", {members} }}'
    Path("k.launch.toml").write_text(f'[[launch]]\nkernel = "k"\nblock = 64\nthreads = 64\narguments = [{argument}]\n')
    assert main(["predict", "k.cu"]) == 2
    assert words in capsys.readouterr().err


def test_stream_errors_are_silent_where_nobody_listens() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gpa_lsp", "report", "missing.ncu-rep"], stdout=writer, stderr=writer, timeout=LIMIT_S, check=False
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.returncode == 2
