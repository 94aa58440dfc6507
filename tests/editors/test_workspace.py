"""The project that the editors' tests open is what they take it for."""

import json
import subprocess
from pathlib import Path

from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.report.pipeline import analyse
from tests.editors.workspace import CAUSE, DOUBLES, LOOP, MANGLED, VICTIM, make_workspace


def test_the_profile_has_a_cause_a_victim_and_advice(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "wörk")
    report = analyse([workspace.profile])
    (unknown,) = report.problems  # it calls a function, and nobody counted its requests
    assert "normalise" in unknown.message and unknown.severity is ProblemSeverity.NOTE
    assert tuple(kernel.mangled_name for kernel in report.kernels) == MANGLED
    advice = {item.optimizer for kernel in report.kernels if kernel.advice for item in kernel.advice.advice}
    assert {"strength_reduction", "loop_unrolling", "fast_math"} <= advice
    assert workspace.find_line(VICTIM) == workspace.find_line(CAUSE) + 1 == workspace.find_line(LOOP) + 2
    assert workspace.find_line(DOUBLES) > workspace.find_line(VICTIM)


def test_the_profiler_measures_what_the_source_says(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    subprocess.run([*workspace.measure_command, first], check=True, capture_output=True)
    text = workspace.source.read_text(encoding="utf-8")
    workspace.source.write_text(text.replace("0.7 + 0.1", "0.7f + 0.1f"), encoding="utf-8")
    subprocess.run([*workspace.measure_command, second], check=True, capture_output=True)
    before, between, after = (_find_duration_s(path) for path in (workspace.profile, first, second))
    assert before > between > after
    assert workspace.runs == 2
    assert workspace.find_running() == []


def test_a_profiler_that_hangs_is_seen(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.behave("hang")
    with subprocess.Popen(
        [*workspace.measure_command, tmp_path / "never"], stdout=subprocess.PIPE, start_new_session=True
    ) as run:
        assert run.stdout is not None
        run.stdout.readline()
        run.stdout.readline()
        running = workspace.find_running()
        assert len(running) == 2
        subprocess.run(["kill", "-9", *map(str, reversed(running))], check=True)
    workspace.wait_for_the_end()


def _find_duration_s(path: Path) -> float:
    launch = json.loads(path.read_text(encoding="utf-8"))["launches"][0]
    return float(launch["metrics"]["gpu__time_duration.sum"]) * 1e-9
