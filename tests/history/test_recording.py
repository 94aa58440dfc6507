"""Run that is recorded of a kernel's report."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Standing
from gpa_lsp.report.compare import digest_code
from gpa_lsp.report.history.model import HistoryLimits, Recording
from gpa_lsp.report.history.recording import Surroundings, build_recording, is_measured
from gpa_lsp.report.model import KernelReport
from tests.report_builder import build_kernel

LISTING = """
    /build/k.cu:4               LDG.E R2, [R4.64]        ; selected=10
    /build/k.cu:5               FFMA R2, R2, R3, R6      ; long_scoreboard=60/50 selected=10
    m.h:9 < /build/k.cu:6       MUFU.RCP R7, R2          ; wait=20
    -                           EXIT                     ;
"""
ADVICE = """
    code_reordering code 1.8x samples=60/50
        region kernel 0
            1 <- 0   long_scoreboard
"""
MEASURED_NS = 1_700_000_000_000_000_000
READ_NS = MEASURED_NS + 60_000_000_000


@dataclass(frozen=True)
class Found:
    compiled_path: str
    local_path: str
    lines: tuple[str, ...] | None
    is_verified: bool


def make_kernel(**changes: object) -> KernelReport:
    kernel = build_kernel(LISTING, advice=ADVICE, measured_unix_s=1_700_000_000, durations_ns=(2e6, 3e6))
    return replace(kernel, **changes)  # type: ignore[arg-type]


def record(kernel: KernelReport | None = None, limits: HistoryLimits | None = None, **changes: object) -> Recording:
    surroundings = Surroundings(
        measured_ns=MEASURED_NS,
        read_ns=READ_NS,
        files={"/build/k.cu": Found("/build/k.cu", "/home/me/p/k.cu", ("one", "two"), True)},
        body="/build/k.cu",
        roots=(Path("/home/me/p"),),
    )
    surroundings = replace(surroundings, **changes)  # type: ignore[arg-type]
    return build_recording(kernel or make_kernel(), surroundings, limits or HistoryLimits())


def test_advice_is_recorded_in_the_order_of_suggestions() -> None:
    advice = make_kernel().advice
    assert advice is not None
    (worthy,) = advice.advice
    small = replace(worthy, optimizer="loop_unrolling", standing=Standing.SMALL)
    found = record(make_kernel(advice=replace(advice, advice=(small, worthy)))).measurement.advice
    assert [one.optimizer for one in found] == ["code_reordering", "loop_unrolling"]


def test_figures_are_those_of_the_report() -> None:
    kernel = make_kernel()
    found = record(kernel).measurement
    assert (found.key.mangled_name, found.key.home) == ("kernel", "/home/me/p/k.cu")
    assert (found.key.device, found.key.compute_capability) == ("NVIDIA GeForce RTX 3070", (8, 6))
    assert (found.measured_ns, found.duration_ns, found.total_samples) == (MEASURED_NS, 2.5e6, 100)
    assert found.times.ns is not None
    assert (found.times.ns.count, found.times.ns.mean) == (2, 2.5e6)
    assert found.by_reason == kernel.by_reason
    assert {name: (one.all_samples, one.latency_samples) for name, one in found.by_reason.items()} == {
        "long_scoreboard": (60, 50),
        "selected": (20, 0),
        "wait": (20, 0),
    }
    assert found.code_digest == digest_code(kernel)
    assert [(piece.optimizer, piece.speedup) for piece in found.advice] == [("code_reordering", 1.8)]


def test_lines_are_inclusive_and_hottest_first() -> None:
    lines = record().content.lines
    assert [(line.file, line.line, line.samples, line.reason) for line in lines] == [
        ("/build/k.cu", 5, 70, "long_scoreboard"),
        ("/build/k.cu", 6, 20, "wait"),
        ("m.h", 9, 20, "wait"),
        ("/build/k.cu", 4, 10, "selected"),
    ]
    assert {line.caused_samples for line in lines} == {None}


def test_lines_that_cause_are_kept_with_what_they_cause() -> None:
    content = record(caused_samples={("/build/k.cu", 4): 80.0, ("/build/k.cu", 2): 3.0}).content
    assert [(line.line, line.samples, line.caused_samples) for line in content.lines if line.file == "/build/k.cu"] == [
        (4, 10, 80.0),
        (5, 70, 0.0),
        (6, 20, 0.0),
        (2, 0, 3.0),
    ]
    assert content.is_whole


def test_of_many_lines_the_hottest_are_kept() -> None:
    content = record(limits=HistoryLimits(lines_per_run=2)).content
    assert [line.line for line in content.lines] == [5, 6]
    assert not content.is_whole


def test_texts_are_kept_of_files_below_the_roots_only() -> None:
    found = {"/build/k.cu": Found("/build/k.cu", "/usr/include/k.cu", ("one", "two"), True)}
    ours, library = record().content.files, record(files=found).content.files
    assert [(file.compiled_path, file.local_path, file.text, file.read_ns) for file in ours] == [
        ("/build/k.cu", "/home/me/p/k.cu", "one\ntwo", MEASURED_NS),  # the file is not there, so nobody knows of later
        ("m.h", None, None, MEASURED_NS),
    ]
    assert (library[0].local_path, library[0].text) == ("/usr/include/k.cu", None)


def test_a_text_nobody_vouches_for_is_not_kept() -> None:
    found = {"/build/k.cu": Found("/build/k.cu", "/home/me/p/k.cu", ("one", "two"), False)}
    assert record(files=found).content.files[0].text is None


@pytest.mark.parametrize(("saved_after_ns", "held_ns"), [(-1, READ_NS), (0, READ_NS), (1_000, MEASURED_NS)])
def test_a_file_is_known_to_hold_its_text_until_it_is_read_unless_it_was_saved(
    tmp_path: Path, saved_after_ns: int, held_ns: int
) -> None:
    path = tmp_path / "k.cu"
    path.write_text("one\ntwo")
    os.utime(path, ns=(0, MEASURED_NS + saved_after_ns))
    found = {"/build/k.cu": Found("/build/k.cu", str(path), ("one", "two"), True)}
    file = record(files=found, roots=(tmp_path,)).content.files[0]
    assert (file.text, file.read_ns) == ("one\ntwo", held_ns)


def test_an_embedded_source_is_kept_wherever_its_file_is() -> None:
    kernel = make_kernel(embedded_sources={"/build/k.cu": "then", "m.h": "header"})
    files = record(kernel, files={}, roots=()).content.files
    assert [(file.local_path, file.text, file.read_ns) for file in files] == [
        (None, "then", MEASURED_NS),
        (None, "header", MEASURED_NS),
    ]


def test_long_sources_are_not_kept() -> None:
    kernel = make_kernel(embedded_sources={"/build/k.cu": "x" * 101, "m.h": "header"})
    files = record(kernel, limits=HistoryLimits(source_bytes=100)).content.files
    assert [file.text for file in files] == [None, "header"]


def test_the_home_is_the_local_file_else_the_compiled_path_else_beside_the_profile(tmp_path: Path) -> None:
    assert record(files={}).measurement.key.home == "/build/k.cu"
    profiled = make_kernel(profile_path=tmp_path / "run.ncu-rep")
    folder = os.path.realpath(tmp_path)
    assert record(profiled, files={}, body="k.cu").measurement.key.home == f"{folder}/k.cu"
    assert record(profiled, files={}, body=None).measurement.key.home == folder
    assert record(make_kernel(profile_path=None), files={}, body=None).measurement.key.home == ""


def test_the_identity_is_of_what_was_measured_not_of_where_it_lies(tmp_path: Path) -> None:
    kernel = make_kernel()
    same = [
        record(kernel).identity,
        record(replace(kernel, profile_path=tmp_path / "copy.ncu-rep"), files={}, measured_ns=5).identity,
        record(replace(kernel, advice=None)).identity,
    ]
    assert len(set(same)) == 1
    launches = (replace(kernel.launches[0], duration_ns=2e6 + 1), *kernel.launches[1:])
    others = [
        replace(kernel, measured_unix_s=1_700_000_001),
        replace(kernel, mangled_name="other"),
        replace(kernel, launches=launches),
        replace(kernel, launches=kernel.launches[:1]),
        replace(kernel, device=replace(kernel.device, name="NVIDIA A100")),
        make_other_samples(),
    ]
    assert len({record(other).identity for other in others} - set(same)) == len(others)


def make_other_samples() -> KernelReport:
    kernel = build_kernel(LISTING.replace("wait=20", "wait=21"), measured_unix_s=1_700_000_000, durations_ns=(2e6, 3e6))
    assert kernel.total_samples == 101
    return kernel


def test_a_profile_written_again_is_another_session(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_text("1")
    kernel = make_kernel(profile_path=path)
    first = record(kernel).measurement.session
    assert record(replace(kernel, mangled_name="other")).measurement.session == first
    path.write_text("12")
    second = record(kernel).measurement.session
    path.unlink()
    gone = record(kernel).measurement.session
    assert len({first, second, gone}) == 3


@pytest.mark.parametrize("time_s", [-5, 1 << 64])
def test_times_no_column_holds_are_moved_into_its_range(time_s: int) -> None:
    assert record(measured_ns=time_s * 1_000_000_000).measurement.measured_ns in (0, (1 << 63) - 1)


def test_what_was_not_measured_is_not_remembered() -> None:
    kernel = make_kernel()
    assert is_measured(kernel)
    assert is_measured(replace(kernel, total_samples=0))
    assert not is_measured(replace(kernel, launches=()))
    assert not is_measured(replace(kernel, total_samples=0, duration_ns=None))
