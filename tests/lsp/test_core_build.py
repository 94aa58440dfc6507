"""The real server on a machine where the emulator's core was never compiled: facts that need none come at once, and saves never end the build."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.foundation.native.c_compiler import find_c_compiler, obtain_library
from gpa_lsp.foundation.native.shared_library import describe_library
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient
from tests.patience import wait_until

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
pytestmark = pytest.mark.skipif(find_c_compiler() is None, reason="there is no C compiler")

SOURCE = """\
__global__ void turn(float* x)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x * 8];
    __syncthreads();
    x[threadIdx.x] = tile[63 - threadIdx.x];
}
"""
DESCRIPTION = """\
[[launch]]
kernel = "turn"
block = 64
grid = 1
arguments = [{ name = "x", type = "float", count = 512 }]
"""


class Workspace:
    """A source with a description, and a compiler that waits until it may go on, and then gives the core at once."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "project" / "k.cu"
        self.source.parent.mkdir()
        self.source.write_text(SOURCE)
        self.source.with_name("k.launch.toml").write_text(DESCRIPTION)
        self._begun, self._go = folder / "begun", folder / "go"
        compiler = folder / "bin" / "cc"
        compiler.parent.mkdir()
        core = folder / "core.so"
        core.write_bytes(obtain_library(describe_library()))
        compiler.write_text(
            f"#!/bin/sh\necho >> {self._begun}\nwhile [ ! -e {self._go} ]; do sleep 0.05; done\ncp {core} library.so\n"
        )
        compiler.chmod(0o700)
        self.environment = {
            "PATH": f"{compiler.parent}{os.pathsep}{os.environ['PATH']}",
            "GPA_LSP_CACHE_DIR": str(folder / "cache"),
            "GPA_LSP_COMPILED_CORE": "",
        }

    @property
    def builds(self) -> int:
        """Begun until now."""
        return len(self._begun.read_text().splitlines()) if self._begun.exists() else 0

    def let_go(self) -> None:
        self._go.touch()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace(tmp_path)
    yield made
    made.let_go()


def list_titles(client: RawClient, uri: str) -> list[str]:
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}}) or []
    return [one["command"]["title"] for one in lenses]


def test_saves_show_registers_at_once_and_never_end_the_build(workspace: Workspace) -> None:
    client = RawClient(environment=workspace.environment)
    try:
        options = {
            "static": {"enable": True},
            "emulation": {"enable": True},
            "simulation": {"onSave": True},
        }
        client.initialize(workspace.source.parent, ALL_CAPABILITIES, initializationOptions=options)
        uri = client.open(workspace.source)
        wait_until(lambda: any("registers" in one for one in list_titles(client, uri)), "registers are shown")
        for number in range(1, 3):
            text = f"{SOURCE}// {number}\n"
            workspace.source.write_text(text)
            client.change(uri, number + 1, text)
            client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
            wait_until(lambda: workspace.builds > 0, "the core is compiled")
            time.sleep(1.5)  # a job whose text is out of date is ended within this time
        client.wait_for(
            "$/progress", lambda one: "compiling the emulator's core, once" in one["value"].get("message", "")
        )
        titles = list_titles(client, uri)
        assert any("registers" in one for one in titles)
        assert not any("predicted" in one for one in titles)
        workspace.let_go()
        wait_until(lambda: any("predicted" in one for one in list_titles(client, uri)), "it is predicted")
        assert workspace.builds == 1
        assert client.shut_down() == 0
    finally:
        client.kill()
