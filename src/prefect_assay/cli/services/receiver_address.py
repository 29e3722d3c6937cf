"""Where the receiver of `prefect-assay up` listens: `up` records it in the Prefect home, and other commands read it there."""

import socket
from pathlib import Path
from typing import Final

from prefect_assay.errors import ConfigurationError, InputError

_FILE: Final = "assay-up/receiver"
# Used until `up` has run for the first time; also the default of its --receiver-port.
DEFAULT_ADDRESS: Final = "http://127.0.0.1:8100/assay"
_EVERY_INTERFACE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared only


def local_address(host: str, port: int, prefix: str) -> str:
    """The address under which this machine reaches a receiver that listens on `host` and `port`."""
    reached = _EVERY_INTERFACE.get(host, host)
    return f"http://{f'[{reached}]' if ':' in reached else reached}:{port}{prefix}"


def record_address(home: Path, address: str) -> None:
    """Record the address of the receiver that `up` runs for this Prefect home."""
    file = home / _FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{address}\n", encoding="utf-8")


def read_address(home: Path) -> str | None:
    """The recorded address; None if `up` has never run for this Prefect home.

    Raises:
        ConfigurationError: the record cannot be read.
    """
    file = home / _FILE
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"the receiver's address cannot be read from {file} ({error}); start `prefect-assay up` again, which writes it"
        ) from None


def refuse_taken_port(host: str, port: int, options: tuple[str, str] = ("--host", "--port")) -> None:
    """Refuse before anything is started: uvicorn would find it out at the end of its start. `options` name host and port."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except socket.gaierror:
        raise InputError(f"{options[0]} {host!r} is not an address of this machine") from None
    except OSError as error:
        raise ConfigurationError(
            f"port {port} of {host} cannot be used ({error.strerror}); stop what uses it, or name another with {options[1]}"
        ) from None
