"""A GPU for editors: a CUDA driver and a CUPTI of ours, which take the times that a file says."""

from dataclasses import dataclass
from pathlib import Path

from tests.collector.built import build, make_variables


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpGpu:
    """Made-up GPU of a computer.

    Attributes:
        times: nanoseconds of a launch, in a file.
        variables: of the environment of an editor that finds the GPU.
    """

    times: Path
    variables: dict[str, str]


def make_gpu(folder: Path) -> MadeUpGpu:
    """A GPU whose launches take 41.2 µs at first; skips the test where it cannot be compiled."""
    folder.mkdir(exist_ok=True)
    times = folder / "times"
    times.write_text("41200")
    variables = make_variables(build(), folder)
    names = ("LD_LIBRARY_PATH", "FAKE_CUDA", "FAKE_CUDA_LOG", "GPA_LSP_CUPTI")
    return MadeUpGpu(
        times=times, variables={**{name: variables[name] for name in names}, "FAKE_CUDA_TIMES": str(times)}
    )
