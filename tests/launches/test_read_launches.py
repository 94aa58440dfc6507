"""The TOML beside a source."""

import json
import os
import tomllib
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpa_lsp.execution.launches
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.launches.launch import (
    ArrayArgument,
    Generator,
    LaunchDescription,
    ScalarArgument,
    StructArgument,
    TextureArgument,
)
from gpa_lsp.execution.launches.read_arguments import (
    ADDRESS_MODES,
    ARRAY_KEYS,
    FILTERS,
    SCALAR_KEYS,
    STRUCT_KEYS,
    TEXTURE_KEYS,
)
from gpa_lsp.execution.launches.read_launches import LAUNCH_KEYS, find_launch_file, read_launches
from gpa_lsp.foundation.errors import InputError
from tests.conftest import examples

SCHEMA = json.loads(
    Path(gpa_lsp.execution.launches.__file__).with_name("launch_schema.json").read_text(encoding="utf-8")
)
PATH = Path("k.launch.toml")

EVERYTHING = """
[constants]
width = 640
height = "width * 3 // 4"

[[launch]]
kernel = "blur"
title = "VGA"
block = [32, 8]
threads = ["width", "height"]
fold = [1, 2]
shared_bytes = "(block_x + 2) * (block_y + 2) * 4"
constants = { channels = 3 }
arguments = [
  { name = "in", type = "float", count = "n", fill = "uniform", low = -1, high = 1, seed = 7 },
  { name = "out", type = "float4", shape = ["height", "width"] },
  { name = "again", alias_of = "in", offset = 16 },
  { name = "n", type = "unsigned int", value = "width * height * channels" },
  { name = "scale", type = "double", value = "1 / 3.0" },
  { name = "taps", type = "half", values = [0.25, 0.5, 0.25] },
  { name = "far", type = "float", count = 10, offset = 3, fill = "constant", value = inf },
  { name = "order", type = "int", count = "grid_x * grid_y", fill = "permutation" },
  { name = "centre", type = "float2", value = [0.5, "n * 0"] },
  { name = "box", members = [
      { type = "char", value = 1 },
      { name = "data", type = "double", count = 4, fill = "sequence", low = 1, step = 0.5 },
      { members = [ { type = "short", value = [1, 2, 3] } ] },
      { type = "int", value = -1, at = 24 },
  ] },
  { name = "look", members = [ { name = "sky", type = "float", width = 4, height = 4, layers = 6, at = 8 } ] },
  { name = "picture", type = "uint8", width = 64, height = 32, channels = 4, filter = "linear", address = "wrap", normalized = true },
]
variables = [ { name = "table", type = "int", values = [1, 2, 3] } ]
memory = [
  { name = "row", type = "float", count = 8, base_address = 0x7_4000_0000 },
  { name = "colours", type = "float", width = 16, handle = 0x5_0000_0040 },
]

[[launch]]
kernel = "fill"
grid = 5
block = 64
  [[launch.arguments]]
  name = "x"
  type = "int64"
  count = 0
"""


def read(text: str, path: Path = PATH) -> tuple[LaunchDescription, ...]:
    return read_launches(path, text=text)


def read_argument(text: str, path: Path = PATH) -> ScalarArgument | ArrayArgument | StructArgument | TextureArgument:
    return read(f'[[launch]]\nkernel = "k"\nblock = 32\ngrid = 2\narguments = [ {text} ]', path)[0].arguments[0]


