"""Disassembled text in the cache: an entry that is no text, or not that many, is no entry."""

import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.disassembler import DisassemblyCache, make_key, open_cache
from gpa_lsp.foundation.kept_files import FOLDER_VARIABLE

KEY = "ab" * 32
TEXTS = ["MOV R1, c[0x0][0x28]", "EXIT"]


@pytest.fixture
def cache(tmp_path: Path) -> DisassemblyCache:
    return DisassemblyCache(tmp_path / "sass")


def test_what_is_stored_is_loaded(cache: DisassemblyCache) -> None:
    assert cache.load(KEY, 2) is None
    cache.store(KEY, TEXTS)
    assert cache.load(KEY, 2) == TEXTS


def test_an_entry_of_another_length_is_a_miss(cache: DisassemblyCache) -> None:
    cache.store(KEY, TEXTS)
    assert cache.load(KEY, 3) is None


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(zlib.compress)))
def test_what_is_no_text_is_a_miss(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    cache = DisassemblyCache(tmp_path_factory.mktemp("damaged"))
    cache.files.store(KEY, junk)
    assert cache.load(KEY, 70) is None


def test_an_entry_that_unpacks_to_more_than_it_can_be_is_a_miss(cache: DisassemblyCache) -> None:
    cache.files.store(KEY, zlib.compress(bytes(50_000_000)))
    assert cache.load(KEY, 2) is None


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "mine"))
    assert open_cache().files.folder.is_relative_to(tmp_path / "mine")
    monkeypatch.delenv(FOLDER_VARIABLE)
    assert "gpa-lsp" in str(open_cache().files.folder)


def test_the_key_depends_on_all_that_the_text_does(tmp_path: Path) -> None:
    tool, other = tmp_path / "nvdisasm", tmp_path / "other"
    tool.write_text("one")
    other.write_text("another")
    keys = {
        make_key(b"1" * 16, 80, tool),
        make_key(b"2" * 16, 80, tool),
        make_key(b"1" * 16, 90, tool),
        make_key(b"1" * 16, 80, other),
        make_key(b"1" * 16, 80, tmp_path / "absent"),
    }
    assert len(keys) == 5
    os.utime(tool, (5, 5))
    assert make_key(b"1" * 16, 80, tool) not in keys
    assert make_key(b"1" * 16, 80, other) in keys
