"""Advice on a server's settings, from the settings that it publishes."""

from uuid import uuid4

import httpx
import pytest
from prefect.client.schemas.responses import DeploymentResponse
from prefect.settings.models.server.concurrency import ServerConcurrencySettings

from prefect_assay.deployments.server_checks import settings_advice, sweep_advice
from prefect_assay.deployments.settings_files import SQLITE, read_shipped_settings


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


def test_prefects_default_is_advised_against():
    default = ServerConcurrencySettings.model_fields["lease_storage"].default
    (sentence,) = settings_advice(Server(keeps(default)))
    name, _, value = next(word for word in sentence.split() if "=" in word).partition("=")
    assert read_shipped_settings(SQLITE)[name] == value


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
def test_other_servers_get_no_advice(answer):
    assert settings_advice(Server(answer)) == ()


def sweep(*active, paused=False):
    schedules = [
        {"id": str(uuid4()), "deployment_id": str(uuid4()), "schedule": {"interval": 300}, "active": on}
        for on in active
    ]
    fields = {"id": str(uuid4()), "flow_id": str(uuid4()), "name": "assay-campaign"}
    return DeploymentResponse.model_validate(fields | {"schedules": schedules, "paused": paused})


@pytest.mark.parametrize("deployed", [None, sweep(True), sweep(False, True)])
def test_a_sweep_with_a_schedule_needs_no_advice(deployed):
    assert sweep_advice(deployed) == ()


@pytest.mark.parametrize("deployed", [sweep(), sweep(False), sweep(True, paused=True)])
def test_a_sweep_that_nothing_starts_is_reported(deployed):
    (sentence,) = sweep_advice(deployed)
    assert "nothing starts the sweep" in sentence
