"""``gpa-lsp check`` on real reports: process wall time and peak memory, cold and warm cache, against nvdisasm alone on the same code.

Usage: ``python -m tests.bench.check_reports [--times N] [REPORT ...]``; without reports, every report of the corpus (GPA_LSP_CORPUS).
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.profile.read import read_profile
from tests.bench.measuring import Run, run_several
from tests.conftest import find_corpus

_CHECK = [sys.executable, "-m", "gpa_lsp", "check"]


def time_nvdisasm(report: Path, folder: Path) -> float | None:
    """Seconds nvdisasm alone takes for the measured kernels of a report, one run per image; None where it is not installed."""
    nvdisasm = find_tool("nvdisasm")
    if nvdisasm is None:
        return None
    profile = read_profile(report)
    spent = 0.0
    for module_id in sorted({launch.module_id for launch in profile.launches if launch.module_id is not None}):
        module = profile.modules[module_id]
        if module.image is None:
            continue
        cubin = read_cubin(module.image)
        names = {launch.mangled_name for launch in profile.launches if launch.module_id == module_id}
        code = folder / "code.bin"
        code.write_bytes(b"".join(cubin.functions[name].code for name in sorted(names) if name in cubin.functions))
        architecture = max(cubin.sm, 75)  # current disassemblers know Volta's code under Turing's name
        begin = time.perf_counter()
        subprocess.run([nvdisasm, "-b", f"SM{architecture}", code], stdout=subprocess.DEVNULL, check=True)
        spent += time.perf_counter() - begin
    return spent


def measure(report: Path, times: int) -> tuple[Run, Run, float | None]:
    """Cold and warm medians, and nvdisasm's own time."""
    with tempfile.TemporaryDirectory() as folder:

        def cold() -> Mapping[str, str]:
            # An installed package has its bytecode; an environment that forbids writing it would be measured instead.
            return {"GPA_LSP_CACHE_DIR": tempfile.mkdtemp(dir=folder), "PYTHONDONTWRITEBYTECODE": ""}

        warm_environment = cold()
        command = [*_CHECK, str(report)]
        cold_run = run_several(command, times, cold)
        run_several(command, 1, lambda: warm_environment)
        warm_run = run_several(command, times, lambda: warm_environment)
        return cold_run, warm_run, time_nvdisasm(report, Path(folder))


def main() -> None:
    """Print one row per report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="*", type=Path)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    corpus = find_corpus()
    reports = options.reports or (sorted((corpus / "ncu").glob("*.ncu-rep")) if corpus else [])
    if not reports:
        sys.exit("name some reports, or set GPA_LSP_CORPUS")
    print(f"{'report':42} {'cold s':>7} {'warm s':>7} {'MiB':>6} {'nvdisasm s':>10} {'cold/nvdisasm':>13}  exit")
    for report in reports:
        cold, warm, alone = measure(report, options.times)
        ratio = f"{cold.wall_s / alone:13.2f}" if alone else f"{'-':>13}"
        print(
            f"{report.name:42} {cold.wall_s:7.2f} {warm.wall_s:7.2f} {cold.peak_bytes / 2**20:6.0f} "
            f"{alone or 0:10.2f} {ratio}  {cold.exit_code}"
        )


if __name__ == "__main__":
    main()
