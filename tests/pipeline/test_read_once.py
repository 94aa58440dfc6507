"""Images, their lines and syntax trees of sources are read once per report, however many kernels share them.

What one kernel needs alone goes with it.
"""

import gc
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.code.binary import elf, sass
from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.code.sources import cuda_functions, line_parts, trees
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.report.measured_files import ProfiledSources
from gpa_lsp.report.model import Report
from gpa_lsp.report.pipeline import judge
from gpa_lsp.report.pipeline.judge import judge_file
from gpa_lsp.report.pipeline.options import AnalysisOptions
from tests.conftest import ROOT
from tests.patience import LIMIT_S
from tests.profile.report_builder import ReportBuilder

BASE = 0x7F0000000000
APART = 1 << 20
FEW, MANY = 3, 48
SOURCE = "/src/many.cu"

HEAD = f"""\
.version 8.0
.target sm_80
.address_size 64
.file 1 "{SOURCE}"
"""

KERNEL = """
.visible .entry kernel{number}(.param .u64 a, .param .u64 b)
{{
    .reg .b64 %rd<4>;
    .reg .f32 %f<4>;
    .loc 1 {line} 0
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    .loc 1 {next_line} 0
    ld.global.f32 %f1, [%rd1];
    mul.f32 %f2, %f1, 0f{factor};
    st.global.f32 [%rd2], %f2;
    ret;
}}
"""


@pytest.fixture(autouse=True)
def judged_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "count_cores", lambda: 1)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is read while a test runs."""
    found: Counter[str] = Counter()

    def watch(place: Any, name: str) -> None:
        original = getattr(place, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            found[name] += 1
            return original(*arguments, **named)

        monkeypatch.setattr(place, name, counted)

    watch(elf, "_read_section_table")
    watch(trees, "SourceTree")
    watch(line_parts, "walk_lines")
    watch(cuda_functions, "read_function")
    return found


def judge_many(folder: Path, count: int) -> Report:
    """The report of so many kernels of one image, whose source is embedded, each with stalls on every instruction."""
    ptxas = find_tool("ptxas")
    if ptxas is None:
        pytest.skip("ptxas is not installed")
    assembly, cubin = folder / "many.ptx", folder / "many.cubin"
    kernels = (
        KERNEL.format(number=number, line=2 * number + 1, next_line=2 * number + 2, factor=f"{0x40000000 + number:08x}")
        for number in range(count)
    )
    assembly.write_text(HEAD + "".join(kernels))
    subprocess.run([ptxas, "-arch=sm_80", "-lineinfo", assembly, "-o", cubin], check=True, timeout=LIMIT_S)
    functions = sorted(read_cubin(cubin.read_bytes()).functions.values(), key=lambda one: one.name)
    starts = {function.name: BASE + APART * number for number, function in enumerate(functions)}
    text = "".join(
        f"__global__ void kernel{number}(float* a, float* b) {{\n b[{number}] = a[0] * 2; }}\n"
        for number in range(count)
    )
    builder = ReportBuilder()
    builder.add_source(image=cubin.read_bytes(), functions=starts, files={SOURCE: text})
    for number, function in enumerate(functions):
        start = starts[function.name]
        offsets = range(0, function.size_bytes, INSTRUCTION_BYTES)
        metrics = [
            builder.encode_metric("gpu__time_duration.sum", 1000.0 + number),
            builder.encode_metric("launch__function_pcs", 1, [(0, start)]),
            builder.encode_metric("launch__registers_per_thread", function.registers),
            builder.encode_metric("inst_executed", 64 * len(offsets), [(start + offset, 64) for offset in offsets]),
            *builder.encode_samples({"long_scoreboard": dict.fromkeys(offsets, (50, 40))}, base=start),
        ]
        builder.add_result(builder.make_result(function.name, metrics=metrics))
    builder.add_session()
    report = folder / "many.ncu-rep"
    report.write_bytes(builder.build())
    return judge_file(report, AnalysisOptions(), ProfiledSources(), None).report


def test_an_image_is_read_as_often_for_many_kernels_as_for_few(tmp_path: Path, reads: Counter[str]) -> None:
    assert len(judge_many(tmp_path, FEW).kernels) == FEW
    few = reads.pop("_read_section_table")
    assert len(judge_many(tmp_path, MANY).kernels) == MANY
    assert reads["_read_section_table"] == few


def test_a_source_is_parsed_once_and_each_of_its_lines_looked_at_once(reads: Counter[str]) -> None:
    text = "".join(f"void f{number}(float* a) {{ a[{number}] = a[0]; }}\n" for number in range(MANY))
    for _ in range(3):
        for line in range(1, MANY + 1):
            parts = line_parts.read_line_parts("many.cu", text, line)
            assert parts is not None and parts.stores == (f"a[{line - 1}]",)
    assert (reads["SourceTree"], reads["walk_lines"]) == (1, MANY)


def test_each_function_of_a_source_is_read_once(reads: Counter[str]) -> None:
    text = "".join(f"__global__ void f{number}(float* a) {{ a[{number}] = 1; }}\n" for number in range(MANY))
    tree = trees.read_tree("kernels.cu", text)
    assert tree is not None
    assert all(len(cuda_functions.find_kernels(tree, f"f{number}")) == 1 for number in range(MANY))
    assert reads["read_function"] == MANY


def test_equal_instructions_mean_something_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sass._open_known.cache_clear()
    decoded: list[str] = []
    original = sass._decode_row

    def decode(text: str, finder: sass.UseFinder) -> sass._Row:
        decoded.append(text)
        return original(text, finder)

    monkeypatch.setattr(sass, "_decode_row", decode)
    report = judge_many(tmp_path, MANY)
    texts = [text for kernel in report.kernels for text in kernel.instructions.texts]
    assert sorted(decoded) == sorted(set(texts))
    assert len(texts) > 5 * len(decoded)


def test_a_kernel_goes_when_it_was_judged_without_a_search_for_garbage() -> None:
    gc.collect()
    before = {id(rows) for rows in _list_rows()}
    gc.disable()
    try:
        judged = judge_file(ROOT / "fixtures" / "example.gpa-profile.json", AnalysisOptions(), ProfiledSources(), None)
        assert judged.report.kernels
        assert not {id(rows) for rows in _list_rows()} - before
    finally:
        gc.enable()


def _list_rows() -> list[KernelRows]:
    return [
        one for one in gc.get_objects() if issubclass(type(one), KernelRows)
    ]  # a weak proxy has no class to ask for
