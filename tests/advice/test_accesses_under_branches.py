"""Accesses beside branches on loaded values: a branch changes an address only where it chooses what the address is computed from."""

from pathlib import Path

import pytest

from tests.advice.test_warp_checks import THREAD, examine

WORK = "float w = 1.0f / v; s += w * w * sqrtf(v) + logf(w);"
KERNEL = """\
__global__ void {name}(const float* in, float* out, const int* index, int n, int m) {{
{thread}
if (i >= n) return;
{body}
}}
"""
# Name of the kernel → its index of `in`, and the word for its access; none for coalesced ones.
INDEXES = {
    "coalesced": ("j * n + i", None),
    "strided": ("i * m + j", "strided"),
    "gather": ("index[j * n + i]", "scattered"),
}
LOOPS = {
    "unrolled with a remainder": "int j = 0; while (j < m) {{ float v = in[{at}]; if (v > 0.5f) {{ {work} }} j++; }}",
    "unrolled as told": "\n#pragma unroll 8\nfor (int j = 0; j < m; ++j) {{ float v = in[{at}]; if (v > 0.5f) {{ {work} }} }}",
    "continue": "for (int j = 0; j < m; ++j) {{ float v = in[{at}]; if (v < 0.5f) continue; {work} }}",
    "while with two continues": (
        "int j = 0; while (j < m) {{ float v = in[{at}]; ++j; if (v < 0.5f) continue; if (v > 9) {{ s += 3; continue; }} {work} }}"
    ),
    "break": "for (int j = 0; j < m; ++j) {{ float v = in[{at}]; if (v < 0.5f) break; {work} }}",
    "break from an inner loop": (
        "for (int k = 0; k < 9; ++k) {{ for (int j = 0; j < m; ++j) {{ float v = in[{at}]; if (v < 0.5f) break; {work} }} s *= 2; }}"
    ),
    "nested conditions": (
        "for (int j = 0; j < m; ++j) {{ float v = in[{at}]; "
        "if (v > 0.5f) {{ if (v > 2) s += logf(v); else if (v > 1) {{ {work} }} else s = expf(s); }} }}"
    ),
    "short circuits": (
        "for (int j = 0; j < m; ++j) {{ float v = in[{at}]; if ((v > 0.5f && s < 3) || (v < 0.1f && s > n)) {{ {work} }} }}"
    ),
    "switch": (
        "for (int j = 0; j < m; ++j) {{ float v = in[{at}]; switch ((int)v) {{ case 0: s += 1; break; case 1: {{ {work} }} break; "
        "case 2: s *= v; case 5: s += logf(v); break; case 7: s -= 3; break; default: s = sqrtf(s); }} }}"
    ),
    "a second loop": (
        "int j = 0; for (; j + 4 <= m; j += 4) {{ float v = in[{at}]; if (v > 0.5f) {{ {work} }} }} for (; j < m; ++j) s += in[{at}];"
    ),
    "return before": "if (in[i] < 0) return; for (int j = 0; j < m; ++j) {{ float v = in[{at}]; if (v > 0.5f) {{ {work} }} }}",
    "a start chosen beside": (
        "int j = n > 5 ? 3 : 0; if (in[i] > 0.5f) s = 7; for (; j < m; ++j) {{ float v = in[{at}]; if (v > s) {{ {work} }} }}"
    ),
}


def find(tmp_path: Path, bodies: dict[str, str]) -> dict[str, list[str]]:
    """Name of a kernel → messages."""
    path = tmp_path / "k.cu"
    kernels = [KERNEL.format(name=name, thread=THREAD, body=body) for name, body in bodies.items()]
    path.write_text("".join(kernels))
    starts = [sum(one.count("\n") for one in kernels[:number]) for number in range(len(kernels) + 1)]
    found = examine(path)
    return {
        name: [str(one.message) for one in found if first < (one.line or 0) <= last]
        for name, first, last in zip(bodies, starts, starts[1:], strict=False)
    }


@pytest.mark.parametrize("loop", LOOPS)
def test_a_branch_on_data_in_a_loop_leaves_addresses_as_they_are(tmp_path: Path, loop: str) -> None:
    bodies = {
        name: f"float s = 0; {LOOPS[loop].format(at=at, work=WORK)} out[i] = s;" for name, (at, _) in INDEXES.items()
    }
    found = find(tmp_path, bodies)
    assert found["coalesced"] == []
    for name, (_, word) in INDEXES.items():
        assert word is None or any(f"`in` is {word}" in message for message in found[name]), name


def test_an_address_that_data_only_chooses_is_not_called_scattered(tmp_path: Path) -> None:
    bodies = {
        "branch": "int k = i; if (in[i] > 0.5f) { k += n; out[i + n] = 1; } out[i] = in[k];",
        "conditional": "out[i] = in[in[i] > 0.5f ? i : i + n];",
        "factor": "out[i] = in[i + n * (in[i] > 0.5f)];",
        "largest": (
            "int best = 0; float top = in[i]; "
            "for (int j = 1; j < m; ++j) { float v = in[j * n + i]; if (v > top) { top = v; best = j; } } out[i] = in[best * n + i];"
        ),
        "kept": "int k = 0; for (int j = 0; j < m; ++j) { float v = in[j * n + i]; if (v > 0.5f) out[k++ * n + i] = v; }",
        "sum_of_the_warp": "int s = __reduce_add_sync(~0u, index[i]); out[i] = in[s + i];",
        "skipped": "float s = 0; for (int j = 0; j < m; ++j) { int b = index[j * n + i]; if (b < 0) continue; s += b; } out[i] = s;",
    }
    assert find(tmp_path, bodies) == {name: [] for name in bodies}


def test_an_address_computed_from_data_is_scattered_wherever_it_is_used(tmp_path: Path) -> None:
    bodies = {
        "plain": "out[i] = in[index[i]];",
        "store": "out[index[i]] = in[i];",
        "in_a_branch": "if (in[i] > 0.5f) out[i] = in[index[i]];",
        "chosen": "int k = i; if (in[i] > 0.5f) { k = index[i]; out[i + n] = 1; } out[i] = in[k];",
        "compressed_rows": "float s = 0; for (int j = index[i]; j < index[i + 1]; ++j) s += in[index[m + j]]; out[i] = s;",
        "skipped": "float s = 0; for (int j = 0; j < m; ++j) { int b = index[j * n + i]; if (b < 0) continue; s += in[b]; } out[i] = s;",
        "clamped": "int b = (int)(in[i] * 100.0f); if (b < 0) b = 0; if (b > n) b = n; out[b] = 1.0f;",
    }
    found = find(tmp_path, bodies)
    assert [name for name in bodies if not any("is scattered, by what was loaded" in one for one in found[name])] == []
