"""Why a file cannot be read, without its name: the reader knows the content only."""

from collections.abc import Sequence

from prefect_assay.errors import InputError


class UnreadableFile(InputError):
    """Reading cannot go on: the cause with the next step, and the line, counted from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line

    def at(self, source: str) -> str:
        """The message with its place."""
        return (
            f"{source}: {self.message}"
            if self.line is None
            else f"{source}, line {self.line}: {self.message}"
        )


class NoHeader(UnreadableFile):
    """The first line is not a header of the table that is looked for; `titles` are its cells, `text` the line."""

    def __init__(self, titles: Sequence[str], text: str, line: int) -> None:
        super().__init__("no header of such a table", line)
        self.titles = tuple(titles)
        self.text = text
