"""Folder of the history, and abilities of its file system."""

from pathlib import Path

import platformdirs
import pytest

from gpa_lsp.report.history.database import is_shared_between_machines
from gpa_lsp.report.history.model import find_database

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:30 / /home rw,relatime shared:2 - nfs4 server:/export rw
31 30 0:31 / /home/me/local rw,relatime shared:3 - xfs /dev/sdb rw
32 22 0:32 / /data\040sets rw,relatime - lustre mds:/x rw
33 22 0:33 / /over rw - nfs server:/y rw
34 33 0:34 / /over rw master:1 - tmpfs tmpfs rw
a line that is no mount
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/root/x.db", False),
        ("/home/me/.local/x.db", True),
        ("/homestead/x.db", False),
        ("/home/me/local/x.db", False),
        ("/home/me/locally/x.db", True),
        ("/data sets/x.db", True),
        ("/over/x.db", False),
    ],
)
def test_the_innermost_mount_decides(path: str, expected: bool) -> None:
    assert is_shared_between_machines(Path(path), MOUNTS) is expected


def test_without_a_table_of_mounts_the_disk_is_taken_for_local() -> None:
    assert not is_shared_between_machines(Path("/x.db"), "")


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path))
    assert find_database() == tmp_path / "history.db"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GPA_LSP_DATA_DIR", "~/data")
    assert find_database() == tmp_path / "data" / "history.db"
    monkeypatch.delenv("GPA_LSP_DATA_DIR")
    assert find_database() == platformdirs.user_data_path("gpa-lsp", appauthor=False) / "history.db"
