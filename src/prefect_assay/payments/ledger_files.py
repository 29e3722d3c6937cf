"""The ledger in a folder: one small JSON file per invoice, safe against crashes and other processes.

A file appears whole or not at all (written beside, flushed, then linked or renamed into place), and all
writers take turns through a lock file. The folder must lie on a local file system.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prefect_assay.errors import ConfigurationError
from prefect_assay.payments.ledger import KeyValueLedger

LOCK_NAME: Final = ".lock"
SUFFIX: Final = ".json"


class FileLedger(KeyValueLedger):
    """A ledger in a folder, shared by every process on this machine that names the same folder."""

    def __init__(self, path: Path | str) -> None:
        """Open the folder, or make it.

        Raises:
            ConfigurationError: it cannot be made or written.
        """
        folder = Path(path)
        with _naming(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(_FileStore(folder))


class _FileStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, key: str, value: str) -> bool:
        with _naming(self._folder), self._written(key, value) as temporary:
            try:
                # A link fails when the name exists, and brings the whole content with it.
                os.link(temporary, self._path(key))
            except FileExistsError:
                return False
            self._flush_folder()
            return True

    def read(self, key: str) -> str | None:
        try:
            return self._path(key).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"the payment ledger's {self._path(key)} cannot be read: {error}"
            ) from error

    def replace(self, key: str, value: str) -> None:
        with _naming(self._folder), self._written(key, value) as temporary:
            temporary.replace(self._path(key))
            self._flush_folder()

    def values(self) -> Iterator[str]:
        with _naming(self._folder):
            keys = [path.stem for path in self._folder.glob(f"*{SUFFIX}")]
        return (text for key in keys if (text := self.read(key)) is not None)

    @contextmanager
    def locked(self) -> Iterator[None]:
        try:
            import fcntl  # noqa: PLC0415 - not on Windows
        except ImportError:
            raise ConfigurationError("a payment ledger in a folder needs POSIX file locks") from None
        with _naming(self._folder):
            # Opened anew each time, so that the lock holds between threads, too. Closing releases it.
            descriptor = os.open(self._folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with _naming(self._folder):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{SUFFIX}"

    @contextmanager
    def _written(self, key: str, value: str) -> Iterator[Path]:
        """The value in a file of its own, on the disk."""
        temporary = self._folder / f".{key}.{os.getpid()}.{os.urandom(8).hex()}"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _flush_folder(self) -> None:
        # Without this a power cut may take the new name away again, and with it the record of what was sent.
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"the payment ledger folder {folder} cannot be used: {error}. It must be a writable folder on a file "
            "system with locks and hard links; nothing is paid without it"
        ) from error
