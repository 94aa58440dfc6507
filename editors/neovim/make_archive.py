"""Packs the plugin for a release: an archive to unpack, and a repository in one file for plugin managers that clone.

    python editors/neovim/make_archive.py FOLDER

writes ``gpa_lsp.nvim-VERSION.tar.gz``, with everything in a folder ``gpa_lsp.nvim``, and ``gpa_lsp.nvim-VERSION.bundle``, which ``git clone`` takes
like an address. The same sources make the same files, byte for byte. Needs the standard library and git.
"""

import argparse
import gzip
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

PLUGIN = Path(__file__).resolve().parent
ROOT = PLUGIN.parent.parent
FOLDERS = ("doc", "ftplugin", "lsp", "lua", "plugin", "syntax")
FILES = ("README.md", "screenshot.png")
NAME = "gpa_lsp.nvim"
_MOMENT = "2026-01-01T00:00:00+00:00"
_LINK = re.compile(r"\]\(\.\./([^)]+)\)")


def find_version() -> str:
    """Of this checkout."""
    text = (ROOT / "gpa_lsp" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"', text, re.MULTILINE)
    assert found is not None, "gpa_lsp/__init__.py names no version"
    return found[1]


def find_address() -> str:
    """Of the repository."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^Repository = "(.+)"', text, re.MULTILINE)
    assert found is not None, "pyproject.toml names no repository"
    return found[1]


def list_files() -> Iterator[Path]:
    """What the plugin consists of, below its folder."""
    for folder in FOLDERS:
        yield from sorted(path.relative_to(PLUGIN) for path in (PLUGIN / folder).rglob("*") if path.suffix in _KINDS)
    yield from map(Path, FILES)


_KINDS = (".lua", ".vim", ".txt")


def lay_out(folder: Path) -> Path:
    """A copy of the plugin with its licence, whose README leads back to the repository."""
    laid = folder / NAME
    for file in list_files():
        (laid / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PLUGIN / file, laid / file)
    shutil.copyfile(ROOT / "LICENSE", laid / "LICENSE")
    readme = laid / "README.md"
    pages = f"{find_address()}/blob/v{find_version()}/editors"
    readme.write_text(_LINK.sub(rf"]({pages}/\1)", readme.read_text(encoding="utf-8")), encoding="utf-8")
    return laid


def write_archive(laid: Path, target: Path) -> None:
    """The folder as an archive, without what differs from machine to machine."""
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in sorted(laid.rglob("*")):
            if path.is_file() and ".git" not in path.parts:
                entry = tarfile.TarInfo(str(path.relative_to(laid.parent)))
                entry.size = path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(entry, content)


def write_bundle(laid: Path, target: Path) -> None:
    """The folder as a repository of one commit, on the branch ``main`` and under the tag of the version."""
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = {f"GIT_{role}_{part}": NAME for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    dates = {f"GIT_{role}_DATE": _MOMENT for role in ("AUTHOR", "COMMITTER")}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    tag = f"v{find_version()}"
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        ("commit", "--quiet", "-m", f"{NAME} {tag}"),
        ("tag", tag),
        ("-c", "pack.threads=1", "bundle", "create", "--quiet", str(target), "HEAD", "main", tag),
    ):
        subprocess.run(["git", *words], cwd=laid, env={**hidden, **who, **dates, **alone}, check=True)


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go")
    target = parser.parse_args().folder.resolve()
    target.mkdir(parents=True, exist_ok=True)
    name = f"{NAME}-{find_version()}"
    with tempfile.TemporaryDirectory() as folder:
        laid = lay_out(Path(folder))
        write_archive(laid, target / f"{name}.tar.gz")
        write_bundle(laid, target / f"{name}.bundle")


if __name__ == "__main__":
    main()
