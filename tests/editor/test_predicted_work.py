"""Answers of the process that predicts, for real kernels: facts on their lines, blocks worth a try, pages, templates, and what cannot be done."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.editor.predicted.results import (
    PageJob,
    PageResult,
    PredictedJob,
    PredictedResult,
    TemplateJob,
    TemplateResult,
    TrialsJob,
    TrialsResult,
)
from gpa_lsp.editor.predicted.trials import find_block_edit
from gpa_lsp.editor.predicted.worker import do_job
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.traces.words import summarise_reuse
from gpa_lsp.foundation.processes.python_children import Step
from tests.patience import LIMIT_S

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SOURCE = """\
__global__ void transpose(const float* in, float* out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * n + x] = in[x * n + y];
}
__global__ void part(float* out)
{
    __shared__ float tile[1024];
    tile[threadIdx.x * 32 % 1024] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x % 2) out[threadIdx.x] = tile[threadIdx.x];
}
__global__ void lone(float* out) { out[threadIdx.x] = 1; }
"""
DESCRIPTION = """\
[constants]
n = 256

[[launch]]
kernel = "transpose"
block = [32, 8]  # x, y
threads = ["n", "n"]
arguments = [
  { name = "in", type = "float", count = "n * n", fill = "uniform" },
  { name = "out", type = "float", count = "n * n" },
  { name = "n", type = "int", value = "n" },
]

