"""The archive in a folder. A killed process never leaves a half file under a final name.

Content is written to a temporary file, synced, and linked to its final name. The link is atomic and fails when the name
exists: that is this store's conditional write.
"""

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier
from typing import Final
from uuid import uuid4

from prefect_assay.archive.layout import require_hint, require_table
from prefect_assay.archive.store import (
    CHUNK_BYTES,
    RACE_ROUNDS,
    Body,
    ObjectInfo,
    Stray,
    check_key,
    chunks_of,
    join_key,
    race_writers,
    wait_for_others,
    wrong_digest,
)
from prefect_assay.errors import ArchiveError, ArchiveUnavailable

PARTIAL_FOLDER: Final = ".partial"

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# A network file system whose server is unreachable.
_UNREACHABLE: Final = frozenset(
    {
        errno.EIO,
        errno.ESTALE,
        errno.ENOTCONN,
        errno.ETIMEDOUT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
    }
)
_LOST_AND_FOUND: Final = "lost+found"  # of the file system whose root the archive is; only root may list it
_FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class LocalStore:
    """A `Store` in the folder `root`, created with the first object."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).expanduser().absolute()

    def put_if_absent(self, key: str, data: Body, content_type: str, *, sha256: str | None = None) -> bool:  # noqa: ARG002  files carry no media type
        """See `Store`."""
        path = self._path(key)
        with _readable_errors(path):
            if path.exists():
                return False
            _make_folders(path.parent)
            self._check_inside(path)
            written = self._link(data, path, sha256)
            _sync_folder(path.parent)
        return written

    def replace(self, key: str, data: Body, content_type: str) -> None:  # noqa: ARG002  see above
        """See `Store`."""
        path = self._path(require_table(key))
        with _readable_errors(path):
            _make_folders(path.parent)
            self._check_inside(path)
            partial = self._write_partial(data, path, None)
            try:
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
            _sync_folder(path.parent)

    def read(self, key: str) -> bytes:
        """See `Store`."""
        path = self._path(key)
        with _readable_errors(path):
            return path.read_bytes()

    def find(self, key: str) -> bytes | None:
        """See `Store`."""
        path = self._path(key)
        with _readable_errors(path), contextlib.suppress(FileNotFoundError):
            return path.read_bytes()
        return None

    def stream(self, key: str) -> Iterator[bytes]:
        """See `Store`."""
        path = self._path(key)
        with _readable_errors(path), path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    def stat(self, key: str) -> ObjectInfo | None:
        """See `Store`; a file system keeps no digest."""
        path = self._path(key)
        with _readable_errors(path):
            return ObjectInfo(size=path.stat().st_size) if path.is_file() else None

    def delete(self, key: str) -> bool:
        """See `Store`."""
        path = self._path(require_hint(key))
        with _readable_errors(path):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                if error.errno in _FORBIDDEN:
                    return False
                raise
        return True

    def keys(self, prefix: str) -> Iterator[str]:
        """All keys below the folder `prefix`, in order, without hidden files and folders."""
        start = self._path(prefix) if prefix else self.root
        for folder, folders, files in _walk(start):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if not name.startswith("."):
                    yield (Path(folder) / name).relative_to(self.root).as_posix()

    def folders(self, prefix: str) -> Iterator[str]:
        """See `Store`."""
        start = self._path(prefix) if prefix else self.root
        _, folders, _ = next(_walk(start), ("", [], []))
        return (name for name in sorted(folders) if not name.startswith("."))

    def strays(self, prefix: str) -> Iterator[tuple[str, Stray]]:
        """Symbolic links, `prefix` and the folders above it included, and hidden files outside `.partial`."""
        start = self._path(prefix) if prefix else self.root
        for folder in (start, *start.parents):
            if folder.is_relative_to(self.root) and folder != self.root and folder.is_symlink():
                yield folder.relative_to(self.root).as_posix(), "link"
        for place, folders, files in _walk(start):
            folders[:] = sorted(name for name in folders if name != PARTIAL_FOLDER)
            for name in (*folders, *sorted(files)):
                path = Path(place) / name
                key = path.relative_to(self.root).as_posix()
                if path.is_symlink():
                    yield key, "link"
                elif name in files and "/." in f"/{key}":
                    yield key, "hidden"

    def location(self, key: str) -> str:
        """The absolute path."""
        return str(self._path(key) if key else self.root)

    def probe(self, prefix: str = "", *, with_race: bool = True) -> None:
        """See `Store`."""
        with self._probe_key(prefix) as key:
            is_sound = self.put_if_absent(key, b"1", "text/plain") and not self._link(
                b"2", self._path(key), None
            )
        for _ in range(RACE_ROUNDS if with_race else 0):
            with self._probe_key(prefix) as key:
                is_sound = is_sound and self._is_race_sound(self._path(key))
        if not is_sound:
            raise ArchiveError(
                f"{self.root}: this file system lets a second write replace a file, so versions would not "
                "be safe; choose a folder on a local or NFSv4 file system"
            )

    @contextlib.contextmanager
    def _probe_key(self, prefix: str) -> Iterator[str]:
        key = join_key(prefix, f".probe-{uuid4().hex}")
        try:
            yield key
        finally:
            with contextlib.suppress(OSError):
                self._path(key).unlink()

    def _is_race_sound(self, path: Path) -> bool:
        def write(body: bytes, start: Barrier) -> bool:
            with _readable_errors(path):
                wait_for_others(start)
                return self._link(body, path, None)

        first = race_writers(write)
        return len(first) == 1 and path.read_bytes() == first[0]

    def _path(self, key: str) -> Path:
        return self.root.joinpath(*check_key(key).split("/"))

    def _check_inside(self, path: Path) -> None:
        # A symbolic link below the root may lead elsewhere; the key does not show it.
        if not path.parent.resolve().is_relative_to(self.root.resolve()):
            raise ArchiveError(f"{path} leads outside the archive {self.root}: remove the symbolic link")

    def _link(self, data: Body, path: Path, sha256: str | None) -> bool:
        """Give the content its name; False when the name is taken."""
        partial = self._write_partial(data, path, sha256)
        try:
            os.link(partial, path)
        except FileExistsError:
            return False
        finally:
            partial.unlink()
        return True

    def _write_partial(self, data: Body, path: Path, sha256: str | None) -> Path:
        partial = self.root / PARTIAL_FOLDER / uuid4().hex
        partial.parent.mkdir(parents=True, exist_ok=True)
        try:
            digest = _write_synced(partial, data)
            if sha256 not in {None, digest}:
                raise wrong_digest(str(path))  # noqa: TRY301  the same clean-up serves every failure
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        return partial


def _walk(start: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """`os.walk` that never takes a folder that cannot be listed for an empty one; an absent folder has nothing."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    with _readable_errors(start):
        for place, folders, files in os.walk(start, onerror=fail):
            if _LOST_AND_FOUND in folders:
                folders.remove(_LOST_AND_FOUND)
            yield place, folders, files


