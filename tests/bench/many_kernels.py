"""Many kernels in one report, in ``check`` and in the server: ``python -m tests.bench.many_kernels [--kernels N] [--requests N] [--folder F]``.

The kernels stand in one source, which nvcc compiles to one image. Each is launched once; its samples and counts are drawn at random, its other
metrics are those of a launch of the corpus (GPA_LSP_CORPUS). With ``--folder`` the source and the report stay there, and are used again by the
next run. Prints what was measured, and beside it what it may be; asserts nothing.

Seen with 1,000 kernels (169 MB, 297 kB of source), as CPU time on a machine of two cores with much else to do: ``check`` 65 s before kernels were
judged in parts, two processes with 35 s each after; 50 s in all since it asks no analysis that it does not print, 78 s with all in the same hour;
42 s before all code was disassembled in one run and other processes' results were kept as they come, 36 s after (19 to 24 s of time, not 23 to 25);
59 s in all before the kernels of a source were listed once and each went as soon as it was judged, 49 s after, both at once on a crowded machine;
the longest kernel judged after 0.9 s; a hover after an edit 8 ms, hints of a screen after one 12 ms, without one 4 ms; all lenses 40 ms; a snapshot
and the first view of it 75 ms; heat 779 kB before it was bounded. With 100 kernels in one source, as CPU time of the server: a hover 1.6 ms, hints
of a screen 1.7 ms (2.3 before they were chosen once per text), all lenses 1.9 ms (6.9 before they were kept), after an edit 1.9, 2.8 and 6.1 ms;
with 1,000 all lenses 19 ms. The slowest hundredth of all lenses of 100 kernels took 21 ms where garbage was looked for in the middle, 4 ms where it
is not. With 250 kernels, as CPU time on a machine with far too much to do: ``check`` 12.4 s before what kernels share was read
once, 11.3 s after; everything in the server 25.4 s before what analyses say was handed on as bytes, 21.7 s after.
"""

import argparse
import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Function
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import read_profile
from tests.bench.measuring import list_tree, read_busy_s, read_cpu_s, read_pss_bytes, run_once
from tests.conftest import find_corpus
from tests.lsp.raw_client import RawClient
from tests.profile.report_builder import ReportBuilder

_MODEL = "pairs/rtx4090_sgemm_naive.ncu-rep"
_ARCHITECTURE = "sm_89"
_BASE = 0x7F0000000000
_HOUR_S = 3600

_OWN_METRICS = ("gpu__time_duration.sum", "launch__registers_per_thread", "launch__function_pcs")

_PREAMBLE = """\
__device__ __forceinline__ float damp(float v, float s)
{
    v = fmaf(v, 0.5f, s);
    return v * (1.0f - 0.1f * v);
}
"""

_BODIES = (
    """\
    float v = 0;
    for (int k = 0; k < n; ++k)
        v = damp(v, in[k * {stride} + i]);
    out[i] = v;
""",
    """\
    __shared__ float tile[{size}];
    float v = 0;
    for (int k = 0; k < n; ++k) {{
        tile[threadIdx.x] = in[k + {stride} * i];
        __syncthreads();
        v += tile[threadIdx.x ^ {size2}] / (k + 1.5f);
        __syncthreads();
    }}
    out[i] = v;
""",
    """\
    int v = i;
    for (int k = 0; k < n; ++k)
        v += (v / m) * {stride} + v % m;
    out[i] = v;
""",
    """\
    float a = in[i], b = in[i + {stride}];
    for (int k = 0; k < n; ++k) {{
        if (in[k * m] > 0.5f)
            a = sqrtf(a * a + b);
        else
            b = expf(b - a);
    }}
    out[i] = a + b;
""",
    """\
    double v = in[i] * 0.7;
    for (int k = 0; k < n; ++k)
        v = v * 1.01 + in[i * m + k + {stride}];
    atomicAdd(out + i % {size}, (float)v);
""",
)


def write_source(count: int) -> str:
    """A source of so many kernels, each compiled to code of its own."""
    parts = [_PREAMBLE]
    for number in range(count):
        body = _BODIES[number % len(_BODIES)].format(stride=number + 3, size=256, size2=1 << number % 8)
        parts.append(
            f'extern "C" __global__ void kernel{number:04}(const float* in, float* out, int n, int m)\n{{\n'
            f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}}}\n"
        )
    return "\n".join(parts)


def compile_source(source: Path) -> bytes:
    """The image."""
    nvcc = find_tool("nvcc")
    if nvcc is None:
        raise SystemExit("nvcc is not installed")
    cubin = source.with_suffix(".cubin")
    subprocess.run([nvcc, f"-arch={_ARCHITECTURE}", "-lineinfo", "-cubin", source, "-o", cubin], check=True)
    image = cubin.read_bytes()
    cubin.unlink()
    return image


