"""The server, and the protocol it speaks: answers at once what it knows, and has questions about kernels answered one after the other."""

import json
import os
import queue
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

from msgspec import Struct

from gpa_lsp import __version__
from gpa_lsp.agents.tools import TOOLS
from gpa_lsp.agents.tools import read_call as read_arguments
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.foundation.visible_text import make_one_line

if TYPE_CHECKING:
    from gpa_lsp.agents.answers import Answers

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


_MOST_ERROR_BYTES = 1000


class NoAnswerError(Exception):
    """Reason without an answer, in one line for the agent: what was asked for is not there (*is_absent*), or something failed."""

    def __init__(self, message: str, *, is_absent: bool) -> None:
        super().__init__(message)
        self.is_absent = is_absent


class Questions:
    """Asks :class:`~gpa_lsp.agents.answers.Answers` about reports and sources below a folder; not to be used by two threads at once.

    What answers is imported with the first question: a client asks for the list of tools at each start.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._answers: Answers | None = None
        # Paths are shown relative to the agent's folder: shorter answers, and no absolute path of the user's machine in them
        names = {str(folder), os.path.realpath(folder)} - {os.sep}
        named = rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(names)))})"
        self._starts = re.compile(rf"{named}{re.escape(os.sep)}" if names else "(?!)")
        self._ends = re.compile(rf"{named}(?![\w.-])" if names else "(?!)")

    def ask(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The answer to a call.

        Raises:
            NoAnswerError: the call is wrong, or there is nothing to say.
        """
        try:
            read = read_arguments(tool, arguments)
            if self._answers is None:
                from gpa_lsp.agents.answers import Answers

                self._answers = Answers(self._folder)
            answer = getattr(self._answers, tool)(**read)
        except GpaError as error:
            told = self._ends.sub("this folder", self._starts.sub("", str(error)))
            raise NoAnswerError(_cut_error(told), is_absent=isinstance(error, InputError)) from error
        assert isinstance(answer, str)
        return self._starts.sub("", answer)


def _cut_error(text: str) -> str:
    shown = make_one_line(text).encode("utf-8", "replace")[:_MOST_ERROR_BYTES]
    return shown.decode("utf-8", "ignore")


MOST_LINE_BYTES = 4 << 20  # Of a message to the server. Questions are short; what is longer is thrown away as it comes.


