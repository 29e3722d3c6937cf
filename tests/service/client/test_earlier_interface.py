"""The earlier interface variant (contract 9.4): recognised by its answers and never by a setting; its notifications are signed."""

import json
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from prefect_assay import errors
from prefect_assay.campaigns.receiver import endpoint
from prefect_assay.campaigns.receiver.receiver import create_app
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.service.client import filters as f
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.webhook_signature import derive_secret, sign, verify
from support.services.fault_server import reply, reset
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of

ROWS = [
    {
        "id": f"u{n:02}", "experiment_id": f"e{n % 2}", "experiment_code": "ORG-001-001", "name": "Assay started",
        "timestamp": "2026-03-02T09:00:00Z", "description": "running", "eta": None, "is_resolved": False,
        "status_change": {"from": "InQueue", "to": "InProduction"}, "update_type": "status_change" if n % 3 else "progress",
    }
    for n in range(24, 0, -1)
]  # fmt: skip
DONE = reply(200, {"id": "e1", "updated": True})
NOT_ALLOWED = reply(405, {"error": "method not allowed"}, allow="GET, POST")
DESIGN = ProteinSequence(name="a", aa_string="MKT")


def narrowed(query):
    return [
        row
        for row in ROWS
        if query.get("experiment_id", row["experiment_id"]) == row["experiment_id"]
        and query.get("type", row["update_type"]) == row["update_type"]
    ]


