"""The plugin as a release brings it: unpacked as a package of Neovim's, and cloned by its own plugin manager."""

import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.editors.neovim.conftest import NEWEST, ROOT
from tests.editors.neovim.embedded import PLUGIN, Neovim
from tests.editors.neovim.reading import open_source, put_cursor
from tests.editors.workspace import VICTIM, Workspace

VERSIONS = NEWEST
INIT = f"""\
vim.o.swapfile = false
{{load}}
require('gpa_lsp').setup({{{{ cmd = {{{{ {sys.executable!r}, '-m', 'gpa_lsp.editor.protocol' }}}} }}}})
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    subprocess.run([sys.executable, PLUGIN / "make_archive.py", folder], check=True)
    return folder


@pytest.fixture
def home(workspace: Workspace) -> Path:
    """Folder in which :class:`Neovim` has what it reads and writes."""
    return workspace.folder.parent / f"{workspace.folder.name} home"


@contextmanager
def start(program: Path, workspace: Workspace, init: str) -> Iterator[Neovim]:
    environment = {"PYTHONPATH": str(ROOT), "GIT_CONFIG_GLOBAL": "/dev/null"}
    neovim = Neovim(program, workspace.folder, init, environment)
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
    # until it is there, it would take the focus from what is opened next
    neovim.wait_for_lua("return vim.startswith(vim.api.nvim_buf_get_name(0), 'gpa-sass:') and vim.fn.line('.') > 1")


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
    with start(program, workspace, INIT.format(load="vim.cmd.packloadall()")) as neovim:
        check_it_works(neovim, workspace, packages / "gpa_lsp.nvim")
        neovim.command("helptags ALL")
        neovim.command("help gpa_lsp")
        assert neovim.lua("return vim.bo.buftype") == "help"


def test_neovims_own_plugin_manager_clones_it(program: Path, workspace: Workspace, home: Path, built: Path) -> None:
    bundle = next(built.glob("*.bundle"))
    load = f"vim.pack.add({{ {{ src = {str(bundle)!r}, name = 'gpa_lsp.nvim' }} }}, {{ confirm = false, load = true }})"
    with start(program, workspace, INIT.format(load=load)) as neovim:
        check_it_works(
            neovim, workspace, home / "XDG_DATA_HOME" / "nvim" / "site" / "pack" / "core" / "opt" / "gpa_lsp.nvim"
        )
        neovim.command("help gpa_lsp")
        assert neovim.lua("return vim.bo.buftype") == "help"


LAZY = """\
vim.o.swapfile = false
vim.go.loadplugins = false
local spec = SPEC
for key in pairs(spec) do
  assert(vim.list_contains({ 'dir', 'lazy', 'main', 'opts' }, key), key .. ': what would it do?')
end
assert(spec.lazy == false)
spec.opts.cmd = { 'PYTHON', '-m', 'gpa_lsp.editor.protocol' }
vim.opt.rtp:append(spec.dir)
for _, file in ipairs(vim.fn.glob(spec.dir .. '/plugin/**/*.lua', true, true)) do
  vim.cmd.source(file)
end
require(spec.main).setup(spec.opts)
"""
"""What lazy.nvim's documentation says of these keys: the folder becomes part of the runtime path, its plugin files run, Neovim's own search for
plugins does not, and without ``config`` the main module is set up with ``opts``. lazy.nvim itself is in no package registry.
"""


def test_the_entry_for_lazy_nvim_on_the_page_sets_it_up(
    program: Path, workspace: Workspace, built: Path, tmp_path: Path
) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    place = tmp_path / "unpacked" / "gpa_lsp.nvim"
    entry = re.search(
        r"```lua\n +(\{\n.*?\n +\})\n +```", (PLUGIN / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert entry is not None and "dir = '/path/to/gpa_lsp.nvim'" in entry[1]
    init = LAZY.replace("SPEC", entry[1].replace("/path/to/gpa_lsp.nvim", str(place))).replace("PYTHON", sys.executable)
    with start(program, workspace, init) as neovim:
        check_it_works(neovim, workspace, place)
