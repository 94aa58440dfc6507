"""Device code is compiled though host code cannot be, and fragments through the file that includes them."""

from pathlib import Path

import pytest

from gpa_lsp.execution.compiler.compile import compile_source, find_including
from gpa_lsp.execution.compiler.included_files import find_cuda_headers
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerChoice, CompileSettings
from gpa_lsp.execution.compiler.stand_in_headers import read_absent_header
from gpa_lsp.foundation.errors import ProblemSeverity
from tests.compiler.installed import require_nvcc, require_nvrtc
from tests.patience import LIMIT_S

AUTOMATIC = CompileSettings(keeps_units=False, limit_s=LIMIT_S)
KERNEL = "__global__ void k(int *p) { p[threadIdx.x] = threadIdx.x; }\n"


@pytest.fixture(autouse=True)
def compilers() -> None:
    require_nvrtc()
    require_nvcc()


def compile_text(folder: Path, text: str, name: str = "k.cu") -> CompiledUnit:
    path = folder / name
    path.write_text(text)
    return compile_source(path, settings=AUTOMATIC)


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("int main() { cudaThreadSynchronize(); }", "removed in CUDA 13; use cudaDeviceSynchronize"),
        ("int main() { cudaDeviceProp p; return p.clockRate; }", "ask cudaDeviceGetAttribute"),
        ("#include <helper_cuda.h>\nint main() { checkCudaErrors(cudaDeviceSynchronize()); }", "helper_cuda.h"),
        ('#include "helper_timer.h"\nint main() { StopWatchInterface *t; }', "helper_timer.h"),
        ("#include <cudnn_that_is_not_here.h>\nint main() { cudnnHandle_t h; }", "cudnn_that_is_not_here.h"),
    ],
)
def test_errors_of_the_host_are_warnings(tmp_path: Path, host: str, said: str) -> None:
    unit = compile_text(tmp_path, KERNEL + host + "\n")
    assert not unit.has_failed and unit.is_host_left_out
    assert ".entry _Z1kPi" in unit.ptx
    warnings = [one for one in unit.messages if said in one.text]
    assert warnings and all(one.severity is ProblemSeverity.WARNING for one in unit.messages)
    assert unit.notes[0].startswith("host code was left out: it does not compile (")


def test_a_kernel_that_left_out_code_launches_is_not_called_unreferenced(tmp_path: Path) -> None:
    text = "#include <helper_cuda.h>\nstatic __global__ void k(int *p) { *p = 1; }\n"
    unit = compile_text(tmp_path, text + "int main() { int *p; checkCudaErrors(cudaMalloc(&p, 4)); k<<<1, 1>>>(p); }\n")
    assert not unit.has_failed and unit.is_host_left_out
    assert not [one for one in unit.messages if "never referenced" in one.text]


def test_host_code_of_a_header_is_left_out_and_launches_nothing_on_the_device(tmp_path: Path) -> None:
    header = "__device__ int count;\ncudaError_t forget(int n) { return cudaMemcpyToSymbol(count, &n, sizeof n); }\n"
    (tmp_path / "counting.cuh").write_text(header + "__global__ void add(int n) { atomicAdd(&count, n); }\n")
    text = '#include <helper_cuda.h>\n#include "counting.cuh"\nint main() { checkCudaErrors(forget(0)); add<<<1, 1>>>(1); }\n'
    unit = compile_text(tmp_path, text)
    assert not unit.has_failed and ".entry _Z3addi" in unit.ptx
    assert not any("kernels launch kernels" in note for note in unit.notes)


def test_absent_headers_of_samples_have_something_in_their_place(tmp_path: Path) -> None:
    text = "#include <helper_math.h>\n__global__ void k(float3 *p) { p[0] = normalize(p[0] + p[1] * 2.0f); }\nint main() {}\n"
    unit = compile_text(tmp_path, text)
    assert not unit.has_failed and "_Z1kP6float3" in unit.ptx
    assert "helper_math.h could not be found: headers of gpa_lsp were read instead" in unit.notes


