"""Folders that depend on where we are are looked in for nothing."""

import os
import sys
from pathlib import Path

import pytest

from gpa_lsp.foundation.processes.python_children import isolate_module, isolate_script
from gpa_lsp.foundation.processes.search_paths import clean_environment, find_program, list_package_folders

HERE = os.pathsep.join(["", ".", "lib", ""])


def test_an_environment_keeps_what_is_named_in_full(tmp_path: Path) -> None:
    full = str(tmp_path)
    found = clean_environment(
        {
            "PATH": HERE + full,
            "PYTHONPATH": f"{full}{os.pathsep}",
            "LD_LIBRARY_PATH": HERE,
            "PYTHONUSERBASE": "base",
            "PYTHONPYCACHEPREFIX": full,
            "MINE": HERE,
        }
    )
    assert found == {"PATH": full, "PYTHONPATH": full, "PYTHONPYCACHEPREFIX": full, "MINE": HERE}


def test_a_program_is_found_in_folders_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / ("gpa-no-such-tool" + (".exe" if os.name == "nt" else ""))
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(program.parent)
    for folders in (HERE, str(tmp_path), os.pathsep.join(["", "..", "bin", str(program)])):
        assert find_program("gpa-no-such-tool", folders) is None
    assert find_program("gpa-no-such-tool", HERE + str(program.parent)) == program
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_program("gpa-no-such-tool") == program
    program.chmod(0o644)
    assert find_program("gpa-no-such-tool") is None or os.name == "nt"


def test_wheels_of_the_folder_we_are_in_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "installed"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", str(tmp_path), str(installed), *sys.path])
    found = list(list_package_folders("nvidia"))
    assert installed / "nvidia" in found
    assert tmp_path / "nvidia" not in found and all(folder.is_absolute() for folder in found)


def test_children_inherit_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", HERE)
    monkeypatch.setenv("PYTHONUSERBASE", "base")
    before = dict(os.environ)
    environment = isolate_module("gpa_lsp").environment
    assert "PYTHONPATH" not in environment and "PYTHONUSERBASE" not in environment
    assert environment["PYTHONSAFEPATH"] == "1"
    assert dict(os.environ) == before == isolate_script(Path("x.py")).environment
