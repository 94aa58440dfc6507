"""The order in which NVIDIA's tools are looked for, and what is said when there is none."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from gpa_lsp.code.binary import tool_location
from gpa_lsp.code.binary.tool_location import find_tool, require_tool
from gpa_lsp.foundation.errors import MissingToolError

TOOL = "nvdisasm"
PROGRAM = TOOL + (".exe" if os.name == "nt" else "")


def make_program(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / PROGRAM
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any of the tools: no wheel, nothing on PATH, no toolkit."""
    for variable in ("GPA_LSP_NVDISASM", "CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(tool_location, "_TOOLKIT_FOLDER", tmp_path / "toolkit")
    monkeypatch.setattr(sysconfig, "get_path", lambda _kind: str(tmp_path / "site"))
    monkeypatch.setattr(sys, "path", [])
    return tmp_path


def test_nothing_installed(bare_machine: Path) -> None:
    assert find_tool(TOOL) is None
    with pytest.raises(MissingToolError, match="pip install nvidia-cuda-nvdisasm") as caught:
        require_tool(TOOL, needed_for="showing SASS")
    assert "showing SASS needs it" in str(caught.value)


def test_order_of_places(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = make_program(bare_machine / "toolkit" / "bin")
    assert find_tool(TOOL) == last
    on_path = make_program(bare_machine / "path")
    assert find_tool(TOOL) == on_path
    older = make_program(bare_machine / "site" / "nvidia" / "cu9" / "bin")
    assert find_tool(TOOL) == older
    wheel = make_program(bare_machine / "site" / "nvidia" / "cu13" / "bin")
    make_program(bare_machine / "site" / "nvidia" / "cublas" / "bin")
    assert find_tool(TOOL) == wheel
    chosen = make_program(bare_machine / "chosen")
    monkeypatch.setenv("GPA_LSP_NVDISASM", str(chosen))
    assert find_tool(TOOL) == chosen
    assert require_tool(TOOL, needed_for="x") == chosen


def test_wrong_override_is_not_papered_over(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_program(bare_machine / "path")
    monkeypatch.setenv("GPA_LSP_NVDISASM", str(bare_machine / "not-there"))
    assert find_tool(TOOL) is None
    with pytest.raises(MissingToolError, match="GPA_LSP_NVDISASM is set to"):
        require_tool(TOOL, needed_for="x")


@pytest.mark.skipif(sys.platform == "win32", reason="every file is executable there")
def test_a_file_that_cannot_be_run_is_no_tool(bare_machine: Path) -> None:
    make_program(bare_machine / "site" / "nvidia" / "cu13" / "bin").chmod(0o644)
    assert find_tool(TOOL) is None


def test_a_program_of_the_current_folder_is_never_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = tmp_path / "gpa-no-such-tool"
    trap.write_text("#!/bin/sh\n")
    trap.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", "bin"]))
    assert find_tool("gpa-no-such-tool") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_tool("gpa-no-such-tool") == trap
