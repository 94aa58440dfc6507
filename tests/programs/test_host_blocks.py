"""Host allocations behind the copies to and from the device.

"It shows programmer that an array of bool d_graph_visited allocated at Line 172 of bfs.cu suffers from memory divergence, and that its counterpart
on host is h_graph_visited allocated at Line 113 of bfs.cu." Source: CUDAAdvisor, section 4.2 (B) and Figure 9.
"""

import re
from pathlib import Path

from gpa_lsp.document.program_view import list_origins
from gpa_lsp.execution.programs.call_paths import list_own_frames
from gpa_lsp.execution.programs.model import ProgramRun
from tests.programs.built import SHARED_RUNTIME, build, run, write

DEBUGGED = ("-g", *SHARED_RUNTIME)
_TRAVERSAL = """
#include "checking.h"
#include <cstdlib>
#include <memory>
#include <vector>

__global__ void visit(const bool *g_graph_visited, const int *edges, int *cost, const float *weights, const float *pinned) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (!g_graph_visited[edges[i]])
        cost[i] += int(weights[i]) + int(pinned[i]);
}

static int *make_edges(int n) {
    int *edges = (int *)calloc(n, sizeof(int)); // edges
    for (int i = 0; i < n; i++)
        edges[i] = i * 7 % n;
    return edges;
}

template <typename T> static T *send(const T *host, int n) {
    T *made;
    CHECK(cudaMalloc(&made, n * sizeof(T)));
    CHECK(cudaMemcpy(made + n / 2, host + n / 2, n / 2 * sizeof(T), cudaMemcpyHostToDevice));
    return made;
}

int main() {
    const int n = 2048;
    bool *h_graph_visited = (bool *)malloc(n); // h_graph_visited
    for (int i = 0; i < n; i++)
        h_graph_visited[i] = i % 2;
    std::vector<int> h_cost(n, 1); // h_cost
    auto h_weights = std::make_unique<float[]>(n); // h_weights
    float *h_pinned;
    CHECK(cudaMallocHost(&h_pinned, n * sizeof(float))); // h_pinned
    int *d_edges = send(make_edges(n), n); // caller of edges
    visit<<<n / 256, 256>>>(send(h_graph_visited, n), d_edges, send(h_cost.data(), n), send(h_weights.get(), n), send(h_pinned, n));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
"""


def _find_line(text: str, word: str) -> int:
    (line,) = (number for number, one in enumerate(text.splitlines(), 1) if one.endswith(f"// {word}"))
    return line


def _name_hosts(found: ProgramRun) -> dict[str, list[list[int]]]:
    """Lines of the host's allocations behind the copies of each array, innermost first."""
    return {
        site.uses[0].name: [[frame.line or 0 for frame in list_own_frames(path)] for one in site.copies for path in one.hosts]
        for site in found.memory.sites
        if site.uses
    }  # fmt: skip


def test_the_counterpart_of_an_array_is_found_by_its_copies(tmp_path: Path) -> None:
    found, _ = run(build(write(tmp_path, _TRAVERSAL), tmp_path, *DEBUGGED))
    lines = {word: _find_line(_TRAVERSAL, word) for word in ("h_graph_visited", "h_cost", "h_weights", "h_pinned")}
    assert _name_hosts(found) == {
        "g_graph_visited": [[lines["h_graph_visited"]]],
        "edges": [[_find_line(_TRAVERSAL, "edges"), _find_line(_TRAVERSAL, "caller of edges")]],
        "cost": [[lines["h_cost"]]],
        "weights": [[lines["h_weights"]]],
        "pinned": [[lines["h_pinned"]]],
    }
    told = [text for label, text in list_origins(found.kernels[0], found.memory.sites, None, {}) if label == "array"]
    (visited,) = (text for text in told if text.startswith("`g_graph_visited`"))
    assert re.search(rf"; counterpart on the host allocated at \S+:{lines['h_graph_visited']}$", visited)


