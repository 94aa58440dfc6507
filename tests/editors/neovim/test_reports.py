"""Reports that are opened as files."""

import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from tests.editors.neovim.conftest import NEWEST, StartNeovim
from tests.editors.neovim.embedded import Neovim
from tests.editors.neovim.reading import open_source
from tests.editors.workspace import Workspace, make_workspace
from tests.profile.report_builder import ReportBuilder

VERSIONS = NEWEST
COMMAND = f"{{ cmd = {{ {sys.executable!r}, '-m', 'gpa_lsp', 'serve' }} }}"
BASE = 0x7F0000000000
KEEP = "vim.ui.open = function(address) _G.opened_page = address; return nil, nil end"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "wörk #1")


@pytest.fixture
def report(workspace: Workspace, fixtures: Path) -> Path:
    """Report of another program than the project's."""
    path = workspace.folder.parent / "saxpy.ncu-rep"
    image = (fixtures / "cubins" / "sm_80" / "short_def_use_original.cubin").read_bytes()
    function = next(one for one in read_cubin(image).functions.values() if one.is_entry)
    builder = ReportBuilder()
    builder.add_source(image=image, functions={function.name: BASE})
    metrics = [
        builder.encode_metric("gpu__time_duration.sum", 41_000.0),
        builder.encode_metric("launch__function_pcs", 1, [(0, BASE)]),
        builder.encode_metric("launch__registers_per_thread", function.registers),
        *builder.encode_samples({"long_scoreboard": {16: (90, 85)}, "selected": {0: (7, 0)}}, base=BASE),
    ]
    result = builder.make_result(function.name, metrics=metrics)
    result.demangled_name = b"saxpy(float *, float *)"
    builder.add_result(result)
    builder.add_session()
    path.write_bytes(builder.build())
    return path


def read_opened(neovim: Neovim) -> str:
    neovim.wait_for_lua("return _G.opened_page ~= nil")
    address = neovim.lua("return _G.opened_page")
    place = unquote(urlparse(address).path) if address.startswith("file:") else address
    return Path(place).read_text(encoding="utf-8")


def test_a_report_reads_as_its_advice_or_says_what_is_wrong(start_neovim: StartNeovim, report: Path) -> None:
    neovim = start_neovim(COMMAND)
    before = report.read_bytes()
    neovim.edit(report)
    neovim.wait_for_text("saxpy.ncu-rep · :GpaLsp page shows all of it in a browser")
    neovim.wait_for_text("41.0 µs")
    assert neovim.lua("return { vim.bo.modifiable, vim.bo.modified, vim.bo.buftype }") == [False, False, "nofile"]
    neovim.lua("pcall(vim.cmd, 'silent! write!')")
    assert report.read_bytes() == before
    assert neovim.lua("return #vim.lsp.get_clients()") == 0

    neovim.lua(KEEP)
    neovim.command("GpaLsp page")
    assert "saxpy" in read_opened(neovim)

    for content in (b"", b"no report"):
        broken = report.with_name(f"broken{len(content)}.ncu-rep")
        broken.write_bytes(content)
        neovim.edit(broken)
        neovim.wait_for_text("error")
        neovim.edit(report)
        neovim.wait_for_text("41.0 µs")
    neovim.lua("require('gpa_lsp.options').choose({ cmd = { '/nowhere/gpa-lsp', 'serve' } })")
    shutil.copy(report, report.with_name("another.ncu-rep"))
    neovim.edit(report.with_name("another.ncu-rep"))
    neovim.wait_for_text("/nowhere/gpa-lsp cannot be started")


def test_its_page_is_the_servers_where_one_runs(start_neovim: StartNeovim, workspace: Workspace, report: Path) -> None:
    neovim = start_neovim(COMMAND)
    open_source(neovim, workspace.source)
    neovim.edit(report)
    neovim.wait_for_text("41.0 µs")
    neovim.lua(KEEP)
    neovim.command("GpaLsp page")
    page = read_opened(neovim)
    assert "saxpy" in page and "normalise" not in page
