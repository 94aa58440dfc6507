/** Whether a text may hold GPU code. It decides whether a server is started at all, so it may be wrong in one direction: a server too many is idle. */

const PYTHON = /^\s*(?:from|import)\s[^\n]*\b(?:triton|numba|cupy|cuda|cutlass|warp|pallas|tilelang|pycuda|taichi|helion)\b/m;
const C = /\b__(?:global|device|host|shared)__\b|<<<|^\s*#\s*(?:pragma\s+(?:omp\s+target|acc)\b|include\s*[<"](?:cuda|hip|sycl|cub|thrust|kokkos|cutlass))/im;
const FORTRAN = /\battributes\s*\(\s*(?:global|device|host)\b|^\s*!\$(?:acc|cuf|omp\s+target)\b|\buse\s*(?:,\s*\w+\s*::)?\s*cudafor\b|\bdo\s+concurrent\b/im;
const JULIA = /^\s*(?:using|import)\s[^\n]*\b(?:CUDA|KernelAbstractions|AMDGPU|GPUArrays)\b|@(?:cuda|kernel)\b/m;

const SIGNS: Readonly<Record<string, RegExp>> = {
  python: PYTHON, c: C, cpp: C, julia: JULIA, rust: /\b(?:\w*cuda\w*|nvptx\w*|cust)\b/i, mojo: /^\s*from\s+gpu\b/m,
  fortran: FORTRAN, "fortran-modern": FORTRAN, FortranFreeForm: FORTRAN, FortranFixedForm: FORTRAN, "fortran_fixed-form": FORTRAN,
};

/** Languages of kernels alone: nothing has to be looked at. */
const KERNELS = ["cuda-cpp", "cuda", "nvsass"];

/** Characters at the beginning of a text in which imports and kernels begin. */
const LOOKED_AT = 200_000;

/** Languages in which the extension is activated. */
export const LANGUAGES: readonly string[] = [...KERNELS, ...Object.keys(SIGNS)];

export function mayHoldKernels(languageId: string, text: string): boolean {
  return KERNELS.includes(languageId) || SIGNS[languageId]?.test(text.slice(0, LOOKED_AT)) === true;
}
