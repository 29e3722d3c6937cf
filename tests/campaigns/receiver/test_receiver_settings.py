"""The receiver's settings: from the environment, checked, and never shown."""

import pytest
from pydantic import ValidationError

from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.errors import ConfigurationError

PREFIX = "PREFECT_ASSAY_RECEIVER_"
KEY = "a-signing-key-of-32-characters-at-least"


@pytest.fixture
def environment(monkeypatch):
    def put(**values):
        for name, value in values.items():
            monkeypatch.setenv(PREFIX + name, value)

    return put


def keys(settings):
    return [key.get_secret_value() for key in settings.signing_keys]


@pytest.mark.parametrize("text", [f"{KEY},{KEY}2", f" {KEY} , {KEY}2,", f'["{KEY}", "{KEY}2"]'])
def test_several_keys(environment, text):
    environment(SIGNING_KEYS=text)
    assert keys(ReceiverSettings.from_environment()) == [KEY, KEY + "2"]


def test_everything_from_the_environment(environment):
    environment(
        SIGNING_KEYS=KEY,
        PATH_PREFIX="/hooks/assay/",
        TOLERANCE_SECONDS="none",
        WORDS__SERVICE="Acme",
        MAX_BODY_BYTES="1000",
    )
    settings = ReceiverSettings.from_environment()
    assert settings.path_prefix == "/hooks/assay"
    assert settings.tolerance_seconds is None
    assert settings.words.service == "Acme"
    assert settings.max_body_bytes == 1000


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({}, "SIGNING_KEYS"),
        ({"SIGNING_KEYS": ""}, "SIGNING_KEYS"),
        ({"SIGNING_KEYS": "short-secret"}, "SIGNING_KEYS"),
        ({"SIGNING_KEYS": f'["{KEY}"'}, "SIGNING_KEYS"),
        ({"SIGNING_KEYS": KEY, "PATH_PREFIX": "no slash"}, "PATH_PREFIX"),
        ({"SIGNING_KEYS": KEY, "PATH_PREFIX": "/{order_key}"}, "PATH_PREFIX"),
        ({"SIGNING_KEYS": KEY, "TOLERANCE_SECONDS": "-1"}, "TOLERANCE_SECONDS"),
        ({"SIGNING_KEYS": KEY, "WORDS__SERVICE": "A b"}, "WORDS__SERVICE"),
    ],
)
def test_what_is_wrong_is_named_and_no_key_is_shown(environment, values, named):
    environment(**values)
    with pytest.raises(ConfigurationError, match=PREFIX + named) as caught:
        ReceiverSettings.from_environment()
    for secret in ("short-secret", KEY):
        assert secret not in str(caught.value)


def test_keys_are_in_no_repr_and_no_pydantic_error():
    assert KEY not in repr(ReceiverSettings(signing_keys=(KEY,)))
    with pytest.raises(ValidationError) as caught:
        ReceiverSettings(signing_keys=("short-secret",))
    assert "short-secret" not in str(caught.value)
