"""Text of an emulated program run."""

from gpa_lsp.document.blocks import Part
from gpa_lsp.document.program_view import build_program
from gpa_lsp.execution.programs.examine import ExaminedKernel
from gpa_lsp.execution.programs.model import KernelRuns, LaunchShape, ProgramRun
from gpa_lsp.foundation.processes.watched_command import CommandEnd, Ending


def test_kernels_of_one_short_name_are_told_apart() -> None:
    reduce = "void cub::DeviceReduceSingleTileKernel<cub::Policy1000, {0}*, {0}*>({0}*, {0}*)"
    kernels = tuple(
        KernelRuns(
            mangled_name=f"_Z{word}",
            name=reduce.format(word),
            launches=1,
            emulated=1,
            skipped=0,
            warp_instructions=10,
            seconds=0.1,
            shapes=(LaunchShape(grid=(1, 1, 1), block=(256, 1, 1), shared_bytes=0, launches=1),),
            faults=(),
        )
        for word in ("float", "int")
    )
    run = ProgramRun(end=CommandEnd(ending=Ending.ENDED), machine="A100 PCIe 40GB", kernels=kernels)
    blocks = build_program(run, [ExaminedKernel(runs=one, prediction=None) for one in kernels])
    titles = [block.title for block in blocks if isinstance(block, Part)]
    assert titles == [f"cub::DeviceReduceSingleTileKernel<…>#{number}" for number in (1, 2)]