def test_everything_at_once() -> None:
    launch, fill = read(EVERYTHING)
    assert (launch.kernel, launch.title, launch.line, launch.path) == ("blur", "VGA", 6, PATH)
    assert (launch.block, launch.threads, launch.grid) == ((32, 8, 1), (640, 480, 1), (20, 30, 1))
    assert launch.shared_bytes == 34 * 10 * 4
    source, out, again, n, scale, taps, far, order, centre, box, look, picture = launch.arguments
    assert source == ArrayArgument(
        name="in",
        type=ScalarType.F32,
        count=921_600,
        generator=Generator.UNIFORM,
        value=0.0,
        low=-1.0,
        high=1.0,
        seed=7,
    )
    assert isinstance(out, ArrayArgument)
    assert (out.type, out.count, out.generator) == (ScalarType.F32, 640 * 480 * 4, Generator.ZEROS)
    assert isinstance(again, ArrayArgument)
    assert (again.alias_of, again.offset_elements, again.count) == ("in", 16, 921_600)
    assert n == ScalarArgument(name="n", type=ScalarType.U32, value=921_600)
    assert scale == ScalarArgument(name="scale", type=ScalarType.F64, value=1 / 3)
    assert isinstance(taps, ArrayArgument)
    assert (taps.type, taps.values, taps.count) == (ScalarType.F16, (0.25, 0.5, 0.25), 3)
    assert isinstance(far, ArrayArgument)
    assert (far.offset_elements, far.value) == (3, float("inf"))
    assert isinstance(order, ArrayArgument)
    assert order.count == 600
    assert isinstance(centre, StructArgument)
    assert [(at, one.value) for at, one in centre.members if isinstance(one, ScalarArgument)] == [(0, 0.5), (4, 0.0)]
    assert isinstance(box, StructArgument)
    assert [at for at, _ in box.members] == [0, 8, 16, 18, 20, 24]
    assert box.size_bytes == 32
    assert isinstance(picture, TextureArgument)
    assert (picture.array.count, picture.height, picture.is_linear_filter, picture.address_mode) == (
        8192,
        32,
        True,
        "wrap",
    )
    assert (picture.is_normalized, picture.reads_normalized) == (True, False)
    assert isinstance(look, StructArgument) and look.size_bytes == 16
    ((at, sky),) = look.members
    assert isinstance(sky, TextureArgument) and (at, sky.layers, sky.array.count) == (8, 6, 96)
    assert launch.variables[0].values == (1, 2, 3)
    row, colours = launch.memory
    assert isinstance(row, ArrayArgument) and row.base_address == 0x7_4000_0000
    assert isinstance(colours, TextureArgument) and colours.handle == 0x5_0000_0040
    assert (fill.grid, fill.block, fill.threads) == ((5, 1, 1), (64, 1, 1), None)
    assert fill.line == EVERYTHING.splitlines().index("[[launch]]", 10) + 1


def test_another_block_changes_what_follows_from_it() -> None:
    launch = read_launches(PATH, text=EVERYTHING, block=(16, 4, 1), fold=(2, 1, 1))[0]
    assert (launch.block, launch.grid, launch.threads) == ((16, 4, 1), (20, 120, 1), (640, 480, 1))
    assert launch.shared_bytes == 18 * 6 * 4
    assert (launch.fold, read_launches(PATH, text=EVERYTHING)[0].fold) == ((2, 1, 1), (1, 2, 1))


def test_the_schema_says_what_the_reader_says() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(tomllib.loads(EVERYTHING), SCHEMA)
    parts = SCHEMA["$defs"]
    assert set(parts["launch"]["properties"]) == LAUNCH_KEYS
    assert set(parts["array"]["properties"]) == ARRAY_KEYS
    assert set(parts["scalar"]["properties"]) == SCALAR_KEYS
    assert set(parts["struct"]["properties"]) == STRUCT_KEYS
    assert set(parts["texture"]["properties"]) == TEXTURE_KEYS
    assert parts["texture"]["properties"]["filter"]["enum"] == list(FILTERS)
    assert parts["texture"]["properties"]["address"]["enum"] == list(ADDRESS_MODES)
    assert parts["array"]["properties"]["fill"]["enum"] == [one.value for one in Generator]


