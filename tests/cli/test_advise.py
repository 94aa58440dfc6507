"""``gpa-lsp advise``: formats, limits, exit codes, files, modes."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.diagnosis.advice.gpa import TABLE_II
from gpa_lsp.report.model import Report
from gpa_lsp.report.saved.store import write_report
from tests.cli.test_commands import FakeTerminal
from tests.conftest import ROOT
from tests.render.advice_examples import make_advised, make_silent
from tests.report_builder import build_report
from tests.report_file.record_schema import read_schema


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "GPA_LSP_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def saved(tmp_path: Path) -> str:
    path = tmp_path / "saved.json"
    write_report(build_report(make_advised(), make_silent()), path)
    return str(path)


def test_advice_that_was_found_before_is_worded_without_optimizers_and_models(saved: str) -> None:
    heavy = ("gpa_lsp.diagnosis.advice.optimizers", "gpa_lsp.execution.simulator.machine", "gpa_lsp.execution.volumes")
    script = (
        "import sys; from gpa_lsp.cli.main import main; main(sys.argv[1:]); "
        f"print([name for name in sys.modules if name.startswith({heavy})], file=sys.stderr)"
    )
    for flags in ([], ["--details"], ["--format", "markdown"], ["--format", "sarif"]):
        done = subprocess.run(
            [sys.executable, "-c", script, "advise", saved, *flags],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert done.stderr == "[]\n"
        assert "nroll the loop" in done.stdout


def read(capsys: pytest.CaptureFixture[str]) -> str:
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


@pytest.mark.parametrize("form", ["text", "markdown", "sarif", "github", "json"])
def test_a_file_holds_what_a_pipe_gets(
    form: str, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", saved, "--format", form]) == 0
    expected = read(capsys)
    target = tmp_path / "out"
    assert main(["advise", saved, "--format", form, "-o", str(target), "--fail-on-speedup", "1.2"]) == 1
    assert read(capsys) == ""
    assert target.read_text(encoding="utf-8") == expected


def test_json_is_the_report_and_can_be_advised_on(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["advise", saved, "--format", "json"])
    text = read(capsys)
    jsonschema.Draft202012Validator(read_schema()).validate(json.loads(text))
    (tmp_path / "again.json").write_text(text)
    main(["advise", saved])
    expected = read(capsys)
    main(["advise", "again.json"])
    assert read(capsys) == expected


@pytest.mark.parametrize(
    ("flags", "passed"),
    [([], {}), (["--mode", "paper"], {"mode": "paper"}), (["--blamer", "paper"], {"mode": "paper"})],
)
def test_the_pipeline_is_told_the_mode(
    flags: list[str], passed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {}

    def analyse(paths: Any, **options: Any) -> Report:
        told.update(options)
        return build_report(make_silent())

    monkeypatch.setattr("gpa_lsp.report.pipeline.analyse", analyse)
    assert main(["advise", str(tmp_path / "p.ncu-rep"), *flags]) == 0
    assert {name: value for name, value in told.items() if name == "mode"} == passed


def test_mode_paper_shows_gpas_optimizers_with_pairs_of_def_and_use(capsys: pytest.CaptureFixture[str]) -> None:
    """GPA Figure 8: optimizers by their estimates, and below each the places of defs and uses with their distance."""
    assert (
        main(["advise", str(ROOT / "fixtures/example.gpa-profile.json"), "--kernel", "short", "--mode", "paper"]) == 0
    )
    printed = read(capsys)
    titles = re.findall(r"^ +([\d.]+)×  ([A-Z][A-Za-z ]+?)  ([a-z_]+)$", printed, re.MULTILINE)
    assert [name for _, _, name in titles][:2] == ["code_reordering", "loop_unrolling"]
    assert [float(one) for one, _, _ in titles] == sorted((float(one) for one, _, _ in titles), reverse=True)
    assert {name for _, _, name in titles} <= {row.name for row in TABLE_II}
    assert "LDG.E.CONSTANT R0, [R4.64]  → " in printed
    assert "10 cycles, 4 instructions apart" in printed
    assert "speedup 1.10× alone" in printed
    assert "Equation 4: T 8,526" in printed


def test_on_a_screen_lines_are_wrapped_and_coloured(saved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    pipe, screen = io.StringIO(), FakeTerminal()
    monkeypatch.setattr(sys, "stdout", pipe)
    main(["advise", saved])
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setattr(sys, "stdout", screen)
    main(["advise", saved])
    assert "\x1b[" in screen.getvalue()
    assert "\x1b[" not in pipe.getvalue()
    assert screen.getvalue().count("\n") > pipe.getvalue().count("\n")


def test_what_is_outside_of_the_kernel_fails_no_build(saved: str, tmp_path: Path) -> None:
    document = json.loads(Path(saved).read_text(encoding="utf-8"))
    for kernel in document["kernels"]:
        for one in kernel["advice"] or ():
            one["standing"] = "outside"
    changed = tmp_path / "outside.json"
    changed.write_text(json.dumps(document), encoding="utf-8")
    assert main(["advise", str(changed), "--fail-on-speedup", "1.01"]) == 0
