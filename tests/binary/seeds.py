"""Device images of our own: input of the tests, and seeds of the mutation tests."""

from functools import cache
from pathlib import Path

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.model import Cubin
from tests.conftest import ROOT

FIXTURES = ROOT / "fixtures"
CONTAINERS = FIXTURES / "containers" / "built"


def find_fixture_cubins() -> list[Path]:
    """All cubins of the fixtures, linked and not, of CUDA 12 and 13."""
    return sorted(FIXTURES.glob("cubins/*/*.cubin")) + sorted(CONTAINERS.glob("*.cubin"))


@cache
def read_fixture(path: Path) -> Cubin:
    """A fixture cubin, read once."""
    return read_cubin(path.read_bytes(), path=path)


def name_of(path: Path) -> str:
    """The name that a fixture gives to a test."""
    return f"{path.parent.name}/{path.name}"


# A few of each layout, small enough to be read thousands of times.
SMALL_SEEDS = [
    CONTAINERS / "inline_chain_nvrtc12.sm_70.cubin",
    CONTAINERS / "recursion_nvrtc12.sm_70.cubin",
    CONTAINERS / "relocatable_main_unit.sm_90.cubin",
    CONTAINERS / "two_units_linked.sm_90.cubin",
    FIXTURES / "cubins" / "sm_120" / "inline_chain_original.cubin",
    FIXTURES / "cubins" / "sm_80" / "jump_table_original.cubin",
]
