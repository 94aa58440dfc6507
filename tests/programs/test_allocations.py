"""Allocations of a program: their places, accesses and findings."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.document.program_view import build_memory, describe_finding, list_origins
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.execution.emulator import emulate
from gpa_lsp.execution.emulator.compiled import translated
from gpa_lsp.execution.emulator.compiled.translated import Translations
from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE, Mark, Marks
from gpa_lsp.execution.programs.allocations import AllocationLedger
from gpa_lsp.execution.programs.call_paths import list_own_frames
from gpa_lsp.execution.programs.messages import EVENTS_BYTES, EventKind, MalformedMessage, MemoryEvent, take_events
from gpa_lsp.execution.programs.model import FindingKind, HostPath, MemoryUse, ProgramRun
from tests.programs.built import SHARED_RUNTIME, SOURCES, build, run, write

FIXTURE = SOURCES / "allocations.cu"
DEBUGGED = ("-g", *SHARED_RUNTIME)
HEAD = '#include "checking.h"\n#include <vector>\n'


def find_line(text: str) -> int:
    """The line of the fixture that a piece of text stands in."""
    (line,) = (number for number, one in enumerate(FIXTURE.read_text().splitlines(), 1) if text in one)
    return line


def name_lines(path: HostPath) -> list[int | None]:
    """Lines of the user's own frames, innermost first."""
    return [frame.line for frame in list_own_frames(path)]


