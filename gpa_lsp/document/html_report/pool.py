"""Texts that repeat, kept once: columns of a page's data hold their numbers."""

from collections.abc import Iterable


class TextPool:
    """Distinct texts in the order they were met; the first is the empty one.

    >>> pool = TextPool()
    >>> pool.add_all(["a", "", "a"]), pool.texts
    ([1, 0, 1], ['', 'a'])
    """

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """The number of a text."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def add_all(self, texts: Iterable[str]) -> list[int]:
        """The numbers of texts."""
        return [self.add(text) for text in texts]
