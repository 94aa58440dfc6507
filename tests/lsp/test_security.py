"""Opening a repository of a stranger runs nothing, reads nothing outside of it, and shows nothing that leads away."""

import json
import os
import socket
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.collect.processes import find_children, measure_peak_bytes
from tests.editor.views import LISTING, SOURCE
from tests.lsp.conftest import LISTINGS, make_ancient, make_old, write_profile
from tests.lsp.raw_client import WHOLE, RawClient
from tests.lsp.recorder import Recorder, find_strace, list_foreign
from tests.lsp.test_robustness import make_project, wait_until
from tests.lsp.test_safe_markdown import list_dangers
from tests.zstandard import zstd

EVIL_NAME = "saxpy`[x](command:evil) ![i](https://e/x.png) <img src=x> \u202e\x1b[2J " + "A<" * 50_000
TRAPS = (
    "gpa_lsp/__init__.py", "gpa_lsp/editor/protocol/__main__.py", "numpy.py", "sitecustomize.py", "usercustomize.py",
    "lsprotocol.py", "pygls.py", "json.py", "encodings.py", "conftest.py", "nvdisasm", "cuobjdump", "bin/nvdisasm",
    "ncu", "python", "python3", ".venv/bin/python", "venv/bin/python", "c++filt", "git", "pyvenv.cfg", "sources.pth",
)  # fmt: skip


def set_traps(folder: Path, mark: Path) -> None:
    """Programs and modules by the names of what the server uses; each leaves a mark when it is run or imported."""
    for name in TRAPS:
        trap = folder / name
        trap.parent.mkdir(parents=True, exist_ok=True)
        is_module = name.endswith(".py")
        trap.write_text(f"open({str(mark)!r}, 'w')\n" if is_module else f"#!/bin/sh\ntouch '{mark}'\n")
        trap.chmod(0o755)


