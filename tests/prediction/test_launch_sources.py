"""Launches of profiles."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.launch_sources import describe_launch
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.profile.model import Metric
from tests.rows.builders import make_launch

SHARED = "launch__shared_mem_per_block_dynamic"
GIVEN = read_launches(
    Path("k.launch.toml"),
    text="""
[[launch]]
kernel = "other"
block = 64
grid = 7
[[launch]]
kernel = "blur"
block = 32
threads = 1000
arguments = [ { name = "n", type = "int", value = 1 } ]
[[launch]]
kernel = "_Z4bluri"
block = [16, 2]
threads = [112, 6]
shared_bytes = 12
arguments = [ { name = "n", type = "int", value = 2 } ]
""",
)


def test_size_and_shared_memory_are_those_that_were_measured() -> None:
    measured = make_launch(
        "_Z4nonev", grid=(3, 2, 1), block=(8, 8, 1), metrics={SHARED: Metric(name=SHARED, value=2048)}
    )
    found = describe_launch(measured)
    assert (found.kernel, found.grid, found.block, found.shared_bytes) == ("_Z4nonev", (3, 2, 1), (8, 8, 1), 2048)
    assert (found.arguments, found.threads, found.path) == ((), None, None)


def test_arguments_are_those_of_a_description_of_the_kernel() -> None:
    found = describe_launch(make_launch("_Z4bluri", grid=(40, 1, 1), block=(256, 1, 1)), given=GIVEN)
    assert [one.value for one in found.arguments if hasattr(one, "value")] == [1]
    assert (found.grid, found.block, found.threads, found.shared_bytes) == ((40, 1, 1), (256, 1, 1), None, 0)
    assert (found.kernel, found.line) == ("_Z4bluri", 6)


def test_a_measured_size_is_no_guess() -> None:
    guessed = replace(GIVEN[1], guesses=("block", "threads", "n"))
    found = describe_launch(make_launch("_Z4bluri", grid=(40, 1, 1), block=(256, 1, 1)), given=(guessed,))
    assert found.guesses == ("n",)


def test_of_several_descriptions_the_one_of_the_same_size_counts() -> None:
    found = describe_launch(make_launch("_Z4bluri", grid=(7, 3, 1), block=(16, 2, 1)), given=GIVEN)
    assert [one.value for one in found.arguments if hasattr(one, "value")] == [2]
    assert found.threads == (112, 6, 1)
    assert found.shared_bytes == 0


def test_names_as_the_profiler_gives_them() -> None:
    for name in ({"plain_name": "blur"}, {"demangled_name": "blur"}):
        assert describe_launch(make_launch("", **name), given=GIVEN).arguments


def test_a_launch_that_failed_has_no_size() -> None:
    with pytest.raises(InputError, match="is unknown"):
        describe_launch(make_launch("_Z4bluri", grid=(0, 0, 0)), given=GIVEN)