def test_types_of_libraries_that_are_not_installed_are_there(tmp_path: Path) -> None:
    text = "#include <cublas_v2.h>\n#include <cufftXt.h>\n__global__ void k(cufftComplex *p) { p[0] = cuCmulf(p[0], p[1]); }\n"
    unit = compile_text(tmp_path, text + "int main() { cufftHandle plan; cufftPlan1d(&plan, 8, CUFFT_C2C, 1); }\n")
    assert not unit.has_failed and ".entry _Z1kP6float2" in unit.ptx


def test_random_numbers_that_are_not_those_of_curand_are_told(tmp_path: Path) -> None:
    if any((folder / "curand_kernel.h").is_file() for folder in find_cuda_headers()):
        pytest.skip("cuRAND is installed")
    text = (
        "#include <curand_kernel.h>\n__global__ void k(STATE *s, float *p) { curand_init(1, threadIdx.x, 0, s + threadIdx.x);"
        " p[threadIdx.x] = curand_uniform(s + threadIdx.x); }\nint main() {}\n"
    )
    told = "random numbers of MRG32k3a are not those of cuRAND: curand_kernel.h is not installed"
    for state, is_told in (("curandStateMRG32k3a", True), ("curandState", False)):
        unit = compile_text(tmp_path, text.replace("STATE", state))
        assert not unit.has_failed and unit.ptx is not None and (told in unit.notes) == is_told


@pytest.mark.parametrize("name", ["../absent_headers/cutil.h", "random/curand_kernel.h", "nobody.h", ""])
def test_no_other_file_stands_in_place_of_a_header(name: str) -> None:
    assert read_absent_header(name) is None


def test_host_templates_are_left_out_with_their_instances(tmp_path: Path) -> None:
    host = "template <class T> void run(T *p) { cudaThreadSynchronize(); }\ntemplate void run<float>(float *);\n"
    unit = compile_text(tmp_path, KERNEL + host)
    assert not unit.has_failed and unit.ptx is not None


def test_limits_are_there_without_an_include(tmp_path: Path) -> None:
    unit = compile_text(tmp_path, "__global__ void k(int *p) { p[0] = INT_MAX; }\nint main() { cudaThreadExit(); }\n")
    assert not unit.has_failed


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(float *p) { p[0] = INFINITY + M_PI; }",
        "__global__ void k(uint8_t *p, uint n) { p[0] = n; }",
        "__global__ void k(float *p) { p[0] = std::max(p[1], FLT_MAX); }",
    ],
)
def test_names_of_the_library_are_known_without_an_include(tmp_path: Path, text: str) -> None:
    unit = compile_text(tmp_path, f"{text}\nint main() {{ cudaThreadExit(); }}\n")
    assert not unit.has_failed and ".entry" in unit.ptx
    assert any("used without their headers" in note for note in unit.notes)


def test_sources_that_ask_for_nvcc_have_their_kernels(tmp_path: Path) -> None:
    text = f"#ifdef __NVCC__\n{KERNEL}#endif\nint main() {{ cudaThreadExit(); }}\n"
    unit = compile_text(tmp_path, text)
    assert not unit.has_failed and ".entry _Z1kPi" in unit.ptx


def test_headers_of_cuda_for_the_host_are_no_reason_to_refuse_device_code(tmp_path: Path) -> None:
    unit = compile_text(tmp_path, f"#include <driver_functions.h>\n{KERNEL}int main() {{ cudaThreadExit(); }}\n")
    assert not unit.has_failed and ".entry _Z1kPi" in unit.ptx


