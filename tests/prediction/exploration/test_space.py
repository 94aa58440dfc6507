import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.execution.prediction.exploration.model import (
    Configuration,
    RankedConfiguration,
    build_space,
    parse_blocks,
    parse_folds,
    rank,
)
from gpa_lsp.foundation.errors import InputError


def test_the_grid_of_the_paper():
    """Blocks of 1,024 threads, x and y up to 1,024, z up to 64: 56 shapes (Warpspeed, section 5)."""
    assert len(build_space(["all"], [], threads=range(1024, 1025))) == 56
    assert len(build_space(["all"], ["1,2y,2z"], threads=range(512, 513))) == 49 * 3


def test_a_space_of_one_dimension_varies_x_alone():
    found = build_space([], [], dimensions=1)
    assert [one.block for one in found] == [(64, 1, 1), (128, 1, 1), (256, 1, 1), (512, 1, 1), (1024, 1, 1)]


def test_the_same_block_twice_counts_once():
    assert len(build_space(["32x8", "32x8", "16,32x8"], [])) == 2


@pytest.mark.parametrize(
    "text", ["", "x", "0x8", "8x-1", "1x2x3x4", "32*8", "2048", "1x1x65", "64x64", "9" * 50, "8..4x1"]
)
def test_what_names_no_block_is_told_with_what_would(text):
    with pytest.raises(InputError, match="--block"):
        parse_blocks(text, range(1, 1025))


@pytest.mark.parametrize("text", ["", "y", "2", "2w", "0x", "2y2y", "2y,", "2y 2z"])
def test_what_is_no_fold_is_told(text):
    with pytest.raises(InputError, match="--fold"):
        parse_folds(text)


def test_an_empty_space_is_told():
    with pytest.raises(InputError, match="no block has between 7 and 7 threads"):
        build_space(["all"], [], threads=range(7, 8))


@given(st.tuples(*[st.integers(1, 4)] * 3), st.tuples(*[st.integers(1, 4)] * 3))
def test_what_is_written_is_read_again(block, fold):
    written = str(Configuration(block=block, fold=fold))
    shape, _, folding = written.partition(" fold ")
    assert parse_blocks(shape, range(0)) == (block,)
    assert parse_folds(folding.replace(" ", "") or "1") == (fold,)


def test_ranks_are_by_time_then_traffic_and_what_failed_comes_last():
    def make(x, seconds, dram):
        return RankedConfiguration(
            configuration=Configuration(block=(x, 1, 1)), seconds=seconds, dram_load_bytes=dram, dram_store_bytes=0.0
        )

    found = [make(1, None, None), make(2, 2.0, 5.0), make(3, 2.0, 4.0), make(4, 1.0, 9.0), make(5, 2.0, 4.0)]
    assert [one.configuration.block[0] for one in rank(found)] == [4, 3, 5, 2, 1]
