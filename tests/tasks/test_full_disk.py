"""Data packages pass through a temporary file on the worker: a full disk there waits like an archive that is away."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from prefect_assay.errors import ArchiveUnavailable
from prefect_assay.tasks.archive import _packages


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
def test_a_package_that_finds_no_space_is_fetched_again_later(tmp_path):
    (tmp_path / "0.zip").symlink_to("/dev/full")
    client = SimpleNamespace(download=lambda _url: iter([b"PK"]))
    result = SimpleNamespace(id="r-1", data_package_url="https://lab.example/p.zip")
    with pytest.raises(ArchiveUnavailable, match="no space left"):
        list(_packages(client, [result], tmp_path, []))
