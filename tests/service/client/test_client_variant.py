"""The earlier interface variant (contract 9.4): recognised by its answers, never by a setting."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from prefect_assay import errors
from prefect_assay.service.client import filters as f
from prefect_assay.service.models.sequences import ProteinSequence
from support.services.fault_server import reply, reset

ROWS = [
    {
        "id": f"u{n:02}",
        "experiment_id": f"e{n % 2}",
        "experiment_code": "ORG-001-001",
        "name": "Assay started",
        "timestamp": "2026-03-02T09:00:00Z",
        "description": "running",
        "eta": None,
        "is_resolved": False,
        "status_change": {"from": "InQueue", "to": "InProduction"},
        "update_type": "status_change" if n % 3 else "progress",
    }
    for n in range(24, 0, -1)
]


def earlier_feed(connection, request):
    """Knows `cursor`, `limit`, `experiment_id` and `type`, and heeds nothing else."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
    rows = [
        row
        for row in ROWS
        if query.get("experiment_id", row["experiment_id"]) == row["experiment_id"]
        and query.get("type", row["update_type"]) == row["update_type"]
    ]
    ids = [row["id"] for row in rows]
    start = ids.index(query["cursor"]) + 1 if "cursor" in query else 0
    page = rows[start : start + int(query.get("limit", 50))]
    more = start + len(page) < len(rows)
    reply(200, {"updates": page, "next_cursor": page[-1]["id"] if more else None})(connection, request)


def test_the_feed_is_followed_by_its_cursor(call, server):
    server.will(*[earlier_feed] * 9)
    found = call("updates.iterate", page_size=7)
    assert [u.id for u in found] == [row["id"] for row in ROWS]
    assert len(server.seen) == 4
    assert (found[0].type, found[0].description) == ("progress", "running")


@pytest.mark.parametrize(
    "only", [{"experiment_id": "e1"}, {"type": "progress"}, {"experiment_id": "e0", "type": "progress"}]
)
def test_its_own_filters_are_used_once_it_is_recognised(call, server, only):
    server.will(*[earlier_feed] * 30)
    wanted = [
        row["id"]
        for row in ROWS
        if only.get("experiment_id", row["experiment_id"]) == row["experiment_id"]
        and only.get("type", row["update_type"]) == row["update_type"]
    ]
    assert [u.id for u in call("updates.iterate", page_size=2, **only)] == wanted
    assert [u.id for u in call("updates.list", limit=2, **only).items] == wanted[:2]


@pytest.mark.parametrize(
    "asked", [{"filter": f.eq("type", "progress")}, {"sort": "-timestamp"}, {"search": "x"}, {"offset": 3}]
)
def test_an_option_that_it_would_ignore_is_refused(call, server, asked):
    server.will(earlier_feed)
    with pytest.raises(errors.UnexpectedAnswer, match=f"knows no {next(iter(asked))}"):
        call("updates.list", **asked)


def test_a_cursor_that_leads_in_a_circle_ends(call, server):
    server.will(*[reply(200, {"updates": ROWS[:2], "next_cursor": "u23"})] * 9)
    assert len(call("updates.iterate", page_size=2)) == 2
    assert len(server.seen) == 2


def test_its_results_are_read(call, server):
    rows = [
        {"id": f"r{n}", "experiment_id": "e1", "result_type": "affinity", "title": "t", "extra": 1}
        for n in range(3)
    ]
    server.will(*[reply(200, {"results": rows})] * 4)
    assert [r.id for r in call("results.iterate")] == ["r0", "r1", "r2"]
    assert call("experiments.iterate_results", "e1")[0].model_extra["extra"] == 1


def not_allowed(**headers):
    return reply(405, {"error": "method not allowed"}, allow="GET, POST", **headers)


def test_a_modification_is_sent_by_post_where_patch_does_not_exist(call, server):
    server.will(not_allowed(), reply(200, {"id": "e1", "updated": True}))
    done = call(
        "experiments.modify",
        "e1",
        name="n",
        n_replicates=2,
        sequences=[ProteinSequence(name="a", aa_string="MKT")],
    )
    assert (done.id, done.updated) == ("e1", True)
    assert server.methods == ["PATCH", "POST"]
    assert server.seen[0].path == server.seen[1].path == "/api/v1/experiments/e1"
    assert server.seen[1].json() == {"name": "n", "n_replicates": 2, "sequences": [{"fasta": ">a\nMKT\n"}]}


@pytest.mark.parametrize("status", ["waiting_for_confirmation", "WaitingForConfirmation"])
def test_a_status_is_sent_by_post_at_once(call, server, status):
    server.will(reply(200, {"id": "e1", "updated": True}))
    assert call("experiments.modify", "e1", name="n", status=status).updated is True
    assert server.methods == ["POST"]
    assert server.seen[0].path == "/api/v1/experiments/e1"
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
    ("fields", "place"),
    [
        ({"webhook_url": "https://h.example"}, "webhook_url"),
        ({"antigen_concentrations": [1.0]}, "antigen_concentrations"),
        ({"sequences": [ProteinSequence(name="a", aa_string="MKT", control=True)]}, "sequences"),
    ],
)
def test_nothing_is_left_out_on_the_way(call, server, fields, place):
    server.will(not_allowed(), reply(200, {"id": "e1", "updated": True}))
    with pytest.raises(errors.InvalidRequest, match="earlier interface") as caught:
        call("experiments.modify", "e1", **fields)
    assert caught.value.findings[0].startswith(place)
    assert server.methods == ["PATCH"]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (reset(), errors.OutcomeUnknown),
        (reply(500), errors.OutcomeUnknown),
        (reply(501), errors.OutcomeUnknown),
        (reply(404, {"error": "no such experiment"}), errors.NotFound),
        (reply(404, b"<html>"), errors.OutcomeUnknown),
        (reply(409, {"error": "too late"}), errors.Conflict),
        (reply(400, {"error": "no"}), errors.RequestRefused),
    ],
)
def test_no_other_answer_makes_a_second_request(call, server, step, kind):
    server.will(step, reply(200, {"id": "e1", "updated": True}))
    with pytest.raises(kind):
        call("experiments.modify", "e1", name="n")
    assert server.methods == ["PATCH"]


def test_a_lost_answer_of_the_second_request_is_an_unknown_outcome(call, server):
    server.will(not_allowed(), reset(), reply(200, {}))
    with pytest.raises(errors.OutcomeUnknown, match="POST /experiments/e1"):
        call("experiments.modify", "e1", name="n")
    assert len(server.seen) == 2


def test_a_service_that_knows_neither_is_at_the_wrong_address(call, server):
    server.will(not_allowed(), not_allowed())
    with pytest.raises(errors.AccessError, match="address"):
        call("experiments.modify", "e1", name="n")
    assert json.loads(server.seen[1].body) == {"name": "n"}
