"""A service counts as simulated only while its own answers say so in exactly one way; every other one is live."""

from contextlib import suppress

import pytest

from assay_lab.testing import LocalLab
from prefect_assay.errors import AssayError
from prefect_assay.service.client import AssayClient
from support.contract.service import TOKEN, ContractService, running
from support.services.fault_server import fault_server, reply

EXPERIMENT = {"id": "e1", "code": "c-1", "status": "done", "created_at": "2026-11-21T12:00:00Z"}
SAYS_SO = {"assay_simulated": "true"}


def read(server, *calls):
    """What a client says before its first call and after each of them."""
    with AssayClient(server.base_url, "token", retries=0) as client:
        simulated = [client.is_simulated]
        for call in calls:
            with suppress(AssayError):
                call(client)
            simulated.append(client.is_simulated)
    return simulated


def experiment(client):
    client.experiments.get("e1")


def test_the_last_answer_counts(server):
    server.will(reply(200, EXPERIMENT, **SAYS_SO), reply(200, EXPERIMENT), reply(404, {}, **SAYS_SO))
    assert read(server, experiment, experiment, experiment) == [False, True, False, True]


@pytest.mark.parametrize("value", ["True", "1", "yes", "true, true", "true;v=1", "", "false"])
def test_no_other_value_makes_a_service_simulated(server, value):
    server.will(reply(200, EXPERIMENT, assay_simulated=value))
    assert read(server, experiment) == [False, False]


@pytest.mark.parametrize("name", ["x_assay_simulated", "assay_simulation", "simulated"])
def test_no_other_header_does(server, name):
    server.will(reply(200, {**EXPERIMENT, "simulated": True}, **{name: "true"}))
    assert read(server, experiment) == [False, False]


def test_the_host_of_a_file_says_nothing_about_the_service(server):
    with fault_server() as elsewhere:
        server.will(reply(307, location=f"{elsewhere.base_url}/package.zip"))
        elsewhere.will(reply(404, {}, **SAYS_SO))
        assert read(server, lambda client: b"".join(client.documents.download("/files/package.zip"))) == [
            False,
            False,
        ]


def test_a_service_of_the_contract_is_live():
    with running(ContractService()) as service, AssayClient(service.base_url, TOKEN) as client:
        assert list(client.experiments.iterate()) == []
        assert not client.is_simulated


def test_the_client_of_a_lab_process_knows_it():
    with LocalLab() as lab, AssayClient(lab.base_url, lab.token) as client:
        client.tokens.whoami()
        assert client.is_simulated
