"""Reports are launches: their own code is emulated, and both counts stand side by side."""

import json
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.cli.main import main
from gpa_lsp.diagnosis.analyses.answers import Weight
from gpa_lsp.document.prediction_json import make_kernel_prediction
from gpa_lsp.execution.emulator.model import Budget
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION, CountComparison, CountPair, KernelPrediction
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.templates import write_templates
from gpa_lsp.foundation.errors import InputError
from tests.conftest import ROOT
from tests.prediction.measuring import LAUNCHES, STEPS, WARPS, count_accesses, write_measured


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report, beside it the description of its arguments."""
    (tmp_path / "measured.gpa-profile.launch.toml").write_text(LAUNCHES)
    return write_measured(tmp_path / "measured.gpa-profile.json", count_accesses())


def predict(report: Path) -> KernelPrediction:
    (kernel,) = predict_code(report).kernels
    return kernel


def require_compared(kernel: KernelPrediction) -> CountComparison:
    assert kernel.measured is not None and kernel.measured.why == ""
    return kernel.measured


def test_a_report_says_all_of_a_launch_but_its_arguments(report: Path) -> None:
    kernel = predict(report)
    assert (kernel.short_name, kernel.machine) == ("short_def_use", "A100 SXM4 40GB")
    assert (kernel.launch.grid, kernel.launch.block) == ((8, 1, 1), (256, 1, 1))
    assert kernel.volumes is not None and kernel.contradictions == ()
    compared = require_compared(kernel)
    assert all(one.agrees for one in compared.accesses)
    assert {one.line for one in compared.accesses} == {22, 23}
    loads = [one for one in compared.accesses if one.line == 22]
    assert sum(one.executions.measured for one in loads) == WARPS * STEPS
    assert [one.sectors for one in loads] == [CountPair(measured=4.0 * WARPS * STEPS, emulated=4.0 * WARPS * STEPS)]
    answer = kernel.find("measured")
    assert answer is not None and answer.findings == ()
    assert answer.summary.startswith("2 of 2 memory instructions were executed as often as measured")
    assert [row[0] for row in answer.tables[0].rows] == ["line 22 of original.cu", "line 23 of original.cu"]


def test_volumes_that_were_measured_stand_beside_those_predicted(report: Path) -> None:
    totals = {"gpu__time_duration.sum": 5e3, "dram__bytes_read.sum": 65536.0, "dram__bytes_write.sum": 4096.0}
    write_measured(report, count_accesses(), totals=totals)
    kernel = predict(report)
    found = kernel.measured_volumes
    assert found is not None and found.measured_ns == 5e3 and found.sm_hz is None
    assert [one.measured_bytes for one in found.moved] == [None, None, 65536, 4096]
    names = [answer.analysis for answer in kernel.answers]
    assert names.index("measured") + 1 == names.index("measured_volumes") < names.index("volumes")
    assert make_kernel_prediction(kernel)["measured_volumes"]["measured_ns"] == 5e3
    other = predict_code(report, settings=replace(DEFAULT_PREDICTION, machine="A100 PCIe 40GB")).kernels[0]
    assert other.volumes is not None and other.measured_volumes is None
    assert not [one for one in other.problems if "no counters of L2" in one.message]
    write_measured(report, count_accesses())
    bare = predict(report)
    assert bare.measured_volumes is None and any("no counters of L2" in one.message for one in bare.problems)


def test_what_differs_stands_first_with_both_counts(tmp_path: Path, report: Path) -> None:
    counts = count_accesses()
    store = max(counts["inst_executed"])
    counts["memory_l2_theoretical_sectors_global"][store] *= 8
    for name in ("inst_executed", "thread_inst_executed_true"):
        counts[name][min(counts[name])] *= 2
    write_measured(report, counts)
    kernel = predict(report)
    assert [one.agrees for one in require_compared(kernel).accesses] == [False, False]
    answer = kernel.find("measured")
    assert answer is not None
    assert [finding.weight for finding in answer.findings] == [Weight.HIGH, Weight.HIGH]
    load, stored = answer.findings
    assert f"{2 * WARPS * STEPS} executions measured, {WARPS * STEPS} emulated" in load.text
    assert "Are the arguments those of the measured launch?" in load.remedy
    assert "2,048 sectors measured, 256 emulated" in stored.text and stored.remedy == ""
    assert "0 of 2" not in answer.summary and "1 of 2 memory instructions" in answer.summary


def test_guards_may_stand_for_branches(report: Path) -> None:
    counts = count_accesses()
    counts["inst_executed"] = {offset: 2 * count for offset, count in counts["inst_executed"].items()}
    write_measured(report, counts)
    compared = require_compared(predict(report))
    assert not any(one.executions.agrees for one in compared.accesses)
    assert all(one.is_executed_alike for one in compared.accesses)


def test_sectors_that_were_not_counted_are_not_compared(report: Path) -> None:
    counts = count_accesses()
    store = max(counts["inst_executed"])
    counts["memory_l2_theoretical_sectors_global"][store] = 0
    write_measured(report, counts)
    compared = require_compared(predict(report))
    assert [one.sectors is None for one in compared.accesses] == [False, True]
    assert all(one.agrees for one in compared.accesses)


def test_a_sample_of_blocks_stands_for_all(tmp_path: Path) -> None:
    text = LAUNCHES.replace("grid = 8", "grid = 800").replace("value = 2048", "value = 204800")
    (tmp_path / "large.gpa-profile.launch.toml").write_text(text)
    counts = {name: {offset: 100 * one for offset, one in column.items()} for name, column in count_accesses().items()}
    report = write_measured(tmp_path / "large.gpa-profile.json", counts, grid=(800, 1, 1))
    (kernel,) = predict_code(report, settings=replace(DEFAULT_PREDICTION, traced_warp_instructions=20_000)).kernels
    compared = require_compared(kernel)
    assert 0 < compared.counted_blocks < compared.grid_blocks == 800
    assert all(one.agrees for one in compared.accesses)
    answer = kernel.find("measured")
    assert answer is not None and "of 800 blocks, scaled to all" in answer.tables[0].note


def test_without_counts_it_says_what_to_record(report: Path) -> None:
    write_measured(report, {})
    kernel = predict(report)
    assert kernel.measured is not None and "SourceCounters" in kernel.measured.why
    answer = kernel.find("measured")
    assert answer is not None and not answer.is_known


def test_json_has_every_access(report: Path) -> None:
    made = make_kernel_prediction(predict(report))["measured"]
    assert made["why_not"] is None and made["counted_blocks"] == made["grid_blocks"] == 8
    first = made["accesses"][0]
    assert first["agrees"] is True and first["kind"] == "loads" and first["space"] == "global"
    assert first["executions"] == {"measured": WARPS * STEPS, "emulated": WARPS * STEPS}
    json.dumps(made)


def test_kernels_without_arguments_are_named(tmp_path: Path) -> None:
    report = write_measured(tmp_path / "bare.gpa-profile.json", count_accesses())
    found = predict_code(report)
    assert found.kernels == () and found.undescribed == ("_Z13short_def_usePKfPfii",)
    text = write_templates(report)
    launch = tomllib.loads(text)["launch"][0]
    assert (launch["kernel"], launch["block"], launch["threads"]) == ("short_def_use", 256, [2048, 1, 1])
    (tmp_path / "bare.gpa-profile.launch.toml").write_text(text)
    assert len(predict_code(report).kernels) == 1
    with pytest.raises(InputError, match="every kernel has a launch already"):
        write_templates(report)
    with pytest.raises(InputError, match="no kernel in it has 'zzz' in its name"):
        predict_code(report, kernel="zzz")
    with pytest.raises(InputError, match="give a number from 1 to 1"):
        predict_code(report, launches=LaunchChoice(number=2))


def test_the_command_shows_both_counts(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(report)]) == 0
    assert "Measured beside emulated" in capsys.readouterr().out
    assert main(["predict", str(report), "--details"]) == 0
    out = capsys.readouterr().out
    assert "Measured beside emulated" in out and "line 22 of original.cu" in out
    assert main(["predict", str(report), "--format", "html"]) == 0
    assert "Measured beside emulated" in capsys.readouterr().out
    assert main(["predict", "trace", str(report), "--template", "--launches", str(ROOT / "nowhere.launch.toml")]) == 0
    assert 'kernel = "short_def_use"' in capsys.readouterr().out
    assert main(["predict", str(report), "--machine", "A100"]) == 0
    printed = capsys.readouterr()
    assert "predicted for the A100 PCIe 40GB" in printed.out
    assert "A100 was taken as the A100 PCIe 40GB; it could be the A100 PCIe 80GB, " in printed.err
    assert main(["predict", str(report), "--arch", "sm_90"]) == 2
    assert "leave out --arch" in capsys.readouterr().err


SIMULATED = (
    "eschnett.profile_7dc4fa5.1.julia_5_11236",
    "hzchenxiaobin.leetgpu_reduction_full.0.reduction_kernel",
    "NCAR.10_HandsOnNsight_ncu_MW_Baseline.0.set_halo_values_x_396_gpu",
    "algoparc.profile.0.squareSort",
    "panjd123.report80_920ed2b.0.Kernel",
)


@pytest.mark.parametrize("name", SIMULATED)
def test_real_launches_count_what_was_measured(corpus: Path, name: str) -> None:
    """Executions, sectors and wavefronts of every access of reports of several GPUs."""
    folder = corpus / "simulation"
    if not folder.is_dir():
        pytest.skip("this corpus has no launches with measured counts")
    truth = json.loads((folder / f"{name}.json").read_text())
    path = next(one for one in (folder / truth["report"], corpus / "ncu" / truth["report"]) if one.is_file())
    settings = replace(DEFAULT_PREDICTION, budget=Budget(seconds=60.0))
    choice = LaunchChoice(path=folder / f"{name}.launch.toml")
    found = predict_code(path, kernel=truth["kernel"], launches=choice, settings=settings)
    compared = next(require_compared(one) for one in found.kernels if one.launch.grid == tuple(truth["grid"]))
    assert len(compared.accesses) >= truth["validation"]["mapped"]
    assert [one.ptx for one in compared.accesses if not one.agrees] == []
