"""Advice on a server's settings: from what the server says of itself, and none where it says nothing."""

import httpx
import pytest
from prefect.settings.models.server.concurrency import ServerConcurrencySettings

from prefect_assay.cli.settings_files import SQLITE, settings_of
from prefect_assay.deployments.advice import advice


class Server:
    def __init__(self, answer):
        self._answer = answer

    def request(self, method, path):
        assert (method, path) == ("GET", "/admin/settings")
        if isinstance(self._answer, Exception):
            raise self._answer
        return httpx.Response(200, json=self._answer)


def keeps(storage):
    return {"server": {"concurrency": {"lease_storage": storage}}}


def test_prefects_own_default_is_advised_against():
    default = ServerConcurrencySettings.model_fields["lease_storage"].default
    (sentence,) = advice(Server(keeps(default)))
    name, _, value = next(word for word in sentence.split() if "=" in word).partition("=")
    assert settings_of(SQLITE)[name] == value


@pytest.mark.parametrize(
    "answer",
    [
        keeps("prefect_redis.lease_storage"),
        keeps("prefect.server.concurrency.lease_storage.filesystem"),
        {},
        [],
        httpx.ConnectError("away"),
        httpx.HTTPStatusError(
            "404", request=httpx.Request("GET", "http://server"), response=httpx.Response(404)
        ),
    ],
)
def test_nothing_is_said_of_other_servers(answer):
    assert advice(Server(answer)) == ()
