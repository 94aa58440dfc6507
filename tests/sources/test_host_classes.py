"""Launches that methods of objects make: with what constructors, members and those who call say."""

import pytest

from gpa_lsp.code.sources.assumed_launches import find_assumed_launches
from gpa_lsp.code.sources.host_launches import find_host_launches

KERNEL = "__global__ void k(float *x, int n) {}\n"
INSIDE = """\
struct Field {
    int n = 100, unused;
    dim3 block{32, 2};
    float *data = nullptr;
    Field(int rows, int columns) : n(rows * columns) { cudaMalloc(&data, n * sizeof(float)); }
    int blocks() const { return (n + 63) / 64; }
    void step() { this->run(); }
    void run() { k<<<blocks(), block>>>(data, n); }
};
"""
OUTSIDE = """\
class Field {
    int n, unused;
    dim3 block;
    float *data;
public:
    Field(int rows, int columns);
    void step();
};
Field::Field(int rows, int columns) : n{rows} { n *= columns; block = dim3(32, 2); cudaMalloc((void **)&data, sizeof(float) * n); }
void Field::step() { int blocks = n / 64 + 1; k<<<blocks, block>>>(data, n); }
"""


@pytest.mark.parametrize("text", [INSIDE, OUTSIDE])
@pytest.mark.parametrize(
    "host",
    [
        "Field f(10, 20); f.step();",
        "int rows = 10, columns = 20; Field f(rows, columns); f.step();",
        "Field f{10, 20}; f.step();",
        "auto f = Field(10, 20); f.step();",
        "Field *f = new Field(10, 20); f->step();",
        "auto f = std::make_unique<Field>(10, 20); f->step();",
        "Field f(10, 20); Field &g = f; go(g);",
    ],
)
def test_methods_launch_with_what_their_object_holds(text: str, host: str) -> None:
    whole = f"{KERNEL}{text}void go(Field &one) {{ one.step(); }}\nint main() {{ {host} }}"
    (launch,) = find_host_launches("k.cu", whole)
    assert (launch.grid, launch.block) == ((4, 1, 1), (32, 2, 1))
    assert [one.value or one.size_bytes for one in launch.arguments] == [800, 200]


def test_what_is_passed_to_a_constructor_that_nothing_calls_is_a_guess() -> None:
    (known,) = find_host_launches("k.cu", KERNEL + OUTSIDE)
    assert (known.grid, known.block) == (None, (32, 2, 1))
    (launch,) = find_assumed_launches("k.cu", KERNEL + OUTSIDE)
    assert (launch.inputs, launch.guessed) == ((("rows", 512), ("columns", 512)), {"grid"})
    assert (launch.grid, launch.arguments[1].value) == ((4097, 1, 1), 262144)


def test_members_of_one_object_are_not_those_of_another() -> None:
    host = "int n = 5; Field a(1, 64), b(2, 64); a.step(); b.step(); k<<<n, 32>>>(0, n);"
    found = find_host_launches("k.cu", f"{KERNEL}{INSIDE}int main() {{ {host} }}")
    assert [(one.grid, one.arguments[1].value) for one in found] == [
        ((1, 1, 1), 64),
        ((2, 1, 1), 128),
        ((5, 1, 1), 5),
    ]


def test_types_that_macros_name_have_their_size() -> None:
    text = "#define REAL double\nstruct Point { REAL x; REAL y; };\n" + KERNEL
    (launch,) = find_host_launches("k.cu", text + "int main() { k<<<sizeof(Point), 32>>>(0, sizeof(REAL)); }")
    assert (launch.grid, launch.arguments[1].value) == ((16, 1, 1), 8)
