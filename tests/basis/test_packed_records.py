"""Records travel as bytes, and what reads them makes plain data only."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.packed_records import pack_records, unpack_records


class Hostile:
    """Runs when it is unpickled by anybody careless."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.mark),))


def test_what_is_unpacked_runs_no_code(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(pickle.UnpicklingError, match="no part of a report"):
        unpack_records(pack_records(Hostile(mark)))
    assert not mark.exists()


class Attribute:
    """Is written as an attribute of a type, as members of enumerations are by the first versions of Python 3.11."""

    def __init__(self, *place: object) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return (getattr, self.place)


def test_members_are_read_whatever_version_wrote_them() -> None:
    packed = pack_records([ProblemSeverity.NOTE, Attribute(ProblemSeverity, "ERROR")])
    assert unpack_records(packed) == [ProblemSeverity.NOTE, ProblemSeverity.ERROR]


@pytest.mark.parametrize("place", [(Problem, "__init__"), (ProblemSeverity, "__init__"), (ProblemSeverity, "mro")])
def test_other_attributes_are_refused(place: tuple[type, str]) -> None:
    with pytest.raises(pickle.UnpicklingError, match="no part of a report"):
        unpack_records(pack_records(Attribute(*place)))