@pytest.mark.parametrize(
    "host", ["", "void run(float *p) { cudaThreadExit(); }", "void run(float *p) { cudaDeviceReset(); }"]
)
def test_templates_that_nobody_instantiates_are_compiled_for_usual_arguments(tmp_path: Path, host: str) -> None:
    kernel = "template <class T, int TILE, bool B> __global__ void k(T *p) { p[threadIdx.x] = B ? TILE : T(1) / 2; }"
    unit = compile_text(tmp_path, f"namespace n {{ {kernel} }}\n{host}\n")
    assert not unit.has_failed and unit.ptx.count(".entry") == 1
    assert any(note.endswith("guessed: n::k<float, 16, false>") for note in unit.notes)
    assert not any("was not compiled" in note for note in unit.notes)


def test_templates_beside_kernels_are_named_and_not_guessed(tmp_path: Path) -> None:
    unit = compile_text(tmp_path, f"template <class T> __global__ void t(T *p) {{ *p = 1; }}\n{KERNEL}")
    assert unit.ptx.count(".entry") == 1
    assert any(note.startswith("t is a template") and note.endswith("was not compiled") for note in unit.notes)


def test_constants_of_a_header_that_is_missing_are_taken_for_usual_ones(tmp_path: Path) -> None:
    kernel = "__global__ void k(float *p) { __shared__ float t[TILE_DIM]; t[threadIdx.x] = 1; p[0] = t[WIDTH - 1]; }\n"
    unit = compile_text(tmp_path, f'#include "params.h"\n{kernel}')
    assert not unit.has_failed
    assert any(note.endswith("were taken for TILE_DIM = 16, WIDTH = 16") for note in unit.notes)
    assert any("params.h" in one.text and one.severity is ProblemSeverity.WARNING for one in unit.messages)
    alone = compile_text(tmp_path, kernel)
    assert alone.has_failed and any('"TILE_DIM" is undefined' in one.text for one in alone.messages)


@pytest.mark.parametrize("condition", ["#ifdef USE_GPU", "#if defined(USE_GPU)", "#ifndef USE_GPU\nint other;\n#else"])
def test_kernels_under_a_condition_are_compiled_where_there_is_no_other(tmp_path: Path, condition: str) -> None:
    unit = compile_text(tmp_path, f"{condition}\n{KERNEL}#endif\n")
    assert not unit.has_failed and ".entry _Z1kPi" in unit.ptx
    assert any(note.startswith("compiled with USE_GPU defined") for note in unit.notes)
    beside = compile_text(tmp_path, f"{condition}\n{KERNEL}#endif\n__global__ void l(int *p) {{ *p = 1; }}\n")
    assert beside.ptx.count(".entry") == 1 and ".entry _Z1lPi" in beside.ptx


def test_old_functions_of_the_device_are_compiled_as_those_that_are_left(tmp_path: Path) -> None:
    kernel = "__global__ void k(float *p, int *q) { p[0] = saturate(p[1]) + int_as_float(q[0]); q[1] = mul24(q[2], q[3]); }\n"
    unit = compile_text(tmp_path, kernel)
    assert not unit.has_failed and ".sat.f32" in unit.ptx
    assert any("such as __mul24" in note for note in unit.notes)


def test_names_that_are_called_are_no_constants(tmp_path: Path) -> None:
    called = '#include "params.h"\n__global__ void k(int *p) { p[0] = LEAST(p[1], p[2]); }\n'
    assert compile_text(tmp_path, called).has_failed
    known = "#include <sys/param.h>\n__global__ void k(int *p) { p[0] = MIN(p[1], p[2]); }\nint main() { cudaThreadExit(); }\n"
    assert not compile_text(tmp_path, known).has_failed


def test_constants_that_a_header_defines_under_a_condition_have_its_value(tmp_path: Path) -> None:
    (tmp_path / "params.h").write_text("#ifdef GPU\n#define BLOCK 512 // threads\n#endif\n")
    unit = compile_text(tmp_path, '#include "params.h"\n__global__ void k(int *p) { p[threadIdx.x % BLOCK] = 1; }\n')
    assert not unit.has_failed
    assert any(note.endswith("were taken for BLOCK = 512") for note in unit.notes)


