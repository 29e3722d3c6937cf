"""The metadata service of a cloud machine, from which S3 clients without keys get theirs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.archive.swift_server import ACCESS_KEY, SECRET_KEY
from support.services.serving import serving

_OWN_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


@dataclass
class MetadataService:
    """The next `failing` requests are answered with 500."""

    failing: int = 0


@contextmanager
def metadata_service(monkeypatch: Any) -> Iterator[MetadataService]:
    """Serve keys for the Swift server, and let clients of this process find no others."""
    service = MetadataService()
    keys = {
        "Code": "Success",
        "AccessKeyId": ACCESS_KEY,
        "SecretAccessKey": SECRET_KEY,
        "Token": "t",
        "Expiration": "2999-01-01T00:00:00Z",
    }

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            if service.failing:
                service.failing -= 1
                self.send_error(500)
                return
            body = json.dumps(keys).encode()
            if self.command == "PUT":
                body = b"token"
            elif self.path.endswith("security-credentials/"):
                body = b"role"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = _answer  # noqa: N815 - the names of http.server

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        for name in _OWN_KEYS:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
        yield service