def test_the_file_beside_a_source(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    assert find_launch_file(source) is None
    description = tmp_path / "kernel.launch.toml"
    description.write_text('[[launch]]\nkernel = "k"\nblock = 1\ngrid = 1\n')
    assert find_launch_file(source) == description
    assert read_launches(description)[0].kernel == "k"
    with pytest.raises(InputError, match="no such file"):
        read_launches(tmp_path / "absent.launch.toml")
    description.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read_launches(description)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "describes no launch", 1),
        ("launch = 1", "not a list of launches", 1),
        ("x = 1\n[[launch]]", "no key 'x'", 1),
        ("[[launch", "is not TOML", 1),
        ("x = " + "[" * 5000, "is not TOML", None),
        ("x = " + "9" * 5000, "is not TOML", None),
        ("[[launch]]\nblock = 1\ngrid = 1", "'kernel' is missing", 1),
        ('[[launch]]\nkernel = "k"\ngrid = 1', "'block' is missing", 1),
        ('[[launch]]\nkernel = "k"\nblock = 1', "neither grid nor threads", 1),
        ('[[launch]]\nkernel = "k"\nblock = 1\nthreads = 4\ngrid = 1', "both given", 5),
        ('[[launch]]\nkernel = "k"\n\nblok = 1\ngrid = 1', "did you mean 'block'?", 4),
        ('[[launch]]\nkernel = "k"\nblock = [1, 2, 3, 4]\ngrid = 1', "has 4 numbers", 3),
        ('[[launch]]\nkernel = "k"\nblock = 0\ngrid = 1', "block is 0", 3),
        ('[[launch]]\nkernel = "k"\nblock = 1.5\ngrid = 1', "not an integer", 3),
        ('[[launch]]\nkernel = "k"\nblock = "widht"\ngrid = 1\nconstants = { width = 3 }', "did you mean 'width'?", 3),
        ('[[launch]]\nkernel = "k"\nblock = "a"\ngrid = 1\nconstants = { a = "b", b = "a" }', "depends on itself", 5),
        ('[[launch]]\nkernel = "k"\nblock = "grid_x"\nthreads = 4', "depends on itself", 3),
        ('[[launch]]\nkernel = "k"\nblock = "7 / 2"\ngrid = 1', "leaves a remainder", 3),
        ('[[launch]]\nkernel = "k"\nblock = "__import__(1)"\ngrid = 1', "no function '__import__'", 3),
        ('[[launch]]\nkernel = "k"\nblock = 1\ngrid = 1\nshared_bytes = -4', "shared_bytes is -4", 5),
        ('[[launch]]\nkernel = "k"\nblock = 1\ngrid = 1\narguments = 5', "not a list of arguments", 5),
    ],
)
def test_what_is_wrong_with_a_launch_is_said_with_its_line(text: str, message: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)
    assert caught.value.place == (None if line is None else f"line {line}")
    assert caught.value.path == PATH
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{ name = "x" }', "neither a number nor an array"),
        ('{ name = "x", value = 1 }', "'type' is missing"),
        ('{ name = "x", type = "flaot", value = 1 }', "did you mean 'float'?"),
        ('{ name = "x", type = "int", value = 3000000000 }', "does not fit s32"),
        ('{ name = "x", type = "unsigned", value = -1 }', "does not fit u32"),
        ('{ name = "x", type = "int", value = 1.5 }', "not an integer"),
        ('{ name = "x", type = "int", value = nan }', "not an integer"),
        ('{ name = "x", type = "int", value = [1, 2] }', "2 numbers for 1"),
        ('{ name = "x", type = "int", value = 1, cuont = 2 }', "no key 'cuont'"),
        ('{ name = "x", type = "int", count = -1 }', "count is -1"),
        ('{ name = "x", type = "int", count = 99999999999999 }', "count is 99999999999999"),
        ('{ name = "x", type = "int", count = 1, shape = [1] }', "the shape is invalid"),
        ('{ name = "x", type = "int", fill = "random", count = 1 }', "fill is 'random'"),
        ('{ name = "x", type = "int", fill = "values", count = 1 }', "without 'values'"),
        ('{ name = "x", type = "int", fill = "zeros", values = [1] }', "'values' is given, and fill is 'zeros'"),
        ('{ name = "x", type = "int", fill = "uniform" }', "has no size"),
        ('{ name = "x", type = "int", count = 4, offset = 5 }', "offset is 5"),
        ('{ name = "x", type = "int", values = [1, 300, "a"] }', "'a' is not defined"),
        ('{ name = "x", type = "uint8", values = [1, 300] }', "300 does not fit u8"),
        ('{ name = "x", alias_of = "y" }', "names no array above"),
        ('{ name = "x", type = "int", count = 1 }, { name = "x", type = "int", value = 1 }', "two arguments are named"),
        ('{ name = "x", type = "int", count = 1 }, { name = "x", type = "int", count = 1 }', "two arrays are named"),
        (f'{{ name = "x", type = "int", count = 1, fill = "uniform", low = {10**400} }}', "more than 100 bits"),
        ('{ name = "x", members = [ { type = "int" } ] }', "has no value"),
        ('{ name = "x", members = [ { type = "int", value = 1 } ], size = 2 }', "members end at byte 4"),
        ('{ name = "x", members = [ { type = "int", value = 1, at = 99999 } ] }', "at is 99999"),
        ('{ name = "x", members = 1 }', "not a list of members"),
        ('{ name = "x", members = [] }', "size is 0"),
        ('{ name = "x", type = "float", width = 0 }', "width is 0"),
        ('{ name = "x", type = "float", width = 4, depth = 4 }', "no height"),
        ('{ name = "x", type = "float", width = 4, channels = 3 }', "3 channels"),
        ('{ name = "x", type = "float4", width = 4 }', "a vector type"),
        ('{ name = "x", type = "float", width = 4, filter = "cubic" }', "filter is 'cubic'"),
        ('{ name = "x", type = "float", width = 4, normalized = 1 }', "neither true nor false"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_argument(text)
    assert message in str(caught.value)
    assert caught.value.place == "line 5"
    assert caught.value.remedy


def test_a_variable_and_an_argument_have_different_names() -> None:
    array = '[ { name = "x", type = "int", count = 1 } ]'
    with pytest.raises(InputError, match="an argument is named 'x', too") as caught:
        read(f'[[launch]]\nkernel = "k"\nblock = 1\ngrid = 1\narguments = {array}\nvariables = {array}')
    assert caught.value.place == "line 6"


def test_files_give_arrays_their_size(tmp_path: Path) -> None:
    path = tmp_path / "k.launch.toml"
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "in.npy", np.zeros((3, 5), dtype=np.float32))
    (tmp_path / "raw.bin").write_bytes(bytes(24))
    found = read_argument('{ name = "x", type = "float", file = "data/in.npy" }', path)
    assert isinstance(found, ArrayArgument)
    assert (found.count, found.generator, found.file) == (15, Generator.FILE, tmp_path.resolve() / "data" / "in.npy")
    raw = read_argument('{ name = "x", type = "double", file = "raw.bin" }', path)
    assert isinstance(raw, ArrayArgument)
    assert raw.count == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/etc/hostname", "not below"),
        ("../outside.npy", "not below"),
        ("data/../../outside.npy", "not below"),
        ("link.npy", "not below"),
        ("folder_link/outside.npy", "not below"),
        ("absent.npy", "no file"),
        ("data", "no file"),
        ("pipe", "no file"),
        ("a\\u0000b", "not below"),
        ("wide.npy", "<f8"),
        ("big.npy", ">f4"),
        ("objects.npy", "not a plain array"),
        ("structured.npy", "not a plain array"),
        ("columns.npy", "columns come first"),
        ("short.npy", "ends early"),
        ("fake.npy", "not an array of numpy.save"),
        ("odd.bin", "not a whole number"),
        ("long.npy", "99999999999999 elements"),
    ],
)
def test_files_that_are_not_used(tmp_path: Path, name: str, message: str) -> None:
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    np.save(tmp_path / "outside.npy", np.zeros(4, dtype=np.float32))
    (home / "link.npy").symlink_to(tmp_path / "outside.npy")
    (home / "folder_link").symlink_to(tmp_path)
    os.mkfifo(home / "pipe")
    np.save(home / "wide.npy", np.zeros(4))
    np.save(home / "big.npy", np.zeros(4, dtype=">f4"))
    np.save(home / "objects.npy", np.array([{}, []], dtype=object))
    np.save(home / "structured.npy", np.zeros(4, dtype=[("a", "f4")]))
    np.save(home / "columns.npy", np.zeros((4, 4), dtype=np.float32, order="F"))
    np.save(home / "short.npy", np.zeros(4, dtype=np.float32))
    whole = (home / "short.npy").read_bytes()
    (home / "short.npy").write_bytes(whole[:-4])
    (home / "long.npy").write_bytes(whole.replace(b"(4,), }", b"(99999999999999,), }")[:128])
    (home / "fake.npy").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    (home / "odd.bin").write_bytes(b"abcde")
    with pytest.raises(InputError) as caught:
        read_argument(f'{{ name = "x", type = "float", file = "{name}" }}', home / "k.launch.toml")
    assert message in str(caught.value)
    assert caught.value.remedy


