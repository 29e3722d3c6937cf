"""The ledgers behind credentials: what the first use recorded holds, whatever `GET /whoami` answers later."""

from types import SimpleNamespace

import httpx
import pytest

from prefect_assay.blocks import LocalArchive
from prefect_assay.blocks.order_ledger import open_ledgers
from prefect_assay.errors import Forbidden, OtherOrganization, TransientError, Unauthorized
from prefect_assay.service.client import AssayClient

URL = "https://lab.example.org"


def hangs(request):
    raise httpx.ReadTimeout("no answer", request=request)


def json(code=200, **body):
    return httpx.Response(code, json=body)


FAILING = {
    "proxy": httpx.Response(404, text="404 page not found"),
    "framework": json(404, detail="Not Found"),
    "another object": json(status="maintenance"),
    "web page": httpx.Response(200, html="<h1>Sign in</h1>"),
    "unreadable": httpx.Response(200, text="{"),
    "away": httpx.Response(503),
    "too many": httpx.Response(429),
    "hangs": hangs,
}
SILENT = {
    "without the endpoint": json(404, error="no such endpoint"),
    "without an organisation": json(user_id="u", organizations=[]),
    "none of several active": json(user_id="u", organizations=[{"id": "o1"}, {"id": "o2"}]),
}
NAMING = {
    "the active one of the list": json(organizations=[{"id": "o1"}, {"id": "o2", "active": True}]),
    "the active one by its id": json(organizations=[{"id": "o1"}], active_organization_id="o2"),
    "the only one": json(organizations=[{"id": "o2"}]),
}


def told(answer, path):
    """The ledgers behind a service that answers `GET /whoami` so."""
    respond = answer if callable(answer) else lambda _: answer
    client = AssayClient(URL, "t", transport=httpx.MockTransport(respond), retries=0)
    credentials = SimpleNamespace(get_client=lambda: client, base_url=URL)
    return open_ledgers(credentials, LocalArchive(root=str(path)))


@pytest.mark.parametrize("answer", FAILING.values(), ids=FAILING)
def test_an_answer_that_is_not_the_services_records_nothing_at_the_first_use(tmp_path, answer):
    with pytest.raises(TransientError, match="whoami"):
        told(answer, tmp_path)
    assert not [*tmp_path.rglob("*.json")]


@pytest.mark.parametrize(
    "name", ["proxy", "framework", "another object", "web page", "forbidden", "not allowed", "away"]
)
def test_a_service_without_the_call_has_the_log_of_its_address(tmp_path, name):
    """The contract does not have it: a call of the contract shows that the service is there."""
    absent = {**FAILING, "forbidden": json(403, error="no"), "not allowed": httpx.Response(405)}[name]

    def respond(request):
        return json(items=[], total=0) if request.url.path.endswith("/targets") else absent

    if name == "away":
        with pytest.raises(TransientError):
            told(respond, tmp_path)
        return
    first = told(respond, tmp_path)
    assert first.organisation is None
    assert told(NAMING["the only one"], tmp_path).folder == first.folder


@pytest.mark.parametrize("answer", NAMING.values(), ids=NAMING)
def test_the_ledgers_are_those_of_the_organisation_that_the_token_orders_for(tmp_path, answer):
    assert told(answer, tmp_path).organisation == "o2"


@pytest.mark.parametrize("first", [*NAMING.values(), *SILENT.values()], ids=[*NAMING, *SILENT])
@pytest.mark.parametrize("later", [*FAILING.values(), *SILENT.values()], ids=[*FAILING, *SILENT])
def test_what_the_first_use_recorded_holds_when_the_service_does_not_say(tmp_path, first, later):
    assert told(later, told(first, tmp_path) and tmp_path).folder == told(first, tmp_path).folder


@pytest.mark.parametrize("first", SILENT.values(), ids=SILENT)
def test_an_organisation_that_is_named_later_has_the_log_of_the_first_use(tmp_path, first):
    folder = told(first, tmp_path).folder
    assert told(NAMING["the only one"], tmp_path).folder == folder
    with pytest.raises(OtherOrganization):
        told(json(active_organization_id="o3"), tmp_path)
    assert told(first, tmp_path).folder == folder


def test_a_token_that_may_not_say_whose_it_is_goes_on_and_begins_nothing(tmp_path):
    forbidden, revoked = httpx.Response(403, json={"error": "no"}), httpx.Response(401, json={"error": "no"})
    with pytest.raises(Forbidden):
        told(forbidden, tmp_path)
    folder = told(NAMING["the only one"], tmp_path).folder
    assert told(forbidden, tmp_path).folder == folder
    with pytest.raises(Unauthorized):
        told(revoked, tmp_path)
