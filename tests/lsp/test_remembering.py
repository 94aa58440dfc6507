"""What the history is told about a kernel of the editor's."""

import os
from dataclasses import replace
from pathlib import Path

from gpa_lsp.history.recording import build_recording
from gpa_lsp.lsp.measuring import measure_kernel
from gpa_lsp.lsp.remembering import describe_surroundings
from gpa_lsp.lsp.session import MeasuredFile
from tests.report_builder import build_kernel

KERNEL = build_kernel(
    """
    /build/k.cu:4  LDG.E R2, [R4.64]        ; selected=10
    /build/k.cu:5  FFMA R2, R2, R3, R6      ; long_scoreboard=60/50 selected=10
    """,
    blame="1 <- 0   long_scoreboard",
    measured_unix_s=1_700_000_000,
)


def test_files_body_roots_and_causes(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real, target_is_directory=True)
    (real / "k.cu").write_text("text")
    os.utime(real / "k.cu", (0, 0))
    file = MeasuredFile(
        compiled_path="/build/k.cu", local_path=os.path.realpath(real / "k.cu"), lines=("text",), saved_since=False
    )
    told = describe_surroundings(measure_kernel(KERNEL, 0), [file], roots=[link], read_ns=5)
    assert (told.measured_ns, told.read_ns, told.body) == (1_700_000_000_000_000_000, 5, "/build/k.cu")
    assert told.caused_samples is not None
    assert told.caused_samples[("/build/k.cu", 4)] == 60
    recorded = build_recording(KERNEL, told)
    assert recorded.measurement.key.home == file.local_path
    assert recorded.content.files[0].text == "text"
    assert {line.line: line.caused_samples for line in recorded.content.lines} == {5: 0.0, 4: 60.0}


def test_where_nothing_was_blamed_nothing_is_said_of_causes() -> None:
    measured = measure_kernel(replace(KERNEL, blame=None), 0)
    assert describe_surroundings(measured, [], roots=[], read_ns=5).caused_samples is None
