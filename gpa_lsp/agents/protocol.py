"""The Model Context Protocol: its versions, and what it is told about the server, its tools and its resources."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from gpa_lsp import __version__
from gpa_lsp.agents.tools import TOOLS

INSTRUCTIONS = (
    "GPU kernel performance: what limits a kernel, which source line causes its stalls, what to change and what that gains. "
    "Loop: list_kernels, advise, explain_line, edit the source, measure again (gpa-lsp profile) or predict, compare. "
    "Estimates are ranges and alternatives: do not add or multiply them. Verify each change by measuring."
)

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # That begin with ``initialize``, oldest first

BATCHING_VERSION = "2025-03-26"  # The only one in which a line may hold several messages

STATELESS_VERSION = "2026-07-28"  # In which each request says its version itself, and nothing is agreed on before

UNSUPPORTED_VERSION = -32022
_RESOURCE_NOT_FOUND = -32002  # Until :data:`STATELESS_VERSION`, which has the code of wrong parameters for it

KERNELS_URI = "gpa://kernels"
_NAMESPACE = "io.modelcontextprotocol/"
_SERVER = {"name": "gpa_lsp", "version": __version__}
_MOST_SHOWN = 200


class Request(Struct, frozen=True, kw_only=True):
    """Request or notification of a client."""

    id: int | str | None  # to answer by; None for a notification, which gets no response
    method: str  # what is asked
    params: Mapping[str, Any]  # by name


def is_stateless(request: Request) -> bool:
    """Whether a request says its version itself."""
    meta = request.params.get("_meta")
    return isinstance(meta, dict) and f"{_NAMESPACE}protocolVersion" in meta


def check_stateless(request: Request) -> None:
    """Look at what a request without a beginning has to say of its client.

    Raises:
        RefusedError: it is of a version that is not spoken, or leaves out what the client can do.
    """
    meta = request.params["_meta"]
    version, capabilities = meta[f"{_NAMESPACE}protocolVersion"], meta.get(f"{_NAMESPACE}clientCapabilities")
    if not isinstance(version, str):
        raise RefusedError(INVALID_PARAMS, f"{_NAMESPACE}protocolVersion is text")
    if version != STATELESS_VERSION:
        raise RefusedError(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            {"supported": [STATELESS_VERSION], "requested": version[:_MOST_SHOWN]},
        )
    if not isinstance(capabilities, dict):
        raise RefusedError(INVALID_PARAMS, f"_meta needs {_NAMESPACE}clientCapabilities, an object")


Message = dict[str, Any]


def complete(request: Request, result: Message) -> Message:
    """A result with what its version wants in it."""
    if not is_stateless(request):
        return result
    completed = {**result, "resultType": "complete", "_meta": {f"{_NAMESPACE}serverInfo": _SERVER}}
    if request.method != "tools/call":
        completed.update(ttlMs=0, cacheScope="private")
    return completed


def agree_on_version(params: Mapping[str, Any]) -> str:
    """The version that is spoken with a client: its own where it is known, else our newest, which it may refuse.

    Raises:
        RefusedError: it names none.
    """
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        raise RefusedError(INVALID_PARAMS, "protocolVersion is text")
    return wanted if wanted in VERSIONS else VERSIONS[-1]


def greet(version: str) -> Message:
    """The answer to ``initialize``."""
    return {"protocolVersion": version, "serverInfo": _SERVER, **_describe_server()}


def discover() -> Message:
    """The answer to ``server/discover``."""
    return {"supportedVersions": [STATELESS_VERSION], **_describe_server()}


def list_members(method: str, params: Mapping[str, Any]) -> Message:
    """The tools, resources or templates of resources, all on one page.

    Raises:
        RefusedError: no such list, or a further page is asked for.
    """
    lists: Mapping[str, Message] = {
        "tools/list": {"tools": [tool.describe() for tool in TOOLS]},
        "resources/list": {"resources": [_describe_resource("kernels", "The kernels of the reports here.", "uri", "")]},
        "resources/templates/list": {
            "resourceTemplates": [
                _describe_resource("kernel", "What limits a kernel and what to change.", "uriTemplate", "/{kernel}")
            ]
        },
    }
    if method not in lists:
        raise RefusedError(METHOD_NOT_FOUND, "Method not found", method[:_MOST_SHOWN])
    if params.get("cursor") is not None:
        raise RefusedError(INVALID_PARAMS, "there is no further page")
    return lists[method]


def read_uri(request: Request) -> tuple[str, dict[str, Any]]:
    """The call of a tool that gives a resource.

    Raises:
        RefusedError: there is no such resource.

    >>> read_uri(Request(id=1, method="resources/read", params={"uri": "gpa://kernels/k1%3Cint%3E"}))
    ('advise', {'kernel': 'k1<int>'})
    """
    uri = request.params.get("uri")
    if not isinstance(uri, str):
        raise RefusedError(INVALID_PARAMS, "uri is text")
    if uri == KERNELS_URI:
        return "list_kernels", {}
    start, _, kernel = uri.rpartition("/")
    if start != KERNELS_URI or not kernel:
        raise refuse_resource(request, "there is no such resource")
    return "advise", {"kernel": unquote(kernel)}


class RefusedError(Exception):
    """A request that gets an error for an answer, of one line, with a code of JSON-RPC or of the protocol over it and the data defined for that."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def refuse_resource(request: Request, why: str) -> RefusedError:
    """The error for a resource that is not there."""
    code = INVALID_PARAMS if is_stateless(request) else _RESOURCE_NOT_FOUND
    return RefusedError(code, why, {"uri": str(request.params.get("uri"))[:_MOST_SHOWN]})


