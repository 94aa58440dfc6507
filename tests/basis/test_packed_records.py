"""Records that hold much travel as bytes, and what reads them makes plain data only."""

import copy
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.basis import packed_records
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.packed_records import PackedRecord, pack_records, unpack_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heavy(PackedRecord):
    items: Any
    name: str = ""


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long the contents were that were taken apart."""
    lengths: list[int] = []

    def unpack(content: bytes) -> Any:
        lengths.append(len(content))
        return unpack_records(content)

    monkeypatch.setattr(packed_records, "unpack_records", unpack)
    monkeypatch.setattr(packed_records._RecordUnpickler, "find_class", pickle.Unpickler.find_class)
    return lengths


def test_whoever_hands_one_on_makes_nothing_of_it(unpacked: list[int]) -> None:
    heavy = Heavy(items=(Item(number=1), Item(number=2)), name="a")
    handed_on = heavy
    for _ in range(3):
        handed_on = pickle.loads(pickle.dumps(handed_on))
    assert unpacked == []
    assert handed_on.__getstate__() == heavy.__getstate__()
    assert [item.number for item in handed_on.items] == [1, 2] and handed_on.name == "a"
    assert len(unpacked) == 1, "all fields together"


def test_it_is_a_dataclass_as_others_are(unpacked: list[int]) -> None:
    heavy = Heavy(items=(1, 2), name="a")
    assert pickle.loads(pickle.dumps(heavy)) == heavy == copy.deepcopy(heavy)
    assert hash(pickle.loads(pickle.dumps(heavy))) == hash(heavy)
    assert repr(pickle.loads(pickle.dumps(heavy))) == repr(heavy)
    changed = replace(pickle.loads(pickle.dumps(heavy)), name="b")
    assert (changed.items, changed.name) == ((1, 2), "b")
    assert pickle.loads(pickle.dumps(changed)).name == "b"
    assert unpacked


def test_a_name_that_is_no_field_is_none() -> None:
    heavy = Heavy(items=())
    for one in (heavy, pickle.loads(pickle.dumps(heavy))):
        with pytest.raises(AttributeError, match="nothing"):
            _ = one.nothing
        assert one.items == ()


class Hostile:
    """Runs when it is unpickled by anybody careless."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.mark),))


def test_what_is_packed_runs_no_code_when_a_field_is_asked_for(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    received = pickle.loads(pickle.dumps(Heavy(items=Hostile(mark))))
    with pytest.raises(pickle.UnpicklingError, match="no part of a report"):
        _ = received.items
    with pytest.raises(pickle.UnpicklingError, match="no part of a report"):
        unpack_records(pack_records(Hostile(mark)))
    assert not mark.exists()
