"""A small disk of its own, which a test can fill."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk at a folder; the test is skipped where none can be made."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "disk", folder]
    if os.geteuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("needs root and the right to mount a disk of its own")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    """Write a file that leaves no space; the file."""
    filler = folder / "filler"
    for block in (65536, 256):
        with suppress(OSError), filler.open("ab", buffering=0) as file:
            while file.write(b"\0" * block):
                pass
    return filler