def _describe_server() -> Message:
    return {
        "capabilities": {"tools": {"listChanged": False}, "resources": {"listChanged": False, "subscribe": False}},
        "instructions": INSTRUCTIONS,
    }


def _describe_resource(name: str, words: str, key: str, rest: str) -> Message:
    return {"name": name, "description": words, "mimeType": "text/plain", key: f"{KERNELS_URI}{rest}"}


PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


def parse(line: bytes) -> object:
    """The JSON in a line.

    Raises:
        RefusedError: there is none. NaN and infinities are no JSON, and nothing useful is nested a thousand deep.

    >>> parse(b'{"id": 1}')
    {'id': 1}
    """
    try:
        return json.loads(line.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RefusedError(PARSE_ERROR, "the line is no JSON") from error


def read_request(message: object) -> Request | None:
    """The request or notification in a message; None for answers, since nothing is asked of the client.

    Raises:
        RefusedError: it is neither.

    >>> read_request({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    Request(id=1, method='ping', params={})
    >>> read_request({"jsonrpc": "2.0", "id": 1, "result": {}})
    """
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RefusedError(INVALID_REQUEST, 'a message is an object with "jsonrpc": "2.0"')
    if "method" not in message and ("result" in message or "error" in message):
        return None
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise RefusedError(INVALID_REQUEST, "a request has a method")
    if "id" in message and find_id(message) is None:
        raise RefusedError(INVALID_REQUEST, "the id of a request is a string or an integer")
    if params is not None and not isinstance(params, dict):
        raise RefusedError(INVALID_PARAMS, "params is an object")
    return Request(id=find_id(message), method=method, params=params or {})


def find_id(message: object) -> int | str | None:
    """The id of a message, whatever else it is; None where it has none that can be answered."""
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


def make_result(request_id: int | str, result: Message) -> Message:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def make_error(request_id: int | str | None, error: RefusedError) -> Message:
    """The answer to one that is refused, or that could not be read."""
    told: Message = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": told}


def write(message: Message | list[Message]) -> bytes:
    """A message as a line. Text that is no Unicode, such as half a pair of surrogates in an id, is escaped."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
