"""``gpa-lsp roofline``: text, pages and pictures of saved reports and real ones."""

import json
import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.cli.main import main
from gpa_lsp.document.answer_view import list_suggestions
from gpa_lsp.gpu.device.find import find_machine_by_name
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.report.saved.store import read_report, write_report
from tests.conftest import ROOT
from tests.render.charts.roofline_examples import make_machine, make_roofline, place
from tests.report_builder import build_kernel, build_report


@pytest.fixture
def saved(tmp_path: Path) -> str:
    path = tmp_path / "saved.json"
    write_report(build_report(place("saxpy"), build_kernel(name="lost")), path)
    return str(path)


def read(capsys: pytest.CaptureFixture[str]) -> str:
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def test_page_and_pictures(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, start in (("c.html", b"<!doctype html>"), ("c.svg", b"<svg"), ("c.PNG", b"\x89PNG")):
        assert main(["roofline", saved, "-o", str(tmp_path / name), "--dark"]) == 0
        assert (tmp_path / name).read_bytes().startswith(start)
    assert read(capsys) == ""


def test_where_ceilings_come_from_is_told_once_for_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_report(build_report(place("saxpy"), place("daxpy")), tmp_path / "two.json")
    assert main(["roofline", str(tmp_path / "two.json")]) == 0
    text = read(capsys)
    assert (text.count("Ceilings of "), text.count("Ceilings, nearest first")) == (1, 2)
    other = make_roofline(make_machine(), rates={OperationKind.FP64: 0.6e12})
    write_report(build_report(place("saxpy"), place("daxpy", other)), tmp_path / "two.json")
    assert main(["roofline", str(tmp_path / "two.json")]) == 0
    assert read(capsys).count("Ceilings of ") == 2, "another type of operations has another peak"


def test_before(saved: str, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    write_report(build_report(place("saxpy", make_roofline(make_machine(), rates={OperationKind.FP32: 0.6e12}))), old)
    assert main(["roofline", saved, "--before", str(old), "-o", str(tmp_path / "c.svg")]) == 0
    assert "measured change" in (tmp_path / "c.svg").read_text()


def test_roofs_of_another_machine(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", saved, "--machine", "rtx 3090", "--kernel", "saxpy"]) == 0
    text = read(capsys)
    assert "Ceilings of RTX 3090" in text
    assert "the kernel ran on Example GPU" in text
    assert "ceilings at boost clocks" in text
    assert "FP32 peak" in text
    assert "800 GB/s of 936 GB/s" in text


def test_roofs_of_the_gpu_of_this_computer(
    saved: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attached = find_machine_by_name("rtx 3090")
    monkeypatch.setattr("gpa_lsp.gpu.device.find.find_attached_machine", lambda: attached)
    assert main(["roofline", saved, "--machine", "here", "--kernel", "saxpy"]) == 0
    assert "800 GB/s of 936 GB/s" in read(capsys)


def test_measured_roofs_are_put_over_a_profile_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roofs = tmp_path / "roofs.json"
    roofs.write_text(json.dumps({"GMEM_BW": 900.0, "FP_SINGLE_PEAK": 9_000.0}), encoding="utf-8")
    example = str(ROOT / "fixtures" / "example.gpa-profile.json")
    assert main(["roofline", example, "--roofs", str(roofs), "--kernel", "short_def_use"]) == 0
    text = capsys.readouterr().out
    assert "726 GB/s of 900 GB/s" in text
    assert text.count("The file of measured ceilings does not name their GPU.") == 1


def test_measured_roofs(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roofs = tmp_path / "roofs.json"
    roofs.write_text(json.dumps({"GMEM_BW": 900.0, "FP_SINGLE_PEAK": 30_000.0}), encoding="utf-8")
    assert main(["roofline", saved, "--roofs", str(roofs), "--kernel", "saxpy"]) == 0
    text = read(capsys)
    assert "DRAM bandwidth at 89 %" in text
    assert "1.20 TFLOP/s of 30.0 TFLOP/s" in text


@pytest.mark.parametrize(
    "flags",
    [
        ["-o", "chart.pdf"],
        ["--limit", "x"],
        ["--view", "cycles"],
        ["--machine", "GTX 9999"],
        ["--roofs", "missing.json"],
        ["--kernel", "nothing"],
        ["-o", "no/such/folder/chart.svg"],
    ],
)
def test_bad_usage(flags: list[str], saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", saved, *flags]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert printed.err


def test_bad_input(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.ncu-rep"
    broken.write_bytes(b"NVR\0 and nothing else")
    assert main(["roofline", saved, str(broken)]) == 2
    assert "broken.ncu-rep" in capsys.readouterr().out
    assert main(["roofline", saved, "--before", str(broken), "-o", str(tmp_path / "c.svg")]) == 2
    assert "broken.ncu-rep" in capsys.readouterr().err


def test_names_have_no_power_over_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.json"
    kernel = place("k\x1b[2Jernel", machine=replace(make_machine(), name="GPU\x1b[31m", doubts=("\x1b]0;x\x07",)))
    write_report(build_report(kernel), path)
    assert main(["roofline", str(path)]) == 0
    text = read(capsys)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_gpu_below_capability_7_is_named_with_those_that_have_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Starlight turns to nvprof there; here the counters' own roofs stay, and an error says what the rest needs."""
    text = (ROOT / "fixtures" / "example.gpa-profile.json").read_text()
    shutil.copytree(ROOT / "fixtures" / "cubins", tmp_path / "cubins")
    path = tmp_path / "old.gpa-profile.json"
    path.write_text(text.replace('"compute_capability": "8.0"', '"compute_capability": "6.1"'))
    assert main(["roofline", str(path)]) == 2
    printed = capsys.readouterr()
    assert "compute capability 6.1 is not supported; supported are 7.0, 7.5, " in " ".join(printed.out.split())
    assert "profile on a GPU of one of these" in " ".join(printed.out.split())
    assert "DRAM bandwidth" in printed.out


def test_each_suggestion_of_starlights_table_has_its_answer(tmp_path: Path) -> None:
    """Fourteen suggestions of a roofline's page: the gain and the line of our advice, or why it does not apply."""
    profile, path = ROOT / "fixtures" / "example.gpa-profile.json", tmp_path / "report.json"
    assert main(["report", str(profile), "--kernel", "short_def_use", "--format", "json", "-o", str(path)]) == 0
    (kernel,) = read_report(path).kernels
    found = dict(list_suggestions(kernel))
    assert len(found) == 14
    assert re.match(r"loop unrolling 1\.\d+–\d\.\d+×, line 22 of original.cu", found["Unroll the loop"])
    assert found["Use fewer threads"].startswith("thread decrease: no warp is stalled at a barrier")
    assert found["Split the computation"].startswith(
        "warp balance: no warp is stalled at a barrier or fence (no optimizer splits a kernel;"
    )
