"""Reports are analysed once and then loaded, as long as all inputs are the same; entries never run code."""

import json
import os
import pickle
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import gpa_lsp.report.pipeline.judge
from gpa_lsp.foundation.errors import Problem, ToolError
from gpa_lsp.foundation.kept_files import FOLDER_VARIABLE
from gpa_lsp.foundation.prose import Place, percent, say
from gpa_lsp.gpu.device.roofs_file import KeptRoofs, name_roofs_file
from gpa_lsp.report import pipeline
from gpa_lsp.report.model import Report
from gpa_lsp.report.pipeline import analyse
from gpa_lsp.report.saved.kept_reports import KeptReport, load_kept, open_kept_reports, store_kept
from gpa_lsp.report.saved.store import write_report
from gpa_lsp.report.source_paths import SourceLocator
from tests.basis.test_packed_records import Hostile
from tests.conftest import ROOT
from tests.render.advice_examples import make_advised

PROFILE = "example.gpa-profile.json"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixtures: Path) -> Path:
    """A cache of its own, but for the disassembled text, which takes time to make."""
    known = Path(os.environ[FOLDER_VARIABLE]) / "sass"
    analyse([fixtures / PROFILE])
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    shutil.copytree(known, tmp_path / "cache" / "sass")
    return tmp_path / "cache" / "reports"


