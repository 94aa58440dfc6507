"""Records travel as bytes, and what reads them makes plain data only."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

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
