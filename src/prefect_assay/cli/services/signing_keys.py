"""The signing keys of a Prefect home: one for the service, one for local labs. Receiver and blocks must use the same."""

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prefect_assay.errors import ConfigurationError
from prefect_assay.service.webhook_signature import LAB_KEY_PREFIX

_FILE: Final = "assay-signing-keys"


@dataclass(frozen=True)
class SigningKeys:
    """The keys, and the file that `prefect-assay receiver --keys-file` takes."""

    file: Path
    service: str
    lab: str

    def __repr__(self) -> str:
        return f"SigningKeys({str(self.file)!r})"


def signing_keys(home: Path) -> SigningKeys:
    """The keys of a Prefect home, made by whichever command needs them first; readable by its owner alone.

    Raises:
        ConfigurationError: the file cannot be written, or has lost a key.
    """
    file = home / _FILE
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            _make_keys(file)
        keys = list_keys(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"the signing keys {file} cannot be used: {error.strerror}") from None
    service = [key for key in keys if not key.startswith(LAB_KEY_PREFIX)]
    lab = [key for key in keys if key.startswith(LAB_KEY_PREFIX)]
    if not service or not lab:
        raise ConfigurationError(
            f"{file} needs a line with the service's signing key and one with a local lab's, which begins with "
            f"{LAB_KEY_PREFIX}; restore it, or remove it and the WebhookEndpoint block, and run `prefect-assay init` again"
        )
    return SigningKeys(file, service[0], lab[0])


def list_keys(text: str) -> list[str]:
    """The keys of a file's text, one per line, without comments: a key may begin with `#`, a comment with `# `."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and line.split()[0] != "#"]


def file_without(home: Path, key: str) -> Path | None:
    """The file of a Prefect home's keys if it is there and does not hold this key: `up`'s receiver refuses its deliveries."""
    file = home / _FILE
    try:
        return None if key in list_keys(file.read_text(encoding="utf-8")) else file
    except OSError:
        return None


def how_to_add_key(file: Path, name: str) -> str:
    """Say how the file gets the key of the `WebhookEndpoint` block of this name; no key is shown."""
    load = f"from prefect_assay.blocks import WebhookEndpoint as W; print(W.load({name!r}).signing_key.get_secret_value())"
    return f'add the key as a line, python -c "{load}" >> {file}, and start the receiver again'


def _make_keys(file: Path) -> None:
    """Complete or not at all: another command may read it at the same moment."""
    part = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
    with open(part, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as made:
        made.write(f"{secrets.token_urlsafe(32)}\n{LAB_KEY_PREFIX}{secrets.token_urlsafe(32)}\n")
    try:
        os.link(part, file)
    finally:
        part.unlink()
