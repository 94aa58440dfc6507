"""Nsight Compute is found where installers put it."""

from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import MissingToolError
from gpa_lsp.profile.collect import recipe
from gpa_lsp.profile.collect.recipe import find_ncu, list_usual_places


def install(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every ncu on PATH, in toolkits, and in the usual places of this machine."""
    for name in ("GPA_LSP_NCU", "CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(recipe, "find_tool", lambda name: None)
    monkeypatch.setattr(recipe, "list_usual_places", lambda: iter(()))


def test_the_newest_of_the_usual_places_comes_first(tmp_path: Path) -> None:
    old = install(tmp_path / "opt/nvidia/nsight-compute/2023.3.1/ncu")
    new = install(tmp_path / "opt/nvidia/nsight-compute/2024.10.0/ncu")
    toolkit = install(tmp_path / "usr/local/cuda-12.8/bin/ncu")
    assert list(list_usual_places(tmp_path)) == [toolkit, new, old]


def test_a_chosen_program_is_taken_or_refused(tmp_path: Path) -> None:
    program = install(tmp_path / "ncu")
    assert find_ncu(str(program)) == program
    with pytest.raises(MissingToolError, match="is not a program"):
        find_ncu(str(tmp_path / "gone"))


def test_the_usual_places_are_searched_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = install(tmp_path / "ncu")
    monkeypatch.setattr(recipe, "list_usual_places", lambda: iter((tmp_path / "gone", program)))
    assert find_ncu() == program
    on_path = install(tmp_path / "bin" / "ncu")
    monkeypatch.setattr(recipe, "find_tool", lambda name: on_path)
    assert find_ncu() == on_path


def test_how_to_get_it_is_said() -> None:
    with pytest.raises(MissingToolError, match=r"comes with the CUDA toolkit.*--ncu"):
        find_ncu()


def test_a_wrong_setting_is_not_papered_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = install(tmp_path / "ncu")
    monkeypatch.setattr(recipe, "list_usual_places", lambda: iter((program,)))
    monkeypatch.setenv("GPA_LSP_NCU", "/nowhere/ncu")
    with pytest.raises(MissingToolError, match="GPA_LSP_NCU is set to /nowhere/ncu"):
        find_ncu()
