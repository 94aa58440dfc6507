"""From a client's URI to a file. Clients send anything: URIs of other schemes, hosts and encodings, and texts that are no URIs at all."""

import os

from pygls.uris import to_fs_path

_LOCAL_HOST = "//localhost/"


def read_path(uri: str) -> str | None:
    """The absolute path of a ``file:`` URI; None for everything else, and for what can be no path on this system.

    >>> read_path("file:///tmp/a%20b.cu")
    '/tmp/a b.cu'
    >>> [read_path(uri) for uri in ("untitled:x", "file:///a%00b", "file://[", "file:relative", "file:///\\ud800")]
    [None, None, None, None, None]
    """
    try:
        path = to_fs_path(uri)
        if path is None or "\0" in path:
            return None
        if os.name == "posix" and path.startswith("//"):  # a host: its files are not ours to look for
            path = path[len(_LOCAL_HOST) - 1 :] if path.startswith(_LOCAL_HOST) else ""
        os.fsencode(path)
    except ValueError:
        return None
    return path if os.path.isabs(path) else None  # noqa: PTH117 - a Path could not be made of every text
