"""Findings on memory requests from machine code alone, where nothing was counted: on the right line and marked as static in every output."""

import io
import json
import re
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import jsonschema
import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.editor.source.diagnostics import list_diagnostics
from gpa_lsp.editor.source.hover import describe_hover
from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.report.model import Report
from gpa_lsp.report.pipeline import analyse
from gpa_lsp.report.saved.store import read_report, write_report
from tests.advice.test_warp_checks import NVRTC
from tests.conftest import ROOT
from tests.editor.views import make_profile, make_view
from tests.report_file.record_schema import read_schema

CUBINS = ROOT / "fixtures" / "cubins" / "sm_80"
STRIDED, CALLING = "_Z14strided_accessPKfPfi", "_Z12device_callsPKfPfii"
LINE = 15
COUNTERS = (
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "thread_inst_executed_true",
)
MESSAGE = "This load of global memory is strided: neighbouring threads are 64 elements apart, 32 sectors per request, 4 where coalesced"
TRANSPOSE = """
__global__ void transpose(const float* in, float* out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n)
        out[x * n + y] = in[y * n + x];
}
"""


def write_profile(folder: Path, *, sectors: int = 0, with_source: bool = True) -> Path:
    """A launch of a kernel that walks rows, sampled, with or without counters, and one of a kernel that calls functions."""
    for name in ("strided_access_original", "device_calls_original"):
        shutil.copy(CUBINS / f"{name}.cubin", folder)
    source = ROOT / "fixtures" / "kernels" / "strided_access" / "original.cu"
    compiled = "/build/gpa_lsp/fixtures/kernels/strided_access/original.cu"
    metrics: dict[str, object] = {"gpu__time_duration.sum": 90000.0}
    counted = {name: {"instances": [[4096 + 256, sectors]]} for name in COUNTERS} if sectors else {}
    row = {"pc_offset": 256, "by_reason": {"long_scoreboard": {"all": 900, "latency": 800}}}
    shape = {"grid": [64, 1, 1], "block": [256, 1, 1], "metrics": metrics}
    strided = {**shape, "metrics": {**metrics, **counted}, "function_addresses": ["0x1000"]}
    document = {
        "format": "gpa-lsp/profile/1",
        "modules": [
            {
                "id": 1,
                "compute_capability": "8.0",
                "cubin": {"path": "strided_access_original.cubin"},
                "sources": {compiled: source.read_text()} if with_source else {},
            },
            {"id": 2, "compute_capability": "8.0", "cubin": {"path": "device_calls_original.cubin"}},
        ],
        "launches": [
            {"kernel": STRIDED, "module": 1, **strided, "samples": [{"function": STRIDED, **row}]},
            {"kernel": CALLING, "module": 2, **shape, "samples": [{"function": CALLING, **row}]},
        ],
    }
    path = folder / "run.gpa-profile.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def run(*words: str) -> str:
    with redirect_stdout(io.StringIO()) as said:
        main(list(words))
    return said.getvalue()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_profile(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="module")
def report(path: Path) -> Report:
    return analyse([path])


def test_a_report_without_counters_has_what_its_code_says(report: Report) -> None:
    strided = next(one for one in report.kernels if one.mangled_name == STRIDED)
    (found,) = strided.code_findings or ()
    assert (found.check, found.line, found.certainty) == ("uncoalesced-accesses", LINE, "certain")
    assert MESSAGE in found.message and found.is_in_loop and found.is_costly


def test_a_kernel_that_calls_functions_is_not_known(report: Report) -> None:
    calling = next(one for one in report.kernels if one.mangled_name == CALLING)
    assert calling.code_findings is None
    (note,) = [one for one in report.problems if one.message.startswith("unknown how many sectors")]
    assert "device_calls" in note.message and "strided_access" not in note.message


def test_nothing_is_said_where_it_was_counted_nor_where_no_source_is_at_hand_but_its_name(tmp_path: Path) -> None:
    for name, options in (("counted", {"sectors": 32}), ("alone", {"with_source": False})):
        (tmp_path / name).mkdir()
        found = analyse([write_profile(tmp_path / name, **options)])  # type: ignore[arg-type]
        strided = next(one for one in found.kernels if one.mangled_name == STRIDED)
        assert [one.line for one in strided.code_findings or ()] == ([] if name == "counted" else [LINE])


def test_every_output_says_it(path: Path) -> None:
    checked = run("check", str(path)).splitlines()
    (line,) = [one for one in checked if "[static" in one]
    assert line.split(": info: ")[0].endswith(f"original.cu:{LINE}") and MESSAGE in line
    assert re.search(r" of the samples are stalled on this line \(measured\)\. \[static", line)
    assert any(one.endswith("; 1 static finding") for one in checked)
    (notice,) = [one for one in run("check", str(path), "--format", "github").splitlines() if "(static)" in one]
    assert f"line={LINE}," in notice
    results = json.loads(run("check", str(path), "--format", "sarif"))["runs"][0]
    (result,) = [one for one in results["results"] if one["properties"].get("static")]
    assert results["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "static/uncoalesced-accesses"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == LINE
    for words in ((), ("--details",), ("--format", "markdown"), ("--details", "--format", "markdown")):
        said = run("advise", str(path), *words)
        assert "is strided" in said and "static" in said


def test_it_is_kept_in_a_saved_report(report: Report, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    write_report(report, first)
    jsonschema.Draft202012Validator(read_schema()).validate(json.loads(first.read_text()))
    again = read_report(first)
    assert [one.code_findings for one in again.kernels] == [one.code_findings for one in report.kernels]
    write_report(again, second)
    assert second.read_text() == first.read_text()


def test_a_finding_counts_where_findings_fail_a_check(path: Path) -> None:
    with redirect_stdout(io.StringIO()):
        assert main(["check", str(path), "--min-share", "100", "--fail-on", "finding"]) == 1


def test_an_editor_shows_it_on_the_line_as_it_is_now(report: Report) -> None:
    strided = next(one for one in report.kernels if one.mangled_name == STRIDED)
    ((file, text),) = strided.embedded_sources.items()
    profile = make_profile(strided, texts={file: text}, folder="")
    view = make_view(profile, f"// new\n{text}", path=f"/{file}", opened=text)
    assert view is not None
    (found,) = [one for one in list_diagnostics(view) if one.code == "static uncoalesced-accesses"]
    assert found.range.start.line == LINE and found.message.endswith("(static)") and MESSAGE in found.message
    hover = describe_hover(view, LINE + 1)
    assert hover is not None and "**static** " in hover and "is strided" in hover


def test_a_naive_transpose_is_found_in_a_cubin_by_itself(tmp_path: Path) -> None:
    source = tmp_path / "transpose.cu"
    source.write_text(TRANSPOSE)
    unit = compile_source(source, settings=NVRTC)
    assert unit.cubin is not None, unit.messages
    built = tmp_path / "transpose.cubin"
    built.write_bytes(unit.cubin)
    (line,) = [one for one in run("check", str(built)).splitlines() if "[static" in one]
    assert "transpose.cu:6: info: This store of global memory is strided" in line
    assert "32 sectors per request from 8 on, 4 where coalesced" in line
