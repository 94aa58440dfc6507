"""What the collector itself costs a launch, with a driver and a CUPTI that do nothing: ``python -m tests.bench.collecting``.

What sampling costs comes on top of it, and only a GPU tells how much.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gpa_lsp.profile.collector.records import Mode
from gpa_lsp.profile.collector.run import CollectorSettings, make_environment
from tests.collector.built import CUBIN, FAKES, KERNEL, build, make_variables

_LAUNCHES = 20_000
_ROUNDS = 5


def _time(command: Sequence[str], settings: CollectorSettings | None) -> float:
    """Seconds of the fastest of some rounds."""
    built = build()
    best = float("inf")
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            environment = make_variables(built, folder, "pcs=0")
            if settings is not None:
                environment = make_environment(settings, built.cupti, built.collector, folder, environment)
            begin_s = time.perf_counter()
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            best = min(best, time.perf_counter() - begin_s)
    return best


def _print(title: str, commands: Sequence[Sequence[str]]) -> None:
    few, many = commands
    launches = int(many[-1]) - int(few[-1])
    alone_s = (_time(many, None) - _time(few, None)) / launches
    print(f"{title}: a launch of the made-up driver takes {alone_s * 1e6:.2f} µs")
    for mode in (Mode.TIMING, Mode.CONTINUOUS, Mode.SERIALIZED):
        settings = CollectorSettings(mode=mode)
        with_s = (_time(many, settings) - _time(few, settings)) / launches
        print(f"  {mode.name.lower():<12} {(with_s - alone_s) * 1e6:6.2f} µs more")


def main() -> None:
    """Print what a launch costs, from C and from Python."""
    built = build()
    program = [str(built.application), str(CUBIN), KERNEL]
    _print("C", ([*program, "10"], [*program, str(_LAUNCHES)]))
    source = FAKES.joinpath("application.py").read_text(encoding="utf-8")
    source = source.replace(
        "    launch(free, function, 5)\n", "    [launch(free, function, 5) for _ in range(int(sys.argv[4]))]\n"
    )
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "application.py")
        path.write_text(source, encoding="utf-8")
        python = [sys.executable, str(path), str(built.folder / "libcuda.so.1"), str(CUBIN), KERNEL]
        _print("Python", ([*python, "10"], [*python, str(_LAUNCHES)]))


if __name__ == "__main__":
    main()
