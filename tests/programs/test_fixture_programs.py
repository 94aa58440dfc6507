"""Answers of runs of whole programs: faults, limits, records, text that kernels print."""

from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.document.program_view import build_program
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.launched_code import read_modules
from gpa_lsp.execution.programs.examine import ExaminedKernel
from gpa_lsp.execution.programs.model import KernelRuns, LaunchShape, ProgramRun
from gpa_lsp.foundation.processes.watched_command import CommandEnd, Ending
from tests.patience import in_bounded_time
from tests.programs.built import SOURCES, build, run


def test_a_fault_names_its_line_array_and_element(tmp_path: Path) -> None:
    found, _ = run(build(SOURCES / "out_of_bounds.cu", tmp_path))
    (fault,) = found.kernels[0].faults
    assert fault.kind is FaultKind.OUT_OF_BOUNDS
    assert (Path(fault.chain[-1].file).name, fault.chain[-1].line) == ("out_of_bounds.cu", 9)
    assert fault.message.endswith("element 1000 of values, which has 1000") and fault.count == 24


def test_launches_beyond_the_limit_do_nothing_and_are_counted(tmp_path: Path) -> None:
    found, printed = run(build(SOURCES / "benchmark_loop.cu", tmp_path), "50", launches_per_kernel=3)
    (kernel,) = found.kernels
    assert (kernel.launches, kernel.emulated, kernel.skipped) == (50, 3, 47)
    assert "benchmark_loop: right" in printed  # each launch computes the same
    assert any("between events" in note for note in found.notes)
    (_, told, *_) = write_plain(build_program(found, [ExaminedKernel(runs=kernel, prediction=None)])).splitlines()
    assert told == "not run: 47 launches did nothing: what the program computed from their results may be wrong"


def test_a_launch_that_is_cut_short_is_told(tmp_path: Path) -> None:
    """The program's own checks are ignored."""
    found, _ = run(build(SOURCES / "benchmark_loop.cu", tmp_path), "1")
    cut = replace(found, kernels=tuple(replace(one, emulated=0) for one in found.kernels))
    assert write_plain(build_program(cut, [])).splitlines()[1].startswith("not run: 1 launch was cut short: ")
    assert "not run" not in write_plain(build_program(found, []))


def test_kernels_of_one_short_name_are_told_apart() -> None:
    runs = [
        KernelRuns(
            mangled_name=word,
            name=f"void cub::DeviceReduceKernel<cub::Policy1000, cub::Sum, {word}*, {word}*>({word}*)",
            launches=1,
            emulated=1,
            skipped=0,
            warp_instructions=10,
            seconds=0.1,
            shapes=(LaunchShape(grid=(1, 1, 1), block=(256, 1, 1), shared_bytes=0, launches=1),),
            faults=(),
        )
        for word in ("float", "int")
    ]
    found = ProgramRun(end=CommandEnd(ending=Ending.ENDED), machine="A100 PCIe 40GB", kernels=tuple(runs))
    told = write_plain(build_program(found, [ExaminedKernel(runs=one, prediction=None) for one in runs]))
    assert "DeviceReduceKernel<…>#1" in told and "DeviceReduceKernel<…>#2" in told


def test_a_recorded_launch_gives_what_the_program_got(tmp_path: Path) -> None:
    program = build(SOURCES / "symbols.cu", tmp_path)
    found, _ = run(program, records=tmp_path / "records")
    recorded = found.kernels[0].recorded
    assert recorded.description.name == "filter.launch.toml"
    (launch,) = read_launches(recorded.description)
    assert [argument.name for argument in launch.arguments] == ["in", "out", "n"]
    ((_, module),) = read_modules(recorded.module, None, None, [])
    result = emulate(module, launch)
    values = [float(i % 13) for i in range(1024)]
    expected = sum(w * v for w, v in zip((1, 2, 7, 2, 1), values[8:13], strict=True))
    assert result.arrays["out"][10] == expected and not result.faults


def test_arrays_beyond_the_limit_are_not_recorded_and_it_is_said(tmp_path: Path) -> None:
    program = build(SOURCES / "symbols.cu", tmp_path)
    found, _ = run(program, records=tmp_path / "records", record_bytes=1000)
    assert found.kernels[0].recorded is None
    assert found.kernels[0].unrecorded == "its arrays have 8 KiB; up to 1,000 B are kept: run a smaller problem"


def test_what_kernels_print_stands_where_they_printed_it(tmp_path: Path) -> None:
    _, printed = run(build(SOURCES / "printing.cu", tmp_path))
    assert printed.splitlines() == [
        "before",
        "thread 3 of block 0 says odd 1.50",
        "between",
        "thread 4 of block 0 says even 2.00",
        "printing: right (0 wrong)",
    ]


def test_small_launches_cost_little(tmp_path: Path) -> None:
    program = build(SOURCES / "benchmark_loop.cu", tmp_path)
    run(program, "1")  # what is compiled and cached on first use
    with in_bounded_time():  # two seconds on a machine that does nothing else
        found, printed = run(program, "1000")
    assert "benchmark_loop: right" in printed and found.kernels[0].emulated == 1000
