"""The benchmarks are compiled for every architecture, without a GPU, and their loops hold the instructions whose work is counted."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest

from gpa_lsp.code.binary.containers import find_cubins
from gpa_lsp.execution.calibration.benchmark_sources import (
    find_obstacle,
    list_arithmetic_benchmarks,
    list_common_sets,
    list_l1_sets,
    make_common_benchmark,
    make_l1_benchmark,
    make_shared_benchmark,
)
from gpa_lsp.execution.calibration.calibrate import compile_source, find_compiler_version
from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.kernel.join import list_unmeasured_kernels
from gpa_lsp.report.count import measure_loop_depths

CAPABILITIES = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]


def has_compiler() -> bool:
    try:
        find_compiler_version()
    except MissingToolError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="NVRTC is not installed here")


def count_opcodes(source: str, capability: tuple[int, int]) -> tuple[Counter[str], Counter[str]]:
    """Opcodes of the whole kernel, and those in its loops."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compile_source(source, capability))
        file.flush()
        (cubin,) = find_cubins(Path(file.name))
        (kernel,), problems = list_unmeasured_kernels(cubin)
    assert problems == ()
    function = kernel.functions[0]
    opcodes = [name.split(".")[0] for name in function.instructions.mnemonics]
    index = function.instructions.mnemonic_index
    depths = measure_loop_depths(function)
    whole = Counter(opcodes[int(at)] for at in index)
    return whole, Counter(opcodes[int(at)] for at, depth in zip(index, depths, strict=True) if depth > 0)


@needs_compiler
@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: f"sm_{capability[0]}{capability[1]}")
def test_loops_of_arithmetic_hold_what_is_counted(capability: tuple[int, int]) -> None:
    found, skipped = list_arithmetic_benchmarks(capability)
    assert {benchmark.kind for benchmark in found} | {OperationKind(skip.what) for skip in skipped} == set(
        OperationKind
    )
    for benchmark in found:
        _, loops = count_opcodes(benchmark.source, capability)
        count = loops[benchmark.instruction]
        # An mma larger than what the hardware has is done by several instructions of it.
        assert count >= benchmark.instructions_per_turn, benchmark.kind
        assert count % benchmark.instructions_per_turn <= 16, benchmark.kind
        # An mma keeps its unit busy for many cycles; ptxas fills some of them on 9.0.
        fillers = min(loops["UIADD3"], 2 * count) if benchmark.kind.is_tensor else 0
        others = sum(loops.values()) - count - fillers
        assert others <= 0.15 * count, (benchmark.kind, loops)


@needs_compiler
@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: f"sm_{capability[0]}{capability[1]}")
def test_loops_of_memory_hold_what_is_counted(capability: tuple[int, int]) -> None:
    for benchmark in (make_shared_benchmark(), make_l1_benchmark(), make_common_benchmark()):
        whole, loops = count_opcodes(benchmark.source, capability)
        assert loops[benchmark.instruction] == benchmark.reads_per_turn == whole[benchmark.instruction], benchmark.level
        assert not {"STG", "STS", "BAR"} & set(loops)


@needs_compiler
@pytest.mark.parametrize("capability", [(7, 5), (8, 6), (8, 9), (12, 0)])
def test_tensor_loops_accumulate_as_the_peaks_they_stand_for(capability: tuple[int, int]) -> None:
    """FP32 sums are half as fast on GeForce boards: a roof measured with them would lie at half of FP16's own peak."""
    found, _ = list_arithmetic_benchmarks(capability)
    sources = {benchmark.kind: benchmark.source for benchmark in found}
    for kind in {OperationKind.TENSOR_FP16, OperationKind.TENSOR_FP8} & set(sources):
        assert ".f16 {" in sources[kind] and ".f32 {" not in sources[kind], kind
    if OperationKind.TENSOR_BF16 in sources:
        assert ".f32 {" in sources[OperationKind.TENSOR_BF16]  # it has no other form


def test_a_source_that_does_not_compile_says_why() -> None:
    with pytest.raises(ToolError, match=r"benchmark\.cu"):
        compile_source('extern "C" __global__ void benchmark() { int x = ; }', (8, 0))


@needs_compiler
def test_an_unknown_target_says_so() -> None:
    with pytest.raises(ToolError, match="sm_11"):
        compile_source("", (1, 1))


@pytest.mark.parametrize(
    ("kind", "capability", "words"),
    [
        (OperationKind.TENSOR_FP16, (9, 0), "warp groups"),
        (OperationKind.TENSOR_FP8, (8, 6), "8.6 has no mma"),
        (OperationKind.TENSOR_FP4, (12, 0), "compiler target"),
        (OperationKind.TENSOR_FP64, (9, 0), ""),
        (OperationKind.TENSOR_FP16, (7, 0), "7.0 has no mma"),
    ],
)
def test_types_without_a_benchmark_say_why(kind: OperationKind, capability: tuple[int, int], words: str) -> None:
    why = find_obstacle(kind, capability)
    assert words in why
    assert bool(why) is bool(words)


def test_sweeps_cover_the_caches_and_fit_the_memory() -> None:
    assert all(size % (16 * 32) == 0 for size in (*list_l1_sets(256 << 10), *list_common_sets(50 << 20, 80 << 30)))
    assert 8 * (50 << 20) < max(list_common_sets(50 << 20, 80 << 30)) <= 16 * (50 << 20)
    assert max(list_common_sets(50 << 20, 200 << 20)) <= 100 << 20
