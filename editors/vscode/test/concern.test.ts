import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { LANGUAGES, mayHoldKernels } from "../src/concern";

test("the extension is activated in each language that is looked at", () => {
  const events = (JSON.parse(readFileSync("package.json", "utf8")) as { activationEvents: string[] }).activationEvents;
  assert.deepEqual(events.filter((event) => event.startsWith("onLanguage:")).map((event) => event.slice("onLanguage:".length)).sort(), [...LANGUAGES].sort());
});

const KERNELS: readonly (readonly [language: string, text: string])[] = [
  ["cuda-cpp", ""],
  ["python", "import torch\nimport triton.language as tl\n"],
  ["python", "def f():\n    from numba import njit, cuda\n"],
  ["python", "import cupy as cp"],
  ["python", "import cutlass.cute as cute"],
  ["julia", "using LinearAlgebra, CUDA\n"],
  ["julia", "@cuda threads=256 f(x)"],
  ["fortran", "  attributes(global) subroutine f(x)"],
  ["FortranFreeForm", "!$acc parallel loop"],
  ["fortran-modern", "  !$OMP TARGET TEAMS DISTRIBUTE"],
  ["cpp", "template <class T>\n__global__ void f(T* x);"],
  ["cpp", "#include <cuda_runtime.h>"],
  ["cpp", "#pragma omp target teams"],
  ["c", "#pragma acc kernels"],
];

for (const [language, text] of KERNELS) {
  test(`a server is started for ${language}: ${JSON.stringify(text)}`, () => assert.ok(mayHoldKernels(language, text)));
}

for (const [language, text] of [
  ["python", "import os\nprint('triton')  # numba\n"], ["python", "import numpy as np"], ["julia", "using Plots"], ["fortran", "program main\nend"],
  ["cpp", "#include <vector>\nint main() { return 1 << 3; }"], ["plaintext", "__global__"],
] as const) {
  test(`no server is started for ${language}: ${JSON.stringify(text)}`, () => assert.ok(!mayHoldKernels(language, text)));
}