[[launch]]
kernel = "part"
block = 64
grid = 1
arguments = [{ name = "out", type = "float", count = 63 }]
"""


def make_job(folder: Path, text: str = SOURCE, described: str = DESCRIPTION, **changes: object) -> PredictedJob:
    job = PredictedJob(
        path=folder / "k.cu",
        text=text,
        launches_path=folder / "k.launch.toml",
        launches_text=described,
        roots=(folder,),
        architecture=(8, 0),
        machine=None,
        limit_s=LIMIT_S,
        seconds=LIMIT_S,
        memory_bytes=256 << 20,
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def ignore(step: Step) -> None:
    del step


def predict(job: PredictedJob) -> PredictedResult:
    result = do_job(job, ignore)
    assert isinstance(result, PredictedResult)
    return result


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> PredictedJob:
    return make_job(tmp_path_factory.mktemp("project"))


def test_lines_launches_and_faults_of_a_source_that_only_the_editor_holds(job: PredictedJob) -> None:
    steps: list[Step] = []
    result = do_job(job, steps.append)
    assert isinstance(result, PredictedResult) and not result.failure
    assert [(step.done, step.total) for step in steps] == [(0, 2), (1, 2)]
    first, second = result.launches
    assert (first.line, first.described_line, second.described_line) == (1, 4, 14)
    assert first.words.startswith("predicted: ") and "emulated" not in first.words, "all of it was"
    assert "limited by L1 · at least " in first.words and first.words.endswith(" on A100")
    loads, stores = (one.fact for one in result.accesses if one.launch == 0)
    assert (loads.line, loads.arrays, loads.sectors_per_request, loads.ideal_sectors_per_request) == (
        5,
        ("in",),
        32.0,
        4.0,
    )
    assert (stores.line, stores.kind, stores.sectors_per_request) == (5, "stores", 4.0)
    assert loads.remedy and loads.reuse is not None
    assert abs(sum(ratio for _, ratio in summarise_reuse(loads.reuse)) - 1) < 1e-9
    shared = next(one.fact for one in result.accesses if one.fact.is_shared and one.fact.line == 10)
    assert (shared.wavefronts_per_request, shared.ideal_wavefronts_per_request) == (32.0, 1.0)
    (branch,) = (one.fact for one in result.branches if one.fact.line == 12)
    assert branch.divergent_ratio == 1.0
    outside = next(one for one in result.faults if one.kind == "out-of-bounds access")
    assert (outside.line, outside.launch, outside.is_ending) == (12, 1, False)
    assert "63" in outside.message and "thread (63, 0, 0)" in outside.message
    assert result.undescribed == ("_Z4lonePf",)
    assert "emulated and predicted, not measured" in result.page and "transpose" in result.page


def test_a_block_worth_a_try_and_its_edit(job: PredictedJob) -> None:
    result = do_job(TrialsJob(base=job, seconds=LIMIT_S), ignore)
    assert isinstance(result, TrialsResult)
    (trial,) = result.trials  # the other launch gives its grid, and has a fault
    assert trial.launch == 0 and trial.words.startswith("try block ") and trial.words.endswith("× as fast")
    assert (trial.line, trial.old, trial.old[trial.start : trial.end]) == (6, "block = [32, 8]  # x, y", "[32, 8]")
    edited = DESCRIPTION.replace("[32, 8]", trial.new)
    block = read_launches(job.launches_path, text=edited)[0].block
    assert block != (32, 8, 1) and "×".join(str(size) for size in block[:2]) in trial.words


@pytest.mark.parametrize(
    ("line", "edited"),
    [
        ("block = 64", "block = [128, 2]"),
        ('block = "n // 4" # why', "block = [128, 2] # why"),
        ("block=[ 64 ,1]", "block=[128, 2]"),
        ('"block" = 64', '"block" = [128, 2]'),
    ],
)
def test_edits_of_blocks_keep_what_stands_around_them(tmp_path: Path, line: str, edited: str) -> None:
    text = f'constants.n = 256\n[[launch]]\nkernel = "k"\n{line}\nthreads = 256\n'
    (launch,) = read_launches(tmp_path / "k.launch.toml", text=text)
    edit = find_block_edit(text, launch, (128, 2, 1))
    assert edit is not None
    assert edit.old == line and f"{line[: edit.start]}{edit.new}{line[edit.end :]}" == edited


def test_blocks_that_no_edit_of_a_line_changes_are_not_offered(tmp_path: Path) -> None:
    text = '[[launch]]\nkernel = "k"\nblock = [\n  64,\n]\nthreads = 256\n'
    (launch,) = read_launches(tmp_path / "k.launch.toml", text=text)
    assert find_block_edit(text, launch, (128, 1, 1)) is None


def test_pages_and_templates(job: PredictedJob, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    page = do_job(PageJob(base=job, target=target), ignore)
    assert page == PageResult() and "transpose" in target.read_text()
    nowhere = do_job(PageJob(base=job, target=tmp_path / "gone" / "page.html"), ignore)
    assert isinstance(nowhere, PageResult) and nowhere.failure
    template = do_job(TemplateJob(base=job, kernel="_Z4lonePf"), ignore)
    assert isinstance(template, TemplateResult)
    launches = read_launches(job.launches_path, text=f"{job.launches_text}\n{template.text}")
    assert [launch.kernel for launch in launches] == ["transpose", "part", "lone"]
    again = do_job(TemplateJob(base=job, kernel="_Z4partPf"), ignore)
    assert isinstance(again, TemplateResult) and "has a launch already" in again.failure


@pytest.mark.parametrize(
    ("described", "line", "said"),
    [
        (DESCRIPTION.replace("n = 256", "n = ="), 2, "is not TOML"),
        (DESCRIPTION.replace('"part"', '"party"'), 14, "party"),
        (DESCRIPTION.replace("  { name = \"out\", type = \"float\", count = \"n * n\" },\n", ""), 4, "argument"),
        ("# nothing yet\n", 1, "no launch"),
        ("\udcff", 1, "is not TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_description_is_said_at_its_line(
    tmp_path: Path, described: str, line: int, said: str
) -> None:
    result = predict(make_job(tmp_path, described=described))
    assert not result.failure
    problem = result.problems[0]
    assert problem.described_line == line and said in problem.message


def test_what_cannot_be_compiled_or_predicted_leaves_a_reason(tmp_path: Path) -> None:
    broken = SOURCE.replace("int x", "int y")
    assert predict(make_job(tmp_path, broken)).has_failed
    wrong = predict(make_job(tmp_path, broken, "[[launch]]\nkernle = 1\n"))
    assert wrong.has_failed and wrong.problems[0].described_line == 2, "a description is wrong without its source too"
    (unknown,) = predict(make_job(tmp_path, machine="no such GPU")).problems[:1]
    assert "no such GPU" in unknown.message


def test_an_endless_kernel_ends_in_its_time_with_a_finding(tmp_path: Path) -> None:
    text = "__global__ void spin(volatile int* x)\n{\n    while (*x == 0)\n        ;\n}\n"
    described = (
        '[[launch]]\nkernel = "spin"\nblock = 32\ngrid = 1\narguments = [{ name = "x", type = "int", count = 1 }]\n'
    )
    result = predict(make_job(tmp_path, text, described, seconds=0.3))
    fault = result.faults[0]
    assert fault.is_ending and "time budget" in fault.kind and fault.line in (3, 4)
