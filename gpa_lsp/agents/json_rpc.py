"""JSON-RPC 2.0: a line → what it asks, answers and errors as plain objects."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Message = dict[str, Any]


class RefusedError(Exception):
    """A request that gets an error for an answer; never more than one line.

    Args:
        code: of JSON-RPC, or of the protocol over it.
        message: what is wrong.
        data: more of it, as the protocol defines for the code.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Request(Struct, frozen=True, kw_only=True):
    """What a client sent."""

    id: int | str | None  # to answer by; None of a notification, which nobody answers
    method: str  # what is asked
    params: Mapping[str, Any]  # by name


def parse(line: bytes) -> object:
    """The JSON in a line.

    Raises:
        RefusedError: there is none. NaN and infinities are no JSON, and nobody means what is nested a thousand deep.

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
