"""The settings as they came to be: what the client said at the start and since, and what of it holds while the workspace is not trusted."""

from gpa_lsp.lsp.settings import Settings, drop_restricted, read_settings


class HeldSettings:
    """Takes what a client sends about settings.

    Attributes:
        current: what holds now.
        is_trusted: the user trusts the workspace; where not, options that start programs or widen what is read keep their defaults.
    """

    def __init__(self) -> None:
        self.current = self._said = self._first = Settings()
        self.is_trusted = False

    def begin(self, initialization_options: object, *, is_trusted: bool) -> tuple[str, ...]:
        """The first thing the client says; a sentence for each value that makes no sense."""
        self.is_trusted = is_trusted
        complaints = self.take(initialization_options)
        self._first = self._said
        return complaints

    def take(self, raw: object, *, is_whole: bool = False) -> tuple[str, ...]:
        """Options the client sent.

        Args:
            raw: what stands under ``gpaLsp``.
            is_whole: all there are: what is not mentioned any more is as it was at the start. Else what changed.

        Returns:
            A sentence for each value that makes no sense.
        """
        base = self._first if is_whole else self._said
        self._said, complaints = read_settings(raw, base, known=self._said)
        self._apply()
        return complaints

    def set_trust(self, is_trusted: bool) -> None:
        """The user trusts the workspace, or does not any more."""
        self.is_trusted = is_trusted
        self._apply()

    def _apply(self) -> None:
        self.current = self._said if self.is_trusted else drop_restricted(self._said)
