"""Confirmations are remembered to the letter, and nothing else is."""

import json
import logging
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.profile.collect.allowance import SCHEMA, Allowance, find_allowance_file, make_digest

PROFILE = ("ncu", "-o", "${output}", "./app")
BUILD = ("make", "-j4")

WORDS = st.lists(st.text(max_size=4), min_size=1, max_size=4).map(tuple)


@pytest.fixture
def allowance(tmp_path: Path) -> Allowance:
    return Allowance(tmp_path / "data" / "allowed.json")


def test_nothing_is_allowed_at_first(allowance: Allowance, tmp_path: Path) -> None:
    assert not allowance.is_allowed(tmp_path, None, PROFILE)
    assert allowance.list_entries() == ()


def test_exactly_what_was_confirmed_is_allowed(allowance: Allowance, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    allowance.allow(workspace, BUILD, PROFILE)
    again = Allowance(allowance.file)
    assert again.is_allowed(workspace, BUILD, PROFILE)
    assert again.is_allowed(workspace / ".." / "work", BUILD, PROFILE)
    assert not again.is_allowed(tmp_path, BUILD, PROFILE)
    assert not again.is_allowed(workspace, None, PROFILE)
    assert not again.is_allowed(workspace, ("make", "-j4", "evil"), PROFILE)
    assert not again.is_allowed(workspace, BUILD, (*PROFILE, "--evil"))


def test_a_link_to_another_workspace_is_that_workspace(allowance: Allowance, tmp_path: Path) -> None:
    for name in ("real", "other"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    allowance.allow(link, None, PROFILE)
    assert allowance.is_allowed(tmp_path / "real", None, PROFILE)
    link.unlink()
    link.symlink_to(tmp_path / "other")
    assert not allowance.is_allowed(link, None, PROFILE)


@given(
    st.tuples(st.text(max_size=4), st.none() | WORDS, WORDS), st.tuples(st.text(max_size=4), st.none() | WORDS, WORDS)
)
def test_no_two_pairs_have_one_digest(one: tuple, other: tuple) -> None:
    assert (make_digest(*one) == make_digest(*other)) == (one == other)


def test_confirming_twice_is_confirming_once(allowance: Allowance, tmp_path: Path) -> None:
    allowance.allow(tmp_path, None, PROFILE)
    allowance.allow(tmp_path, None, PROFILE)
    assert len(allowance.list_entries()) == 1


def test_taking_back(allowance: Allowance, tmp_path: Path) -> None:
    first = allowance.allow(tmp_path, None, PROFILE)
    second = allowance.allow(tmp_path, BUILD, PROFILE)
    allowance.forget([first])
    assert allowance.list_entries() == (second,)
    assert not allowance.is_allowed(tmp_path, None, PROFILE)


def test_two_servers_at_once_keep_each_others(allowance: Allowance, tmp_path: Path) -> None:
    other = Allowance(allowance.file)
    allowance.allow(tmp_path, None, PROFILE)
    other.allow(tmp_path, BUILD, PROFILE)
    assert len(allowance.list_entries()) == 2


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_the_file_is_the_users_alone(allowance: Allowance, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    allowance.allow(tmp_path, None, PROFILE)
    assert stat.S_IMODE(allowance.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(allowance.file.parent.stat().st_mode) == 0o700
    allowance.file.chmod(0o666)
    with caplog.at_level(logging.WARNING):
        assert not allowance.is_allowed(tmp_path, None, PROFILE)
    assert "can be written by others" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        "",
        "nonsense",
        "[]",
        '{"schema": "other/1", "allowed": []}',
        f'{{"schema": "{SCHEMA}", "allowed": [3]}}',
        f'{{"schema": "{SCHEMA}", "allowed": [{{"workspace": "/w", "profile": [], "allowed_unix_s": 1}}]}}',
        f'{{"schema": "{SCHEMA}", "allowed": [{{"workspace": "/w", "profile": ["x"], "allowed_unix_s": 1, "sha256": "0"}}]}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_allows_nothing_and_is_set_aside(allowance: Allowance, tmp_path: Path, content: str) -> None:
    allowance.file.parent.mkdir()
    allowance.file.write_text(content)
    allowance.file.chmod(0o600)
    assert not allowance.is_allowed(tmp_path, None, PROFILE)
    assert not allowance.file.exists()
    assert (allowance.file.parent / "allowed.damaged.json").read_text() == content
    allowance.allow(tmp_path, None, PROFILE)
    assert allowance.is_allowed(tmp_path, None, PROFILE)


def test_an_entry_that_was_changed_is_not_believed(allowance: Allowance, tmp_path: Path) -> None:
    allowance.allow(tmp_path, None, PROFILE)
    document = json.loads(allowance.file.read_text())
    document["allowed"][0]["profile"].append("--evil")
    allowance.file.write_text(json.dumps(document))
    assert not allowance.is_allowed(tmp_path, None, (*PROFILE, "--evil"))


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written.*GPA_LSP_DATA_DIR"):
        Allowance(tmp_path / "file" / "allowed.json").allow(tmp_path, None, PROFILE)


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path))
    assert find_allowance_file() == tmp_path / "allowed.json"
    monkeypatch.delenv("GPA_LSP_DATA_DIR")
    assert "gpa-lsp" in find_allowance_file().parts
