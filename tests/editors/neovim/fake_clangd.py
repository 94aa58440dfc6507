"""Stands for clangd: hover, definition and references of any word, in UTF-8 columns. Nothing but Python is needed."""

import json
import re
import sys
from typing import Any

texts: dict[str, str] = {}


def read() -> dict[str, Any] | None:
    length = 0
    while (header := sys.stdin.buffer.readline()) not in (b"\r\n", b""):
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def send(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def find_places(params: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The word at a position, and everywhere it stands."""
    uri, position = params["textDocument"]["uri"], params["position"]
    lines = [line.encode() for line in texts.get(uri, "").split("\n")]
    at = next(
        (
            match.group()
            for match in re.finditer(rb"\w+", lines[position["line"]])
            if match.start() <= position["character"] <= match.end()
        ),
        None,
    )
    if at is None:
        return "", []
    places = [
        {
            "uri": uri,
            "range": {
                "start": {"line": row, "character": match.start()},
                "end": {"line": row, "character": match.end()},
            },
        }
        for row, line in enumerate(lines)
        for match in re.finditer(rb"\b" + re.escape(at) + rb"\b", line)
    ]
    return at.decode(), places


def answer(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        encodings = params["capabilities"].get("general", {}).get("positionEncodings", ["utf-16"])
        assert "utf-8" in encodings
        features = dict.fromkeys(("hoverProvider", "definitionProvider", "referencesProvider"), True)
        return {"capabilities": {"positionEncoding": "utf-8", "textDocumentSync": 1, **features}}
    if method in ("textDocument/hover", "textDocument/definition", "textDocument/references"):
        word, places = find_places(params)
        if method == "textDocument/hover":
            return {"contents": {"kind": "markdown", "value": f"the type of `{word}`"}} if word else None
        return places if method == "textDocument/references" else places[:1]
    return None


def main() -> None:
    while (message := read()) is not None:
        method, params = message.get("method"), message.get("params")
        if method == "exit":
            return
        if method == "textDocument/didOpen":
            texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        elif method == "textDocument/didChange":
            texts[params["textDocument"]["uri"]] = params["contentChanges"][-1]["text"]
        if "id" in message and method:
            send(id=message["id"], result=answer(method, params))


if __name__ == "__main__":
    main()
