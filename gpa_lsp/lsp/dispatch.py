"""From a request to the feature or command that answers it: which view it gets, and what happens when it fails."""

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

from gpa_lsp.editor.sass.library import is_sass_uri
from gpa_lsp.lsp.commands import Command, SessionActions
from gpa_lsp.lsp.features import Feature, RequestFeature, SessionFeature
from gpa_lsp.lsp.outgoing import make_shown
from gpa_lsp.lsp.wire import PyglsServer

logger = logging.getLogger(__name__)


class Dispatcher:
    """Calls features and commands. One that fails takes no other with it.

    Args:
        find_session: the session, once there is one.
    """

    def __init__(self, find_session: Callable[[], SessionActions]) -> None:
        self._find_session = find_session
        self._broken: set[str] = set()

    def register(self, pygls: PyglsServer, features: Mapping[str, Feature], commands: Iterable[Command]) -> None:
        """Have pygls call them.

        Args:
            pygls: the server.
            features: by name; those that push answer no request.
            commands: that a client may have executed.
        """
        for name, feature in features.items():
            if isinstance(feature, RequestFeature):
                pygls.feature(feature.method, feature.options)(self._make_handler(name, feature))
            elif isinstance(feature, SessionFeature):
                pygls.feature(feature.method, feature.options)(self._make_session_handler(name, feature))
        for command in commands:
            pygls.command(command.name)(self._make_command(command))

    def _make_handler(self, name: str, feature: RequestFeature[Any, Any]) -> Callable[[Any], Any]:
        """What answers the requests of a feature of documents."""

        def answer(params: Any) -> Any:
            session, uri = self._find_session(), params.text_document.uri
            if is_sass_uri(uri):
                sass_view = session.sass.view(uri) if feature.answer_sass is not None else None
                return feature.answer_sass(sass_view, params) if sass_view and feature.answer_sass else None
            if feature.answer is None or not feature.serves_source(session.settings, session.abilities):
                return None
            view = session.view(uri)
            return feature.answer(view, params) if view is not None else None

        return lambda params: self.guard(name, lambda: make_shown(answer(params)), None)

    def hold(
        self, handlers: MutableMapping[str, Any], features: Mapping[str, Feature], can: Callable[[str], bool]
    ) -> None:
        """Have the answers wait that a client would not ask for again.

        Args:
            handlers: of pygls, by method.
            features: by name.
            can: whether the client has a capability.
        """
        for name, feature in features.items():
            if isinstance(feature, RequestFeature) and feature.is_held and not can(feature.refresh_capability):
                handlers[feature.method] = self._make_held(self._make_handler(name, feature))

    def _make_held(self, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def answer_later(params: Any) -> Any:
            await self._find_session().wait_for_profiles(params.text_document.uri)
            return answer(params)

        return answer_later

    def _make_session_handler(self, name: str, feature: SessionFeature[Any, Any]) -> Callable[[Any], Any]:
        """What answers the requests of a feature of the session."""

        def answer(params: Any) -> Any:
            return self.guard(name, lambda: make_shown(feature.answer(self._find_session(), params)), None)

        async def answer_later(params: Any) -> Any:
            try:
                return make_shown(await feature.answer(self._find_session(), params))
            except Exception:
                return self._tell_broken(name)

        return answer_later if inspect.iscoroutinefunction(feature.answer) else answer

    def _make_command(self, command: Command) -> Callable[..., Any]:
        """What runs a command."""

        async def run(*arguments: Any) -> Any:
            result = self.guard(command.name, lambda: command.run(self._find_session(), arguments), None)
            try:
                return make_shown(await result if inspect.isawaitable(result) else result)
            except Exception:
                return self._tell_broken(command.name)

        return run

    def guard(self, name: str, function: Callable[[], Any], default: Any) -> Any:
        """Call something that may fail; it is logged each time and shown once."""
        try:
            return function()
        except Exception:
            self._tell_broken(name)
            return default

    def _tell_broken(self, name: str) -> None:
        """Log the exception that is being handled, and say once that there was one."""
        logger.exception("%s failed", name)
        if name not in self._broken:
            self._broken.add(name)
            self._find_session().warn(f"{name} failed; see the log of the language server")
