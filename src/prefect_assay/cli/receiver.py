"""`prefect-assay receiver`: the webhook receiver as a process. Keys come from the environment or a file."""

import os
from pathlib import Path

from prefect_assay.errors import ConfigurationError

_PREFIX = "PREFECT_ASSAY_RECEIVER_"


def run_receiver(*, host: str, port: int, prefix: str | None, keys_file: Path | None) -> None:
    """Serve until stopped.

    Raises:
        ConfigurationError: a setting is missing or wrong, or the keys file cannot be read.
    """
    import uvicorn

    from prefect_assay.webhooks.receiver import create_app
    from prefect_assay.webhooks.settings import ReceiverSettings

    if keys_file is not None:
        os.environ[f"{_PREFIX}SIGNING_KEYS"] = ",".join(_keys(keys_file))
    if prefix is not None:
        os.environ[f"{_PREFIX}PATH_PREFIX"] = prefix
    settings = ReceiverSettings.from_environment()
    # One process: wake-ups are serialised inside it.
    uvicorn.run(create_app(settings), host=host, port=port, log_level="info")


def _keys(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the signing keys cannot be read from {path}: {error}") from None
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