def test_errors_of_the_device_stay_errors(tmp_path: Path) -> None:
    unit = compile_text(tmp_path, "__global__ void k(int *p) { p[0] = q; }\nint main() { cudaThreadExit(); }\n")
    assert unit.has_failed
    assert any('"q" is undefined' in one.text for one in unit.messages)


def test_removed_language_is_named_with_its_remedy(tmp_path: Path) -> None:
    unit = compile_text(
        tmp_path,
        "#include <helper_cuda.h>\ntexture<float, 2> t;\n__global__ void k(float *p) { p[0] = q + tex2D(t, 0, 0); }\nint main() {}\n",
    )
    assert unit.has_failed
    assert any(one.line == 2 and "use texture objects (cudaCreateTextureObject)" in one.text for one in unit.messages)


REFERENCES = """\
texture<float4, 1, cudaReadModeElementType> quads;
static texture<unsigned char, 2, cudaReadModeNormalizedFloat> shades;
surface<void, 2> target;
__global__ void k(float *p) {
    p[threadIdx.x] = tex1Dfetch(quads, threadIdx.x).y + tex2D(shades, threadIdx.x, 0);
    surf2Dwrite(p[0], target, 4 * threadIdx.x, 0);
}
void set_up(float4 *x) { quads.filterMode = cudaFilterModePoint; cudaBindTexture(0, quads, x, 64); }
int main() { cudaThreadSynchronize(); }
"""


def test_texture_references_are_compiled_as_objects_that_constants_hold(tmp_path: Path) -> None:
    unit = compile_text(tmp_path, REFERENCES)
    assert not unit.has_failed and unit.ptx is not None
    for name in ("quads", "shades", "target"):
        assert f".const .align 8 .b8 {name}[8];" in unit.ptx
    assert "texture references, which CUDA 12 removed, were compiled as texture objects" in unit.notes
    assert all(one.severity is ProblemSeverity.WARNING for one in unit.messages)
    assert any(one.line == 1 and "use texture objects (cudaCreateTextureObject)" in one.text for one in unit.messages)


def test_kernels_that_launch_kernels_are_compiled_apart(tmp_path: Path) -> None:
    nested = "__global__ void outer(int *p) { if (threadIdx.x == 0) k<<<1, 32>>>(p); }\nint main() { outer<<<1, 32>>>(nullptr); }\n"
    unit = compile_text(tmp_path, KERNEL + nested)
    assert not unit.has_failed
    assert ".entry _Z5outerPi" in unit.ptx and ".entry _Z1kPi" in unit.ptx
    assert "kernels launch kernels: device code was compiled with -rdc=true" in unit.notes


def test_kernels_that_launch_kernels_call_the_runtime_of_the_device(tmp_path: Path) -> None:
    if not any((folder / "cuda_device_runtime_api.h").is_file() for folder in find_cuda_headers()):
        pytest.skip("the toolkit's headers are not installed")
    nested = """__global__ void outer(int *p)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    k<<<1, 32, 0, stream>>>(p);
    cudaStreamDestroy(stream);
}
"""
    unit = compile_text(tmp_path, KERNEL + nested)
    assert not unit.has_failed and "__cudaCDP2StreamCreateWithFlags" in (unit.ptx or "")


def test_host_functions_with_names_that_speak_of_the_device_are_left_out(tmp_path: Path) -> None:
    unit = compile_text(
        tmp_path, KERNEL + 'extern "C" float *SUM_CUDA(int n)\n{ cudaThreadSynchronize(); return 0; }\n'
    )
    assert not unit.has_failed


