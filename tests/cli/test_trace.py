"""``gpa-lsp predict trace``: one launch into files."""

import json
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.compiler.model import CompilerChoice, CompileSettings
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.trace_files import read_pieces
from tests.conftest import ROOT
from tests.prediction.kernels import write_project
from tests.prediction.measuring import BLOCK, GRID, write_measured

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
pytest.importorskip("pyarrow", reason="needs pyarrow (the extra [traces])")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_project(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["predict", "trace", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_one_launch_is_kept(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "kernels.cu", "--kernel", "saxpy", "--launch", "2")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "saxpy" and out.splitlines()[-1] == "  trace: kernels.trace"
    pieces = list(read_pieces(Path("kernels.trace")))
    assert sum(len(piece.accesses) for piece in pieces) == 3 * 32
    assert sum(len(piece.entries) for piece in pieces) == 0
    assert json.loads(Path("kernels.trace/trace.json").read_text())["grid"] == [8, 1, 1]


def test_entries_are_kept_when_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "kernels.cu", "--kernel", "saxpy", "--launch", "2", "--entries", "-o", "t")[0] == 0
    assert sum(len(piece.entries) for piece in read_pieces(Path("t"))) >= 2 * 32


def test_a_template_can_be_read_back(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("kernels.launch.toml").unlink()
    code, out, _ = run(capsys, "kernels.cu", "--template", "--kernel", "saxpy")
    assert code == 0
    Path("t.launch.toml").write_text(out)
    (launch,) = read_launches(Path("t.launch.toml"))
    assert (launch.kernel, [one.name for one in launch.arguments]) == ("saxpy", ["n", "a", "x", "y"])
    code, out, err = run(capsys, "kernels.cu", "--kernel", "saxpy", "--sizes", "n = 512", "-o", "t")
    assert code == 0 and "  grid 2, block 256, " in out and Path("t").is_dir()
    assert "gpa-lsp predict trace --template kernels.cu > kernels.launch.toml" in err


def test_a_template_goes_into_the_file_that_the_shell_has_made(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("kernels.launch.toml").write_text("")
    code, out, err = run(capsys, "kernels.cu", "--template", "--kernel", "saxpy")
    assert (code, err) == (0, "")
    assert 'kernel = "saxpy"' in out


def test_a_template_goes_into_a_file_that_is_named_and_into_none_that_holds_something(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("kernels.launch.toml").unlink()
    assert run(capsys, "kernels.cu", "--template", "--kernel", "saxpy", "-o", "kernels.launch.toml") == (0, "", "")
    (launch,) = read_launches(Path("kernels.launch.toml"))
    assert launch.kernel == "saxpy"
    written = Path("kernels.launch.toml").read_bytes()
    code, _, err = run(capsys, "kernels.cu", "--template", "--kernel", "transpose", "-o", "kernels.launch.toml")
    assert code == 2 and "kernels.launch.toml: holds something already" in err and ">>" in err
    assert Path("kernels.launch.toml").read_bytes() == written


def test_a_template_has_the_size_of_a_measured_launch(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("kernels.launch.toml").unlink()
    profile = json.loads((ROOT / "fixtures" / "example.gpa-profile.json").read_text())
    device = profile["launches"][0]["device"]
    launch = {"kernel": "_Z5saxpyifPKfPf", "grid": [3, 1, 1], "block": [64, 1, 1], "device": device}
    profile |= {"modules": [], "launches": [launch]}
    Path("p.gpa-profile.json").write_text(json.dumps(profile))
    code, out, err = run(capsys, "kernels.cu", "--template", "--kernel", "saxpy", "--profile", "p.gpa-profile.json")
    assert (code, err) == (0, "")
    Path("t.launch.toml").write_text(out)
    (described,) = read_launches(Path("t.launch.toml"))
    assert (described.grid, described.block) == ((3, 1, 1), (64, 1, 1))


def test_a_template_of_a_report_needs_no_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = write_measured(tmp_path / "measured.gpa-profile.json", {})
    code, out, err = run(capsys, str(report), "--template")
    assert (code, err) == (0, "")
    (tmp_path / "t.launch.toml").write_text(out)
    (described,) = read_launches(tmp_path / "t.launch.toml")
    assert (described.kernel, described.grid, described.block) == ("short_def_use", GRID, BLOCK)


def test_a_file_of_ptx_is_traced_like_a_source(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ptx = compile_source(project, settings=CompileSettings(choice=CompilerChoice.NVRTC)).ptx
    assert ptx is not None
    Path("other.ptx").write_text(ptx)
    code, out, err = run(capsys, "other.ptx", "--template", "--kernel", "saxpy")
    assert (code, err) == (0, "")
    assert "[[launch]]" in out and '{ name = "argument3", type = "f32", count = "threads_x"' in out
    code, out, err = run(
        capsys, "other.ptx", "--launches", "kernels.launch.toml", "--kernel", "saxpy", "--launch", "2", "-o", "t"
    )
    assert (code, err) == (0, "")
    assert sum(len(piece.accesses) for piece in read_pieces(Path("t"))) == 3 * 32
