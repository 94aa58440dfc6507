"""How long the language server makes an editor wait: ``python -m tests.bench.server [--kernels N] [--requests N] [--workspace FOLDER]``.

Without a workspace it makes one: kernels in files of 25, each profile a listing (see ``tests/lsp/listing_pipeline``), so that the numbers are the
server's and not those of the analysis. With one, real profiles in it are read and the given file is asked about. Prints, asserts nothing.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lsp.conftest import LISTINGS, make_ancient, write_profile
from tests.lsp.raw_client import RawClient

KERNELS_PER_FILE = 25
LINES_PER_KERNEL = 60
INSTRUCTIONS_PER_KERNEL = 500

_ROUND = """
    B{wait}:R-:W{load}:-:S04  LDG.E R{a}, [R{p}.64]           # {place} | selected={n}
    B-:R-:W-:-:S04  FFMA R{b}, R{c}, R{d}, R{b}               # {place} | wait={m}/3 selected=2
    B{load}:R-:W-:Y:S04  FFMA R{c}, R{a}, R{b}, R{c}          # {place} | long_scoreboard={s}/{h}
    B-:R-:W-:-:S12  ISETP.LT.AND P0, PT, R{a}, R{c}, PT       # {place} | wait={n}
    B-:R-:W-:-:S05  @P0 BRA round{number}                     # {place}
"""
"""A loop of five instructions; a kernel is many of them, one after the other."""


def write_workspace(folder: Path, kernel_count: int) -> list[Path]:
    """Sources and profiles of some kernels; the sources."""
    rng = random.Random(1)
    sources = []
    for first in range(0, kernel_count, KERNELS_PER_FILE):
        source = folder / f"kernels{first}.cu"
        lines: list[str] = []
        for number in range(first, min(first + KERNELS_PER_FILE, kernel_count)):
            body = [
                f"    value{line} += in[{line} * stride + {number}] * weight({line});"
                for line in range(LINES_PER_KERNEL - 3)
            ]
            start = len(lines)
            lines += [f"__global__ void kernel{number}(const float *in)", "{", *body, "}"]
            write_profile(
                folder / f"profile{number}.ncu-rep",
                _write_kernel(rng, source.name, start),
                f"name kernel{number}",
                "written",
            )
        source.write_text("\n".join(lines))
        make_ancient(source)
        sources.append(source)
    return sources


def _write_kernel(rng: random.Random, file: str, start: int) -> str:
    rounds = []
    for number in range(INSTRUCTIONS_PER_KERNEL // 5):
        line = start + rng.randint(3, LINES_PER_KERNEL - 1)
        place = rng.choice([f"{file}:{line}", f"math.h:{rng.randint(1, 90)} < {file}:{line}"])
        a, b, c, d, p = (2 * rng.randint(1, 30) for _ in range(5))
        load, wait = rng.sample(range(6), 2)
        samples = rng.randint(10, 400)
        filled = _ROUND.format(
            a=a, b=b, c=c, d=d, p=p, load=load, wait=wait, place=place, number=number,
            n=rng.randint(1, 20), m=rng.randint(4, 60), s=samples, h=samples // 2,
        )  # fmt: skip
        rounds.append(f"round{number}:\n{filled}")
    rounds.append(f"    B-:R-:W-:-:S05  EXIT    # {file}:{start + LINES_PER_KERNEL}")
    return "\n".join(rounds)


def measure(name: str, count: int, request: Callable[[int], Any]) -> None:
    """Send requests one after the other and print their percentiles."""
    times = []
    for number in range(count):
        started = time.perf_counter()
        request(number)
        times.append(1000 * (time.perf_counter() - started))
    print_times(name, times)


def print_times(name: str, times_ms: list[float]) -> None:
    """Median, 99th percentile and maximum."""
    times = sorted(times_ms)
    print(
        f"{name:40} p50 {statistics.median(times):7.2f} ms   p99 {times[int(0.99 * len(times))]:7.2f} ms   max {times[-1]:7.2f} ms"
    )


def measure_start(times: int) -> None:
    """From the start of the process to the answer to initialize."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for _ in range(times):
            client = RawClient()
            client.initialize(Path(folder))
            found.append(1000 * (time.perf_counter() - client.started_s))
            client.shut_down()
            client.kill()
    print(
        f"{'spawn to initialize':40} p50 {statistics.median(found):7.0f} ms   min {min(found):7.0f} ms   max {max(found):7.0f} ms"
    )


def measure_session(client: RawClient, folder: Path, source: Path, profile_count: int, requests: int) -> None:
    """Load, then ask."""
    started = time.perf_counter()
    client.initialize(folder, initializationOptions={"client": {"heat": True, "status": True}})
    uri = client.open(source)
    client.wait_for_diagnostics(uri)
    print(f"{'open to first diagnostics':40} {time.perf_counter() - started:7.2f} s")
    wait_until_loaded(client, profile_count)
    time.sleep(2.0)
    print(f"{f'{profile_count} profiles loaded':40} {time.perf_counter() - started:7.2f} s")
    print(f"{'resident memory, idle':40} {read_resident_bytes(client.process.pid) / 2**20:7.0f} MiB")
    measure_reopening(client, source)
    measure_source(client, uri, source.read_text(), requests)
    measure_sass(client, uri, requests)
    print(f"{'resident memory, after all of it':40} {read_resident_bytes(client.process.pid) / 2**20:7.0f} MiB")


