"""How long from saving a source to its static findings in the editor: ``python -m tests.bench.static``.

A real server over the wire. The source is made longer until its compiler needs about 0.6 s; what comes on top of the compiler is ours: the
way through two processes, decoding, disassembling and the checks.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gpa_lsp.execution.compiler.model import CompileSettings
from gpa_lsp.execution.prediction.static_source import examine_source
from tests.lsp.raw_client import RawClient

REPEATS = 5
WANTED_COMPILE_S = 0.6
LIMIT_S = 1.0

KERNEL = """\
__global__ void kernel_{number}(const float* x, float* out, int n, int divisor)
{{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {{
        const float scaled = x[i / divisor] * 0.7;
        sum += scaled + sinf(x[i]) / (float)(i % divisor);
    }}
    out[threadIdx.x] = sum;
}}
"""


def make_source(kernels: int, salt: int = 0) -> str:
    """So many kernels that differ, each with divisions, conversions, a function and a double literal."""
    bodies = (KERNEL.format(number=number).replace("0.7", f"0.7{salt}{number}1") for number in range(kernels))
    return "\n".join(bodies)


def time_compiler(text: str) -> tuple[float, float]:
    """Seconds of the compiler and of everything, in this process with a warm compiler; the unit is not taken from what is kept."""
    started_s = time.perf_counter()
    found = examine_source(Path("/made/up/bench.cu"), text=text, settings=CompileSettings(keeps_units=False))
    return found.unit.seconds, time.perf_counter() - started_s


def choose_size() -> int:
    """How many kernels take the compiler about as long as wanted."""
    time_compiler(make_source(1))
    kernels = 1
    while kernels < 256:
        compile_s, _ = time_compiler(make_source(kernels))
        if compile_s >= 0.8 * WANTED_COMPILE_S:
            return max(1, round(kernels * WANTED_COMPILE_S / compile_s))
        kernels = max(kernels + 1, round(kernels * min(4.0, 0.9 * WANTED_COMPILE_S / compile_s)))
    return kernels


def time_saves(kernels: int) -> tuple[float, list[float]]:
    """Seconds from opening to the first findings in a new server, and from each save to the findings of what was saved."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "bench.cu")
        source.write_text(make_source(kernels))
        client = RawClient()
        try:
            client.initialize(Path(folder), initializationOptions={"static": {"enable": True}})
            started_s = time.perf_counter()
            uri = client.open(source)
            client.wait_for_diagnostics(uri)
            opened_s = time.perf_counter() - started_s
            return opened_s, [_time_save(client, uri, kernels, version) for version in range(2, 2 + REPEATS)]
        finally:
            client.kill()


def _time_save(client: RawClient, uri: str, kernels: int, version: int) -> float:
    """Another literal in each line, so that the findings of the old text cannot be taken for those of the new one."""
    literal = f"0.7{version}01"
    client.change(uri, version, make_source(kernels, version))
    client.forget()
    started_s = time.perf_counter()
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    client.wait_for_diagnostics(uri, lambda found: any(literal in one["message"] for one in found))
    return time.perf_counter() - started_s


def main() -> None:
    """Measure a small source, and one whose compiler takes 0.6 s."""
    for name, kernels in (("one kernel", 1), (f"compiles in {WANTED_COMPILE_S} s", choose_size())):
        pairs = [time_compiler(make_source(kernels, 100 + number)) for number in range(REPEATS)]
        opened_s, saves_s = time_saves(kernels)
        print(f"{name}: {kernels} kernels, {len(make_source(kernels).splitlines()):,} lines")
        print(f"  compiler            {describe([one for one, _ in pairs])}")
        print(f"  compiler and checks {describe([both for _, both in pairs])}")
        print(f"  checks on top       {describe([both - one for one, both in pairs])}")
        print(f"  open, server cold   {opened_s:.2f} s")
        print(f"  save to findings    {describe(saves_s)} (to be under {LIMIT_S:.1f} s)")


def describe(seconds: Sequence[float]) -> str:
    """Median and range."""
    return f"{statistics.median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"


if __name__ == "__main__":
    main()
