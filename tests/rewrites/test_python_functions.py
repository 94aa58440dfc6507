"""Python functions that a decorator compiles for a GPU, and what names mean in them."""

import pytest

from gpa_lsp.code.sources.trees import SourceTree, read_text, read_tree, walk
from gpa_lsp.diagnosis.rewrites.python_functions import (
    PythonFunction,
    find_argument,
    find_compiled,
    find_compiled_around,
    find_module_names,
    read_imports,
)

TEXT = """
import os.path, numpy as np
import triton.language as tl
from numba import cuda, float32 as f4
try:
    import triton
except ImportError:
    triton = None

limit: int = 4

@cuda.jit(device=True)
def helper(x):
    return x

@other
@triton.jit
def kernel(x, *rest, tl2=1, **more):
    def inner(y): return y
    for i, (j, k) in rest: z = y = 1
    x.field, x[0] = 1, 2
    if (w := 3): pass

def plain(x): return x

class C:
    @cuda.jit
    def method(self): pass
"""


def tree(text: str = TEXT) -> SourceTree:
    found = read_tree("k.py", text)
    assert found is not None
    return found


def function(name: str, text: str = TEXT) -> PythonFunction:
    (found,) = find_compiled(tree(text), name)
    return found


def test_imports() -> None:
    assert dict(read_imports(tree())) == {
        "os": "os",
        "np": "numpy",
        "tl": "triton.language",
        "cuda": "numba.cuda",
        "f4": "numba.float32",
        "triton": "triton",
    }
    assert read_imports(tree("from a import x\nfrom b import x\nimport x.y\n")) == {}


def test_names_of_the_module() -> None:
    assert find_module_names(tree()) == {"limit", "helper", "kernel", "plain", "C"}


def test_compiled_functions() -> None:
    assert function("helper").compiler == "numba.cuda.jit"
    assert function("kernel").compiler == "triton.jit"
    assert read_text(function("kernel").decorator) == "triton.jit"
    assert find_compiled(tree(), "plain") == ()
    assert find_compiled(tree(), "method") == ()
    assert read_text(find_argument(function("helper").decorator, "device")) == "True"
    assert find_argument(function("helper").decorator, "opt") is None


def test_the_function_around_a_node() -> None:
    found = {
        one.name
        for node in walk(tree().root)
        if node.type in ("return_statement", "pass_statement")
        and (one := find_compiled_around(tree(), node)) is not None
    }
    assert found == {"helper", "kernel", "method"}


def test_names_a_function_binds() -> None:
    assert function("kernel").bound >= {"x", "rest", "tl2", "more", "i", "j", "k", "z", "y", "w"}
    assert "field" not in function("kernel").bound


@pytest.mark.parametrize(
    ("expression", "meaning"),
    [
        ("np.float32", "numpy.float32"),
        ("tl.range", "triton.language.range"),
        ("cuda.shared.array", "numba.cuda.shared.array"),
        ("f4", "numba.float32"),
        ("range", "range"),
        ("x", None),
        ("x.float32", None),
        ("len", None),
        ("f().np", None),
        ("np[0].x", None),
    ],
)
def test_meanings(expression: str, meaning: str | None) -> None:
    text = f"{TEXT}\n@cuda.jit\ndef k(x):\n    return {expression}\n"
    (found,) = find_compiled(tree(text), "k")
    (returned,) = (node for node in walk(found.node) if node.type == "return_statement")
    assert found.find_meaning(returned.named_children[0]) == meaning


def test_a_text_that_does_not_parse_has_no_function() -> None:
    assert find_compiled(tree(TEXT.replace("return x", "return = x", 1)), "helper") == ()