def find_model() -> Launch:
    """A real launch, whose metrics the kernels have too.

    Raises:
        SystemExit: the corpus is not at hand.
    """
    corpus = find_corpus()
    if corpus is None:
        raise SystemExit("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    return read_profile(corpus / _MODEL).launches[0]


def write_report(image: bytes, model: Launch) -> bytes:
    """A report of all kernels of an image, the first one the shortest."""
    functions = sorted(read_cubin(image).functions.values(), key=lambda function: function.name)
    starts: dict[str, int] = {}
    address = _BASE
    for function in functions:
        starts[function.name] = address
        address += -(-function.size_bytes // 128) * 128
    builder = ReportBuilder()
    builder.name_id = functools.cache(builder.name_id)  # type: ignore[method-assign]
    builder.add_source(image=image, functions=starts)
    metrics = [model.metrics[name] for name in model.metrics]
    scalars = [
        builder.encode_metric(metric.name, metric.value)
        for metric in metrics
        if metric.value is not None and not metric.instance_ids and metric.name not in _OWN_METRICS
    ]
    assert model.samples is not None
    numbers = np.random.default_rng(1)
    for number, function in enumerate(functions):
        start = starts[function.name]
        own = [
            builder.encode_metric("gpu__time_duration.sum", 10_000.0 * (number + 1)),
            builder.encode_metric("launch__registers_per_thread", function.registers),
            builder.encode_metric("launch__function_pcs", 1, [(0, start)]),
            *_encode_counts(builder, function, start, model.samples.reasons, numbers),
        ]
        result = builder.make_result(function.name, metrics=[*scalars, *own])
        result.plain_name = function.name.encode()
        result.demangled_name = f"{function.name}(const float *, float *, int, int)".encode()
        result.created_unix_s = 1_700_000_000
        builder.add_result(result)
    builder.add_session()
    return builder.build()


def _encode_counts(
    builder: ReportBuilder, function: Function, start: int, reasons: Sequence[str], numbers: np.random.Generator
) -> list[bytes]:
    """Executions and samples per instruction: most of the samples lie on a few."""
    count = function.size_bytes // INSTRUCTION_BYTES
    addresses = [start + INSTRUCTION_BYTES * place for place in range(count)]
    executed = numbers.choice([64, 4096, 65536], count)
    encoded = [
        builder.encode_metric(
            "inst_executed", int(executed.sum()), list(zip(addresses, executed.tolist(), strict=True))
        )
    ]
    samples: dict[str, dict[int, tuple[int, int]]] = {}
    for reason in reasons:
        every = numbers.geometric(0.02, count) * (numbers.random(count) < 0.2)
        latency = every // 2 if reason != "selected" else every * 0
        pairs = zip(every.tolist(), latency.tolist(), strict=True)
        samples[reason] = {INSTRUCTION_BYTES * place: pair for place, pair in enumerate(pairs)}
    return encoded + builder.encode_samples(samples, base=start)


def make_workspace(folder: Path, count: int) -> tuple[Path, Path]:
    """The source and the report in a folder, written where they are not there."""
    source, report = folder / "kernels.cu", folder / "kernels.ncu-rep"
    if not report.exists():
        source.write_text(write_source(count))
        report.write_bytes(write_report(compile_source(source), find_model()))
        os.utime(source, (1, 1))
        os.utime(report, (time.time() - _HOUR_S,) * 2)
    return source, report


def print_row(name: str, found: float, limit: float, unit: str) -> None:
    """A figure, what it may be, and their ratio."""
    print(f"{name:44} {found:9.2f} {unit:3} of {limit:7.2f} {found / limit:7.2f}", flush=True)


def time_check(report: Path, folder: Path, *, limit_s: float) -> float:
    """Seconds of ``check`` with an empty cache."""
    environment = {"GPA_LSP_CACHE_DIR": tempfile.mkdtemp(dir=folder), "PYTHONDONTWRITEBYTECODE": ""}
    run = run_once([sys.executable, "-m", "gpa_lsp", "check", str(report)], environment)
    print_row("check, empty cache", run.wall_s, limit_s, "s")
    print(f"{'  of which CPU; largest resident size':44} {run.cpu_s:9.2f} s    {run.peak_bytes / 2**20:9.0f} MiB")
    return run.wall_s


class _Session:
    """A server in a workspace, and a client that asks as an editor does."""

    def __init__(self, source: Path, cache: Path) -> None:
        self.client = RawClient(environment={"GPA_LSP_CACHE_DIR": str(cache)}, cwd=source.parent)
        self.largest = 0
        self._text = source.read_text()
        self._lines = self._text.split("\n")
        self._version = 1
        self.started_s = time.perf_counter()
        self.client.initialize(source.parent, initializationOptions={"client": {"heat": True, "status": True}})
        self.uri = self.client.open(source)

    def ask(self, method: str, **params: Any) -> Any:
        """The answer; its size is noted."""
        answer = self.client.request(method, {"textDocument": {"uri": self.uri}, **params})
        self.largest = max(self.largest, len(json.dumps(answer)))
        return answer

    def hover(self, number: int) -> Any:
        """A hover somewhere."""
        return self.ask("textDocument/hover", position={"line": number * 37 % len(self._lines), "character": 8})

    def list_hints(self, number: int) -> Any:
        """The hints of a screen somewhere."""
        first = number * 97 % max(1, len(self._lines) - 60)
        span = {"start": {"line": first, "character": 0}, "end": {"line": first + 60, "character": 0}}
        return self.ask("textDocument/inlayHint", range=span)

    def list_lenses(self, number: int) -> Any:
        """All lenses."""
        return self.ask("textDocument/codeLens")

    def edit(self, number: int) -> None:
        """Type a character on a line somewhere."""
        self._version += 1
        place = {"line": number * 41 % len(self._lines), "character": 0}
        change = {"range": {"start": place, "end": place}, "text": " "}
        document = {"uri": self.uri, "version": self._version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def is_idle(self) -> bool:
        """Whether everything is read."""
        states = [note["params"] for note in self.client.notifications if note["method"] == "gpaLsp/status"]
        return any(one["profiles"] for one in states) and states[-1]["state"] == "idle"


def load(session: _Session, longest: str, check_s: float) -> None:
    """Hover until everything is loaded, and look for the longest kernel's lens."""
    first_s: float | None = None
    times: list[float] = []
    while not session.is_idle():
        begun = time.perf_counter()
        session.hover(len(times))
        times.append(1000 * (time.perf_counter() - begun))
        if first_s is None and len(times) % 20 == 0:
            titles = [lens["command"]["title"] for lens in session.list_lenses(0) or ()]
            first_s = time.perf_counter() - session.started_s if any(longest in title for title in titles) else None
        time.sleep(0.01)
    print_row("first lens of the longest kernel", first_s or float("nan"), 5.0, "s")
    print_row("everything", time.perf_counter() - session.started_s, 2 * check_s, "s")
    tree, cpu_s = list_tree(session.client.process.pid), read_cpu_s(session.client.process.pid)
    print(f"{'  of which CPU; memory of all processes':44} {cpu_s:9.2f} s    {read_pss_bytes(tree) / 2**20:9.0f} MiB")
    print_row("hover while loading, p99", find_p99(times), 30.0, "ms")


def find_p99(times: Sequence[float]) -> float:
    """The 99th percentile."""
    return sorted(times)[int(0.99 * len(times))] if times else float("nan")


def time_requests(name: str, count: int, request: Callable[[int], Any], limit_ms: float, process_id: int) -> None:
    """Ask one after the other; what the server computes for it is what it would take where nobody else works.

    This process looks for no garbage meanwhile: it holds all answers, which no editor does.
    """
    times, busy = [], []
    gc.freeze()
    gc.disable()
    for number in range(count):
        before_s, begun_s = read_busy_s(process_id), time.perf_counter()
        request(number)
        times.append(1000 * (time.perf_counter() - begun_s))
        busy.append(1000 * (read_busy_s(process_id) - before_s))
    gc.enable()
    print_row(f"{name}, p99 (median {statistics.median(times):.1f})", find_p99(times), limit_ms, "ms")
    print_row(f"  of which CPU, p99 (median {statistics.median(busy):.1f})", find_p99(busy), limit_ms, "ms")


def time_session(source: Path, cache: Path, count: int, requests: int, check_s: float) -> None:
    """Load, ask, edit."""
    session = _Session(source, cache)
    try:
        load(session, f"kernel{count - 1:04}", check_s)
        time.sleep(2.0)
        server = session.client.process.pid

        def time_them(name: str, asked: int, request: Callable[[int], Any], limit_ms: float) -> None:
            time_requests(name, asked, request, limit_ms, server)

        time_them("hover", requests, session.hover, 10.0)
        time_them("hints of a screen", requests, session.list_hints, 10.0)
        time_them("lenses", requests // 2, session.list_lenses, 10.0)

        def edit_and(ask: Callable[[int], Any]) -> Callable[[int], Any]:
            return lambda number: (session.edit(number), ask(number))

        time_them("an edit, then a hover", requests // 4, edit_and(session.hover), 20.0)
        time_them("an edit, then hints of a screen", requests // 4, edit_and(session.list_hints), 20.0)
        time_them("an edit, then lenses", requests // 4, edit_and(session.list_lenses), 20.0)
        pushed = (len(json.dumps(note["params"])) for note in session.client.notifications)
        print_row("largest message", max(session.largest, *pushed) / 1e6, 1.0, "MB")
    finally:
        session.client.kill()


def main() -> None:
    """Make the report, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--folder", type=Path, help="where the workspace is, or is made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder)
        workspace = options.folder or kept / "workspace"
        workspace.mkdir(exist_ok=True, parents=True)
        source, report = make_workspace(workspace, options.kernels)
        print(
            f"{options.kernels:,} kernels, {report.stat().st_size / 1e6:.0f} MB, {source.stat().st_size / 1e3:.0f} kB of source"
        )
        check_s = time_check(report, kept, limit_s=20.0 * options.kernels / 1000)
        time_session(source, kept / "cache", options.kernels, options.requests, check_s)


if __name__ == "__main__":
    main()
