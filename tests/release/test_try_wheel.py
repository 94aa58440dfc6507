"""The trial of a wheel covers every command and expects the program's present output."""

import shutil
from pathlib import Path

import pytest

from gpa_lsp.cli.main import join_words, list_names, main
from tests.conftest import ROOT
from tests.release.try_wheel import SERVED, TRIALS

EVERYWHERE = [trial for trial in TRIALS if trial.needs is None]


def test_every_command_is_tried() -> None:
    assert {join_words(trial.arguments)[0] for trial in TRIALS} | {SERVED} == set(list_names())


def test_it_expects_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("CACHE", "DATA"):
        monkeypatch.setenv(f"GPA_LSP_{name}_DIR", str(tmp_path / name.lower()))
    shutil.copytree(ROOT / "fixtures", tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    for trial in EVERYWHERE:
        assert main(list(trial.arguments)) == 0, trial
        printed = capsys.readouterr()
        assert trial.shows in printed.out + printed.err, trial
        assert trial.writes is None or Path(trial.writes).stat().st_size > 0, trial