def test_a_fragment_is_compiled_through_the_source_that_includes_it(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    fragment = tmp_path / "parts" / "kernels.cu"
    fragment.write_text("__global__ void k(float *p) { p[threadIdx.x] *= SCALE; }\n")
    (tmp_path / "all.h").write_text('#include "parts/kernels.cu"\n')
    (tmp_path / "main.cu").write_text('#define SCALE 2.f\n#include "all.h"\nint main() { k<<<1, 32>>>(nullptr); }\n')
    (tmp_path / ".git").mkdir()
    assert find_including(fragment) == tmp_path / "main.cu"
    unit = compile_source(fragment, settings=AUTOMATIC)
    assert not unit.has_failed
    assert unit.notes[0] == "compiled through main.cu, which includes it"
    assert str(fragment) in unit.ptx


def test_a_fragment_that_compiles_alone_is_compiled_as_it_is_included(tmp_path: Path) -> None:
    fragment = tmp_path / "kernels.cu"
    fragment.write_text(
        "#ifndef SIZE\n#define SIZE 32\n#endif\n"
        "template <class T> __global__ void k(T *p) {\n"
        "__shared__ T s[SIZE]; s[threadIdx.x] = p[threadIdx.x]; __syncthreads(); p[threadIdx.x] = s[0]; }\n"
    )
    (tmp_path / "main.cu").write_text(
        '#define SIZE 96\n#include "kernels.cu"\nint main() { k<double><<<1, SIZE>>>(nullptr); }\n'
    )
    (tmp_path / ".git").mkdir()
    unit = compile_source(fragment, settings=AUTOMATIC)
    assert unit.notes[0] == "compiled through main.cu, which includes it"
    assert "_Z1kIdEvPT_" in unit.ptx and "[768]" in unit.ptx
    changed = compile_source(fragment, text=fragment.read_text() + "\n__global__ void more() {}\n", settings=AUTOMATIC)
    assert "more" in changed.ptx  # what is not saved is in no other file
    (tmp_path / "main.cu").write_text(
        '#include "kernels.cu"\nint main() { this is wrong; }\n__device__ int f() { return wrong; }\n'
    )
    alone = compile_source(fragment, settings=AUTOMATIC)
    assert not alone.has_failed and not any("compiled through" in one for one in alone.notes)


def test_what_includes_a_fragment_is_read_again_when_it_changes(tmp_path: Path) -> None:
    fragment, main = tmp_path / "kernels.cu", tmp_path / "main.cu"
    fragment.write_text(KERNEL)
    main.write_text("int main() {}\n")
    assert find_including(fragment) is None
    main.write_text('#include "kernels.cu"\nint main() {}\n')
    assert find_including(fragment) == main


def test_a_fragment_nobody_includes_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    unit = compile_text(tmp_path, "__global__ void k(float *p) { p[0] *= SCALE; }\n", "kernels.cu")
    assert unit.has_failed and any('"SCALE" is undefined' in one.text for one in unit.messages)


def test_nvcc_alone_is_taken_at_its_word(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL + "int main() { cudaThreadExit(); }\n")
    choice = CompileSettings(choice=CompilerChoice.NVCC, keeps_units=False, limit_s=LIMIT_S)
    assert compile_source(path, settings=choice).has_failed


def test_a_fragment_is_not_compiled_through_a_source_that_includes_another_of_its_name(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernels.cu").write_text(f'extern "C" __global__ void {name}(float *a) {{ a[0] = 1; }}\n')
    (tmp_path / "other" / "main.cu").write_text('#include "kernels.cu"\nint main() { return 0; }\n')
    mine, other = (compile_source(tmp_path / name / "kernels.cu", settings=AUTOMATIC) for name in ("mine", "other"))
    assert ".entry mine" in mine.ptx and not any("through" in one for one in mine.notes)
    assert ".entry other" in other.ptx
    assert other.notes[0] == "compiled through main.cu, which includes it"


def test_a_fragment_that_is_included_under_a_condition_that_does_not_hold_is_compiled_alone(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    fragment = tmp_path / "kernels.cu"
    fragment.write_text('extern "C" __global__ void mine(float *a) { a[0] = 1; }\n')
    (tmp_path / "main.cu").write_text(
        f'#ifdef NEVER\n#include "kernels.cu"\n#endif\n{KERNEL}int main() {{ k<<<1, 32>>>(nullptr); }}\n'
    )
    unit = compile_source(fragment, settings=AUTOMATIC)
    assert ".entry mine" in unit.ptx
