"""Uses of local memory told apart; what is made of them is in register_reuse.md."""

import pytest

from gpa_lsp.kernel.dataflow.local_accesses import LocalUse, find_local_accesses
from tests.dataflow.test_arithmetic_sequences import read_fixture
from tests.rows.listings import ARRAY, SAVED, SPILL
from tests.rows.written import write_kernel

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")


def list_uses(text: str) -> list[LocalUse]:
    return [one.use for one in find_local_accesses(write_kernel(text).rows)]


def test_a_place_that_is_written_and_read_again_by_its_offset_is_a_spill() -> None:
    assert list_uses(SPILL) == [LocalUse.SPILL, LocalUse.SPILL]
    # Without the mark of a last use too.
    assert list_uses(SPILL.replace(".LU", "")) == [LocalUse.SPILL, LocalUse.SPILL]
    store, load = find_local_accesses(write_kernel(SPILL).rows)
    assert (store.slots, load.slots, store.value_row, load.value_row) == ((8,), (8,), 0, None)


def test_an_address_that_depends_on_an_index_makes_an_array_of_its_frame() -> None:
    assert set(list_uses(ARRAY)) == {LocalUse.ARRAY}
    indexed = [one.is_indexed for one in find_local_accesses(write_kernel(ARRAY).rows)]
    assert indexed == [False, True, True, False]


def test_a_register_that_a_called_function_only_keeps_is_saved() -> None:
    assert list_uses(SAVED) == [LocalUse.SAVED_REGISTER, LocalUse.SAVED_REGISTER]


def test_a_copy_of_the_stack_pointer_is_no_index() -> None:
    text = SPILL.replace("LDL.LU R5, [R1+0x8]", "LDL R5, [R7+0x4]     ").replace(
        "    loop:", "        IADD3 R7, R1, 0x4, RZ  # k.cu:4\n    loop:"
    )
    assert [(one.use, one.slots) for one in find_local_accesses(write_kernel(text).rows)] == [
        (LocalUse.SPILL, (8,)),
        (LocalUse.SPILL, (8,)),
    ]


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_the_fixtures_accesses_are_what_their_patterns_say(sm: str) -> None:
    expected = {
        "register_spill": LocalUse.SPILL,
        "local_array": LocalUse.ARRAY,
        "recursion": LocalUse.SAVED_REGISTER,
    }
    for pattern, use in expected.items():
        accesses = find_local_accesses(read_fixture(pattern, "original", sm))
        assert {one.use for one in accesses} == {use}, pattern
        assert find_local_accesses(read_fixture(pattern, "improved", sm)) == (), pattern
    spills = [one for one in find_local_accesses(read_fixture("register_spill", "original", sm)) if one.is_store]
    assert all(one.value_row is not None and one.value_row < one.row for one in spills)
