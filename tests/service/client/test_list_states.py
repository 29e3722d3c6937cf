"""The rows of many experiments: few requests with short addresses, the contract's two ways to find them, strict states."""

import httpx
import pytest

from lab_support.core import lab_core, order, spec
from prefect_assay.errors import RequestRefused, UnexpectedAnswer
from prefect_assay.service.client import AssayClient
from support.contract.service import TOKEN, ContractService, running
from support.lab.in_process import LabTransport

URL_MAX = 2_000
ABSENT = "c0ffee00-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def lab():
    """A lab with 150 experiments, and their ids."""
    core = lab_core()
    transport = LabTransport(core)
    small = spec(sequences={"a": "MKV"})
    transport.ids = [order(core, small, name=f"camp {n}").body["experiment_id"] for n in range(150)]
    yield transport
    core.close()


@pytest.fixture
def read(lab):
    """Read states through a gateway that may answer itself; the states, and the addresses that were asked."""

    def states(*ids, gateway=lambda _: None, **options):
        urls = []

        def answer(request):
            urls.append(str(request.url))
            return gateway(request) or lab.answer(request)

        transport, token = httpx.MockTransport(answer), lab.core.seeded.member_token
        with AssayClient("https://lab.example", token, transport=transport, retries=0) as client:
            return client.experiments.list_states(ids, **options), urls

    return states


def page(*rows):
    body = {"items": rows, "total": len(rows), "count": len(rows), "offset": 0}
    return lambda _: httpx.Response(200, json=body)


def refuse(request):
    if "filter" in request.url.params:
        return httpx.Response(400, json={"error": "unknown field id", "request_id": "req_1"})
    return None


def match_nothing(request):
    return page()(request) if "filter" in request.url.params else None


@pytest.fixture
def ignore(lab):
    """A service that does not heed the filter."""
    return lambda request: lab.answer(
        httpx.Request(request.method, request.url.copy_remove_param("filter"), headers=request.headers)
    )


def row(number, **fields):
    shown = {
        "id": f"c0ffee00-0000-4000-8000-{number:012d}", "code": f"ORG-001-{number:03d}", "name": f"camp {number}",
        "status": "in_queue", "created_at": "2026-11-21T12:00:00Z", "results_status": "none", "experiment_url": "https://lab.example/x",
    }  # fmt: skip
    return {name: value for name, value in (shown | fields).items() if value is not ...}


def test_forty_experiments_take_one_request_and_every_address_is_short(lab, read):
    states, urls = read(*lab.ids[:40])
    assert ({one: state.id for one, state in states.items()}, len(urls)) == (
        {one: one for one in lab.ids[:40]},
        1,
    )
    many, urls = read(*lab.ids)
    assert (len(many), len(urls)) == (150, 4)
    assert max(map(len, urls)) < URL_MAX
    long = [f"experiment of the group & others {number}" for number in range(60)]  # ids that need quoting
    states, urls = read(*long, gateway=page(*(row(number, id=one) for number, one in enumerate(long))))
    assert len(states) == 60
    assert max(map(len, urls)) < URL_MAX


def test_what_is_not_asked_for_or_not_there_costs_no_further_request(lab, read):
    assert read(search="camp") == ({}, [])
    states, urls = read(lab.ids[1], ABSENT)
    assert (list(states), len(urls)) == ([lab.ids[1]], 1)


def test_the_keys_are_the_ids_as_given(lab, read):
    first = lab.ids[7]
    assert list(read(first.upper(), first)[0]) == [first.upper()]


@pytest.mark.parametrize("gateway", [refuse, match_nothing])
def test_what_the_filter_does_not_show_is_searched_for(lab, read, gateway):
    states, urls = read(*lab.ids, gateway=gateway, search="camp")
    assert len(states) == 150
    assert sum("search=camp" in url for url in urls) == 2  # pages of 100 rows, which overlap by one
    if gateway is refuse:
        assert sum("filter=" in url for url in urls) == 1


def test_without_a_search_a_refused_filter_is_an_error(lab, read):
    with pytest.raises(RequestRefused, match="unknown field id"):
        read(lab.ids[0], gateway=refuse)


def test_a_service_that_ignores_the_filter_is_read_until_the_last_one_is_seen(lab, read, ignore):
    states, urls = read(lab.ids[20], gateway=ignore)
    assert (list(states), len(urls)) == ([lab.ids[20]], 2)
    states, urls = read(lab.ids[140], gateway=ignore)
    assert (list(states), len(urls)) == ([lab.ids[140]], 1)


@pytest.mark.parametrize(
    "odd",
    [
        *({"results_status": value} for value in (None, ..., {"name": "all"})),
        *({"status": value} for value in (None, ..., {"name": "done"})),
        {"status": None, "state": "done"},
    ],
)
def test_a_row_without_its_states_is_an_error_and_one_of_another_experiment_is_not_read(read, odd):
    rows = [row(1, **odd), row(2)]
    with pytest.raises(UnexpectedAnswer, match="status"):
        read(*(row(number)["id"] for number in (1, 2)), gateway=page(*rows))
    assert list(read(rows[1]["id"], gateway=page(*rows))[0]) == [rows[1]["id"]]


def test_both_spellings_of_the_contract_are_read(read):
    odd = row(1, status="InReview", results_status="All")
    (state,) = read(odd["id"], gateway=page(odd))[0].values()
    assert (state.status, state.results_status) == ("in_review", "all")


def test_a_service_of_the_contract_that_ignores_the_filter_shows_its_rows():
    body = {"name": "camp", "experiment_spec": spec()}
    with running(ContractService()) as service, AssayClient(service.base_url, TOKEN) as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        url = f"{service.base_url}/api/v1/experiments"
        experiment_id = httpx.post(url, json=body, headers=headers, trust_env=False).json()["experiment_id"]
        assert client.experiments.list_states([experiment_id])[experiment_id].status == "draft"
