"""The certificates that a server's is checked with: read once, and again when their file has changed."""

import inspect
import os
import ssl
from pathlib import Path

import certifi
import pytest

from prefect_assay.errors import CertificatesUnreadable
from prefect_assay.service.client.http.wire import certificates

BUNDLE = Path(certifi.where()).read_text(encoding="utf-8")
END = "-----END CERTIFICATE-----\n"


@pytest.fixture(autouse=True)
def uncached(monkeypatch):
    """Other tests share what was read once (tests/conftest.py, lab/tests/conftest.py)."""
    monkeypatch.setattr(ssl, "create_default_context", inspect.unwrap(ssl.create_default_context))


def _some(number):
    return END.join(BUNDLE.split(END)[:number]) + END


def _read():
    return certificates(trust_env=True)


@pytest.mark.parametrize("in_place", [True, False])
def test_certificates_are_read_again_when_their_file_has_changed(tmp_path, monkeypatch, in_place):
    """A process that serves for weeks, and forks its children, outlives the certificates of a company."""
    file = tmp_path / "ca.pem"
    file.write_text(_some(1), encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    first = _read()
    assert _read() is first
    if in_place:
        file.write_text(_some(2), encoding="utf-8")
    else:
        (tmp_path / "new").write_text(_some(2), encoding="utf-8")
        (tmp_path / "new").replace(file)
    assert [len(context.get_ca_certs()) for context in (first, _read())] == [1, 2]
    assert certificates(trust_env=False) is not _read()


def test_a_folder_that_has_changed_is_opened_again(tmp_path, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    first = _read()
    assert _read() is first
    os.utime(tmp_path, ns=(1, 1))
    assert _read() is not first


def test_the_usual_bundle_is_read_again_too(monkeypatch, tmp_path):
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "cacert.pem"
    file.write_text(_some(1), encoding="utf-8")
    monkeypatch.setattr(certifi, "where", lambda: str(file))
    assert len(_read().get_ca_certs()) == 1
    file.write_text(_some(2), encoding="utf-8")
    assert len(_read().get_ca_certs()) == 2


def test_a_file_that_is_not_there_is_an_error_each_time(tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    for _ in range(2):
        with pytest.raises(CertificatesUnreadable, match="No such file"):
            _read()
