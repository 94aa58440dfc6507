"""Sources and commit that are recorded with a run."""

import os
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.report.history.model import Commit
from gpa_lsp.report.history.recording import Surroundings, build_recording, describe_surroundings
from gpa_lsp.report.kernel_lines import find_causes
from gpa_lsp.report.measured_files import MeasuredFile, read_measured_ns
from gpa_lsp.report.model import KernelReport
from tests.report_builder import build_kernel

KERNEL = build_kernel(
    """
    /build/k.cu:4  LDG.E R2, [R4.64]        ; selected=10
    /build/k.cu:5  FFMA R2, R2, R3, R6      ; long_scoreboard=60/50 selected=10
    """,
    blame="1 <- 0   long_scoreboard",
    measured_unix_s=1_700_000_000,
)


def describe(kernel: KernelReport, files: tuple[MeasuredFile, ...] = (), roots: tuple[Path, ...] = ()) -> Surroundings:
    measured_ns = read_measured_ns(kernel, 0)
    return describe_surroundings(kernel, files, find_causes(kernel), measured_ns=measured_ns, read_ns=5, roots=roots)


def test_files_body_roots_and_causes(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real, target_is_directory=True)
    (real / "k.cu").write_text("text")
    os.utime(real / "k.cu", (0, 0))
    file = MeasuredFile(compiled_path="/build/k.cu", local_path=os.path.realpath(real / "k.cu"), lines=("text",))
    told = describe(KERNEL, (file,), (link,))
    assert (told.measured_ns, told.read_ns, told.body) == (1_700_000_000_000_000_000, 5, "/build/k.cu")
    assert told.caused_samples is not None
    assert told.caused_samples[("/build/k.cu", 4)] == 60
    recorded = build_recording(KERNEL, told)
    assert recorded.measurement.key.home == file.local_path
    assert recorded.content.files[0].text == "text"
    assert {line.line: line.caused_samples for line in recorded.content.lines} == {5: 0.0, 4: 60.0}


def test_the_commit_is_of_the_tree_the_body_is_in_else_of_the_profiles(tmp_path: Path) -> None:
    for name, digest in (("sources", "a" * 40), ("measured", "b" * 40)):
        (tmp_path / name / ".git" / "logs").mkdir(parents=True)
        entry = f"{'0' * 40} {digest} A <a@example.org> 1600000000 +0000\tcommit (initial): In {name}\n"
        (tmp_path / name / ".git" / "logs" / "HEAD").write_text(entry)
    kernel = replace(KERNEL, profile_path=tmp_path / "measured" / "run.ncu-rep")
    body = MeasuredFile(compiled_path="/build/k.cu", local_path=str(tmp_path / "sources" / "k.cu"), lines=None)
    assert describe(kernel, (body,)).commit == Commit(digest="a" * 40, subject="In sources")
    outside = describe(kernel, (replace(body, is_outside=True),))
    assert outside.commit == describe(kernel).commit == Commit(digest="b" * 40, subject="In measured")
    assert build_recording(kernel, outside).measurement.commit == outside.commit
    assert describe(KERNEL).commit is None
    assert describe(replace(kernel, measured_unix_s=1_500_000_000), (body,)).commit is None


def test_where_nothing_was_blamed_nothing_is_said_of_causes() -> None:
    assert describe(replace(KERNEL, blame=None)).caused_samples is None
