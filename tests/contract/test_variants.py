"""A service with the contract's calls and nothing more: however it answers what the contract does not show, nothing is ordered
or paid twice, and a campaign ends as docs/service.md says."""

import json

import pytest

from prefect_assay.blocks import AssayCredentials
from prefect_assay.cli.services.init import token_owner
from prefect_assay.errors import Unauthorized
from support.contract.forms import FORMS
from support.contract.service import TOKEN, ContractService, running
from support.contract.table import OUTCOMES, VARIANTS, ended

EXPECTED = json.loads(OUTCOMES.read_text(encoding="utf-8"))


def test_the_table_has_every_variant():
    assert {name: tuple(ends) for name, ends in EXPECTED.items()} == {
        name: routes for name, (_, _, routes) in VARIANTS.items()
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_campaign_ends_as_the_page_says(variant, tmp_path):
    for route in VARIANTS[variant][2]:
        words, service = ended(variant, route, tmp_path / route)
        assert words == EXPECTED[variant][route], route
        assert service.creates <= 1
        assert len(service.billed) <= 1
        assert len(service.settled) <= 1
        assert words != "waits"


@pytest.mark.parametrize("form", FORMS["outside"])
def test_init_and_check_ask_for_no_call_that_the_contract_does_not_have(form):
    with running(ContractService(form={"outside": form})) as service:
        with AssayCredentials(base_url=service.base_url, token=TOKEN).get_client() as client:
            assert token_owner(client) is None
        other = AssayCredentials(base_url=service.base_url, token="another")
        with other.get_client() as client, pytest.raises(Unauthorized):
            token_owner(client)