def read_resident_bytes(process_id: int) -> int:
    """Resident set of the server; its worker has ended."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return 1024 * int(line.split()[1])
    return 0


def measure_reopening(client: RawClient, source: Path) -> None:
    """From didOpen to diagnostics, everything loaded."""
    uri = source.as_uri()

    def reopen(number: int) -> None:
        client.wait_for_diagnostics(client.open(source))

    times = []
    for _ in range(20):
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        client.wait_for_diagnostics(uri, lambda items: items == [])
        client.forget()
        started = time.perf_counter()
        reopen(0)
        times.append(1000 * (time.perf_counter() - started))
    print_times("didOpen to diagnostics", times)


def measure_source(client: RawClient, uri: str, text: str, requests: int) -> None:
    """What is asked about a source."""
    line_count = text.count("\n") + 1
    document = {"textDocument": {"uri": uri}}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": line_count, "character": 0}}

    def at(number: int) -> dict[str, Any]:
        return {"line": number * 7 % line_count, "character": 4}

    def act(number: int) -> Any:
        span = {"start": at(number), "end": at(number)}
        return client.request("textDocument/codeAction", {**document, "range": span, "context": {"diagnostics": []}})

    def execute(command: str, *arguments: Any) -> Any:
        return client.request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})

    def type_and_hover(number: int) -> Any:
        client.change(uri, number + 2, f"// {number}\n{text}")
        return client.request("textDocument/hover", {**document, "position": at(number)})

    measure("hover", requests, lambda n: client.request("textDocument/hover", {**document, "position": at(n)}))
    measure("codeLens", requests, lambda n: client.request("textDocument/codeLens", document))
    hints = {**document, "range": whole}
    measure("inlayHint, whole file", requests // 5, lambda n: client.request("textDocument/inlayHint", hints))
    screen = {"start": {"line": 100, "character": 0}, "end": {"line": 160, "character": 0}}
    hints_of_screen = {**document, "range": screen}
    measure("inlayHint, one screen", requests, lambda n: client.request("textDocument/inlayHint", hints_of_screen))
    measure("codeAction", requests // 5, act)
    measure("documentSymbol", requests // 5, lambda n: client.request("textDocument/documentSymbol", document))
    measure("findCauses", requests, lambda n: execute("gpaLsp.findCauses", uri, at(n)["line"]))
    measure("listHotSpots, this file", requests // 10, lambda n: execute("gpaLsp.listHotSpots", uri))
    measure("hover right after an edit", requests // 5, type_and_hover)
    client.change(uri, requests + 10, text)


def measure_sass(client: RawClient, source_uri: str, requests: int) -> None:
    """What is asked about a SASS document."""
    kernels = client.request("workspace/executeCommand", {"command": "gpaLsp.listKernels", "arguments": []})
    times, texts = [], {}
    for kernel in kernels:
        started = time.perf_counter()
        texts[kernel["sassUri"]] = client.request("workspace/textDocumentContent", {"uri": kernel["sassUri"]})["text"]
        times.append(1000 * (time.perf_counter() - started))
    print_times("SASS document", times)
    uri, text = next(iter(texts.items()))
    client.notify(
        "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "nvsass", "version": 1, "text": text}}
    )
    lines = [(number, line) for number, line in enumerate(text.split("\n")) if " R" in line]
    document = {"textDocument": {"uri": uri}}

    def at(number: int) -> dict[str, Any]:
        line, words = lines[number * 3 % len(lines)]
        return {"position": {"line": line, "character": words.index(" R") + 2}}

    measure("SASS hover", requests, lambda n: client.request("textDocument/hover", {**document, **at(n)}))
    measure("SASS definition", requests, lambda n: client.request("textDocument/definition", {**document, **at(n)}))
    references = {**document, "context": {"includeDeclaration": True}}
    measure("SASS references", requests, lambda n: client.request("textDocument/references", {**references, **at(n)}))
    measure(
        "SASS highlight", requests, lambda n: client.request("textDocument/documentHighlight", {**document, **at(n)})
    )
    measure(
        "SASS semanticTokens", requests // 20, lambda n: client.request("textDocument/semanticTokens/full", document)
    )
    link = {"command": "gpaLsp.findLinked", "arguments": [source_uri, 20]}
    measure("findLinked, of a source line", requests // 5, lambda n: client.request("workspace/executeCommand", link))


def wait_until_loaded(client: RawClient, profile_count: int) -> None:
    """Wait until the server has reported as many profiles as there are."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        ends = [n["params"]["value"] for n in client.notifications if n["method"] == "$/progress"]
        read = [value["message"] for value in ends if value["kind"] == "end"]
        if sum(int(message.split()[0]) for message in read) >= profile_count:
            return
        time.sleep(0.05)
    raise TimeoutError("the server did not read all profiles")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--workspace", type=Path, help="a folder with real profiles and sources")
    parser.add_argument("--source", type=Path, help="the file in it that is asked about")
    options = parser.parse_args()
    measure_start(options.starts)
    if options.workspace is not None:
        profile_count = len([*options.workspace.rglob("*.ncu-rep"), *options.workspace.rglob("*.gpa-profile.json")])
        client = RawClient(settings={"minShare": 1})
        measure_session(client, options.workspace, options.source, profile_count, options.requests)
        client.kill()
        return
    with tempfile.TemporaryDirectory() as folder:
        sources = write_workspace(Path(folder), options.kernels)
        client = RawClient(environment=LISTINGS, settings={"minShare": 1})
        measure_session(client, Path(folder), sources[0], options.kernels, options.requests)
        client.kill()


if __name__ == "__main__":
    main()
