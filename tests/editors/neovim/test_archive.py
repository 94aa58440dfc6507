"""The plugin as a release brings it: unpacked as a package of Neovim's, and cloned by its own plugin manager."""

import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.editors.neovim.conftest import ROOT
from tests.editors.neovim.embedded import PLUGIN, Neovim
from tests.editors.neovim.reading import open_source, put_cursor
from tests.editors.workspace import VICTIM, Workspace

INIT = f"""\
vim.o.swapfile = false
{{load}}
require('gpa_lsp').setup({{{{ cmd = {{{{ {sys.executable!r}, '-m', 'gpa_lsp.lsp' }}}} }}}})
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    subprocess.run([sys.executable, PLUGIN / "make_archive.py", folder], check=True)
    return folder


@pytest.fixture
def home(workspace: Workspace) -> Path:
    """Where :class:`Neovim` has what it reads and writes."""
    return workspace.folder.parent / f"{workspace.folder.name} home"


@contextmanager
def start(program: Path, workspace: Workspace, load: str) -> Iterator[Neovim]:
    environment = {"PYTHONPATH": str(ROOT), "GIT_CONFIG_GLOBAL": "/dev/null"}
    neovim = Neovim(program, workspace.folder, INIT.format(load=load), environment)
    try:
        neovim.wait_for_lua("return vim.v.vim_did_enter == 1")  # it answers while a plugin manager is at work
        yield neovim
    finally:
        neovim.quit()
    workspace.wait_for_the_end()


def check_it_works(neovim: Neovim, workspace: Workspace, place: Path) -> None:
    open_source(neovim, workspace.source)
    assert neovim.lua("return vim.fn.exists(':GpaLsp')") == 2
    loaded = neovim.lua("return vim.api.nvim_get_runtime_file('lua/gpa_lsp/init.lua', true)")
    assert [Path(path).resolve() for path in loaded] == [(place / "lua" / "gpa_lsp" / "init.lua").resolve()]
    put_cursor(neovim, workspace.find_line(VICTIM))
    neovim.command("GpaLsp sass")
    neovim.wait_for_lua("return #vim.api.nvim_list_wins() == 2")


def test_the_archive_holds_the_plugin_and_leads_back(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = set(archive.getnames())
        readme = archive.extractfile("gpa_lsp.nvim/README.md")
        assert readme is not None
        text = readme.read().decode()
    files = {
        f"gpa_lsp.nvim/{file.relative_to(PLUGIN)}"
        for file in PLUGIN.rglob("*")
        if file.suffix != ".py" and file.is_file()
    }
    assert names == {*files, "gpa_lsp.nvim/LICENSE"}
    assert "](../" not in text and "/editors/README.md" in text


def test_the_same_sources_make_the_same_files(built: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, PLUGIN / "make_archive.py", tmp_path], check=True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        file.name: file.read_bytes() for file in built.iterdir()
    }


def test_unpacked_as_a_package_it_works(program: Path, workspace: Workspace, home: Path, built: Path) -> None:
    packages = home / "XDG_DATA_HOME" / "nvim" / "site" / "pack" / "gpa" / "start"
    packages.mkdir(parents=True)
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(packages, filter="data")
    with start(program, workspace, "vim.cmd.packloadall()") as neovim:
        check_it_works(neovim, workspace, packages / "gpa_lsp.nvim")
        neovim.command("helptags ALL")
        neovim.command("help gpa_lsp")
        assert neovim.lua("return vim.bo.buftype") == "help"


def test_neovims_own_plugin_manager_clones_it(
    program: Path, version: str, workspace: Workspace, home: Path, built: Path
) -> None:
    if version == "0.10":
        pytest.skip("vim.pack came with 0.12")
    bundle = next(built.glob("*.bundle"))
    load = f"vim.pack.add({{ {{ src = {str(bundle)!r}, name = 'gpa_lsp.nvim' }} }}, {{ confirm = false, load = true }})"
    with start(program, workspace, load) as neovim:
        check_it_works(
            neovim, workspace, home / "XDG_DATA_HOME" / "nvim" / "site" / "pack" / "core" / "opt" / "gpa_lsp.nvim"
        )
        neovim.command("help gpa_lsp")
        assert neovim.lua("return vim.bo.buftype") == "help"
