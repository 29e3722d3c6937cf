"""The rows of many experiments: few requests with short addresses, the contract's two ways to find them, strict states."""

from urllib.parse import parse_qs

import httpx
import pytest

from assay_lab.testing import LocalLab
from lab_support.core import spec
from prefect_assay.errors import RequestRefused, UnexpectedAnswer
from prefect_assay.service.client import AssayClient
from support.contract.service import TOKEN, ContractService, running

URL_MAX = 2_000


def uuid(number):
    return f"c0ffee00-0000-4000-8000-{number:012d}"


def row(number, **fields):
    return {
        "id": uuid(number),
        "code": f"ORG-001-{number:03d}",
        "name": f"camp {number}",
        "status": "in_queue",
        "created_at": "2026-11-21T12:00:00Z",
        "results_status": "none",
        "experiment_url": "https://lab.example/x",
        **fields,
    }


class Service:
    """A service with these rows. It reads the filter as its kind says."""

    def __init__(self, rows, filters="reads"):
        self.rows, self.filters = rows, filters
        self.urls = []

    def __call__(self, request):
        self.urls.append(str(request.url))
        query = {name: values[0] for name, values in parse_qs(request.url.query.decode()).items()}
        rows = self.rows
        if "filter" in query and self.filters == "refuses":
            return httpx.Response(400, json={"error": "unknown field id"})
        if "filter" in query and self.filters == "reads":
            ids = query["filter"].removeprefix("in(id,").removesuffix(")").split(",")
            rows = [one for one in rows if one.get("id") in ids]
        if "filter" in query and self.filters == "matches nothing":
            rows = []
        if "search" in query:
            rows = [one for one in rows if query["search"] in one["name"]]
        limit, offset = int(query["limit"]), int(query["offset"])
        page = rows[offset : offset + limit]
        return httpx.Response(
            200, json={"items": page, "total": len(rows), "count": len(page), "offset": offset}
        )

    def states(self, *ids, **options):
        with AssayClient(
            "https://lab.example", "a-token-of-tests", transport=httpx.MockTransport(self), retries=0
        ) as client:
            return client.experiments.list_states(ids, **options)


def test_forty_experiments_take_one_request_and_every_address_is_short():
    service = Service([row(number) for number in range(300)])
    states = service.states(*map(uuid, range(40)))
    assert list(states) == [uuid(number) for number in range(40)]
    assert len(service.urls) == 1
    many = service.states(*map(uuid, range(300)))
    assert len(many) == 300
    assert len(service.urls) <= 1 + 8
    assert max(map(len, service.urls)) < URL_MAX


def test_long_ids_that_need_quoting_keep_the_address_short_too():
    ids = [f"experiment of the group & others {number}" for number in range(60)]
    service = Service([row(number, id=one) for number, one in enumerate(ids)], filters="ignores")
    assert len(service.states(*ids)) == 60
    assert max(map(len, service.urls)) < URL_MAX


def test_no_ids_need_no_request():
    service = Service([])
    assert (service.states(search="camp"), service.urls) == ({}, [])


def test_the_keys_are_the_ids_as_given():
    service = Service([row(7)])
    assert list(service.states(uuid(7).upper(), uuid(7))) == [uuid(7).upper()]


def test_an_experiment_without_a_row_is_left_out():
    service = Service([row(1)])
    assert list(service.states(uuid(1), uuid(2))) == [uuid(1)]
    assert len(service.urls) == 1


@pytest.mark.parametrize("filters", ["refuses", "matches nothing"])
def test_what_the_filter_does_not_show_is_searched_for(filters):
    service = Service([row(number) for number in range(150)], filters)
    assert len(service.states(*map(uuid, range(150)), search="camp")) == 150
    assert sum("search=camp" in url for url in service.urls) == 2  # pages of 100 rows, which overlap by one
    if filters == "refuses":
        assert sum("filter=" in url for url in service.urls) == 1


def test_without_a_search_a_refused_filter_is_an_error():
    with pytest.raises(RequestRefused, match="unknown field id"):
        Service([row(1)], "refuses").states(uuid(1))


def test_a_service_that_ignores_the_filter_is_read_until_the_last_one_is_seen():
    service = Service([row(number) for number in range(250)], "ignores")
    assert list(service.states(uuid(150))) == [uuid(150)]
    assert len(service.urls) == 2


@pytest.mark.parametrize(
    "odd",
    [
        {"results_status": None},
        {"results_status": {"name": "all"}},
        {"status": None},
        {"status": {"name": "done"}},
        {"status": None, "state": "done"},
    ],
)
def test_a_row_without_its_states_is_an_error_and_one_of_another_experiment_is_not_read(odd):
    service = Service([row(1, **odd), row(2)], "ignores")
    with pytest.raises(UnexpectedAnswer):
        service.states(uuid(1), uuid(2))
    assert list(service.states(uuid(2))) == [uuid(2)]


@pytest.mark.parametrize("lacks", ["results_status", "status"])
def test_an_absent_state_is_an_error(lacks):
    short = {name: value for name, value in row(1).items() if name != lacks}
    with pytest.raises(UnexpectedAnswer, match=lacks):
        Service([short]).states(uuid(1))


def test_both_spellings_of_the_contract_are_read():
    (state,) = Service([row(1, status="InReview", results_status="All")]).states(uuid(1)).values()
    assert (state.status, state.results_status) == ("in_review", "all")


def test_the_lab_reads_the_filter():
    with LocalLab() as lab, AssayClient(lab.base_url, lab.token) as client, lab.http() as http:
        ids = [
            http.post("/experiments", json={"name": f"camp {n}", "experiment_spec": spec()}).json()[
                "experiment_id"
            ]
            for n in range(45)
        ]
        lab.clear_faults()
        before = len(lab.journal(path="/experiments"))
        states = client.experiments.list_states(ids)
        assert {one: state.id for one, state in states.items()} == {one: one for one in ids}
        assert len(lab.journal(path="/experiments")) - before == 2


def test_a_service_of_the_contract_that_ignores_the_filter_shows_its_rows():
    with running(ContractService()) as service, AssayClient(service.base_url, TOKEN) as client:
        made = httpx.post(
            f"{service.base_url}/api/v1/experiments",
            json={"name": "camp", "experiment_spec": spec()},
            headers={"Authorization": f"Bearer {TOKEN}"},
            trust_env=False,
        ).json()
        experiment_id = made["experiment_id"]
        assert client.experiments.list_states([experiment_id])[experiment_id].status == "draft"
