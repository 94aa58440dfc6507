"""A report of many kernels, and the server on it: ``python -m tests.bench.many_kernels [--kernels N] [--requests N] [--folder FOLDER]``.

The kernels stand in one source, which nvcc compiles to one image. Each is launched once; its samples and counts are drawn at random, its other metrics are
those of a launch of the corpus (GPA_LSP_CORPUS). Needs nvcc. With ``--folder`` the source and the report are left there, and used again by the next run.
Prints times, and beside them what they may be; asserts nothing.
"""

import argparse
import functools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpa_lsp.binary.cubin import read_cubin
from gpa_lsp.binary.model import INSTRUCTION_BYTES, Function
from gpa_lsp.binary.tool_location import find_tool
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import read_profile
from tests.bench.measuring import run_once
from tests.conftest import find_corpus
from tests.lsp.raw_client import RawClient
from tests.profile.report_builder import ReportBuilder

_MODEL = "pairs/rtx4090_sgemm_naive.ncu-rep"
_ARCHITECTURE = "sm_89"
_BASE = 0x7F0000000000
_HOUR_S = 3600

_OWN_METRICS = ("gpu__time_duration.sum", "launch__registers_per_thread", "launch__function_pcs")

_PREAMBLE = """\
__device__ __forceinline__ float damp(float v, float s)
{
    v = fmaf(v, 0.5f, s);
    return v * (1.0f - 0.1f * v);
}
"""

_BODIES = (
    """\
    float v = 0;
    for (int k = 0; k < n; ++k)
        v = damp(v, in[k * {stride} + i]);
    out[i] = v;
""",
    """\
    __shared__ float tile[{size}];
    float v = 0;
    for (int k = 0; k < n; ++k) {{
        tile[threadIdx.x] = in[k + {stride} * i];
        __syncthreads();
        v += tile[threadIdx.x ^ {size2}] / (k + 1.5f);
        __syncthreads();
    }}
    out[i] = v;
""",
    """\
    int v = i;
    for (int k = 0; k < n; ++k)
        v += (v / m) * {stride} + v % m;
    out[i] = v;
""",
    """\
    float a = in[i], b = in[i + {stride}];
    for (int k = 0; k < n; ++k) {{
        if (in[k * m] > 0.5f)
            a = sqrtf(a * a + b);
        else
            b = expf(b - a);
    }}
    out[i] = a + b;
""",
    """\
    double v = in[i] * 0.7;
    for (int k = 0; k < n; ++k)
        v = v * 1.01 + in[i * m + k + {stride}];
    atomicAdd(out + i % {size}, (float)v);
""",
)


def write_source(count: int) -> str:
    """A source of so many kernels, each compiled to code of its own."""
    parts = [_PREAMBLE]
    for number in range(count):
        body = _BODIES[number % len(_BODIES)].format(stride=number + 3, size=256, size2=1 << number % 8)
        parts.append(
            f'extern "C" __global__ void kernel{number:04}(const float* in, float* out, int n, int m)\n{{\n'
            f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}}}\n"
        )
    return "\n".join(parts)


def compile_source(source: Path) -> bytes:
    """The image."""
    nvcc = find_tool("nvcc")
    if nvcc is None:
        raise SystemExit("nvcc is not installed")
    cubin = source.with_suffix(".cubin")
    subprocess.run([nvcc, f"-arch={_ARCHITECTURE}", "-lineinfo", "-cubin", source, "-o", cubin], check=True)
    image = cubin.read_bytes()
    cubin.unlink()
    return image


def find_model() -> Launch:
    """A real launch, whose metrics the kernels have too.

    Raises:
        SystemExit: the corpus is not at hand.
    """
    corpus = find_corpus()
    if corpus is None:
        raise SystemExit("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    return read_profile(corpus / _MODEL).launches[0]


def write_report(image: bytes, model: Launch) -> bytes:
    """A report of all kernels of an image, the first one the shortest."""
    functions = sorted(read_cubin(image).functions.values(), key=lambda function: function.name)
    starts: dict[str, int] = {}
    address = _BASE
    for function in functions:
        starts[function.name] = address
        address += -(-function.size_bytes // 128) * 128
    builder = ReportBuilder()
    builder.name_id = functools.cache(builder.name_id)  # type: ignore[method-assign]
    builder.add_source(image=image, functions=starts)
    metrics = [model.metrics[name] for name in model.metrics]
    scalars = [
        builder.encode_metric(metric.name, metric.value)
        for metric in metrics
        if metric.value is not None and not metric.instance_ids and metric.name not in _OWN_METRICS
    ]
    assert model.samples is not None
    numbers = np.random.default_rng(1)
    for number, function in enumerate(functions):
        start = starts[function.name]
        own = [
            builder.encode_metric("gpu__time_duration.sum", 10_000.0 * (number + 1)),
            builder.encode_metric("launch__registers_per_thread", function.registers),
            builder.encode_metric("launch__function_pcs", 1, [(0, start)]),
            *_encode_counts(builder, function, start, model.samples.reasons, numbers),
        ]
        result = builder.make_result(function.name, metrics=[*scalars, *own])
        result.plain_name = function.name.encode()
        result.demangled_name = f"{function.name}(const float *, float *, int, int)".encode()
        result.created_unix_s = 1_700_000_000
        builder.add_result(result)
    builder.add_session()
    return builder.build()


def _encode_counts(
    builder: ReportBuilder, function: Function, start: int, reasons: Sequence[str], numbers: np.random.Generator
) -> list[bytes]:
    """Executions and samples per instruction: most of the samples lie on a few."""
    count = function.size_bytes // INSTRUCTION_BYTES
    addresses = [start + INSTRUCTION_BYTES * place for place in range(count)]
    executed = numbers.choice([64, 4096, 65536], count)
    encoded = [
        builder.encode_metric(
            "inst_executed", int(executed.sum()), list(zip(addresses, executed.tolist(), strict=True))
        )
    ]
    samples: dict[str, dict[int, tuple[int, int]]] = {}
    for reason in reasons:
        every = numbers.geometric(0.02, count) * (numbers.random(count) < 0.2)
        latency = every // 2 if reason != "selected" else every * 0
        pairs = zip(every.tolist(), latency.tolist(), strict=True)
        samples[reason] = {INSTRUCTION_BYTES * place: pair for place, pair in enumerate(pairs)}
    return encoded + builder.encode_samples(samples, base=start)