def _write_synced(path: Path, data: Body) -> str:
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for chunk in chunks_of(data):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _make_folders(folder: Path) -> None:
    """Make the folder and sync the parents of new folders, so that a power cut does not lose the names."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileNotFoundError, NotADirectoryError, FileExistsError) as error:
        raise ArchiveError(
            f"the folder {folder} cannot be made here ({error.strerror}); choose an archive folder below one that exists and is a "
            "folder"
        ) from error
    for path in missing:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise out_of_space(path) from error
        if error.errno in _UNREACHABLE:
            raise ArchiveUnavailable(f"{path}: {error.strerror}; the file system is unreachable") from error
        raise ArchiveError(f"{path}: {_cause(error)}") from error


def is_full(error: OSError) -> bool:
    """Return True if the disk or the user's quota is full."""
    return error.errno in _FULL


def out_of_space(path: Path) -> ArchiveUnavailable:
    """The transient error of a full disk: a run that has ordered waits until space is freed."""
    return ArchiveUnavailable(f"{path}: no space left; free some, what was written stays")


def _cause(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "this file is not in the archive; `prefect-assay archive verify` lists what is missing"
    if isinstance(error, PermissionError) and error.errno == errno.EACCES:
        return "no permission; give the worker's user read and write access to the archive folder"
    if error.errno in {errno.EPERM, errno.ENOTSUP, errno.EXDEV}:
        return (
            "this file system has no hard links, which the archive needs to write once; choose another folder"
        )
    return f"{error.strerror or error}"
