"""A server with profiles that are listings, and a client for it."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.editor.views import LISTING, SOURCE
from tests.lsp.raw_client import RawClient
from tests.patience import wait_until

HERE = Path(__file__).resolve().parent
LISTINGS = {"PYTHONPATH": os.pathsep.join([str(HERE / "listing_pipeline"), str(HERE.parent.parent)])}
"""The environment in which the server's profiles are listings."""

StartClient = Callable[..., RawClient]

collect_ignore = ["listing_pipeline"]
"""It takes the place of the real pipeline where it is imported, which is meant for the servers under test and not for the tests."""


@contextmanager
def start_clients() -> Iterator[StartClient]:
    """Starts servers, and ends those that are left."""
    clients: list[RawClient] = []

    def start(environment: dict[str, str] | None = None, **options: Any) -> RawClient:
        clients.append(RawClient(environment={**LISTINGS, **(environment or {})}, **options))
        return clients[-1]

    yield start
    for client in clients:
        client.kill()


@pytest.fixture
def start_client() -> Iterator[StartClient]:
    with start_clients() as start:
        yield start


@pytest.fixture
def client() -> Iterator[RawClient]:
    """A server that reads profiles as users' servers do."""
    with RawClient() as made:
        yield made


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path)


def make_workspace(parent: Path) -> Path:
    """A folder with ``saxpy.cu`` and a profile of it."""
    folder = parent / "wörk #1 %20"  # every test of the server also is one of its URIs
    folder.mkdir()
    (folder / "saxpy.cu").write_text(SOURCE)
    make_ancient(folder / "saxpy.cu")
    write_profile(folder / "saxpy.ncu-rep", LISTING, "name saxpy(float*, float*)")
    return folder


def write_profile(path: Path, listing: str, *words: str, fresh: bool = False) -> None:
    """A profile that is a listing; old enough to be read at the first look, unless it is to be fresh. A server that looks on sees it whole."""
    unseen = path.with_name(f"{path.name}.unseen")
    unseen.write_text("\n".join([*(f"#{word}" for word in words), listing, "#end"]))
    if not fresh:
        make_old(unseen)
    unseen.replace(path)


def make_old(path: Path) -> None:
    """Date a file back to an hour ago."""
    an_hour_ago = time.time() - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))


def make_ancient(path: Path) -> None:
    """Date a source back to before any measurement in these tests: it is what was measured."""
    os.utime(path, (1, 1))


def let_look_twice(client: RawClient, folder: Path) -> None:
    """Wait until the server has looked for profiles two more times, and read what it found: what it does at every look it has done by then."""
    for number in count():
        if not (beat := folder / f"beat{number}.ncu-rep").exists():
            break
    for path in (beat, folder / f"beat{number + 1}.ncu-rep"):
        write_profile(path, "beat.cu:1  NOP  ; wait=1", f"name {path.stem}")
        wait_until(lambda: path.stem in list_kernels(client), path)  # noqa: B023


def list_kernels(client: RawClient) -> set[str]:
    """Names of the kernels that were read."""
    return {kernel["name"] for kernel in client.execute("gpaLsp.listKernels")}