_BUSY = """
#include "checking.h"
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct Early {
    std::string text;
    Early() : text(5000, 'x') {}
} early;

__global__ void add(int *counts) { counts[threadIdx.x] += 1; }

static void churn(unsigned seed) {
    std::vector<char *> held;
    for (int i = 0; i < 30000; i++) {
        unsigned drawn = (seed = seed * 1103515245 + 12345) >> 8;
        char *p = (char *)(i % 3 ? malloc(drawn % 5000 + 8) : calloc(drawn % 50 + 1, 100));
        p[0] = char(i);
        if (i % 7 == 0)
            p = (char *)realloc(p, drawn % 9000 + 8);
        void *aligned;
        if (i % 11 == 0 && !posix_memalign(&aligned, 64, 2000))
            free(aligned);
        if (p[0] != char(i))
            abort();
        if (i % 2)
            free(p);
        else
            held.push_back(p);
    }
    for (char *p : held)
        free(p);
}

int main() {
    std::vector<std::thread> others;
    for (int i = 0; i < 4; i++)
        others.emplace_back(churn, i);
    long wrong = early.text.size() != 5000;
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(4096));
            _exit(0);
        }
        int status = 1;
        wrong += waitpid(child, &status, 0) != child || status != 0;
    }
    for (std::thread &one : others)
        one.join();
    free(malloc(8000));
    int *counts = (int *)calloc(1024, sizeof(int)), *device; // counts
    CHECK(cudaMalloc(&device, 4096));
    CHECK(cudaMemcpy(device, counts, 4096, cudaMemcpyHostToDevice));
    add<<<1, 1024>>>(device);
    CHECK(cudaMemcpy(counts, device, 4096, cudaMemcpyDeviceToHost));
    wrong += counts[1023] != 1;
    return finish("busy", wrong);
}
"""


def test_threads_forks_and_constructors_allocate_as_ever(tmp_path: Path) -> None:
    found, printed = run(build(write(tmp_path, _BUSY), tmp_path, *DEBUGGED))
    assert found.end.status == 0 and printed.startswith("busy: right")
    line = _find_line(_BUSY, "counts")
    assert _name_hosts(found) == {"counts": [[line], [line]]}


_OWN = """
extern char pool[];
extern unsigned long used;
char pool[1 << 26];
unsigned long used;
void *malloc(unsigned long size) { char *p = pool + used; used += (size + 31) & ~15ul; *(unsigned long *)p = size; return p + 16; }
void free(void *p) { (void)p; }
void *calloc(unsigned long count, unsigned long size) { return malloc(count * size); }
void *realloc(void *old, unsigned long size) {
    char *moved = malloc(size), *from = old;
    for (unsigned long i = 0; from && i < size && i < *(unsigned long *)(from - 16); i++) moved[i] = from[i];
    return moved;
}
"""
_USER = """
#include "checking.h"
#include <cstdlib>
extern "C" char pool[1 << 26];
__global__ void add(int *counts) { counts[threadIdx.x] += 1; }
int main() {
    int *counts = (int *)calloc(1024, sizeof(int)), *device;
    CHECK(cudaMalloc(&device, 4096));
    CHECK(cudaMemcpy(device, counts, 4096, cudaMemcpyHostToDevice));
    add<<<1, 1024>>>(device);
    CHECK(cudaMemcpy(counts, device, 4096, cudaMemcpyDeviceToHost));
    return finish("own", counts[0] != 1 || (char *)counts < pool || (char *)counts >= pool + sizeof pool);
}
"""


def test_a_program_keeps_its_own_allocator(tmp_path: Path) -> None:
    own = write(tmp_path, _OWN, "own.c")
    program = build(write(tmp_path, _USER), tmp_path, "-Xcompiler", "-fno-builtin", *DEBUGGED, others=(own,))
    found, printed = run(program)
    assert found.end.status == 0 and printed.startswith("own: right")
    assert _name_hosts(found) == {"counts": []}
