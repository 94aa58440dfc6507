import pytest

from gpa_lsp.editor.lines.finder import choose_anchor, find_definitions
from gpa_lsp.kernel.names import find_plain_name

CUDA = """\
// __global__ void commented(int);
__global__ void declared(float *x);
template <typename T>
__global__ void __launch_bounds__(256, 2)
scale(T *x, int n = (1 + 2)) {
}
extern "C" __global__ void plain(float *x) { }
namespace ns {
static __global__ __attribute__((used)) void
    second(int)
    // why not
    {
    }
}
__global__ void scale(double *x) { }
__global__ void declared(float *x) { }
"""


def test_cuda_definitions_are_found_and_declarations_are_not() -> None:
    assert find_definitions(CUDA) == {"scale": (4, 15), "plain": (7,), "second": (9,), "declared": (16,)}


def test_other_languages_have_definitions_too() -> None:
    assert find_definitions("@triton.jit\ndef _silu(x):\n    pass\n") == {"_silu": (2,)}
    assert find_definitions("function runsim!(x)\nend\n") == {"runsim!": (1,)}
    assert find_definitions("contains\n  Subroutine tend(x)\n attributes(global) subroutine k(x)\n") == {
        "tend": (2,),
        "k": (3,),
    }


@pytest.mark.parametrize("text", ["__global__", "__global__ void f(", "__global__ " + "(" * 5000, "__global__ f<<<<(("])
def test_half_typed_text_does_no_harm(text: str) -> None:
    assert find_definitions(text) == {}


@pytest.mark.parametrize(
    "text",
    ["__global__ " + "word " * 20_000, "__global__ void f" + "<" * 20_000, "__global__ " * 3_000],
    ids=["words", "brackets", "marks"],
)
def test_hostile_text_comes_to_an_end(text: str) -> None:
    """A search that is not linear in these would take minutes."""
    assert find_definitions(text) == {}


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("scale(float*)", "scale"),
        ("void ns::inner::scale<float, (int)4>(float*, int)", "scale"),
        ("void (anonymous namespace)::scale<std::pair<int, float> >(int)", "scale"),
        ("_silu_kernel", "_silu_kernel"),
        ("tend_325_gpu", "tend_325_gpu"),
    ],
)
def test_plain_names(name: str, plain: str) -> None:
    assert find_plain_name(name) == plain


def test_the_definition_above_the_body_is_chosen() -> None:
    definitions = find_definitions(CUDA)
    assert choose_anchor(definitions, "void scale<float>(float*, int)", 5) == 4
    assert choose_anchor(definitions, "scale(double*)", 15) == 15


def test_without_a_definition_the_body_itself_is_the_anchor() -> None:
    assert choose_anchor({}, "tend_325_gpu", 325) == 325


def test_a_body_that_is_gone_needs_an_unmistakable_definition() -> None:
    definitions = find_definitions(CUDA)
    assert choose_anchor(definitions, "plain(float*)", None) == 7
    assert choose_anchor(definitions, "scale(double*)", None) is None
    assert choose_anchor(definitions, "other()", None) is None