def list_findings(memory: MemoryUse) -> dict[tuple[int | None, FindingKind], str]:
    """Clauses by the line of the allocation and what is found."""
    return {
        (name_lines(site.path)[0], finding.kind): describe_finding(finding, SOURCES)
        for site in memory.sites
        for finding in site.findings
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ProgramRun:
    """The fixture, that was run once."""
    return run(build(FIXTURE, tmp_path_factory.mktemp("allocations"), *DEBUGGED))[0]


def test_each_finding_stands_on_the_line_of_its_allocation(found: ProgramRun) -> None:
    used, unused, wide = (find_line(f"cudaMalloc(&{name}") for name in ("used", "unused", "wide"))
    constant, last, filled, sent, taken = map(
        find_line, ("cudaMalloc(&found", "// last use of", "// never read", "constant, factors.data()", "// unchanged")
    )
    assert list_findings(found.memory) == {
        (unused, FindingKind.UNUSED): "unused: no kernel accesses the 512 KiB",
        (wide, FindingKind.PARTLY_USED): "partly used: kernels access 1 MiB (25 %) of 4 MiB",
        (
            wide,
            FindingKind.EARLY,
        ): f"allocated early: 4 MiB is unused for 2 launches, until the first use by a copy at allocations.cu:{filled}",
        (
            wide,
            FindingKind.NEVER_READ,
        ): f"copied and never read: nothing reads what the copy at allocations.cu:{filled} brings (1 MiB)",
        (
            used,
            FindingKind.LATE,
        ): f"freed late: 1 MiB is unused for 1 launch after the last use by a copy at allocations.cu:{last}, until it is freed",
        (
            constant,
            FindingKind.EARLY,
        ): f"allocated early: 1 MiB is unused for 2 launches, until the first use by a copy at allocations.cu:{sent}",
        (
            constant,
            FindingKind.UNCHANGED,
        ): f"copied both ways unchanged: the copy at allocations.cu:{taken} takes back what the host had sent (1 MiB)",
    }
    mib = 1 << 20
    assert (found.memory.peak_bytes, found.memory.lean_peak_bytes) == (6 * mib + mib // 2, 5 * mib)


def test_an_array_is_followed_from_its_allocation_over_copies_and_kernels(found: ProgramRun) -> None:
    """CUDAAdvisor, Figures 8 and 9."""
    scale, overwrite = found.kernels
    launches = [number for number, one in enumerate(FIXTURE.read_text().splitlines(), 1) if "scale<<<" in one]
    paths = [list_own_frames(one.path, scale.mangled_name) for one in scale.paths]
    assert sorted((path[0].function, path[0].line) for path in paths) == [("main", line) for line in launches]
    caller = find_line("allocate<float>(N)")
    (factors,) = (site for site in found.memory.sites if [use.name for use in site.uses] == ["factors"])
    assert name_lines(factors.path) == [find_line("cudaMalloc(&found"), caller]
    assert (factors.read_bytes, factors.written_bytes) == (1 << 20, 0)
    assert [(one.is_to_device, one.size_bytes) for one in factors.copies] == [(True, 1 << 20), (False, 1 << 20)]
    told = dict(
        list_origins(overwrite, found.memory.sites, SOURCES, {one.mangled_name: one.name for one in found.kernels})
    )
    assert told["host"].startswith(f"main allocations.cu:{find_line('overwrite<<<')}")
    assert told["array"].startswith("`factors` read, allocated at ")


def test_what_is_told_fits_a_terminal(found: ProgramRun) -> None:
    lines = write_plain(build_memory(found, SOURCES), 80).splitlines()
    assert lines[1] == "  4 allocations, at most 6.50 MiB at once where 5 MiB would do"
    assert max(map(len, lines)) <= 80
    unused = find_line("cudaMalloc(&unused")
    assert any(line.startswith(f"  allocations.cu:{unused} `unused`  unused: ") for line in lines)


def test_nothing_is_said_where_launches_did_nothing(tmp_path: Path) -> None:
    cut, _ = run(build(FIXTURE, tmp_path, *DEBUGGED), launches_per_kernel=1)
    assert cut.memory.unjudged and cut.memory.sites
    assert not list_findings(cut.memory)
    text = write_plain(build_memory(cut, SOURCES), 80)
    assert text == "Memory\n  not judged: not all launches ran to their end.\n"


def test_programs_without_debugging_information_name_the_function(tmp_path: Path) -> None:
    plain, _ = run(build(FIXTURE, tmp_path))
    lines = write_plain(build_memory(plain, SOURCES), 80).splitlines()
    assert any(line.startswith("  main  unused: no kernel accesses the 512 KiB") for line in lines)
    assert lines[-1].startswith("  build with -g")


def test_nothing_is_said_where_something_may_be_of_use(tmp_path: Path) -> None:
    """Data that are read in part, passed on, overwritten behind a read, and memory that textures or the host read."""
    source = write(
        tmp_path,
        HEAD
        + """
__global__ void sum_even(const float *from, float *to) { to[threadIdx.x] = from[2 * threadIdx.x]; }
__global__ void add(float *values) { values[threadIdx.x] += 1; }
int main() {
    float *even, *result, *staged, *again, *shared, host[64] = {};
    CHECK(cudaMalloc(&even, sizeof host));
    CHECK(cudaMalloc(&result, sizeof host));
    CHECK(cudaMalloc(&staged, sizeof host));
    CHECK(cudaMalloc(&again, sizeof host));
    CHECK(cudaMallocManaged(&shared, sizeof host));
    CHECK(cudaMemcpy(even, host, sizeof host, cudaMemcpyHostToDevice));
    sum_even<<<1, 32>>>(even, result);
    CHECK(cudaMemcpy(staged, result, sizeof host, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy(host, staged, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 3; i++) {
        CHECK(cudaMemcpy(again, host, sizeof host, cudaMemcpyHostToDevice));
        add<<<1, 64>>>(again);
        CHECK(cudaMemcpy(host, again, sizeof host, cudaMemcpyDeviceToHost));
    }
    shared[0] = 1;
    return 0;
}
""",
    )
    told, _ = run(build(source, tmp_path, *DEBUGGED))
    assert not told.memory.unjudged and not list_findings(told.memory)


_TOUCHES = """
__global__ void touch(char *bytes, short *apart, double *wide, float4 *vectors, int *counts, const int *index, float *some) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < ROUNDS; round++) {
        bytes[i] = (char)(i + round);
        apart[4 * i] += 1;
        wide[i] = vectors[i].x + vectors[i].w;
        vectors[256 + i] = make_float4(i, i, i, i);
        atomicAdd(&counts[index[i]], 1);
        if (i % 3 == 0)
            some[i] = 1.0f;
        some[1000] = some[1001];
    }
}
int main() {
    void *made[7];
    for (int i = 0; i < 7; i++) {
        CHECK(cudaMalloc(&made[i], 16384));
        CHECK(cudaMemset(made[i], 0, 16384));
    }
    std::vector<int> index(256);
    for (int i = 0; i < 256; i++)
        index[i] = i % 10 * 5;
    CHECK(cudaMemcpy(made[5], index.data(), 1024, cudaMemcpyHostToDevice));
    for (int i = 0; i < 2; i++)
        touch<<<4, 64>>>((char *)made[0], (short *)made[1], (double *)made[2], (float4 *)made[3], (int *)made[4], (int *)made[5], (float *)made[6]);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
"""


@pytest.mark.parametrize("engine", ["core", "translated"])
def test_every_engine_notes_the_same_words(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = build(write(tmp_path, HEAD + _TOUCHES.replace("ROUNDS", "3")), tmp_path, *DEBUGGED)
    translations = Translations()
    monkeypatch.setattr(emulate, "TRANSLATIONS", translations)
    monkeypatch.setattr(emulate, "_BEST_CORE_LANES", 64)
    if engine == "translated":
        monkeypatch.setattr(translated, "HOT_WARP_INSTRUCTIONS", 1)
        run(program)
        assert translations.wait() == 1
    told, _ = run(program)
    (site,) = told.memory.sites
    # bytes, apart, wide, vectors, counts, index, some: those that are written in part count as read, too
    assert site.read_bytes == 256 + 4 * 256 + 0 + 4096 + 4 * 10 + 1024 + 4
    assert site.written_bytes == 256 + 4 * 256 + 2048 + 4096 + 4 * 10 + 0 + 4 * (86 + 1)
    assert [(use.name, use.launches, use.reads, use.writes) for use in site.uses] == [("bytes", 14, True, True)]


def test_findings_are_in_the_json_and_not_looked_for_where_only_the_run_is_wanted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program, into = build(FIXTURE, tmp_path, *DEBUGGED), tmp_path / "found.json"
    assert main(["emulate", "--format", "json", "-o", str(into), "--", str(program)]) == 0
    memory = json.loads(into.read_text())["memory"]
    found = {finding["kind"] for site in memory["sites"] for finding in site["findings"]}
    assert found == set(FindingKind) - {FindingKind.NEVER_FREED}  # the fixture frees all
    assert main(["emulate", "--no-lines", "--", str(program)]) == 0
    assert "memory   " not in capfd.readouterr().out


def test_a_process_may_say_what_it_likes() -> None:
    """Events are written by the program: what cannot be costs it the answer, and nobody anything else."""
    chance = random.Random(7)
    numbers = [0, 1, 511, 4096, ARENA_BASE - 1, ARENA_BASE, ARENA_BASE + 512, ARENA_BASE + 4096, 1 << 63, (1 << 64) - 1]
    for _ in range(200):
        marks = Marks(np.zeros(4096, np.uint8), np.zeros(32, np.uint8))
        ledger = AllocationLedger(marks, ARENA_BASE + 8192)
        for _ in range(30):
            kind, path = chance.choice(list(EventKind)), chance.randrange(3)
            target, source, size = (chance.choice(numbers) for _ in range(3))
            ledger.take(
                [
                    MemoryEvent(
                        kind=kind, path=path, target=target, source=source, size_bytes=size, is_gapped=size == 511
                    )
                ]
            )
            ledger.hide(target)
            marks.mark(chance.randrange(16384), 1, Mark.READ)
            ledger.end_launch("k", lambda: {ARENA_BASE: ("x", 4)})
        ledger.finish()
        ledger.tell({}, is_judged=True)
    place = np.zeros(EVENTS_BYTES, np.uint8)
    place[:4] = 255
    with pytest.raises(MalformedMessage):
        take_events(place)
    assert take_events(place) == []


LEFT = """
template <int N> __global__ void add(int* into, const int* from) { into[threadIdx.x] += from[threadIdx.x] * N; }
int main(int argc, char** argv) {
  int *kept, *freed;
  cudaMalloc(&kept, 256);
  cudaMalloc(&freed, 256);
  add<2><<<1, 64>>>(kept, freed);
  cudaDeviceSynchronize();
  if (argc < 2)
    cudaFree(freed);
  for (int i = 2; i < argc; i++)
    cudaMalloc(&kept, 1024);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), ["never freed: 256 B stays allocated until the program ends"]),
        (("all",), []),
        (("many", "1", "2"), ["never freed: 2 KiB in 2 allocations stay allocated until the program ends"]),
    ],
    ids=["one of two", "a program that frees nothing", "several times"],
)
def test_what_is_never_freed_is_told_where_others_are_freed_or_it_grows(
    words: tuple[str, ...], said: list[str], tmp_path: Path
) -> None:
    program = build(write(tmp_path, LEFT), tmp_path, *DEBUGGED)
    memory = run(program, *words)[0].memory
    assert [one for one in list_findings(memory).values() if one.startswith("never freed")] == said


_KERNELS = """
#include <cstdlib>
#include <vector>
__global__ void scale(float *a, float by) { a[blockIdx.x * blockDim.x + threadIdx.x] *= by; }
__global__ void copy(float *out, const float *in) { int i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = in[i]; }
__global__ void odd(float *a) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i % 2) a[i] += 1; }
__global__ void inner(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = in[i - 1] + in[i + 1];
}
__global__ void rows(float *a, size_t pitch) { ((float *)((char *)a + blockIdx.x * pitch))[threadIdx.x] += 1; }
const int N = 1 << 19, BYTES = 4 * N;
std::vector<float> host(N, 1.0f), other(N);
void up(float *to, std::vector<float> &from) { cudaMemcpy(to, from.data(), BYTES, cudaMemcpyHostToDevice); }
void down(std::vector<float> &to, float *from) { cudaMemcpy(to.data(), from, BYTES, cudaMemcpyDeviceToHost); }
float *make() { float *made; cudaMalloc(&made, BYTES); return made; }
"""
_UNUSED = """
int main() {
    float *a = make(), *sent, *cleared;
    cudaMalloc(&sent, BYTES); // sent
    cudaMalloc(&cleared, BYTES); // cleared
    up(a, host); up(sent, host); cudaMemset(cleared, 0, BYTES);
    scale<<<N / 256, 256>>>(a, 2);
    scale<<<N / 256, 256>>>(a, 2);
    down(host, a);
    cudaFree(sent); cudaFree(cleared); cudaFree(a);
}
"""
_GROWING = """
void step() {
    float *made;
    cudaMalloc(&made, BYTES); // made
    up(made, host); scale<<<N / 256, 256>>>(made, 3); down(other, made);
}
int main() {
    float *a = make();
    for (int i = 0; i < 3; i++) { step(); up(a, host); scale<<<N / 256, 256>>>(a, 2); down(host, a); }
    cudaFree(a);
}
"""
_SENT_TWICE = """
int main() {
    float *a, *b = make();
    cudaMalloc(&a, BYTES); // a
    up(a, host); up(a, other);
    copy<<<N / 256, 256>>>(b, a);
    down(other, b); down(host, a);
    cudaFree(a); cudaFree(b);
}
"""
_CLEAN = """
int main() {
    float *a = make(), *b = make();
    up(a, host); up(b, host);
    inner<<<N / 256, 256>>>(b, a, N); // the ends of b are read back as they were sent
    for (int i = 0; i < 4; i++) { copy<<<N / 256, 256>>>(a, b); odd<<<N / 256, 256>>>(a); float *t = a; a = b; b = t; }
    down(other, b);
    cudaFree(a); cudaFree(b);
    float *pinned, *made, *padded; size_t pitch; cudaStream_t streams[2];
    cudaMallocHost(&pinned, BYTES); cudaStreamCreate(&streams[0]); cudaStreamCreate(&streams[1]);
    made = make();
    for (int k = 0; k < 4; k++) {
        const int quarter = N / 4; cudaStream_t stream = streams[k % 2]; float *part = made + k * quarter;
        cudaMemcpyAsync(part, pinned + k * quarter, BYTES / 4, cudaMemcpyHostToDevice, stream);
        scale<<<quarter / 256, 256, 0, stream>>>(part, 2);
        cudaMemcpyAsync(pinned + k * quarter, part, BYTES / 4, cudaMemcpyDeviceToHost, stream);
    }
    cudaDeviceSynchronize(); cudaFree(made);
    cudaMallocPitch(&padded, &pitch, 400, 64);
    cudaMemcpy2D(padded, pitch, pinned, 400, 400, 64, cudaMemcpyHostToDevice);
    rows<<<64, 100>>>(padded, pitch);
    cudaMemcpy2D(pinned, 400, padded, pitch, 400, 64, cudaMemcpyDeviceToHost);
    cudaFree(padded); cudaFreeHost(pinned);
}
"""


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        (_UNUSED, {("sent", FindingKind.UNUSED), ("cleared", FindingKind.UNUSED)}),
        (_GROWING, {("made", FindingKind.NEVER_FREED)}),
        (_SENT_TWICE, {("a", FindingKind.NEVER_READ), ("a", FindingKind.UNCHANGED)}),
        (_CLEAN, set()),
    ],
    ids=["unused, and freed at the end", "never freed in a loop", "sent twice", "clean"],
)
def test_programs_that_waste_memory_on_purpose_are_told_so(
    text: str, truth: set[tuple[str, FindingKind]], tmp_path: Path
) -> None:
    """Each finding once, by the name at the end of its line; what one finding says is not said again by another."""
    lines = (_KERNELS + text).splitlines()
    memory = run(build(write(tmp_path, _KERNELS + text), tmp_path, *DEBUGGED))[0].memory
    assert not memory.unjudged
    found = {(lines[(line or 1) - 1].rpartition("// ")[2], kind) for line, kind in list_findings(memory)}
    assert found == truth


def test_the_stub_of_a_template_is_no_frame_of_the_user(tmp_path: Path) -> None:
    found = run(build(write(tmp_path, LEFT), tmp_path, *DEBUGGED))[0]
    (kernel,) = found.kernels
    ((label, text), *_) = list_origins(kernel, found.memory.sites, tmp_path, {})
    assert label == "host" and text.startswith("main ") and text.endswith("program.cu:7") and "<" not in text


TWICE = """
__global__ void touch(int* x) { x[threadIdx.x] = 1; }
void once() {
  int* x;
  cudaMalloc(&x, 128);
  touch<<<1, 32>>>(x);
  cudaFree(x);
}
int main() {
  once();
  once();
  return 0;
}
"""


def test_arrays_that_one_place_allocates_alike_are_told_once(tmp_path: Path) -> None:
    found = run(build(write(tmp_path, TWICE), tmp_path, *DEBUGGED))[0]
    (kernel,) = found.kernels
    assert len(found.memory.sites) == 2
    (told,) = (text for label, text in list_origins(kernel, found.memory.sites, tmp_path, {}) if label == "array")
    assert told.startswith("`x` written, allocated at ") and told.endswith("program.cu:5")
