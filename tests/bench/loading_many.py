"""A workspace full of reports in the server: ``python -m tests.bench.loading_many [--reports N] [--beside CHECKOUT]``.

Needs the corpus (GPA_LSP_CORPUS). The reports are those of the corpus, measured again: the same content at other times, so that no two files are
equal; the oldest one is of the source that is opened. Three sets: one report of middling size, N different reports, and N copies of one report. Each
is loaded with an empty cache and once more with a full one. With another checkout the same is done with its server, turn about. Linux only: CPU time
and memory (PSS) are those of the server with all its children.

Seen on a machine of two cores that six others used: 99 different reports 57 s with an empty cache (25 s of CPU, 413 MiB at most, 423 MiB
afterwards; the opened source after 5.6 s), 12 s with a full one (5 s, 278 MiB); 99 copies 2.8 and 1.7 s. The server's own process took at most 5 ms
of CPU time for 99 % of the hovers meanwhile with an empty cache, at most 10 ms with a full one; the longest 78 ms before what waits to be shown was
kept from searches for garbage, 10 ms after.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpa_lsp.report.pipeline import analyse
from tests.bench.measuring import list_tree, read_busy_s, read_cpu_s, read_pss_bytes
from tests.conftest import ROOT, find_corpus
from tests.lsp.raw_client import RawClient

_OPENED = "v100_miniweather_baseline_2022.2.ncu-rep"
"""Carries its source, so that it can be opened."""

_COPIED = "rtx4090_sgemm_2d_sharedmem_blocking.ncu-rep"
_SINGLE = "rtx4090_sgemm_naive.ncu-rep"
"""Its size is the median of the corpus."""

_HOUR_S = 3600

_HOVER_LIMIT_MS = 30.0
"""The 99th percentile while others load."""


@dataclass(slots=True)
class Loading:
    """Time and memory that loading a workspace took.

    Attributes:
        first_s: from ``initialized`` until the first profile was shown.
        opened_s: until the opened source had diagnostics; None where none was opened.
        all_s: until all were shown.
        cpu_s: of server and workers until then.
        peak_bytes: most PSS of the tree while loading.
        settled_bytes: after it.
        hovers_ms: what each of the hovers took that were asked for meanwhile, over the opened source.
        hovers_busy_ms: of each, the CPU time of the server's own process, whatever it was for.
    """

    first_s: float = 0.0
    opened_s: float | None = None
    all_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    settled_bytes: int = 0
    hovers_ms: list[float] = field(default_factory=list)
    hovers_busy_ms: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Workspace:
    name: str
    folder: Path
    count: int
    source: Path | None = None
    times: dict[tuple[str, str], list[Loading]] = field(default_factory=dict)


def measure_again(report: bytes, times: dict[int, int]) -> bytes:
    """The report as it would be had its launches been recorded at other times (field 14 of a result, a varint as long as before)."""
    for known_s, new_s in times.items():
        report = report.replace(b"\x70" + _encode_varint(known_s), b"\x70" + _encode_varint(new_s))
    return report


def _encode_varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded, number))


def write_different(folder: Path, corpus: Path, count: int) -> Path:
    """Write as many different reports as asked; return the source of the oldest of them."""
    files = sorted((*(corpus / "ncu").glob("*.ncu-rep"), *(corpus / "pairs").glob("*.ncu-rep")))
    files.sort(key=lambda file: file.name != _OPENED)
    now = time.time()
    source = None
    for number in range(count):
        file = files[number % len(files)]
        content = file.read_bytes()
        if number >= len(files):
            launches = {kernel.measured_unix_s for kernel in analyse([file], mode=None, disassemble=False).kernels}
            content = measure_again(content, {one: one + number for one in launches if one is not None})
            assert content != file.read_bytes()
        target = folder / f"{number:03}_{file.name}"
        target.write_bytes(content)
        os.utime(target, (now - _HOUR_S + number, now - _HOUR_S + number))
        if number == 0:
            source = _write_source(folder, file)
    assert source is not None
    return source


def _write_source(folder: Path, report: Path) -> Path:
    kernels = analyse([report], mode=None, disassemble=False).kernels
    compiled, text = next(item for kernel in kernels for item in kernel.embedded_sources.items())
    source = folder / Path(compiled).name
    source.write_text(text)
    os.utime(source, (1, 1))
    return source


@contextmanager
def make_workspaces(count: int) -> Iterator[list[_Workspace]]:
    """The three sets."""
    corpus = find_corpus()
    if corpus is None:
        raise SystemExit("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    with tempfile.TemporaryDirectory() as place:
        workspaces = [
            _Workspace(name="one report", folder=Path(place, "one"), count=1),
            _Workspace(name=f"{count} different", folder=Path(place, "different"), count=count),
            _Workspace(name=f"{count} copies", folder=Path(place, "copies"), count=count),
        ]
        single, different, copies = workspaces
        for workspace in workspaces:
            workspace.folder.mkdir()
        shutil.copy(corpus / "pairs" / _SINGLE, single.folder)
        different.source = write_different(different.folder, corpus, count)
        for number in range(count):
            shutil.copyfile(corpus / "pairs" / _COPIED, copies.folder / f"{number:03}.ncu-rep")
        for file in (*single.folder.iterdir(), *copies.folder.iterdir()):
            os.utime(file, (time.time() - _HOUR_S,) * 2)
        yield workspaces


def load(python: Path, workspace: _Workspace, kept: Path) -> Loading:
    """Start a server in the workspace and wait until everything is shown.

    Args:
        python: the interpreter of a checkout's environment.
        workspace: what to load.
        kept: folder of the cache and of the history.
    """
    environment = {"GPA_LSP_CACHE_DIR": str(kept / "cache"), "GPA_LSP_DATA_DIR": str(kept / "data")}
    client = RawClient(environment=environment, python=python, cwd=workspace.folder)
    found = Loading()
    peak = _Peak(client.process.pid)
    try:
        peak.start()
        started = time.perf_counter()
        client.initialize(workspace.folder, initializationOptions={"client": {"status": True}})
        uri = None if workspace.source is None else client.open(workspace.source, language="fortran")
        client.wait_for("gpaLsp/status", lambda params: params["profiles"] > 0)
        found.first_s = time.perf_counter() - started
        watch = threading.Thread(target=_note_opened, args=(client, uri, started, found))
        watch.start()
        if uri is not None and workspace.source is not None:
            _hover_while_loading(client, uri, workspace.source, found)
        client.wait_for("gpaLsp/status", _is_loaded)
        found.all_s = time.perf_counter() - started
        watch.join(60)
        found.cpu_s = read_cpu_s(client.process.pid)
        found.peak_bytes = peak.stop()
        time.sleep(2.0)
        found.settled_bytes = read_pss_bytes(list_tree(client.process.pid))
        client.shut_down()
    except (AssertionError, TimeoutError):
        print(client.messages(), [n["params"] for n in client.notifications if n["method"] == "gpaLsp/status"][-3:])
        raise
    finally:
        peak.stop()
        client.kill()
    return found


def _is_loaded(params: dict[str, Any]) -> bool:
    """Whether all are loaded; only profiles whose kernels are shown count."""
    return bool(params["profiles"] > 0 and params["state"] == "idle")


def _hover_while_loading(client: RawClient, uri: str, source: Path, found: Loading) -> None:
    lines = source.read_text().count("\n") + 1
    seen = 0
    while True:
        states = client.notifications[seen:]
        seen += len(states)
        if any(one["method"] == "gpaLsp/status" and _is_loaded(one["params"]) for one in states):
            return
        position = {"line": len(found.hovers_ms) * 37 % lines, "character": 8}
        busy_s, begun_s = read_busy_s(client.process.pid), time.perf_counter()
        client.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": position})
        found.hovers_ms.append(1000 * (time.perf_counter() - begun_s))
        found.hovers_busy_ms.append(1000 * (read_busy_s(client.process.pid) - busy_s))
        time.sleep(0.02)


def _note_opened(client: RawClient, uri: str | None, started: float, found: Loading) -> None:
    if uri is not None:
        client.wait_for_diagnostics(uri)
        found.opened_s = time.perf_counter() - started


class _Peak:
    """Looks at the memory of a process and its children again and again."""

    def __init__(self, process_id: int) -> None:
        self._process_id = process_id
        self._most = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> int:
        self._ended.set()
        return self._most

    def _watch(self) -> None:
        while not self._ended.wait(0.25):
            self._most = max(self._most, read_pss_bytes(list_tree(self._process_id)))


def print_row(title: str, times: list[Loading], single_s: float | None) -> float:
    """Medians; the time until all were shown."""

    def middle(name: str) -> float:
        values = [getattr(one, name) for one in times]
        return float("nan") if None in values else statistics.median(values)

    ratio = f"{middle('all_s') / single_s:8.1f}" if single_s else " " * 8
    print(
        f"{title:34} {middle('first_s'):8.2f} {middle('opened_s'):8.2f} {middle('all_s'):8.2f} {ratio} {middle('cpu_s'):8.2f} "
        f"{middle('peak_bytes') / 2**20:8.0f} {middle('settled_bytes') / 2**20:8.0f}",
        flush=True,
    )
    for name in ("hovers_ms", "hovers_busy_ms"):
        every = sorted(ms for one in times for ms in getattr(one, name))
        if every:
            kind = "wall" if name == "hovers_ms" else "CPU of the server"
            p99, limit = every[int(0.99 * len(every))], _HOVER_LIMIT_MS
            print(
                f"  {len(every):,} hovers meanwhile, {kind}: median {statistics.median(every):.1f}, p99 {p99:.1f} ms"
                f" ({p99 / limit:.2f} of {limit:.0f} ms), longest {every[-1]:.0f}",
                flush=True,
            )
    return middle("all_s")


def main() -> None:
    """Print a row per set, cache and checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=99)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--beside", type=Path, help="another checkout, with its environment in .venv")
    parser.add_argument("--only", help="of the sets, those with this word")
    options = parser.parse_args()
    checkouts = [one for one in (options.beside, ROOT) if one is not None]
    print(
        f"{'':34} {'first s':>8} {'opened s':>8} {'all s':>8} {'of one':>8} {'CPU s':>8} {'peak MiB':>8} {'then MiB':>8}"
    )
    single_s: dict[Path, float] = {}
    with make_workspaces(options.reports) as workspaces:
        for workspace in workspaces:
            if options.only and workspace.count > 1 and options.only not in workspace.name:
                continue
            found: dict[tuple[Path, str], list[Loading]] = {}
            for _ in range(options.times):
                for checkout in checkouts:
                    with tempfile.TemporaryDirectory() as kept:
                        for state in ("cold", "warm"):
                            one = load(checkout / ".venv" / "bin" / "python", workspace, Path(kept))
                            found.setdefault((checkout, state), []).append(one)
            for (checkout, state), times in found.items():
                all_s = print_row(f"{workspace.name}, {state}, {checkout.name}", times, single_s.get(checkout))
                if workspace.count == 1 and state == "cold":
                    single_s[checkout] = all_s


if __name__ == "__main__":
    main()
