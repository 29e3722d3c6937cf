"""The control surface as such: its token, its journals, its refusals; nonsense never breaks it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_lab.control import actions as sim_actions
from assay_lab.control import commands, events
from assay_lab.control import deliveries as sim_deliveries
from assay_lab.service.faults import ACTIONS
from lab_support.sim_client import served

pytest_plugins = ["assay_lab.fixture"]

CALLS = sorted(
    (method, route.path)
    for router in (sim_actions.router, sim_deliveries.router)
    for route in router.routes
    for method in route.methods
)


def test_every_command_has_one_handler():
    table = [entry for entry in vars(commands).values() if isinstance(entry, commands.Command)]
    assert sorted((command.method, command.path) for command in table) == CALLS


@pytest.mark.parametrize("content_type", [None, "application/json", "application/x-www-form-urlencoded"])
def test_a_body_is_json_whatever_its_content_type(lab, content_type):
    headers = {"Content-Type": content_type} if content_type else {}
    headers["Authorization"] = f"Bearer {lab.core.lab.settings.sim_token}"
    answer = lab.http.post("/_sim/clock/advance", content=b'{"days": 1}', headers=headers)
    assert answer.status_code == 200
    assert lab.http.post("/_sim/clock/advance", headers=headers).json()["steps"] == 0
    refused = lab.http.post("/_sim/clock/advance", content=b'{"days":', headers=headers)
    assert (refused.status_code, refused.json()["error"][:14]) == (400, "malformed JSON")


@pytest.fixture(scope="module")
def lab():
    with served() as running:
        yield running


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_every_call_needs_the_sim_token(lab, method, path):
    path = path.replace("{", "").replace("}", "")
    for token in ("", f"Bearer {lab.core.seeded.member_token}", "Bearer ", "Bearer é".encode()):
        answer = lab.http.request(method, f"/_sim{path}", headers={"Authorization": token}, json={})
        assert answer.status_code == 401
        assert set(answer.json()) == {"error", "request_id"}


NAMES = st.sampled_from(
    [
        *("organization_id", "experiment_id", "event", "status", "days", "until", "mode", "seconds_per_day"),
        *(
            "action", "count", "after", "probability", "seed", "path", "slug", "plan",
        ),
        *("experiments", "sequences", "stage", "window_days", "token_id", "secret", "update_id", "identical"),
    ]
)  # fmt: skip
WORDS = st.sampled_from(
    [*events.EVENTS, *ACTIONS, "manual", "next", "idle", "draft", "2030-01-01", "9999-12-31"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=True)
    | st.text(max_size=8)
    | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=4) | VALUES
HARMLESS = [call for call in CALLS if call[1] not in ("/reset", "/experiments")]


@settings(max_examples=150, derandomize=True)
@given(st.sampled_from(HARMLESS), BODIES, st.dictionaries(NAMES, st.text(max_size=6) | WORDS, max_size=2))
def test_nonsense_is_refused_and_never_breaks_it(lab, call, raw, query):
    method, path = call
    content = json.dumps(raw).encode()
    answer = lab.sim(method, path.replace("{", "").replace("}", ""), content=content, params=query)
    assert answer.status_code in {200, 400, 404, 409}, answer.text
    if answer.status_code != 200:
        assert "error" in answer.json()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/faults", b"{"),
        ("/faults", b"[]"),
        ("/faults", b"\xff"),
        ("/faults", b"[" * 100_000),
        ("/events", b'{"event": NaN}'),
        ("/events", b'{"event": "progress"}'),
        ("/events", b'{"event": {"a": 1}}'),
        ("/faults", b'{"action": "status", "status": 99}'),
        ("/faults", b'{"action": "status", "probability": 1.5}'),
        ("/faults", b'{"action": "status", "cuont": 1}'),
        ("/clock/advance", b'{"days": 1, "until": "next"}'),
        ("/clock/advance", b'{"until": "tomorrow"}'),
        ("/clock/advance", b'{"until": "9999-01-01"}'),
        ("/clock/advance", b'{"days": 1e308, "hours": 1e308}'),
        ("/clock/mode", b'{"mode": "scaled", "seconds_per_day": 0}'),
        ("/seed", b'{"slug": "x", "payment_policy": ["gold"]}'),
        ("/seed", b'{"slug": "x", "payment_policy": []}'),
        ("/seed", b'{"slug": "lab space"}'),
        ("/plan", b'{"window_days": -1}'),
        ("/plan", b'{"window_days": "5"}'),
        ("/experiments", b'{"experiments": 0}'),
        ("/deliveries/release", b'{"experiment_id": 99999999999999999999}'),
        ("/webhook-faults", b'{"action": "drop", "seed": [1]}'),
        ("/webhook-faults", b'{"action": {}}'),
        ("/webhook-faults", b'{"action": "explode"}'),
        ("/webhook-faults", b'{"action": "drop", "count": -1}'),
        ("/webhook-faults", b'{"action": "drop", "count": true}'),
        ("/webhook-faults", b'{"action": "drop", "probability": 2}'),
        ("/webhook-faults", b'{"action": "delay", "seconds": "1"}'),
        ("/webhook-faults", b'{"action": "drop", "used": 3}'),
        ("/payment-faults", b'{"action": "explode"}'),
        ("/payment-faults", b'{"action": "no_receipt", "rail": "async_invoice"}'),
        ("/payment-faults", b'{"action": "no_receipt", "count": -1}'),
        ("/payment-faults", b'{"action": "no_receipt", "after": null}'),
    ],
)
def test_bad_bodies_are_refused_with_a_reason(lab, path, content):
    answer = lab.sim("POST", path, content=content)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/journal?after=x"),
        ("GET", "/journal?aftr=1"),
        ("GET", "/clock?organisation_id=1"),
        ("GET", "/deliveries?after=x"),
    ],
)
def test_bad_queries_are_refused_with_a_reason(lab, method, path):
    answer = lab.sim(method, path)
    assert (answer.status_code, bool(answer.json()["error"])) == (400, True)


def test_what_does_not_exist_is_404(lab):
    for method, path, body in (
        ("GET", "/clock?organization_id=none", None),
        ("POST", "/clock/advance", {"organization_id": "none", "days": 1}),
        ("POST", "/faults", {"organization_id": "none", "action": "status"}),
        ("POST", "/payment-faults", {"organization_id": "none", "action": "always_402"}),
        ("POST", "/webhook-faults", {"organization_id": "none", "action": "drop"}),
        ("DELETE", "/faults?organization_id=none", None),
        ("DELETE", "/payment-faults?organization_id=none", None),
        ("POST", "/plan", {"experiment_id": "none"}),
        ("POST", "/experiments", {"experiments": 1, "organization_id": "none"}),
        ("DELETE", "/faults/none", None),
        ("DELETE", "/faults/99999999999999999999999", None),
    ):
        assert lab.sim(method, path, json=body).status_code == 404, path


def test_the_journal_can_be_filtered(lab):
    other = lab.sim("POST", "/seed", json={"slug": "journal"}).json()
    begin = lab.sim("GET", "/journal").json()["position"]
    lab.order()
    lab.api("GET", "/whoami")
    lab.api("GET", "/whoami", token=other["viewer_token"])
    lab.api("GET", "/whoami", token="nonsense")

    def list_requests(**query):
        items = lab.sim("GET", "/journal", params={"after": begin, **query}).json()["items"]
        return [(entry["method"], entry["status"], entry["organization_id"]) for entry in items]

    mine, theirs = lab.core.seeded.organization_id, other["organization_id"]
    post = ("POST", 201, mine)
    gets = [("GET", 200, mine), ("GET", 200, theirs), ("GET", 401, None)]
    assert list_requests() == [post, *gets]
    assert list_requests(method="POST") == [post]
    assert list_requests(path="/who*") == list_requests(path="/api/v1/whoami") == gets
    assert list_requests(organization_id=theirs) == [gets[1]]
    assert list_requests(after=begin + 2) == gets[1:]
    (entry,) = lab.sim("GET", "/journal", params={"organization_id": theirs}).json()["items"]
    with lab.core.lab.store.transaction() as db:
        assert db.one("SELECT org_id FROM tokens WHERE id = ?", entry["token_id"]) == {"org_id": theirs}


def test_a_slug_is_seeded_once(lab):
    assert lab.sim("POST", "/seed", json={"slug": "rich"}).status_code == 200
    assert lab.sim("POST", "/seed", json={"slug": "rich"}).status_code == 409


def test_the_numbers_of_the_journal_rise_through_a_reset(lab):
    lab.api("GET", "/whoami")
    before = lab.sim("GET", "/journal").json()["position"]
    lab.sim("POST", "/reset")
    lab.api("GET", "/whoami")
    assert [entry["number"] for entry in lab.sim("GET", "/journal").json()["items"]] == [before + 1]


def test_organisations_of_a_shared_lab_do_not_meet(shared_lab, lab_process):
    other = lab_process.seed("beside")
    with shared_lab.http() as http, other.http() as theirs:
        before = other.clock()
        shared_lab.plan(window_days=1)
        shared_lab.fault("status", "/whoami", status=418)
        shared_lab.advance(days=40)
        assert other.clock() == before
        assert theirs.get("/whoami").status_code == 200
        assert http.get("/whoami").status_code == 418
        assert [entry["path"] for entry in other.journal()] == ["/api/v1/whoami"]
        assert shared_lab.journal(path="/whoami")[0]["fault"] == "status"
        assert (len(shared_lab.faults()), other.faults(), len(lab_process.faults())) == (1, [], 1)
        ids = other.fill(3, stage="submitted")
        assert http.get("/experiments").json()["total"] == 0
        assert other.advance(until="idle")["steps"] == 3
        assert other.event("cancel", other.fill(1)[0])["status"] == "canceled"
        assert other.event("reject_quote", ids[0])["status"] == "draft"
        assert other.set_clock("scaled", seconds_per_day=86_400)["mode"] == "scaled"
        assert other.set_clock("manual")["mode"] == "manual"
        assert shared_lab.deliveries() == []


def test_faults_of_a_shared_lab_stay_in_their_organisation_and_end_with_it(shared_lab, lab_process):
    other = lab_process.seed("besides")
    for lab in (shared_lab, other):
        lab.fault("status", "/whoami")
        lab.payment_fault("insufficient_funds")
        lab.webhook_fault("drop")

    def placed(lab):
        kinds = (lab.faults(), lab.payment_faults(), lab.webhook_faults())
        return [[fault["organization_id"] for fault in kind] for kind in kinds]

    mine, theirs = shared_lab.organization_id, other.organization_id
    assert placed(shared_lab) == [[mine]] * 3
    assert placed(lab_process) == [[mine, theirs]] * 3
    shared_lab.end_payment_faults()
    assert placed(lab_process) == [[mine, theirs], [theirs], [mine, theirs]]
    other.clear_faults()  # as the fixture does at the end of a test
    assert placed(lab_process) == [[mine], [], [mine]]