def earlier_feed(connection, request):
    """Knows `cursor`, `limit`, `experiment_id` and `type`, and heeds nothing else."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
    rows = narrowed(query)
    start = [row["id"] for row in rows].index(query["cursor"]) + 1 if "cursor" in query else 0
    page = rows[start : start + int(query.get("limit", 50))]
    more = start + len(page) < len(rows)
    reply(200, {"updates": page, "next_cursor": page[-1]["id"] if more else None})(connection, request)


@pytest.mark.parametrize("only", [{}, {"experiment_id": "e1"}, {"experiment_id": "e0", "type": "progress"}])
def test_the_feed_is_followed_by_its_cursor_with_its_own_filters(call, server, only):
    server.will(*[earlier_feed] * 30)
    expected = [(row["id"], row["update_type"], "running") for row in narrowed(only)]
    updates = call("updates.iterate", page_size=2, **only)
    assert [(update.id, update.type, update.description) for update in updates] == expected
    assert [update.id for update in call("updates.list", limit=2, **only).items] == [
        row[0] for row in expected[:2]
    ]


@pytest.mark.parametrize(
    "asked", [{"filter": f.eq("type", "progress")}, {"sort": "-timestamp"}, {"search": "x"}, {"offset": 3}]
)
def test_an_option_that_it_would_ignore_is_refused(call, server, asked):
    server.will(earlier_feed)
    with pytest.raises(errors.UnexpectedAnswer, match=f"knows no {next(iter(asked))}"):
        call("updates.list", **asked)


@pytest.mark.parametrize("cursor", ["u01", "", 7])
def test_a_cursor_beside_the_items_of_the_current_feed_is_not_followed(call, server, cursor):
    def current_feed(connection, request):
        query = {name: int(values[0]) for name, values in parse_qs(urlsplit(request.target).query).items()}
        page = ROWS[query.get("offset", 0) :][: query["limit"]]
        body = {"items": page, "total": len(ROWS), "count": len(page), "offset": query.get("offset", 0)}
        reply(200, body | {"next_cursor": cursor})(connection, request)

    server.will(*[current_feed] * 10)
    assert [update.id for update in call("updates.iterate", page_size=10)] == [row["id"] for row in ROWS]


def test_a_cursor_that_leads_in_a_circle_ends(call, server):
    server.will(*[reply(200, {"updates": ROWS[:2], "next_cursor": "u23"})] * 9)
    assert len(call("updates.iterate", page_size=2)) == len(server.seen) == 2


def test_its_results_are_read(call, server):
    rows = [{"id": f"r{n}", "experiment_id": "e1", "result_type": "affinity", "extra": 1} for n in range(3)]
    server.will(*[reply(200, {"results": rows})] * 4)
    assert [r.id for r in call("results.iterate")] == ["r0", "r1", "r2"]
    assert call("experiments.iterate_results", "e1")[0].model_extra["extra"] == 1


def test_a_modification_is_sent_by_post_where_patch_does_not_exist(call, server):
    server.will(NOT_ALLOWED, DONE)
    done = call("experiments.modify", "e1", name="n", n_replicates=2, sequences=[DESIGN])
    assert (done.id, done.updated) == ("e1", True)
    assert server.methods == ["PATCH", "POST"]
    assert server.seen[0].path == server.seen[1].path == "/api/v1/experiments/e1"
    assert server.seen[1].json() == {"name": "n", "n_replicates": 2, "sequences": [{"fasta": ">a\nMKT\n"}]}


@pytest.mark.parametrize("status", ["waiting_for_confirmation", "WaitingForConfirmation"])
def test_a_status_is_sent_by_post_at_once(call, server, status):
    server.will(DONE)
    assert call("experiments.modify", "e1", name="n", status=status).updated is True
    assert (server.methods, server.seen[0].path) == (["POST"], "/api/v1/experiments/e1")
    assert server.seen[0].json() == {"name": "n", "status": "waiting_for_confirmation"}


def test_a_service_of_the_current_interface_changes_no_status(call, server):
    server.will(reply(405, {"error": "method not allowed"}, allow="GET, PATCH"))
    with pytest.raises(errors.InvalidRequest, match="status: this service speaks the current interface"):
        call("experiments.modify", "e1", status="canceled")
    server.will()
    for fields in ({"status": "nonsense"}, {"status": "draft", "webhook_url": "https://h.example"}):
        with pytest.raises(errors.InvalidRequest):
            call("experiments.modify", "e1", **fields)
    assert server.seen == []


@pytest.mark.parametrize(
    "fields",
    [
        {"webhook_url": "https://h.example"},
        {"antigen_concentrations": [1.0]},
        {"sequences": [ProteinSequence(name="a", aa_string="MKT", control=True)]},
    ],
)
def test_nothing_is_left_out_on_the_way(call, server, fields):
    server.will(NOT_ALLOWED, DONE)
    with pytest.raises(errors.InvalidRequest, match="earlier interface") as caught:
        call("experiments.modify", "e1", **fields)
    assert caught.value.findings[0].startswith(next(iter(fields)))
    assert server.methods == ["PATCH"]


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([reset()], errors.OutcomeUnknown),
        ([reply(500)], errors.OutcomeUnknown),
        ([reply(501)], errors.OutcomeUnknown),
        ([reply(404, {"error": "no such experiment"})], errors.NotFound),
        ([reply(404, b"<html>")], errors.OutcomeUnknown),
        ([reply(409, {"error": "too late"})], errors.Conflict),
        ([reply(400, {"error": "no"})], errors.RequestRefused),
        ([NOT_ALLOWED, reset()], errors.OutcomeUnknown),
        ([NOT_ALLOWED, NOT_ALLOWED], errors.AccessError),  # it knows neither: the address is wrong
    ],
)
def test_no_other_answer_makes_a_further_request(call, server, steps, kind):
    server.will(*steps, DONE)
    with pytest.raises(kind):
        call("experiments.modify", "e1", name="n")
    assert server.methods == ["PATCH", "POST"][: len(steps)]
    assert json.loads(server.seen[-1].body) == {"name": "n"}


# --- Notifications of status changes: hints to look

SECRET = derive_secret(SIGNING_KEY, ORDER_KEY)
NOW = datetime(2026, 3, 2, tzinfo=UTC)
OLD = {"timestamp": "2020-01-01T00:00:00Z"}
CHANGE = {"experiment_id": "e-1", "previous_status": "QuoteSent", "new_status": "WaitingForMaterials"}


def read(body, *, secret=SECRET):
    raw = json.dumps(body).encode()
    headers = {"X-Service-Signature": sign(raw, secret)}
    return verify(raw, headers, [SECRET], now=NOW, tolerance=timedelta(minutes=5))


@pytest.mark.parametrize(
    "body",
    [
        CHANGE,
        {"event": "experiment_status_changed", "data": CHANGE},
        {"experimentId": "e-1", "previousStatus": "quote_sent", "newStatus": "waiting_for_materials"},
        CHANGE | {"timestamp": NOW.isoformat()},
        CHANGE | {"timestamp": "some time ago"},
        # The time of the notification counts before that of the experiment, which may be weeks old.
        {"timestamp": NOW.isoformat(), "data": CHANGE | {"created_at": "2020-01-01T00:00:00Z"}},
    ],
)
def test_a_status_change_is_read_as_a_delivery(body):
    delivery = read(body)
    assert delivery.data.experiment_id == "e-1"
    assert delivery.data.name == "quote_sent to waiting_for_materials"
    assert (delivery.event, delivery.data.update_type) == ("status_change", "status_change")


@pytest.mark.parametrize(
    ("body", "secret", "says"),
    [
        (CHANGE, "x" * 40, "signature"),
        (CHANGE | OLD, SECRET, "tolerance"),
        # An unreadable time inside does not hide the one outside: else a replay would be accepted again and again.
        ({"event": "x", **OLD, "data": CHANGE | {"timestamp": "some time ago"}}, SECRET, "tolerance"),
        ({"event": "x", **OLD, "data": CHANGE | {"created_at": 7e99}}, SECRET, "tolerance"),
        *(
            (odd, SECRET, None)
            for odd in (CHANGE | {"new_status": ""}, CHANGE | {"experiment_id": 7}, [CHANGE], 3)
        ),
        ({"update_id": "u", **CHANGE}, SECRET, None),
    ],
)
def test_what_is_unsigned_old_or_malformed_is_refused(body, secret, says):
    with pytest.raises(errors.SignatureError, match=says):
        read(body, secret=secret)


@pytest.fixture
def later(monkeypatch):
    """Moves the receiver's clocks, which run as usual but for that."""
    ahead = [0.0]

    class Moved(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=ahead[0])

    monkeypatch.setattr(endpoint, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + ahead[0]))
    monkeypatch.setattr(endpoint, "datetime", Moved)
    return lambda seconds: ahead.__setitem__(0, ahead[0] + seconds)


@pytest.mark.parametrize(
    "timeless",
    [CHANGE, CHANGE | {"timestamp": "some time ago"}, {"event": "x", "data": CHANGE | {"created_at": None}}],
    ids=["none", "unreadable", "null"],
)
def test_without_a_readable_time_it_wakes_once_however_late_it_is_repeated(later, timeless):
    woken = []

    async def wake(experiment_id, *_):
        woken.append(experiment_id)
        return 1

    client = TestClient(create_app(ReceiverSettings(signing_keys=[SIGNING_KEY]), wake=wake))

    def post(body):
        raw = json.dumps(body).encode()
        headers = {"X-Service-Signature": sign(raw, SECRET)}
        assert client.post(f"/assay/{ORDER_KEY}", content=body_of(), headers=headers).status_code == 401
        return client.post(f"/assay/{ORDER_KEY}", content=raw, headers=headers).json()["resumed"]

    answers = []
    for _ in range(4):
        answers.append(post(timeless))
        later(86_400)
    assert answers == [1, 0, 0, 0]
    # The next status of the same experiment is another notification.
    assert post(CHANGE | {"new_status": "InProduction"}) == 1
    assert woken == ["e-1", "e-1"]
