"""`custom-target` against a real lab: a target of one's own is requested, decided about, priced and found."""

import json

import pytest

from prefect_assay.cli.campaigns.run import check_target
from prefect_assay.cli.designs.custom_target import request_target, show_requests
from prefect_assay.cli.designs.targets import search_targets
from prefect_assay.errors import ConfigurationError, InputError, NotFound
from prefect_assay.orders.targets import resolve_target
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.spec import Assay

ANTIGEN = "Our antigen, C-terminal His tag"
EMPTY = dict.fromkeys(("sequence", "pdb_id", "account"))


@pytest.fixture
def service(lab, monkeypatch):
    monkeypatch.setenv("PREFECT_ASSAY_BASE_URL", lab.base_url)
    monkeypatch.setenv("PREFECT_ASSAY_TOKEN", lab.token)
    with AssayClient(lab.base_url, lab.token) as client:
        yield client


def requested(capsys, **changes):
    request_target(ANTIGEN, **{**EMPTY, "product_id": "OWN-1", "as_json": True, **changes})
    return json.loads(capsys.readouterr().out)["id"]


def shown(capsys, request_id=None):
    show_requests(request_id, account=None, as_json=False)
    return capsys.readouterr().out


def test_a_target_is_requested_followed_and_measured_against(lab, service, capsys):
    assert "No target was requested yet" in shown(capsys)
    request_id = requested(capsys, sequence="MKVGHI")
    pending = shown(capsys)
    assert ANTIGEN in pending
    assert "pending review" in pending
    assert "--target" not in pending

    price = {"type": "per_sequence", "price_per_sequence_cents": 4000}
    lab.event("decide_custom_target", request_id=request_id, approved=True, pricing=price)
    approved = shown(capsys, request_id)
    target = resolve_target(service, Assay(target=approved.split("--target ")[1].strip()))
    assert (target.name, target.catalog_number) == (ANTIGEN, "OWN-1")
    for spelling in (ANTIGEN, "OWN-1"):
        check_target(Assay(target=spelling))
        assert resolve_target(service, Assay(target=spelling)).id == target.id
    assert [catalog_target.id for catalog_target in search_targets(service, ["antigen"])] == [target.id]


def test_a_rejected_request_says_why(lab, service, capsys):
    request_id = requested(capsys, product_id="OWN-2", pdb_id="7XYZ")
    lab.event("decide_custom_target", request_id=request_id, approved=False, reason="it aggregates")
    shown_rejected = shown(capsys, request_id)
    assert "rejected: it aggregates" in shown_rejected
    assert "--target" not in shown_rejected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "give --sequence or --pdb-id"),
        ({"sequence": ">own\nMKV"}, "takes residues, not FASTA"),
        ({"sequence": "MKB1"}, "1"),
    ],
)
def test_what_is_missing_or_wrong_is_not_sent(lab, service, changes, message):
    posts = [entry for entry in lab.journal() if entry["method"] == "POST"]
    with pytest.raises(InputError, match=message):
        request_target(ANTIGEN, **{**EMPTY, "product_id": "OWN-3", "as_json": False, **changes})
    assert [entry for entry in lab.journal() if entry["method"] == "POST"] == posts


def test_an_unknown_request_and_a_service_without_the_calls(lab, service):
    with pytest.raises(NotFound):
        show_requests("00000000-0000-4000-8000-000000000000", account=None, as_json=False)
    lab.fault("status", status=404, path="/api/v1/targets/request-custom")
    with pytest.raises(ConfigurationError, match="ask its staff to add yours to the catalog"):
        show_requests(None, account=None, as_json=False)
