"""Minting for a partner's customers and attenuating (contract 4.6), as the client reads them; the lab's own tests have the rules."""

import pytest

from prefect_assay.errors import Conflict, Forbidden, Unauthorized
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.tokens import Attenuation, ExistingOrg, MintRequest, NewOrg
from support.rules.register import lab_holds


def test_a_partner_brings_organisations_and_users(lab, org):
    def mint_request(name, existing=None):
        place = ExistingOrg(id=existing) if existing else NewOrg(name="Customer")
        return MintRequest(org=place, email=f"{name}@{org.id}.example")

    with AssayClient(lab.base_url, org.lab.partner_token) as partner:
        first = partner.tokens.mint(mint_request("a"))
        again = mint_request("b", first.organization_id)
        second = partner.tokens.mint(again)
        assert second.organization_id == first.organization_id != org.id
        with pytest.raises(Conflict):
            partner.tokens.mint(again)
    with AssayClient(lab.base_url, second.token) as customer:
        assert customer.tokens.whoami().active_organization_id == first.organization_id
        assert customer.experiments.list().total == 0
    org.reads(Forbidden, lambda client: client.tokens.mint(mint_request("c")))


@lab_holds("4.6.attenuate.capability")
def test_attenuating_takes_token_read(lab, org):
    for less in (Attenuation(allowed_resources=("experiment",)), Attenuation(allowed_actions=("list",))):
        narrow = org.client.tokens.attenuate(org.lab.token, less, "narrow").token
        with AssayClient(lab.base_url, narrow) as client:
            assert client.experiments.list().total == 0
            with pytest.raises(Forbidden, match="token:read"):
                client.tokens.attenuate(org.lab.token, Attenuation(read_only=True), "x")
    with AssayClient(
        lab.base_url, org.lab.viewer_token
    ) as viewer:  # may hand out less than a viewer's rights
        assert viewer.tokens.attenuate(org.lab.viewer_token, less, "x").id


def test_revoking_ends_the_family_at_once(lab, org):
    child = org.client.tokens.attenuate(org.lab.token, Attenuation(read_only=True), "child").token
    assert org.client.tokens.revoke().children_revoked == 1
    for token in (org.lab.token, child):
        with AssayClient(lab.base_url, token) as client, pytest.raises(Unauthorized):
            client.tokens.whoami()
