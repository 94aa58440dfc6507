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

from tests.lsp.conftest import LISTINGS, write_profile
from tests.lsp.raw_client import RawClient

KERNELS_PER_FILE = 25
LINES_PER_KERNEL = 60
INSTRUCTIONS_PER_KERNEL = 400


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
            listing = "\n".join(_write_instruction(rng, source.name, start) for _ in range(INSTRUCTIONS_PER_KERNEL))
            write_profile(folder / f"profile{number}.ncu-rep", listing, f"name kernel{number}(float const*)")
        source.write_text("\n".join(lines))
        sources.append(source)
    return sources


def _write_instruction(rng: random.Random, file: str, start: int) -> str:
    line = start + rng.randint(3, LINES_PER_KERNEL - 1)
    place = rng.choice([f"{file}:{line}", f"math.h:{rng.randint(1, 90)} < {file}:{line}"])
    samples = " ".join(
        f"{reason}={rng.randint(1, 90)}" for reason in rng.sample(["wait", "long_scoreboard", "barrier", "selected"], 3)
    )
    return f"{place}  FFMA R{rng.randint(0, 99)}, R1, R2, R3  ; {samples}"


def measure(name: str, count: int, request: Callable[[int], Any]) -> None:
    """Send requests one after the other and print their percentiles."""
    times = []
    for number in range(count):
        started = time.perf_counter()
        request(number)
        times.append(1000 * (time.perf_counter() - started))
    times.sort()
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
    client.initialize(folder)
    uri = client.open(source)
    client.wait_for_diagnostics(uri, timeout_s=300)
    print(f"{'open to first diagnostics':40} {time.perf_counter() - started:7.2f} s")
    wait_until_loaded(client, profile_count)
    print(f"{f'{profile_count} profiles loaded':40} {time.perf_counter() - started:7.2f} s")
    text = source.read_text()
    line_count = text.count("\n") + 1
    document = {"textDocument": {"uri": uri}}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": line_count, "character": 0}}

    def hover(number: int) -> Any:
        return client.request(
            "textDocument/hover", {**document, "position": {"line": number * 7 % line_count, "character": 0}}
        )

    def type_and_hover(number: int) -> Any:
        client.change(uri, number + 2, f"// {number}\n{text}")
        return hover(number)

    measure("hover", requests, hover)
    measure("codeLens", requests, lambda number: client.request("textDocument/codeLens", document))
    measure(
        "inlayHint, whole file",
        requests,
        lambda number: client.request("textDocument/inlayHint", {**document, "range": whole}),
    )
    measure("hover right after an edit", requests // 5, type_and_hover)


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
