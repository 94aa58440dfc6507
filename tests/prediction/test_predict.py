"""Predictions of a source and a description: real kernels, compiled by NVRTC and emulated."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.emulator.model import Budget, FaultKind
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.static_source import find_known_blocks
from gpa_lsp.execution.prediction.templates import write_templates
from gpa_lsp.foundation.errors import InputError, ProblemSeverity
from tests.prediction.kernels import LAUNCHES, NVRTC, SOURCE, find_project, predict, predict_one

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")


def find(kernel_name: str, analysis: str) -> Answer:
    answer = predict_one(kernel_name).find(analysis)
    assert answer is not None
    return answer


def test_a_streaming_kernel_moves_what_its_arrays_hold():
    kernel = predict_one("saxpy")
    assert (kernel.execution.executed_blocks, kernel.execution.grid_blocks) == (16, 16)
    assert (kernel.execution.is_complete, kernel.execution.why, kernel.faults) == (True, "all blocks", ())
    volumes = kernel.volumes
    assert volumes is not None and volumes.limiter is not None
    assert (volumes.limiter.value, volumes.update_count) == ("DRAM", 4096)
    assert volumes.volumes.dram_load == pytest.approx(8.0)
    assert volumes.volumes.dram_store == pytest.approx(4.0)
    loads = [one for one in kernel.accesses if one.kind.value == "loads"]
    assert {(one.arrays, one.sectors_per_request, one.line) for one in loads} == {(("x",), 4.0, 5), (("y",), 4.0, 5)}
    assert kernel.warps_per_sm == 64


def test_answers_speak_as_people_do():
    summary = find("saxpy", "volumes").summary
    assert "e-0" not in summary and "e+0" not in summary
    assert " ns for the launch." in summary
    cells = [str(cell) for table in find("saxpy", "volumes").tables for row in table.rows for cell in row]
    assert "-0.0" not in cells


def test_places_in_answers_are_short_and_whole_in_facts():
    banks = find("transpose", "traced_banks")
    assert banks.findings[0].text.startswith("Shared loads at line 12 of kernels.cu take 32 wavefronts per request")
    assert {fact.file for fact in predict_one("transpose").accesses} == {str(find_project())}


def test_names_are_short_for_headings():
    kernel = predict_one("transpose")
    assert kernel.name == "void transpose<float, 32>(float*, float const*, int)"
    assert kernel.short_name == "transpose<float, 32>"


def test_launches_of_one_kernel_are_compared():
    (one,) = predict("saxpy").comparisons
    assert (one.name.partition("(")[0], one.launches) == ("saxpy", 2)
    rows = {row[0]: row[1:] for row in one.answer.tables[0].rows}
    assert rows["global loads: requests"] == (160.0, 64.0, 256.0, 96.0)
    assert rows["global stores: sectors per request"][1:3] == (pytest.approx(125 / 32), 4.0)
    assert predict("transpose").comparisons == ()


def test_an_endless_kernel_ends_with_its_budget_and_says_where():
    settings = replace(DEFAULT_PREDICTION, budget=Budget(seconds=1.0))
    (kernel,) = predict_code(find_project(), kernel="endless", settings=settings, compile_settings=NVRTC).kernels
    # So little time may cut the trace as well.
    (fault,) = (one for one in kernel.faults if one.kind is not FaultKind.TRACE_BUDGET)
    assert (fault.kind, fault.is_fatal) == (FaultKind.TIME_BUDGET, True)
    assert fault.chain is not None and fault.chain[0].line == 17
    assert re.match(r"not done after 0\.[567]\d* s ", fault.message), (
        "the others went to blocks that were to tell the addresses"
    )
    assert not kernel.execution.is_complete
    assert kernel.warps_per_sm == 32
    assert kernel.volumes is None
    assert "data volumes are not predicted" in str(kernel.problems[0])


def test_an_access_out_of_bounds_is_found_at_its_line():
    (fault,) = predict_one("beyond").faults
    assert (fault.kind, fault.block, fault.thread) == (FaultKind.OUT_OF_BOUNDS, 3, (31, 0, 0))
    faults = find("beyond", "faults")
    assert faults.findings[0].text.startswith("Out-of-bounds access at line 22 of kernels.cu: store of 4 bytes")
    assert "element 128 of a, which has 128" in faults.findings[0].text


def test_arrays_that_do_not_fit_are_a_problem_and_others_go_on():
    settings = replace(DEFAULT_PREDICTION, budget=Budget(memory_bytes=31 << 10))
    found = predict_code(find_project(), kernel="saxpy", settings=settings, compile_settings=NVRTC)
    assert [kernel.launch.title for kernel in found.kernels] == ["ragged"]
    (problem,) = found.problems
    assert problem.severity is ProblemSeverity.ERROR and problem.place == "line 1"
    assert "raise the memory limit" in str(problem)


def test_blocks_that_are_asked_for_are_the_ones():
    settings = replace(DEFAULT_PREDICTION, blocks=(1, 3, 99))
    (kernel, _) = predict_code(find_project(), kernel="saxpy", settings=settings, compile_settings=NVRTC).kernels
    assert (kernel.execution.executed_blocks, kernel.execution.why) == (2, "the requested blocks")
    outside = replace(DEFAULT_PREDICTION, blocks=(99,))
    found = predict_code(find_project(), kernel="transpose", settings=outside, compile_settings=NVRTC)
    assert (found.kernels, found.problems[0].message) == ((), "there is no block 99 in a grid of 16")


def test_a_gpu_the_compiler_no_longer_knows_gets_code_of_the_nearest():
    settings = replace(DEFAULT_PREDICTION, machine="V100 PCIe")
    found = predict_code(find_project(), kernel="transpose", settings=settings, compile_settings=NVRTC)
    (kernel,) = found.kernels
    assert kernel.machine == "V100 PCIe"
    if found.statics.unit.compute_capability != (7, 0):
        # Not 7.5, whose SMs hold half the threads, so that they get twice the registers.
        assert found.statics.unit.compute_capability == (8, 0)
        assert [(one.severity, one.message.split(";")[0]) for one in found.problems] == [
            (ProblemSeverity.NOTE, "This is code for sm_80, but the V100 PCIe is sm_70")
        ]


def test_code_of_another_architecture_is_allowed_and_said():
    settings = replace(DEFAULT_PREDICTION, machine="A100 PCIe 40GB")
    found = predict_code(
        find_project(), kernel="transpose", compute_capability=(8, 6), settings=settings, compile_settings=NVRTC
    )
    assert found.statics.unit.compute_capability == (8, 6)
    assert found.kernels[0].machine == "A100 PCIe 40GB"
    assert "code for sm_86, but the A100 PCIe 40GB is sm_80" in found.problems[0].message


def test_the_papers_own_counts_come_when_asked_for():
    settings = replace(DEFAULT_PREDICTION, is_paper=True)
    (kernel,) = predict_code(find_project(), kernel="transpose", settings=settings, compile_settings=NVRTC).kernels
    answer = kernel.find("traced_paper")
    assert answer is not None
    divergence, reuse, branches, *_ = answer.tables
    assert divergence.rows == ((1, 1.0, 0.0), (4, 0.0, 1.0))
    assert reuse.rows[-1] == ("∞", *[2 * 16384] * 4)  # each element is loaded once from either memory
    assert branches.rows[0][0] == 0
    assert predict_one("transpose").find("traced_paper") is None
    blocks = kernel.find("traced_branches")
    assert blocks is None or all(one.what != "entries into basic blocks" for one in blocks.missing)


def test_what_an_editor_holds_of_the_description_counts():
    found = predict_code(
        find_project(),
        kernel="saxpy",
        launches=LaunchChoice(text=LAUNCHES.replace("threads = 4096", "threads = 8192")),
        compile_settings=NVRTC,
    )
    assert found.kernels[0].launch.grid == (32, 1, 1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('kernel = "transpose"', 'kernel = "transposed"', "there is no kernel transposed; name one of"),
        ('{ name = "width", type = "int", value = 128 },', "", "takes 3 arguments, and 2 are given"),
        ('name = "in", type = "float"', 'name = "in", type = "floot"', "floot"),
    ],
)
def test_a_wrong_description_names_its_line(tmp_path: Path, old: str, new: str, words: str):
    assert old in LAUNCHES
    (tmp_path / "wrong.launch.toml").write_text(LAUNCHES.replace(old, new))
    try:
        found = predict_code(
            find_project(), kernel=None if "kernel" in old else "transpose",
            launches=LaunchChoice(path=tmp_path / "wrong.launch.toml"),
            settings=replace(DEFAULT_PREDICTION, budget=Budget(seconds=0.1)), compile_settings=NVRTC,
        )  # fmt: skip
        text = " ".join(str(problem) for problem in found.problems)
    except InputError as error:
        text = str(error)
    assert words in text
    assert "wrong.launch.toml: line " in text


def test_launches_are_chosen_by_number_and_too_many_are_refused():
    found = predict_code(find_project(), kernel="saxpy", launches=LaunchChoice(number=2), compile_settings=NVRTC)
    assert [kernel.launch.title for kernel in found.kernels] == ["ragged"]
    with pytest.raises(InputError, match=r"there is no launch 3.*from 1 to 2"):
        predict_code(find_project(), kernel="saxpy", launches=LaunchChoice(number=3), compile_settings=NVRTC)
    with pytest.raises(InputError, match=r"2 launches match \(saxpy\)"):
        predict_code(find_project(), kernel="saxpy", launches=LaunchChoice(is_single=True), compile_settings=NVRTC)


NAMES = ("_Z10no_read_itPf", "_Z7read_itPf", "_Z6readerIfEvPT_")
LIKE_NAMES = """
__global__ void no_read_it(float* a) { a[threadIdx.x] = 1; }
__global__ void read_it(float* a) { a[threadIdx.x] += 1; }
template <typename T> __global__ void reader(T* a) { a[threadIdx.x] += 1; }
template __global__ void reader<float>(float*);
"""


def test_a_whole_name_wins_over_a_part_of_one(tmp_path: Path):
    source = tmp_path / "like.cu"
    source.write_text(LIKE_NAMES)
    described = write_templates(source, settings=NVRTC)
    assert 'kernel = "read_it"' in described
    source.with_name("like.launch.toml").write_text(described)
    found = predict_code(source, compile_settings=NVRTC)
    assert (len(found.kernels), found.problems, found.undescribed) == (3, (), ())
    chosen = predict_code(source, kernel="read_it", compile_settings=NVRTC)
    assert [one.short_name for one in chosen.kernels] == ["read_it"]
    assert [one.statics.mangled_name for one in chosen.statics.kernels] == ["_Z7read_itPf"]
    parts = predict_code(source, kernel="read", compile_settings=NVRTC)
    assert {one.short_name for one in parts.kernels} == {"no_read_it", "read_it", "reader<float>"}
    assert [one.threads for one in find_known_blocks(source, LIKE_NAMES, "_Z10no_read_itPf", NAMES)] == [256]
    source.with_name("like.launch.toml").write_text(
        '[[launch]]\nkernel = "read_it"\ngrid = 1\nblock = 64\narguments = []\n'
    )
    assert find_known_blocks(source, "", "_Z10no_read_itPf", NAMES) == ()
    assert [one.threads for one in find_known_blocks(source, "", "_Z7read_itPf", NAMES)] == [64]


def test_a_source_that_does_not_compile_gives_messages_alone():
    found = predict_code(find_project(), text=SOURCE.replace("y[i] =", "z[i] ="), compile_settings=NVRTC)
    assert (found.kernels, found.statics.unit.has_failed) == ((), True)
    assert "z" in found.statics.unit.messages[0].text
