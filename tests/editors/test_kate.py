"""Page for Kate, tried in a real one without a screen: it starts the server as the page says, and gets the causes."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.documented import EDITORS, read_blocks
from tests.editors.neovim.conftest import find_editors
from tests.editors.workspace import Workspace
from tests.patience import wait_until


class Kate:
    """A Kate with the source open, and what is said between it and the server."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self.process = process
        self._folder = folder

    def read(self, name: str) -> str:
        path = self._folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def wait_for(self, text: str, name: str = "from-server") -> None:
        wait_until(lambda: text in self.read(name), lambda: f"{text!r} {name}:\n{self.read(name)}\n{self.read('log')}")


@pytest.fixture
def kate(workspace: Workspace, tmp_path: Path) -> Iterator[Kate]:
    """Configured as the page says, except that the server is started from here, between two that listen."""
    program = find_editors() / "kate"
    if not program.exists():
        pytest.skip("Kate is not installed: tests/editors/install_kate.sh installs it beside the system")
    server = tmp_path / "server"
    heard = [shlex.quote(str(tmp_path / name)) for name in ("from-kate", "from-server")]
    server.write_text(
        f"#!/bin/sh\ntee {heard[0]} | {shlex.quote(sys.executable)} -m gpa_lsp.editor.protocol | tee {heard[1]}\n",
        encoding="utf-8",
    )
    server.chmod(0o755)
    settings, _ = read_blocks("kate.md", "json")
    assert '["gpa-lsp", "serve"]' in settings
    configuration = tmp_path / "configuration"
    (configuration / "kate" / "lspclient").mkdir(parents=True)
    text = settings.replace('["gpa-lsp", "serve"]', json.dumps([str(server)]))
    (configuration / "kate" / "lspclient" / "settings.json").write_text(text, encoding="utf-8")
    rc = f"[Kate Plugins]\nlspclientplugin=true\n[lspclient]\nAllowedServerCommandLines={server}\nInlayHints=true\n"
    (configuration / "katerc").write_text(rc, encoding="utf-8")
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(configuration),
        **{f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CACHE", "DATA", "STATE")},
        "XDG_RUNTIME_DIR": str(run),
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHONPATH": str(EDITORS.parent),
    }
    words = [str(program), "--startanon", "--new", "--block", str(workspace.source)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=workspace.folder, env=environment, stdout=log, stderr=log)
    try:
        yield Kate(process, tmp_path)
    finally:
        process.terminate()
        process.wait()


def test_kate_starts_the_server_and_gets_causes(kate: Kate, workspace: Workspace) -> None:
    kate.wait_for("stalls caused here")
    said = kate.read("from-kate")
    assert f'"rootPath":"{workspace.folder}"'.replace(" ", "") in said.replace(" ", "").replace("\\/", "/")
    assert '"minShare":5' in said.replace(" ", "")
    assert "textDocument/inlayHint" in said