class Repository:
    """A workspace that means harm, and what lies around it."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.outside = folder / "outside"
        self.mark = folder / "ran"
        for one in (self.work, self.outside, folder / "cache", folder / "data", folder / "tmp"):
            one.mkdir()
        self.secret = self.outside / "secret.h"
        self.secret.write_text("secret\n" * 10)
        (folder / "secret").write_text("secret\n" * 10)
        write_profile(self.outside / "loot.ncu-rep", LISTING, "name loot(int)")
        (self.work / "saxpy.cu").write_text(SOURCE)
        self.link_out()
        set_traps(self.work, self.mark)
        make_ancient(self.work / "saxpy.cu")
        self.environment = {
            **LISTINGS,
            "TMPDIR": str(folder / "tmp"),
            "GPA_LSP_CACHE_DIR": str(folder / "cache"),
            "GPA_LSP_DATA_DIR": str(folder / "data"),
        }
        self.allowed = [self.work, folder / "cache", folder / "data", folder / "tmp"]

    def link_out(self) -> None:
        """Links and things that are no files."""
        work, outside = self.work, self.outside
        (work / "link.h").symlink_to(self.secret)
        (work / "outdir").symlink_to(outside, target_is_directory=True)
        (work / "loop").symlink_to(work, target_is_directory=True)
        (work / "self.ncu-rep").symlink_to(work / "self.ncu-rep")
        (work / "loot.ncu-rep").symlink_to(outside / "loot.ncu-rep")
        (work / "zero.ncu-rep").symlink_to("/dev/zero")
        (work / "nowhere.ncu-rep").symlink_to(outside / "nothing")
        (work / "folder.ncu-rep").mkdir()
        os.mkfifo(work / "pipe.ncu-rep")
        os.mkfifo(work / "pipe.h")
        with socket.socket(socket.AF_UNIX) as one:
            here = Path.cwd()
            os.chdir(work)  # a socket's name is short
            try:
                one.bind("socket.ncu-rep")
            finally:
                os.chdir(here)

    def name_everything(self) -> list[str]:
        """Sources a profile can name."""
        inside = "saxpy.cu link.h outdir/secret.h loop/saxpy.cu pipe.h zero.ncu-rep folder.ncu-rep ../outside/secret.h ../secret"
        outside = (
            "/etc/passwd /etc/shadow /dev/zero /dev/stdin /proc/self/environ /proc/kcore //server/share/x.h ~/x.h -"
        )
        spelt = r"C:\secret.h \\server\share\x.h file:///etc/passwd ../../outside/secret.h"
        absolute = [str(self.secret), f"{self.work}/../outside/secret.h"]
        return [*f"{inside} {outside} {spelt}".split(), *absolute, "x" * 5000 + ".h", "a/" * 3000 + "x.h"]

    def write_evil_profile(self) -> None:
        lines = [f"{name}:{line}  LDG.E R2, [R4]  ; wait=10/5" for name in self.name_everything() for line in (1, 4)]
        lines += [
            "saxpy.cu:5  LDG`[x](command:evil) <img src=x>  ; long_scoreboard=100/50",
            "]( <b>.cu:5 < saxpy.cu:6  X  ; wait=30",
        ]
        name = "![x](https:e).ncu-rep"
        write_profile(self.work / name, "\n".join(lines), f"name {EVIL_NAME}")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def ask_everything(client: RawClient, uris: list[str]) -> list[Any]:
    """Ask what an editor asks about documents, and a user after that."""
    found = [one for uri in uris for one in ask_about(client, uri)]
    found.append(client.request("workspace/symbol", {"query": ""}))
    commands = ("listKernels", "listHotSpots", "showReport", "showHistory", "pinBaseline")
    found += [client.execute(command) for command in commands]
    found += [client.execute("showKernel", kernel["mangled"]) for kernel in client.execute("listKernels")]
    return found


def ask_about(client: RawClient, uri: str) -> Iterator[Any]:
    """Ask all that can be asked about a document."""
    for method in ("codeLens", "documentSymbol", "foldingRange", "semanticTokens/full"):
        yield client.ask(method, uri)
    yield client.ask("inlayHint", uri, range=WHOLE)
    yield client.ask("codeAction", uri, range=WHOLE, context={"diagnostics": []})
    for line in range(12):
        place = {"line": line, "character": 45}
        yield client.ask("references", uri, position=place, context={"includeDeclaration": True})
        for method in ("hover", "definition", "documentHighlight"):
            yield client.ask(method, uri, position=place)
        for item in client.ask("prepareCallHierarchy", uri, position=place) or ():
            yield client.request("callHierarchy/incomingCalls", {"item": item})
            yield client.request("callHierarchy/outgoingCalls", {"item": item})
        for command in ("findCauses", "findVictims", "findLinked", "goToCause", "openSass"):
            yield client.execute(command, uri, line)


def open_sass(client: RawClient) -> list[str]:
    """Open every SASS document."""
    uris = [kernel["sassUri"] for kernel in client.execute("gpaLsp.listKernels")]
    for uri in uris:
        client.open_sass(uri)
    return uris


def list_texts(value: Any, key: str = "value") -> Iterator[str]:
    """All Markdown in answers."""
    if isinstance(value, dict):
        if value.get("kind") == "markdown":
            yield value[key]
        for member in value.values():
            yield from list_texts(member, key)
    elif isinstance(value, list):
        for member in value:
            yield from list_texts(member, key)
    elif isinstance(value, str) and value.startswith("# "):
        yield value


@pytest.mark.parametrize("is_traced", [True, False], ids=["strace", "audit"])
def test_a_strange_repository_is_read_and_nothing_else(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_traced: bool
) -> None:
    if is_traced and find_strace() is None:
        pytest.skip("there is no strace that works here")
    repository.write_evil_profile()
    recorder = Recorder(tmp_path / "recorder", is_traced)
    environment = recorder.start(monkeypatch, repository.environment)
    with RawClient(environment=environment, cwd=repository.work, is_forked=False) as client:
        client.initialize(repository.work, initializationOptions={"client": {"heat": True, "status": True}})
        client.wait_for("gpaLsp/status", lambda status: status["kernels"] == 1)
        source = client.open(repository.work / "saxpy.cu")
        link = client.open(repository.work / "link.h", "what the client has\n" * 9)
        answers = ask_everything(client, [source, link, *open_sass(client)])
        assert client.shut_down() == 0
    assert not repository.mark.exists()
    opened = recorder.list_opened()
    assert str(repository.work) in opened and any(path.endswith(".ncu-rep") for path in opened)
    mine = [*repository.allowed, recorder.folder, Path(client._home.name)]
    assert list_foreign(opened, mine) == []
    programs = {os.path.realpath(path) for path in recorder.list_run()}
    assert {path for path in programs if path.startswith("/")} <= {os.path.realpath(sys.executable)}
    assert recorder.list_connected() == []
    texts = list(list_texts(answers))
    assert len(texts) > 5 and [danger for text in texts for danger in list_dangers(text)] == []
    assert "secret" not in str([text for text in texts if "secret\\n" in text])
    assert all(len(str(answer)) < 300_000 for answer in answers)
    assert [text for text in client.messages() if "failed" in text or "](" in text or "\x1b" in text] == []


def write_bombs(folder: Path, outside: Path) -> list[str]:
    """Profiles that are small or empty and would become large, or that name other files; their names."""
    from gpa_lsp.profile.ncu import REPORT_MAGIC

    with (folder / "sparse.ncu-rep").open("wb") as sparse:
        sparse.write(REPORT_MAGIC)
        sparse.truncate(2 << 30)
    compressor = zstd.ZstdCompressor(level=1)
    parts = [compressor.compress(REPORT_MAGIC), *(compressor.compress(bytes(1 << 24)) for _ in range(32))]
    (folder / "zstd.ncu-repz").write_bytes(b"".join([*parts, compressor.flush()]))
    with zipfile.ZipFile(folder / "zip.ncu-repz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("report", REPORT_MAGIC + bytes(400 << 20))
    (folder / "out.cubin").symlink_to(outside / "secret.h")
    launch = {"kernel": "k", "module": 1, "grid": [1, 1, 1], "block": [1, 1, 1], "samples": []}
    for number, path in enumerate(
        ("../outside/secret.h", str(outside / "secret.h"), "/etc/passwd", "out.cubin", "outdir/secret.h", "\0")
    ):
        module = {"id": 1, "compute_capability": "8.0", "cubin": {"path": path}}
        profile = {"format": "gpa-lsp/profile/1", "modules": [module], "launches": [launch]}
        (folder / f"path{number}.gpa-profile.json").write_text(json.dumps(profile))
    (folder / "deep.gpa-profile.json").write_text('{"format": "gpa-lsp/profile/1", "launches": ' + "[" * 10**6)
    (folder / "number.gpa-profile.json").write_text('{"format": "gpa-lsp/profile/1", "launches": ' + "9" * 10**6 + "}")
    (folder / "half\udcff\n.gpa-profile.json").write_text('{"format": "gpa-lsp/profile/1", "launches": 3}')
    bombs = [path for path in folder.glob("*") if path.name.endswith((".ncu-rep", ".ncu-repz", ".gpa-profile.json"))]
    for bomb in bombs:
        make_old(bomb)
    return [bomb.name for bomb in bombs]


def test_profiles_that_mean_harm_cost_little_and_are_named(tmp_path: Path) -> None:
    work, outside = make_project(tmp_path / "work"), tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.h").write_text("\x7fELF")
    (work / "outdir").symlink_to(outside, target_is_directory=True)
    bombs = write_bombs(work, outside)
    environment = {"GPA_LSP_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    peaks: dict[int, int] = {}

    def is_done() -> bool:
        for process_id in (client.process.pid, *find_children(client.process.pid)):
            peaks[process_id] = max(peaks.get(process_id, 0), measure_peak_bytes(process_id))
        return len(client.messages()) >= len(bombs) - 1

    with RawClient(environment=environment) as client:
        client.initialize(work)
        uri = client.open(work / "kernels" / "short_def_use" / "original.cu")
        client.wait_for_diagnostics(uri)
        wait_until(is_done)
        print(f"server {peaks.pop(client.process.pid) >> 20} MB, its workers {max(peaks.values()) >> 20} MB at most")
        assert max(peaks.values()) < 1 << 30
        told = client.messages()
        assert len(told) == len(set(told)) == len(bombs) - 1  # all but the example
        assert not [
            text
            for text in told
            if "internal error" in text or "Traceback" in text or "secret" in text.replace("secret.h", "")
        ]
        assert client.shut_down() == 0
