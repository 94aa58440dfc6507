"""Reads `fixtures/manifest.toml` and the recipes, for the tests of this folder."""

import functools
import hashlib
import tomllib
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

Row = dict[str, Any]


@functools.cache
def read_manifest() -> Row:
    return tomllib.loads((FIXTURES / "manifest.toml").read_text())


def read_rows() -> list[Row]:
    rows: list[Row] = read_manifest()["artefact"]
    return rows


def read_recipes() -> dict[str, Row]:
    """Recipe by pattern."""
    return {
        path.parent.name: tomllib.loads(path.read_text()) for path in sorted(FIXTURES.glob("kernels/*/recipe.toml"))
    }


def list_artefacts() -> list[str]:
    """Paths of every built file, relative to the fixtures folder."""
    folders = (FIXTURES / "cubins", FIXTURES / "containers" / "built")
    return sorted(
        path.relative_to(FIXTURES).as_posix() for folder in folders for path in folder.rglob("*") if path.is_file()
    )


def hash_file(path: str) -> str:
    return hashlib.sha256((FIXTURES / path).read_bytes()).hexdigest()
