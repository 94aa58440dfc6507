"""Neovims with the plugin, the project in them, and what tests ask them again and again."""

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.editors.neovim.embedded import PLUGIN, Neovim
from tests.editors.neovim.reading import open_source_anew
from tests.editors.workspace import Workspace, make_workspace
from tests.patience import LIMIT_S

VERSIONS = ("0.10", "0.12")  # the oldest and the newest that the plugin is for
NEWEST = VERSIONS[-1:]  # for modules of what the plugin does in the same way in all versions
ROOT = PLUGIN.parents[1]

StartNeovim = Callable[..., Neovim]

RESET = """
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= '' then
        vim.api.nvim_win_close(window, true)
      end
    end
    vim.cmd('silent! wincmd t | silent! only | bufdo if &modified | edit! | endif')
    vim.fn.setqflist({}, 'f')
    vim.fn.setloclist(0, {}, 'f')
    require('gpa_lsp.heat').show(true)
    require('gpa_lsp.sync').show(true)
"""


def find_editors() -> Path:
    """Folder in which ``install_neovim.sh`` puts editors."""
    return Path(os.environ.get("GPA_LSP_EDITORS") or Path.home() / ".cache" / "gpa-lsp-editors")


def find_program(version: str) -> Path | None:
    """The Neovim that ``install_neovim.sh`` put there; None when it did not."""
    program = find_editors() / f"nvim-{version}"
    return program if program.exists() else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test in the versions of its module, ``VERSIONS`` there, or else in the oldest and the newest."""
    if "version" in metafunc.fixturenames:
        metafunc.parametrize("version", getattr(metafunc.module, "VERSIONS", VERSIONS), indirect=True, scope="module")


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def program(version: str) -> Path:
    found = find_program(version)
    if found is None:
        pytest.skip(f"Neovim {version} is not installed: tests/editors/install_neovim.sh installs it beside the system")
    return found


def make_init(options: str = "{}", more: str = "") -> str:
    """A user's init.lua: what the plugin's page says, and no option that its readers do not set.

    Args:
        options: Lua table for setup().
        more: what else the user has in it.
    """
    return textwrap.dedent(f"""\
        vim.opt.runtimepath:prepend({str(PLUGIN)!r})
        vim.o.swapfile = false
        require('gpa_lsp').setup(vim.tbl_deep_extend('force', {{ cmd = {{ {sys.executable!r}, '-m', 'gpa_lsp.editor.protocol' }} }}, {options}))
        vim.lsp.inlay_hint.enable(true)
        vim.api.nvim_create_autocmd('LspAttach', {{ callback = function() require('gpa_lsp.rpc').answer_limit_ms = {1000 * LIMIT_S:.0f} end }})
        """) + textwrap.dedent(more)


@pytest.fixture
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    """The project of the lent Neovim where a test has that, else one of its own."""
    if "lent" in request.fixturenames:
        lent: Lent = request.getfixturevalue("lent")
        return lent.workspace
    return make_workspace(tmp_path / "wörk #1 %20")


@pytest.fixture
def start_neovim(program: Path, workspace: Workspace) -> Iterator[StartNeovim]:
    """Starts Neovim in the workspace; ends it, and looks whether it left a process behind."""
    started: list[Neovim] = []

    def start(options: str = "{}", more: str = "", variables: Mapping[str, str] | None = None) -> Neovim:
        environment = {"PYTHONPATH": str(ROOT), **(variables or {})}
        started.append(Neovim(program, workspace.folder, make_init(options, more), environment))
        return started[-1]

    yield start
    for neovim in started:
        neovim.quit()
    workspace.wait_for_the_end()


@pytest.fixture
def neovim(start_neovim: StartNeovim) -> Neovim:
    return start_neovim()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """A Neovim for all tests of a module that leave it as they found it, with the project it is in."""

    neovim: Neovim
    workspace: Workspace


@pytest.fixture(scope="module")
def lent(program: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lent]:
    """Started once for a module and a version, with the module's ``KEYS`` in the user's configuration."""
    workspace = make_workspace(tmp_path_factory.mktemp("lent") / "wörk #1 %20")
    more = getattr(request.module, "KEYS", "")
    neovim = Neovim(program, workspace.folder, make_init(more=more), {"PYTHONPATH": str(ROOT)})
    yield Lent(neovim=neovim, workspace=workspace)
    neovim.quit()


@pytest.fixture
def source(lent: Lent) -> Neovim:
    """The lent Neovim with the source as it is on the disk, in one window, and nothing said yet."""
    neovim = lent.neovim
    neovim.lua(RESET)
    open_source_anew(neovim, lent.workspace.source)
    neovim.lua("_G.offered, _G.choice = {}, nil")
    neovim.command("messages clear")
    return neovim