class Pipes:
    """Input and output pipe of a client."""

    def __init__(self, reading: BinaryIO, writing: BinaryIO) -> None:
        self._reading = reading
        self._writing = writing
        self._turn = threading.Lock()
        self.is_broken = False
        """The client does not read any more."""

    def read_lines(self) -> Iterator[bytes | None]:
        """Read lines as they come, until the client leaves; None for one that was too long. Empty ones are left out."""
        while not self.is_broken:
            line = self._reading.readline(MOST_LINE_BYTES)
            if not line:
                return
            if len(line) == MOST_LINE_BYTES and not line.endswith(b"\n"):
                self._skip_line()
                yield None
            elif line.strip():
                yield line

    def write(self, line: bytes) -> None:
        """Send a line, whole; does nothing when nobody reads."""
        with self._turn:
            if self.is_broken:
                return
            try:
                self._writing.write(line)
                self._writing.flush()
            except OSError:
                self.is_broken = True

    def _skip_line(self) -> None:
        while (rest := self._reading.readline(MOST_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass


def take_standard_pipes() -> Pipes:
    """The process's own, for the protocol alone: who prints from now on prints to standard error, and who reads finds the end."""
    sys.stdout.flush()
    pipes = Pipes(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return pipes


_MOST_WAITING = 1000  # Questions that are not answered yet. Who asks faster than it is answered is told so.

_MOST_NAME_CHARS = 100

Send = Callable[[Message | None], None]  # Where the answer to a request goes; None says that there will be none


def serve(folder: Path) -> None:
    """Answer until the client leaves; what it asked before is answered still.

    Args:
        folder: reports and sources below it are read, nothing else.
    """
    Server(folder, take_standard_pipes()).run()


class Server:
    """One client's server.

    Args:
        folder: reports and sources below it are read, nothing else.
        pipes: to the client.
    """

    def __init__(self, folder: Path, pipes: Pipes) -> None:
        self._pipes = pipes
        self._questions = Questions(folder)
        self._version: str | None = None
        self._waiting: queue.Queue[_Question | None] = queue.Queue(_MOST_WAITING)
        self._open: dict[int | str, _Question] = {}
        """By id, those that wait or are being answered: no other can be cancelled."""

    def run(self) -> None:
        """Read until the client leaves."""
        answering = threading.Thread(target=self._answer_questions, name="answers", daemon=True)
        answering.start()
        for line in self._pipes.read_lines():
            self._read(line)
        self._waiting.put(None)
        answering.join()

    def _read(self, line: bytes | None) -> None:
        try:
            if line is None:
                raise RefusedError(PARSE_ERROR, "the line is too long")
            message = parse(line)
        except RefusedError as error:
            self._send(make_error(None, error))
            return
        if isinstance(message, list) and message and self._version == BATCHING_VERSION:
            batch = _Batch(len(message), self._pipes)
            for member in message:
                self._take(member, batch.send)
        else:
            self._take(message, self._send)

    def _send(self, message: Message | None) -> None:
        if message is not None:
            self._pipes.write(write(message))

    def _take(self, message: object, send: Send) -> None:
        """Answer a message, or let its answer come later."""
        try:
            request = read_request(message)
        except RefusedError as error:
            # What has no id is a notification, and what a client notifies us of wrongly is nobody's question.
            is_asked = not isinstance(message, dict) or "id" in message or "method" not in message
            send(make_error(find_id(message), error) if is_asked else None)
            return
        if request is None or request.id is None:
            if request is not None and request.method == "notifications/cancelled":
                self._cancel(request.params.get("requestId"))
            send(None)
            return
        try:
            result = self._answer(request, send)
        except RefusedError as error:
            send(make_error(request.id, error))
            return
        if result is not None:
            send(make_result(request.id, complete(request, result)))

    def _answer(self, request: Request, send: Send) -> Message | None:
        """The result of a request; None where it comes later."""
        if is_stateless(request):
            check_stateless(request)
            if request.method == "server/discover":
                return discover()
        elif request.method == "initialize":
            self._version = agree_on_version(request.params)
            return greet(self._version)
        elif request.method == "ping":
            return {}
        elif self._version is None:
            raise RefusedError(INVALID_REQUEST, "initialize comes first")
        if request.method not in ("tools/call", "resources/read"):
            return list_members(request.method, request.params)
        question = _Question(request, send)
        self._open[question.id] = question
        try:
            self._waiting.put_nowait(question)
        except queue.Full:
            del self._open[question.id]
            raise RefusedError(INTERNAL_ERROR, "too many questions are open") from None
        return None

    def _cancel(self, request_id: object) -> None:
        question = self._open.get(request_id) if isinstance(request_id, int | str) else None
        if question is not None:
            question.is_cancelled = True

    def _answer_questions(self) -> None:
        """Answer questions until there are no more, in a thread: a report may take seconds, and the client may ask for something else meanwhile."""
        while (question := self._waiting.get()) is not None:
            message = None
            if not question.is_cancelled and not self._pipes.is_broken:
                message = self._ask(question)
            # Of what was cancelled in the last moment the client does not want to hear either.
            question.send(None if question.is_cancelled else message)
            self._open.pop(question.id, None)

    def _ask(self, question: "_Question") -> Message:
        request = question.request
        answer = partial(self._questions.ask, question.tool, question.arguments)
        try:
            result = _call(answer) if request.method == "tools/call" else _read_resource(request, answer)
        except RefusedError as error:
            return make_error(question.id, error)
        except Exception as error:
            bug = f"internal error: {type(error).__name__} (a bug in gpa-lsp)"
            return make_error(question.id, RefusedError(INTERNAL_ERROR, bug))
        return make_result(question.id, complete(request, result))


class _Question:
    """A call of a tool, or a resource, whose answer comes later.

    Raises:
        RefusedError: it calls nothing, or names a resource that there is not.
    """

    def __init__(self, request: Request, send: Send) -> None:
        assert request.id is not None
        self.id = request.id
        self.request = request
        self.send = send
        self.tool, self.arguments = read_call(request)
        self.is_cancelled = False


class _Batch:
    """The answers to a line of several messages, which go out together."""

    def __init__(self, count: int, pipes: Pipes) -> None:
        self._left = count
        self._pipes = pipes
        self._answers: list[Message] = []
        self._turn = threading.Lock()

    def send(self, message: Message | None) -> None:
        with self._turn:
            self._left -= 1
            if message is not None:
                self._answers.append(message)
            if self._left == 0 and self._answers:
                self._pipes.write(write(self._answers))


def read_call(request: Request) -> tuple[str, Message]:
    """The tool that a request calls, and its arguments.

    Raises:
        RefusedError: it is no call, or names a resource that there is not.
    """
    if request.method == "resources/read":
        return read_uri(request)
    name, arguments = request.params.get("name"), request.params.get("arguments")
    if not isinstance(name, str):
        raise RefusedError(INVALID_PARAMS, "name is text")
    if arguments is not None and not isinstance(arguments, dict):
        raise RefusedError(INVALID_PARAMS, f"arguments of {name[:_MOST_NAME_CHARS]!r} are no object")
    return name, arguments or {}


def _call(answer: Callable[[], str]) -> Message:
    try:
        text, is_error = answer(), False
    except NoAnswerError as error:
        text, is_error = str(error), True
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _read_resource(request: Request, answer: Callable[[], str]) -> Message:
    try:
        text = answer()
    except NoAnswerError as error:
        if error.is_absent:
            raise refuse_resource(request, str(error)) from error
        raise RefusedError(INTERNAL_ERROR, str(error)) from error
    return {"contents": [{"uri": request.params["uri"], "mimeType": "text/plain", "text": text}]}
