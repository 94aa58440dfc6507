"""A package index on the loopback interface, with one package: it lends the packages that the tests run with."""

import hashlib
import io
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from zipfile import ZipFile

from tests.patience import LIMIT_S

WHEEL = "lent_packages-1.0-py3-none-any.whl"


def build_wheel() -> bytes:
    """A wheel that adds the folders in which the tests find their packages."""
    folders = [path for path in sys.path if Path(path).name == "site-packages"]
    entries = {
        "lent_packages.pth": "".join(f"{folder}\n" for folder in folders),
        "lent_packages-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: lent-packages\nVersion: 1.0\n",
        "lent_packages-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "lent_packages-1.0.dist-info/RECORD"
    entries[record] = "".join(f"{name},,\n" for name in [*entries, record])
    memory = io.BytesIO()
    with ZipFile(memory, "w") as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return memory.getvalue()


class PackageIndex:
    """Answers as the file *how* says: "serve", "refuse" (it hangs up) or "hang" (until it says something else)."""

    def __init__(self, how: Path, name: str = WHEEL) -> None:
        wheel = build_wheel()
        self.digest = hashlib.sha256(wheel).hexdigest()
        self.requirement = f"lent-packages==1.0 --hash=sha256:{self.digest}\n"

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                end = time.monotonic() + LIMIT_S
                while how.read_text() == "hang" and time.monotonic() < end:
                    time.sleep(0.05)
                if how.read_text() != "serve":
                    self.close_connection = True
                    return
                page = f'<a href="/{name}">{name}</a>'.encode()
                body = wheel if self.path.endswith(name) else page
                self.send_response(200)
                self.send_header("Content-Type", "application/zip" if body is wheel else "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name in the base class
                """Keep the test's output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.address = f"http://127.0.0.1:{self._server.server_port}/simple"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
