"""An image says enough of its parameters and variables to simulate a launch, without its PTX."""

from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.containers import find_cubins
from gpa_lsp.code.binary.embedded_ptx import read_embedded_ptx
from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.prediction.launched_code import read_image_module
from gpa_lsp.foundation.errors import InputError

_CUBINS = Path(__file__).parents[2] / "fixtures" / "cubins"


@pytest.mark.parametrize(
    "path", sorted(_CUBINS.glob("sm_*/*_original.cubin")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_parameters_are_those_of_the_ptx(path: Path) -> None:
    (cubin,) = find_cubins(path)
    texts = read_embedded_ptx(cubin)
    if not texts:
        pytest.skip("it has no PTX to compare with")
    for function in parse_ptx(texts[0], name=path.name).entries:
        module = read_image_module(cubin, (function.name,))
        found = module.functions[function.name].parameters
        wanted = [(one.offset_bytes, one.size_bytes) for one in function.parameters]
        assert [(one.offset_bytes, one.size_bytes) for one in found] == wanted


def test_variables_are_there_with_what_they_begin_with() -> None:
    (cubin,) = find_cubins(_CUBINS / "sm_80" / "constant_indexed_original.cubin")
    module = read_image_module(cubin, ("_Z16constant_indexedPKjPfii",))
    table = module.variables["table"]
    (text,) = read_embedded_ptx(cubin)
    assert (table.space, table.size_bytes) == (Space.CONST, 4096)
    assert table.initial == parse_ptx(text, name="").variables["table"].initial


def test_a_kernel_that_is_not_in_the_image_has_none() -> None:
    (cubin,) = find_cubins(_CUBINS / "sm_80" / "constant_indexed_original.cubin")
    assert not read_image_module(cubin, ("another",)).functions
    assert not read_image_module(replace(cubin, path=None), ("another",)).functions


@pytest.mark.parametrize("step", [211, 1009])
def test_damaged_images_are_refused_or_say_less(step: int) -> None:
    (cubin,) = find_cubins(_CUBINS / "sm_80" / "constant_indexed_original.cubin")
    content = bytearray(cubin.image)
    for place in range(0, len(content), step):
        content[place] ^= 0xFF
        with suppress(InputError):
            read_image_module(replace(cubin, image=bytes(content)), cubin.functions)
        content[place] ^= 0xFF