@pytest.fixture
def workspace(tmp_path: Path, fixtures: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    shutil.copy(fixtures / PROFILE, folder)
    shutil.copytree(fixtures / "cubins" / "sm_80", folder / "cubins" / "sm_80")
    return folder


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The files that were analysed, and not loaded."""
    seen: list[Path] = []
    judge = gpa_lsp.report.pipeline.judge.judge_file

    def watch(path: Path, *arguments: Any, **named: Any) -> Any:
        seen.append(path)
        return judge(path, *arguments, **named)

    monkeypatch.setattr(gpa_lsp.report.pipeline.judge, "judge_file", watch)
    return seen


def write(report: Report, tmp_path: Path) -> str:
    path = tmp_path / "report.json"
    write_report(report, path)
    return path.read_text()


def test_the_second_answer_is_loaded_and_is_the_same(workspace: Path, judged: list[Path], tmp_path: Path) -> None:
    profile = workspace / PROFILE
    first = analyse([profile])
    second = analyse([profile])
    assert judged == [profile]
    assert write(first, tmp_path) == write(second, tmp_path)
    assert first.kernels[0].code is not None
    assert second.kernels[0].code is not None
    assert repr(first.kernels[0].code) == repr(second.kernels[0].code)


def test_the_same_content_under_another_name_is_loaded_under_that_name(workspace: Path, judged: list[Path]) -> None:
    analyse([workspace / PROFILE])
    copy = workspace / f"copy.{PROFILE}"
    shutil.copy(workspace / PROFILE, copy)
    report = analyse([copy])
    assert judged == [workspace / PROFILE]
    assert {kernel.profile_path for kernel in report.kernels} == {copy}
    assert {problem.path for problem in report.problems} <= {copy, None}


CHANGES: dict[str, Callable[[Path], object]] = {
    "the profile": lambda folder: (folder / PROFILE).write_text((folder / PROFILE).read_text() + " "),
    "a cubin beside it": lambda folder: (folder / "cubins/sm_80/inline_chain_original.cubin").write_bytes(
        (folder / "cubins/sm_80/short_def_use_original.cubin").read_bytes()
    ),
    "a cubin that is gone": lambda folder: (folder / "cubins/sm_80/inline_chain_original.cubin").unlink(),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_analysed(workspace: Path, judged: list[Path], what: str) -> None:
    analyse([workspace / PROFILE])
    CHANGES[what](workspace)
    analyse([workspace / PROFILE])
    assert len(judged) == 2


OPTIONS: tuple[dict[str, Any], ...] = (
    {"mode": "paper"},
    {"mode": None},
    {"disassemble": False},
    {"kernel_filter": "short"},
    {"locator": SourceLocator([])},
    {"roofs": KeptRoofs()},
)


@pytest.mark.parametrize("options", OPTIONS, ids=",".join)
def test_every_way_has_an_entry_of_its_own(workspace: Path, judged: list[Path], options: dict[str, Any]) -> None:
    analyse([workspace / PROFILE])
    analyse([workspace / PROFILE], **options)
    analyse([workspace / PROFILE], **options)
    assert len(judged) == 2


def test_without_answers_the_report_is_the_same_but_for_them(workspace: Path, judged: list[Path]) -> None:
    bare = analyse([workspace / PROFILE], answers=False)
    whole = analyse([workspace / PROFILE])
    assert len(judged) == 2
    assert all(kernel.analyses is None for kernel in bare.kernels)
    assert all(kernel.analyses is not None and kernel.analyses.answers for kernel in whole.kernels if kernel.launches)
    assert bare.problems == whole.problems
    for one, other in zip(bare.kernels, whole.kernels, strict=True):
        assert (one.name, one.lines, one.advice, one.limiter) == (other.name, other.lines, other.advice, other.limiter)


def test_who_needs_no_answers_is_given_the_report_that_has_them(workspace: Path, judged: list[Path]) -> None:
    whole = analyse([workspace / PROFILE])
    found = analyse([workspace / PROFILE], answers=False)
    assert len(judged) == 1
    assert [kernel.analyses is None for kernel in found.kernels] == [
        kernel.analyses is None for kernel in whole.kernels
    ]


def test_answers_are_added_to_what_was_judged_without(
    workspace: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report is checked first and opened afterwards."""
    whole = write(analyse([workspace / PROFILE]), tmp_path)
    (entry,) = cache.iterdir()
    name = entry.name
    entry.unlink()
    analyse([workspace / PROFILE], answers=False)
    with monkeypatch.context() as patch:
        patch.setattr("gpa_lsp.report.pipeline.judge.blame_kernel", None)
        patch.setattr("gpa_lsp.report.pipeline.judge.advise_kernel", None)
        assert write(analyse([workspace / PROFILE]), tmp_path) == whole
    assert [path.name for path in cache.iterdir()] == [name]


def test_what_was_wrong_with_kernels_is_told_again(
    workspace: Path, judged: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Problem.from_error(ToolError("optimizer", "is broken"))
    advise = gpa_lsp.report.pipeline.judge.advise_kernel

    def advise_with_fault(*arguments: Any) -> Any:
        advice, problems = advise(*arguments)
        return advice, (*problems, fault)

    monkeypatch.setattr(gpa_lsp.report.pipeline.judge, "advise_kernel", advise_with_fault)
    bare = analyse([workspace / PROFILE], answers=False)
    whole = analyse([workspace / PROFILE])
    assert fault in bare.problems
    assert whole.problems == bare.problems


def test_another_version_of_the_program_does_not_load_it(
    workspace: Path, judged: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    analyse([workspace / PROFILE])
    monkeypatch.setattr(pipeline, "identify_program", lambda: "another")
    analyse([workspace / PROFILE])
    assert len(judged) == 2


def write_old(source: Path, text: str) -> None:
    """A file that was not saved since the measurement, and so is believed."""
    source.write_text(text)
    os.utime(source, (1, 1))


@pytest.mark.parametrize("change", ["another text", "gone", "none"])
def test_a_source_that_hints_quote_counts(workspace: Path, judged: list[Path], tmp_path: Path, change: str) -> None:
    """The profile carries no sources, so they are read where the locator finds them."""
    document = json.loads((workspace / PROFILE).read_text())
    for module in document["modules"]:
        module.pop("sources")
    for launch in document["launches"]:
        launch["created_unix_s"] = 1_700_000_000
    (workspace / PROFILE).write_text(json.dumps(document))
    source = tmp_path / "kernels" / "short_def_use" / "original.cu"
    source.parent.mkdir(parents=True)
    text = (ROOT / "fixtures" / "kernels" / "short_def_use" / "original.cu").read_text()
    write_old(source, text)

    def look() -> Report:
        return analyse([workspace / PROFILE], locator=SourceLocator([tmp_path]))

    first = look()
    if change == "another text":
        write_old(source, text.replace("0.5", "0.75").replace("i", "index"))
    elif change == "gone":
        source.unlink()
    again = look()
    assert len(judged) == (1 if change == "none" else 2)
    assert (first.kernels[0].advice == again.kernels[0].advice) == (change == "none")
    look()
    assert len(judged) == (1 if change == "none" else 2)


def test_roofs_that_were_measured_since_count(workspace: Path, judged: list[Path], tmp_path: Path) -> None:
    document = json.loads((workspace / PROFILE).read_text())
    names = {launch["device"]["name"] for launch in document["launches"] if "name" in launch.get("device", {})}
    assert names
    roofs = tmp_path / "roofs"
    roofs.mkdir()

    def look() -> Report:
        return analyse([workspace / PROFILE], roofs=KeptRoofs(roofs))

    look()
    look()
    assert len(judged) == 1
    for name in names:
        (roofs / name_roofs_file(name)).write_text("no roofs")
    look()
    assert len(judged) == 1, "roofs that cannot be read are no roofs"
    for name in names:
        (roofs / name_roofs_file(name)).write_text('{"FP_SINGLE_PEAK": 10.0, "GMEM_BW": 100.0}')
    assert KeptRoofs(roofs).find(next(iter(names))) is not None
    look()
    assert len(judged) == 2


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "no pickle", "other types"])
def test_a_damaged_entry_is_analysed_again(
    workspace: Path, judged: list[Path], cache: Path, tmp_path: Path, damage: str
) -> None:
    sound = analyse([workspace / PROFILE])
    (entry,) = cache.iterdir()
    content = entry.read_bytes()
    if damage == "cut":
        entry.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        entry.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    elif damage == "emptied":
        entry.write_bytes(b"")
    elif damage == "no pickle":
        open_kept_reports().store(entry.stem, frame(b"no pickle"))
    else:
        parts = ({}, (Path("x"), (), [0]), ({"a": 1},))
        open_kept_reports().store(entry.stem, frame(*map(pickle.dumps, parts)))
    assert write(analyse([workspace / PROFILE]), tmp_path) == write(sound, tmp_path)
    assert len(judged) == 2
    analyse([workspace / PROFILE])
    assert len(judged) == 2


def frame(*pickles: bytes) -> bytes:
    """An entry of these parts."""
    packed = [zlib.compress(one) for one in pickles]
    return b"".join(struct.pack("<Q", len(one)) + one for one in packed)


class HostileImport:
    def __reduce__(self) -> Any:
        return (getattr, (analyse, "__globals__"))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_entry_runs_no_code(
    workspace: Path, cache: Path, tmp_path: Path, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    report = analyse([workspace / PROFILE])
    (entry,) = cache.iterdir()
    mark = tmp_path / "mark"
    for hostile in (Hostile(mark), HostileImport()):
        parts = [{}, (workspace / PROFILE, report.problems, [0, 1]), report.kernels]
        open_kept_reports().store(entry.stem, frame(*map(pickle.dumps, parts)))
        assert load_kept(open_kept_reports(), entry.stem, lambda seen: True) is not None
        parts[place] = (hostile,)
        open_kept_reports().store(entry.stem, frame(*map(pickle.dumps, parts)))
        caplog.clear()
        assert analyse([workspace / PROFILE]).kernels
        assert "is no part of a report" in caplog.text
        assert not mark.exists()


@pytest.mark.parametrize(
    "module", ["gpa_lsp.report.pipeline", "gpa_lsp.cli.main", "gpa_lsp.__main__", "subprocess", "builtins"]
)
def test_functions_of_ours_are_no_part_of_an_entry(
    workspace: Path, cache: Path, judged: list[Path], module: str
) -> None:
    analyse([workspace / PROFILE])
    (entry,) = cache.iterdir()
    name = {"gpa_lsp.report.pipeline": "analyse", "subprocess": "call", "builtins": "eval"}.get(module, "main")
    call = f"c{module}\n{name}\n(tR.".encode()
    open_kept_reports().store(entry.stem, frame(call))
    analyse([workspace / PROFILE])
    assert len(judged) == 2


def test_an_answer_that_lacks_what_a_tool_did_not_give_is_not_kept(
    workspace: Path, judged: list[Path], monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    def fail(*_: Any) -> Any:
        raise ToolError("nvdisasm", "it did not end in time")

    with monkeypatch.context() as patch:
        patch.setattr("gpa_lsp.kernel.join.disassemble", fail)
        report = analyse([workspace / PROFILE])
    assert [kernel.lacks_sass for kernel in report.kernels] == [True, True]
    doubted = {problem.kernel for problem in report.problems if "its SASS was not read" in problem.message}
    assert doubted == {kernel.mangled_name for kernel in report.kernels}
    assert not cache.exists() or not list(cache.iterdir())
    assert not any(problem.is_passing for problem in analyse([workspace / PROFILE]).problems)
    assert len(judged) == 2


@pytest.mark.corpus
def test_real_reports_come_back_as_they_were(corpus: Path, tmp_path: Path) -> None:
    reports = sorted((corpus / "ncu").glob("*.ncu-rep"), key=lambda path: path.stat().st_size)[:6]
    for path in reports:
        assert write(analyse([path]), tmp_path) == write(analyse([path]), tmp_path)
    assert len(list(open_kept_reports().folder.iterdir())) == len(reports)


def test_sentences_are_kept_with_their_values(cache: Path) -> None:
    kernel = make_advised()
    first, *others = kernel.advice.advice
    hint = say("{share} at {place}", share=percent(0.5), place=Place(file="k.cu", line=3))
    advice = replace(kernel.advice, advice=(replace(first, hint=hint), *others))
    report = Report(problems=(), kernels=(replace(kernel, advice=advice),))
    files = open_kept_reports()
    store_kept(files, "0" * 64, KeptReport(path=Path("p"), seen={}, report=report))
    found = load_kept(files, "0" * 64, lambda seen: True)
    kept = found.report.kernels[0].advice
    assert kept.advice[0].hint.parts == hint.parts