def test_a_count_that_is_not_the_files(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.zeros(4, dtype=np.float32))
    with pytest.raises(InputError, match="holds 4 elements, not 5"):
        read_argument('{ name = "x", type = "float", count = 5, file = "in.npy" }', tmp_path / "k.launch.toml")


_WORDS = st.sampled_from(
    (
        "[[launch]]",
        "[constants]",
        "kernel",
        "block",
        "grid",
        "arguments",
        "name",
        "type",
        "value",
        "count",
        "members",
        "width",
        "=",
        "[",
        "]",
        "{",
        "}",
        ",",
        "1",
        "-1",
        "1e400",
        "nan",
        "true",
        '"k"',
        '"float"',
        '"n*2"',
        '"("',
        "#",
        "'''",
        "2020-01-01",
        "a.b",
        "\n",
    )
)


@given(st.lists(_WORDS, max_size=40).map(" ".join) | st.text())
@examples(100)
def test_no_text_breaks_it(text: str) -> None:
    for whole in (text, f'[[launch]]\nkernel = "k"\nblock = 32\ngrid = 2\narguments = [ {{ {text} }} ]'):
        try:
            read(whole)
        except InputError as error:
            assert error.remedy
            assert error.path == PATH


_VALUES = st.recursive(
    st.none()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.booleans()
    | st.sampled_from(["float", "int4", "n", "uniform", "1 << 90"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(sorted(ARRAY_KEYS | TEXTURE_KEYS | STRUCT_KEYS)), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(ARRAY_KEYS | TEXTURE_KEYS | STRUCT_KEYS)), _VALUES, max_size=8))
