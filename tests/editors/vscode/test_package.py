"""Contents of the package, and the extension's own checks."""

import json
import re
import subprocess
from pathlib import Path
from zipfile import ZipFile

from tests.editors.vscode.code import EXTENSION, HERE, Tools, run_npm


def test_package_is_small_and_complete(packaged: Path) -> None:
    # Nine tenths of it are the server: its code, its tables with their sources, the templates of its pages and the script of their
    # charts, a quarter of a megabyte in place of a package of 84 MB that users downloaded.
    assert (EXTENSION / "gpa-lsp.vsix").stat().st_size < 3.5 * 2**20
    assert not [path for path in packaged.rglob("*") if path.suffix in (".so", ".pyc", ".ts", ".map")]
    manifest = json.loads((packaged / "package.json").read_text())
    steps = manifest["contributes"]["walkthroughs"][0]["steps"]
    wanted = [medium for step in steps for kind, medium in step["media"].items() if kind in ("image", "markdown")]
    wanted += re.findall(r"!\[[^]]*\]\((images/[^)]+)\)", (packaged / "readme.md").read_text())
    assert [name for name in [*wanted, manifest["icon"]] if not (packaged / name).exists()] == []
    _, *notices = (packaged / "dist" / "ThirdPartyNotices.txt").read_text().split(f"\n{'-' * 80}\n\n")
    assert {"vscode-languageclient", "vscode-jsonrpc"} <= {notice.split()[0] for notice in notices}
    assert all(len(notice) > 500 for notice in notices)  # whole texts
    with ZipFile(packaged / "bundled" / "server.zip") as archive:
        names = set(archive.namelist())
    assert {"server/gpa_lsp/editor/protocol/start.py", "libs/pygls/lsp/server.py", "libs/lsprotocol/types.py"} <= names


def test_the_server_that_comes_along_has_what_it_imports(packaged: Path, tmp_path: Path) -> None:
    with ZipFile(packaged / "bundled" / "server.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    server = tmp_path / "unpacked" / "server"
    there = {path.relative_to(server).with_suffix("") for path in server.rglob("*.py")}
    modules = {".".join(path.parts).removesuffix(".__init__") for path in there}
    missing = {
        f"{module} in {path.relative_to(server)}"
        for path in server.rglob("*.py")
        for module in re.findall(r"^from (gpa_lsp[\w.]*) import", path.read_text(encoding="utf-8"), re.MULTILINE)
        if module not in modules
    }
    assert missing == set()


def test_types_and_generated_parts(built: Tools) -> None:
    suite = subprocess.run(
        [EXTENSION / "node_modules" / ".bin" / "tsc", "--noEmit", "-p", HERE / "suite"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert suite.returncode == 0, suite.stdout
    assert not re.findall(
        r":\s*any\b|<any>|as any\b", "".join(path.read_text() for path in (EXTENSION / "src").glob("*.ts"))
    )


def test_unit_tests(built: Tools) -> None:
    done = run_npm("test")
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]) >= 14  # type: ignore[index]
