"""A profile with many kernels is judged a few kernels at a time, the longest first, and its report is what it would be if all were read at once."""

from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.foundation import packed_records
from gpa_lsp.report.measured_files import ProfiledSources
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pipeline import judge
from gpa_lsp.report.pipeline.judge import judge_file
from gpa_lsp.report.pipeline.options import AnalysisOptions
from gpa_lsp.report.saved.store import write_report
from tests.profile.report_builder import ReportBuilder

KERNELS = 12
BASE = 0x7F0000000000
APART = 1 << 20


@pytest.fixture
def profile(tmp_path: Path, fixtures: Path) -> Path:
    """A report of the kernels of some fixtures, the later the longer; the first is launched once more in the end."""
    return write_profile(tmp_path / "many.ncu-rep", fixtures)


def write_profile(path: Path, fixtures: Path, *, misfit: int | None = None) -> Path:
    """Write it; the kernel of one number can be launched with fewer registers than it needs."""
    builder = ReportBuilder()
    cubins = sorted((fixtures / "cubins" / "sm_80").glob("*_original.cubin"))[:KERNELS]
    launches = [*enumerate(cubins), (0, cubins[0])]
    for place, (number, file) in enumerate(launches):
        image = file.read_bytes()
        function = next(one for one in read_cubin(image).functions.values() if one.is_entry)
        start = BASE + number * APART
        if place == number:
            builder.add_source(number + 1, image=image, functions={function.name: start})
        registers = 1 if number == misfit else function.registers
        metrics = [
            builder.encode_metric("gpu__time_duration.sum", 1000.0 * (number + 1)),
            builder.encode_metric("launch__function_pcs", 1, [(0, start)]),
            builder.encode_metric("launch__registers_per_thread", registers),
            builder.encode_metric("inst_executed", 300, [(start, 100), (start + 16, 100), (start + 32, 100)]),
            *builder.encode_samples(
                {"long_scoreboard": {16: (90, 85), 32: (300, 200)}, "selected": {0: (7, 0), 16: (3, 0)}}, base=start
            ),
        ]
        builder.add_result(builder.make_result(function.name, metrics=metrics, source_id=number + 1))
    builder.add_session()
    path.write_bytes(builder.build())
    return path


def judge_it(profile: Path, name: str | None = None) -> tuple[Report, list[KernelReport]]:
    """The report, and its kernels in the order in which they were told."""
    told: list[KernelReport] = []
    report = judge_file(profile, AnalysisOptions(kernel_filter=name), ProfiledSources(), None, take=told.append).report
    return report, told


def judge_at_once(profile: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report as it is when all kernels are read together."""
    with monkeypatch.context() as patched:
        patched.setattr(judge, "_judge_in_parts", lambda *_: None)
        return judge_it(profile)[0]


def write(report: Report, folder: Path) -> str:
    write_report(report, folder / "report.json")
    return (folder / "report.json").read_text()


def test_the_report_is_the_same(profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = judge_it(profile)
    assert len(report.kernels) == KERNELS
    assert write(report, tmp_path) == write(judge_at_once(profile, monkeypatch), tmp_path)


def test_the_longest_kernels_are_told_first(profile: Path) -> None:
    report, told = judge_it(profile)
    assert {id(one) for one in told} == {id(one) for one in report.kernels}
    first, rest = told[: judge._FEWEST_TOGETHER], told[judge._FEWEST_TOGETHER :]
    assert rest
    assert min(one.total_duration_ns for one in first) >= max(one.total_duration_ns for one in rest)


def test_launches_of_a_kernel_stay_together(profile: Path) -> None:
    report, _ = judge_it(profile)
    assert sorted(len(kernel.launches) for kernel in report.kernels) == [1] * (KERNELS - 1) + [2]


def test_a_filter_keeps_its_kernels(profile: Path) -> None:
    whole, _ = judge_it(profile)
    wanted = whole.kernels[3].mangled_name
    assert [kernel.mangled_name for kernel in judge_it(profile, wanted)[0].kernels] == [wanted]


def test_what_is_wrong_with_some_launches_is_told_as_ever(
    tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = write_profile(tmp_path / "misfit.ncu-rep", fixtures, misfit=2)
    report, told = judge_it(profile)
    assert len(report.kernels) == len(told) == KERNELS - 1
    assert any("registers" in str(problem) for problem in report.problems)
    assert write(report, tmp_path) == write(judge_at_once(profile, monkeypatch), tmp_path)


def test_other_processes_find_the_same(profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = judge_at_once(profile, monkeypatch)
    shared: list[Path] = []
    share = judge._Judge.share

    def watch(self: judge._Judge, path: Path, *arguments: Any) -> Any:
        shared.append(path)
        return share(self, path, *arguments)

    monkeypatch.setattr(judge._Judge, "share", watch)
    monkeypatch.setattr(judge, "count_cores", lambda: 2)
    monkeypatch.setattr(judge, "_FEWEST_SHARED", 2)
    answered: list[bytes] = []
    with monkeypatch.context() as patched:
        patched.setattr(packed_records, "unpack_records", answered.append)
        report, told = judge_it(profile)
        assert not answered, "answers are handed on as they came"
    assert shared
    assert len(told) == KERNELS
    assert write(report, tmp_path) == write(alone, tmp_path)