@examples(100)
def test_no_value_breaks_it(argument: dict[str, object]) -> None:
    try:
        read_argument(write_value(argument))
    except InputError as error:
        assert error.remedy


def write_value(value: object) -> str:
    """TOML of a value; None as an empty text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {write_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(write_value(one) for one in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(value or "").replace("\x7f", "")


def test_only_arrays_and_textures_stand_in_memory() -> None:
    text = '[[launch]]\nkernel = "k"\nblock = 1\ngrid = 1\nmemory = [ { name = "n", type = "int", value = 1 } ]'
    with pytest.raises(InputError, match="'n' is no array and no texture"):
        read(text)
    both = '{ name = "t", type = "float", width = 4, height = 4, depth = 2, layers = 2 }'
    with pytest.raises(InputError, match="a texture with depth has layers"):
        read_argument(both)


@pytest.mark.parametrize("listed", ['"n"', "3", '["n", 4]'])
def test_guesses_are_a_list_of_names(listed: str) -> None:
    text = f'[[launch]]\nkernel = "k"\nblock = 32\ngrid = 1\nguesses = {listed}\n'
    with pytest.raises(InputError, match="guesses is no list of names"):
        read_launches(Path("k.launch.toml"), text=text)


def test_a_structure_may_be_as_large_as_all_parameters_of_a_kernel() -> None:
    members = ", ".join('{ type = "int", value = 1 }' for _ in range(32764 // 4))
    argument = read_argument(f'{{ name = "x", members = [ {members} ] }}')
    assert isinstance(argument, StructArgument)
    assert argument.size_bytes == 32764
