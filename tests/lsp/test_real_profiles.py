"""The server with the real pipeline: one of our own cubins with a profile written for it, and real reports where they are at hand."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.lsp.conftest import make_ancient, make_old
from tests.lsp.raw_client import RawClient

KERNEL = "_Z12inline_chainPKfPfii"
SAMPLES = {0x170: {"wait": 30}, 0x1A0: {"wait": 50, "selected": 10}, 0x280: {"long_scoreboard": 10}}
"""Offsets whose innermost lines are curves.cuh:13 and curves.cuh:8 (both inlined into original.cu:10 and :26), and original.cu:29."""


def make_document(samples: dict[int, dict[str, int]] = SAMPLES) -> dict[str, Any]:
    rows = [
        {
            "function": KERNEL,
            "pc_offset": offset,
            "by_reason": {reason: {"all": count, "latency": count // 2} for reason, count in reasons.items()},
        }
        for offset, reasons in samples.items()
    ]
    launch = {
        "kernel": KERNEL,
        "demangled_name": "inline_chain(const float *, float *, int, int)",
        "grid": [64, 1, 1],
        "block": [128, 1, 1],
        "duration_ns": 12_300,
        "device": {"compute_capability": "8.0"},
        "samples": rows,
    }
    return {
        "format": "gpa-lsp/profile/1",
        "modules": [{"id": 1, "compute_capability": "8.0", "cubin": {"path": "inline_chain.cubin"}}],
        "launches": [launch],
    }


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[RawClient]:
    # The sources in these tests stand in for those that were measured.
    settings = {"unverifiedLines": "all"}
    with RawClient(settings=settings, **getattr(request, "param", {})) as found:
        yield found


patient = pytest.mark.parametrize(
    "client",
    [{"module": "tests.lsp.patient_server", "environment": {"PYTHONPATH": str(ROOT)}}],
    indirect=True,
    ids=[""],
)
"""For files that are still being written, on a machine that may be slow."""


@pytest.fixture
def project(tmp_path: Path, fixtures: Path) -> Path:
    """A folder with the sources of ``inline_chain`` and a profile of it."""
    folder = tmp_path / "project"
    shutil.copytree(fixtures / "kernels" / "inline_chain", folder / "src" / "inline_chain")
    for source in (folder / "src" / "inline_chain").iterdir():
        make_ancient(source)
    (folder / "out").mkdir()
    cubin = fixtures / "cubins" / "sm_80" / "inline_chain_original.cubin"
    shutil.copy(cubin, folder / "out" / "inline_chain.cubin")
    (folder / "out" / "run.gpa-profile.json").write_text(json.dumps(make_document()))
    make_old(folder / "out" / "run.gpa-profile.json")
    return folder


def lines(diagnostics: list[dict[str, Any]]) -> dict[int, str]:
    return {item["range"]["start"]["line"] + 1: item["code"] for item in diagnostics}


def test_a_native_profile_is_served_in_all_its_files(client: RawClient, project: Path) -> None:
    client.initialize(project)
    source = client.open(project / "src/inline_chain/original.cu")
    header = client.open(project / "src/inline_chain/curves.cuh")
    diagnostics = client.wait_for_diagnostics(source)
    assert lines(diagnostics) == {26: "wait", 10: "wait", 29: "long_scoreboard"}
    assert lines(client.wait_for_diagnostics(header)) == {14: "wait"}  # it causes what line 8 waits for
    outermost = next(item for item in diagnostics if item["range"]["start"]["line"] == 25)
    places = [
        (Path(related["location"]["uri"]).name, related["location"]["range"]["start"]["line"] + 1)
        for related in outermost["relatedInformation"]
    ]
    assert places == [("curves.cuh", 8), ("curves.cuh", 13)]
    assert "90 %" in client.read_hover(source, 26)
    assert "/*01a0*/ FMUL" in client.execute("showLine", source, 25)
    assert client.lenses(source) == [(16, "inline_chain · 12.3 µs · 80 % wait"), (16, "SASS")]
    assert client.ask("codeLens", source)[1]["command"]["command"] == "gpaLsp.openSass"
    assert client.ask("codeLens", header) == []
    assert client.messages() == []


@patient
def test_a_profile_written_in_pieces_appears_when_it_is_whole(client: RawClient, project: Path) -> None:
    profile = project / "out" / "run.gpa-profile.json"
    text = profile.read_text()
    profile.write_text(text[: len(text) // 2])
    client.initialize(project)
    source = client.open(project / "src/inline_chain/original.cu")
    client.wait_until_read()  # it tried to read the half
    assert client.messages() == []
    profile.write_text(text)
    assert len(client.wait_for_diagnostics(source)) == 3
    assert client.messages() == []


def test_a_profile_that_stays_broken_is_explained(client: RawClient, project: Path) -> None:
    profile = project / "out" / "run.gpa-profile.json"
    profile.write_text(profile.read_text()[:200])
    make_old(profile)
    client.initialize(project)
    message = client.wait_for_message()
    assert "run.gpa-profile.json" in message and "Traceback" not in message


def make_workspace(folder: Path, corpus: Path, report: str, source: str, text: str) -> tuple[Path, Path]:
    (folder / "src" / source).parent.mkdir(parents=True)
    (folder / "src" / source).write_text(text)
    shutil.copy(corpus / "ncu" / report, folder / report)
    make_old(folder / report)
    return folder / "src" / source, folder / report


@pytest.mark.corpus
def test_a_real_report_is_served(client: RawClient, tmp_path: Path, corpus: Path) -> None:
    text = "\n".join(f"line({number});" for number in range(1, 101))
    source, _ = make_workspace(tmp_path, corpus, "rtx3070_daxpy_2022.3.ncu-rep", "nvtx/manual_nvtx.cu", text)
    client.initialize(tmp_path)
    uri = client.open(source)
    diagnostics = client.wait_for_diagnostics(uri)
    assert set(lines(diagnostics)) == {56, 59, 69, 78}
    assert [title == "SASS" for title in client.titles(uri)] == [False, True] * 3
    assert client.messages() == []


@pytest.mark.corpus
@patient
def test_a_real_report_growing_in_the_workspace(client: RawClient, tmp_path: Path, corpus: Path) -> None:
    text = "\n".join(f"line({number});" for number in range(1, 101))
    source, report = make_workspace(tmp_path, corpus, "rtx3070_daxpy_2022.3.ncu-rep", "nvtx/manual_nvtx.cu", text)
    whole = report.read_bytes()
    report.write_bytes(whole[: len(whole) // 2])
    client.initialize(tmp_path)
    uri = client.open(source)
    client.wait_until_read()
    report.write_bytes(whole)
    client.wait_for_diagnostics(uri, lambda items: set(lines(items)) == {56, 59, 69, 78})
    assert client.messages() == []


@pytest.mark.corpus
def test_triton_is_served_in_python(client: RawClient, tmp_path: Path, corpus: Path) -> None:
    text = "\n".join(
        ["@triton.jit", "def silu_kernel_non_strided(x):", *(f"    x = {number}" for number in range(160))]
    )
    source, _ = make_workspace(tmp_path, corpus, "gh200_triton_silu_2025.1.ncu-rep", "silu-triton.py", text)
    client.initialize(tmp_path)
    uri = client.open(source, language="python")
    assert {157} <= set(lines(client.wait_for_diagnostics(uri)))
    (line, title), _ = client.lenses(uri)
    assert line == 2 and title.startswith("silu_kernel_non_strided · ")
