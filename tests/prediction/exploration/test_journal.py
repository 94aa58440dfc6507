import pytest
from msgspec.structs import replace

from gpa_lsp.execution.prediction.exploration.explore import Journal, Subject
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration
from gpa_lsp.foundation.errors import InputError, MismatchError

SUBJECT = Subject(kernel="k", device="V100", mode="default", threads=(512, 512, 1), digest="ab" * 16)


def make(x: int) -> RankedConfiguration:
    return RankedConfiguration(
        configuration=Configuration(block=(x, 2, 1)), seconds=x / 3, limiter="DRAM", warps_per_sm=x
    )


def test_what_was_done_is_there_when_it_is_opened_again(tmp_path):
    path = tmp_path / "j"
    with Journal(path, SUBJECT) as journal:
        assert journal.done == ()
        journal.add([make(1), make(2)])
    with Journal(path, SUBJECT) as journal:
        assert journal.done == (make(1), make(2))
        journal.add([make(3)])
    with Journal(path, SUBJECT) as journal:
        assert journal.done == (make(1), make(2), make(3))


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_that_was_cut_off_is_done_again(tmp_path, cut):
    path = tmp_path / "j"
    with Journal(path, SUBJECT) as journal:
        journal.add([make(1), make(2)])
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal(path, SUBJECT) as journal:
        assert journal.done == (make(1),)
        journal.add([make(2)])
    with Journal(path, SUBJECT) as journal:
        assert journal.done == (make(1), make(2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kernel": "other"}, "another kernel"),
        ({"device": "A100"}, "another device"),
        ({"threads": (1, 1, 1)}, "another threads"),
        ({"digest": "00"}, "another code, arguments or model"),
    ],
)
def test_a_journal_about_something_else_is_left_alone(tmp_path, change, words):
    path = tmp_path / "j"
    with Journal(path, SUBJECT) as journal:
        journal.add([make(1)])
    before = path.read_bytes()
    with pytest.raises(MismatchError, match=words):
        Journal(path, replace(SUBJECT, **change))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        b"thesis",
        b"{}\n",
        b"null\n",
        b'{"format": 7}\n',
        b'{"format": "gpa-lsp/exploration/1"}\n',
        b"\0" * 10,
        b"[" * 70_000,
        b'{"format": "x"',
    ],
)
def test_another_file_is_left_alone(tmp_path, text):
    path = tmp_path / "j"
    path.write_bytes(text)
    with pytest.raises(InputError):
        Journal(path, SUBJECT)
    assert path.read_bytes() == text


def test_a_line_that_is_wrong_is_named(tmp_path):
    path = tmp_path / "j"
    with Journal(path, SUBJECT) as journal:
        journal.add([make(1)])
    first, *_ = path.read_text().splitlines()
    path.write_text(f'{first}\n{{"configuration": {{"block": [1e999, 1, 1], "fold": [1, 1, 1]}}}}\n')
    with pytest.raises(InputError, match="line 2"):
        Journal(path, SUBJECT)


def test_a_folder_is_no_journal(tmp_path):
    with pytest.raises(InputError, match="is not a regular file"):
        Journal(tmp_path, SUBJECT)
