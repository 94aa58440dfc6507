"""The real server over the wire: a source is opened, saved, edited and broken; nothing is compiled without trust; the process is ended."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.editor.jobs.static import StaticFindings
from gpa_lsp.editor.static.view import StaticJob, StaticResult
from gpa_lsp.foundation.processes.async_worker import AsyncWorker
from tests.collect.processes import find_children
from tests.lsp.raw_client import RawClient
from tests.patience import LIMIT_S, wait_until

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SOURCE = """\
__global__ void __launch_bounds__(256) scale(float* x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = x[i] * 0.7 + 0.1;
}
"""
TRANSPOSE = """\
__global__ void transpose(const float* in, float* out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n)
        out[x * n + y] = in[y * n + x];
}
"""
STATIC = {"static": {"enable": True}}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "wörk" / "scale.cu"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


def start(client: RawClient, source: Path, options: Any = None) -> str:
    client.initialize(source.parent, initializationOptions=STATIC if options is None else options)
    return client.open(source)


def find_line(client: RawClient, uri: str, line: int) -> Any:
    """The diagnostics of the first push with one on a line (1-based)."""
    return client.wait_for_diagnostics(
        uri, lambda found: any(one["range"]["start"]["line"] == line - 1 for one in found)
    )


def test_a_source_that_was_never_saved_is_compiled(client: RawClient, source: Path) -> None:
    start(client, source)
    find_line(client, source.as_uri(), 4)
    uri = "untitled:Untitled-1"
    client.open_text(uri, SOURCE, "cuda-cpp")
    (finding,) = find_line(client, uri, 4)
    assert finding["code"] == "static double-constants"
    assert not source.with_name("Untitled-1.cu").exists()


def test_a_source_without_any_profile_from_opening_to_errors(client: RawClient, source: Path) -> None:
    uri = start(client, source)
    (finding,) = find_line(client, uri, 4)
    assert (finding["source"], finding["code"], finding["severity"]) == ("gpa-lsp", "static double-constants", 3)
    assert "`0.7f`, `0.1f`" in finding["message"] and finding["message"].endswith("(static)")
    (lens,) = client.ask("codeLens", uri)
    assert lens["range"]["start"]["line"] == 0
    title = lens["command"]["title"]
    assert "registers" in title and "occupancy 100 %" in title and title.endswith("· static")

    page = client.execute("showStatics", *lens["command"]["arguments"])
    assert page.startswith("# `scale`") and "**Static**" in page and "**256**" in page

    client.change(uri, 2, "\n\n" + SOURCE)  # lines follow before anything is saved
    assert [one["range"]["start"]["line"] for one in find_line(client, uri, 6)] == [5]
    client.forget()
    client.change(uri, 3, "\n\n" + SOURCE.replace("0.7", "0.7f").replace("0.1", "0.1f"))
    client.save(uri)
    client.wait_for_diagnostics(uri, lambda found: found == [])

    client.forget()
    client.change(uri, 4, SOURCE.replace("x[i] * 0.7", "y[i] * 0.7"))
    client.save(uri)
    (error,) = [one for one in find_line(client, uri, 4) if one["severity"] == 1]
    assert error["message"] == 'identifier "y" is undefined'
    assert error["code"].startswith("NVRTC")
    assert error["range"]["start"]["character"] == SOURCE.split("\n")[3].index("x[i] *")
    assert [title.endswith("before your edits") for title in client.titles(uri)] == [True]

    client.close(uri)
    client.wait_for("textDocument/publishDiagnostics", lambda params: params["diagnostics"] == [])
    assert client.shut_down() == 0


def test_nothing_is_compiled_until_the_user_trusts_the_workspace(client: RawClient, source: Path) -> None:
    uri = start(client, source, {**STATIC, "client": {"trusted": False}})
    client.save(uri)
    assert client.titles(uri) == []
    assert [one for one in client.notifications if one["method"] == "textDocument/publishDiagnostics"] == []
    assert find_children(client.process.pid) == set()
    client.execute("gpaLsp.setTrust", True)
    find_line(client, uri, 4)
    client.execute("gpaLsp.setTrust", False)
    client.wait_for_diagnostics(uri, lambda found: found == [])
    assert client.titles(uri) == []


def test_a_naive_transpose_is_found_on_save(client: RawClient, source: Path) -> None:
    uri = start(client, source)
    find_line(client, uri, 4)
    source.write_text(TRANSPOSE)
    client.change(uri, 2, TRANSPOSE)
    client.save(uri)
    (finding,) = find_line(client, uri, 5)
    assert (finding["code"], finding["severity"]) == ("static uncoalesced-accesses", 3)
    assert "32 sectors per request for `n` ≥ 8" in finding["message"] and "(static" in finding["message"]
    said = client.read_hover(uri, 5)
    assert said.startswith("**Static** · from the code alone, not measured")
    assert "neighbouring threads are `n` elements apart" in said
    assert said.endswith(
        "- load of `in`: neighbouring elements, 4 to 5 sectors per request\n"
        "- store of `out`: strided, `n` elements apart, 32 sectors per request for `n` ≥ 8"
    )


async def test_the_process_survives_a_bad_source_and_starts_again_when_killed(tmp_path: Path) -> None:
    process = AsyncWorker(StaticFindings.process_kind)

    async def examine(text: str) -> StaticResult:
        path, roots = tmp_path / "k.cu", (tmp_path,)
        job = StaticJob(path=path, text=text, roots=roots, architecture=(8, 0), limit_s=LIMIT_S)
        result: StaticResult = await process.do(job, limit_s=LIMIT_S)
        return result

    try:
        bad = await examine("int a;\0")
        assert "NUL" in bad.failure
        first = process.process_id
        good = await examine(SOURCE)
        assert good.failure == "" and [kernel.name for kernel in good.kernels] == ["scale(float*, int)"]
        assert process.process_id == first
        assert first is not None
        os.kill(first, 9)
        await asyncio.to_thread(wait_until, lambda: process.process_id is None, "it is gone")
        again = await examine(SOURCE)
        assert (again.marks, again.kernels) == (good.marks, good.kernels)
    finally:
        await process.leave()
