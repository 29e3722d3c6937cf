"""How deliveries travel: order, retries, faults, redelivery, crashes, and receivers that are slow or away."""

import contextlib
import hashlib
import json
import socket
import threading
from collections import Counter
from datetime import timedelta

import httpx
import pytest

from assay_lab.control import actions as sim_actions
from assay_lab.control import bodies
from assay_lab.control import deliveries as sim_deliveries
from assay_lab.kernel import times
from assay_lab.kernel.faults import WebhookFault
from assay_lab.service import seeding
from assay_lab.testing import LocalLab
from lab_support.core import EPOCH, advance, get, lab_core, order, spec
from prefect_assay.errors import SignatureError
from prefect_assay.service.webhook_signature import verify

OLD, NEW = "old-secret-" + "x" * 32, "new-secret-" + "x" * 32
NOBODY = "http://127.0.0.1:9/nobody"


@pytest.fixture
def core():
    made = lab_core(allow_http_webhooks=True, deployment_secret=OLD)
    yield made
    made.close()


def place(core, hook, **fields):
    """A submitted experiment with the hook as its address; its id."""
    return order(core, skip_draft=True, webhook_url=hook.url, **fields).body["experiment_id"]


def deliver(core):
    core.sender.deliver(core.seeded.organization_id)


def fault(core, action, **details):
    sim_deliveries.add_fault(core, WebhookFault(action=action, **details))


def progress(core, experiment_id, text="more"):
    sim_actions.trigger_event(
        core, {"event": "progress", "experiment_id": experiment_id, "description": text}
    )


def attempts(core, **only):
    return sim_deliveries.list_attempts(core, 0, **only)


def told(hook):
    return [json.loads(raw)["data"]["description"] for _, raw in hook.received]


def check(received, *secrets, tolerance=None, now=EPOCH):
    """What a receiver says to it."""
    headers, raw = received
    return verify(raw, headers, secrets, now=now, tolerance=tolerance)


def test_a_failed_delivery_holds_back_the_later_ones_of_its_experiment_only(core, hook, other):
    hook.statuses = [500]
    first, second = place(core, hook), place(core, other)
    deliver(core)
    progress(core, first, "one")
    progress(core, second, "two")
    deliver(core)
    assert (len(hook.received), len(other.received)) == (1, 2)
    advance(core, seconds=30)
    assert told(hook)[2:] == ["one"]
    assert told(hook)[0] == told(hook)[1]
    ids = [json.loads(raw)["delivery_id"] for _, raw in hook.received]
    assert len(set(ids)) == 3


def test_destinations_of_one_experiment_do_not_wait_for_each_other(core, hook):
    for url in (NOBODY, hook.url):
        core.request("POST", "/webhooks", json_body={"url": url})
    experiment_id = order(core, skip_draft=True).body["experiment_id"]
    progress(core, experiment_id, "later")
    deliver(core)
    assert told(hook)[1:] == ["later"]


def test_a_canceled_experiment_expects_nothing_more(core, hook):
    experiment_id = place(core, hook)
    sim_actions.trigger_event(
        core, {"event": "force_status", "experiment_id": experiment_id, "status": "canceled"}
    )
    deliver(core)
    assert json.loads(hook.received[-1][1])["data"]["eta"] == times.stamp(EPOCH)


def test_reorder_sends_the_next_one_first(core, hook):
    experiment_id = place(core, hook)
    fault(core, "reorder", after=1)
    deliver(core)
    for text in ("one", "two", "three"):
        progress(core, experiment_id, text)
    deliver(core)
    assert told(hook)[1:] == ["two", "one", "three"]
    assert [row["outcome"] for row in attempts(core)] == ["delivered", "held", *["delivered"] * 3]


def test_what_is_reordered_waits_for_a_next_one(core, hook):
    fault(core, "reorder")
    experiment_id = place(core, hook)
    advance(core, seconds=1)
    assert hook.received == []
    assert [row["held"] for row in sim_deliveries.list_waiting(core)] == ["next"]
    progress(core, experiment_id, "next")
    deliver(core)
    assert told(hook)[0] == "next"
    assert len(hook.received) == 2
    assert sim_deliveries.list_waiting(core) == []


def test_delay_lets_later_ones_overtake_for_a_span_of_lab_time(core, hook):
    fault(core, "delay", seconds=60)
    experiment_id = place(core, hook)
    progress(core, experiment_id, "later")
    deliver(core)
    advance(core, seconds=59)
    assert told(hook) == ["later"]
    advance(core, seconds=1)
    assert len(hook.received) == 2


def test_delay_without_a_span_lasts_until_released(core, hook):
    fault(core, "delay", count=2)
    mine, theirs = place(core, hook), place(core, hook)
    advance(core, minutes=1)
    assert hook.received == []
    assert sim_deliveries.release_held(core, bodies.OptionalExperiment(experiment_id=mine)) == {"released": 1}
    assert [json.loads(raw)["data"]["experiment_id"] for _, raw in hook.received] == [mine]
    assert sim_deliveries.release_held(core, bodies.OptionalExperiment()) == {"released": 1}
    assert json.loads(hook.received[1][1])["data"]["experiment_id"] == theirs


def test_what_is_delayed_for_a_span_can_be_released_before(core, hook):
    fault(core, "delay", seconds=3600)
    place(core, hook)
    deliver(core)
    assert hook.received == []
    assert sim_deliveries.release_held(core, bodies.OptionalExperiment()) == {"released": 1}
    assert len(hook.received) == 1


def test_a_delivery_is_held_back_once(core, hook):
    for action in ("delay", "reorder"):
        fault(core, action, count=None)
    place(core, hook)
    advance(core, minutes=1)
    sim_deliveries.release_held(core, bodies.OptionalExperiment())
    assert len(hook.received) == 1
    assert [row["used"] for row in core.webhook_faults.view()] == [1, 0]


def test_bad_signatures_old_secrets_and_stale_times_are_refused_by_our_own_receiver(core, hook):
    made = core.request("POST", "/webhooks", json_body={"url": hook.url, "secret": OLD}).body
    experiment_id = order(core, skip_draft=True).body["experiment_id"]
    fault(core, "old_secret")  # no secret was changed yet: it waits for one that was
    deliver(core)
    assert check(hook.received[-1], OLD).data.experiment_id == experiment_id
    core.request("PATCH", f"/webhooks/{made['id']}", json_body={"secret": NEW})
    progress(core, experiment_id)
    deliver(core)
    assert check(hook.received[-1], NEW, OLD)  # while the receiver still knows both
    with pytest.raises(SignatureError):
        check(hook.received[-1], NEW)
    fault(core, "bad_signature")
    progress(core, experiment_id)
    deliver(core)
    with pytest.raises(SignatureError):
        check(hook.received[-1], NEW, OLD)
    fault(core, "stale", seconds=1000)
    progress(core, experiment_id)
    deliver(core)
    assert check(hook.received[-1], NEW)
    with pytest.raises(SignatureError, match="1000 s old"):
        check(hook.received[-1], NEW, tolerance=timedelta(seconds=900))
    progress(core, experiment_id)
    deliver(core)
    assert check(hook.received[-1], NEW, tolerance=timedelta(0))


def test_the_old_secret_of_a_webhook_signs_for_the_address_of_an_experiment(core, hook):
    made = core.request(
        "POST", "/webhooks", json_body={"url": "https://other.example/hook", "secret": OLD}
    ).body
    experiment_id = order(core, skip_draft=True, webhook_url=hook.url).body["experiment_id"]
    deliver(core)
    assert check(hook.received[-1], OLD)
    core.request("PATCH", f"/webhooks/{made['id']}", json_body={"secret": NEW})
    fault(core, "old_secret")
    progress(core, experiment_id)
    deliver(core)
    assert check(hook.received[-1], OLD)
    progress(core, experiment_id)
    deliver(core)
    assert check(hook.received[-1], NEW)


def test_faults_are_aimed_and_counted(core, hook):
    stranger = seeding.add_organization(core.lab, "stranger", "Stranger")
    mine, theirs = place(core, hook), place(core, hook)
    body = {"experiment_spec": spec(), "name": "x", "skip_draft": True, "webhook_url": hook.url}
    core.request("POST", "/experiments", json_body=body, token=stranger.member_token)
    fault(core, "drop", count=None, experiment_id=mine)
    fault(core, "double", count=None, organization_id=stranger.organization_id)
    deliver(core)
    core.sender.deliver(stranger.organization_id)
    got = Counter(json.loads(raw)["data"]["experiment_id"] for _, raw in hook.received)
    assert got[mine] == 0
    assert got[theirs] == 1
    assert sorted(got.values()) == [1, 2]
    assert [(row["action"], row["used"]) for row in core.webhook_faults.view()] == [
        ("drop", 1),
        ("double", 1),
    ]


def test_a_delivery_is_sent_again_as_a_new_attempt_or_byte_for_byte(core, hook):
    experiment_id = place(core, hook, webhook_secret=OLD)
    deliver(core)
    (first,) = attempts(core)
    (again,) = sim_deliveries.redeliver_attempt(core, bodies.Redelivery(), str(first["id"]))["items"]
    assert again["delivery_id"] != first["delivery_id"]
    assert again["update_id"] == first["update_id"]
    (same,) = sim_deliveries.redeliver_attempt(core, bodies.Redelivery(identical=True), first["delivery_id"])[
        "items"
    ]
    assert same["body_sha256"] == first["body_sha256"]
    assert hook.received[2] == hook.received[0]
    assert check(hook.received[2], OLD).data.experiment_id == experiment_id


def test_only_what_exists_is_sent_again(core):
    from assay_lab.kernel.refusals import Refusal

    for key in ("1", "x", "9" * 40):
        with pytest.raises(Refusal):
            sim_deliveries.redeliver_attempt(core, bodies.Redelivery(), key)


def test_the_journal_tells_everything_but_secrets_and_contents(core, hook):
    core.request(
        "POST",
        "/webhooks",
        json_body={"url": hook.url, "secret": NEW, "headers": {"Authorization": "Bearer hush"}},
    )
    experiment_id = order(core, skip_draft=True).body["experiment_id"]
    deliver(core)
    (row,) = attempts(core, experiment_id=experiment_id)
    headers, raw = hook.received[0]
    assert row["headers"]["X-Service-Signature"] == headers["X-Service-Signature"]
    assert row["headers"]["Authorization"] == "********"
    assert row["body_sha256"] == hashlib.sha256(raw).hexdigest()
    assert (row["signed_with"], row["status"], row["outcome"]) == ("organization", 204, "delivered")
    assert "hush" not in json.dumps(row)
    assert NEW not in json.dumps(row)
    assert "body" not in row
    assert attempts(core, experiment_id="other") == []
    assert len(attempts(core, update_id=row["update_id"])) == 1


def test_a_receiver_that_never_answers_is_given_up(hook):
    core = lab_core(allow_http_webhooks=True, webhook_timeout_seconds=0.05)
    answer = threading.Event()
    hook.on_receive = lambda _: answer.wait(10)
    place(core, hook)
    advance(core, minutes=4)
    answer.set()
    assert [(row["error"], row["outcome"]) for row in attempts(core)] == [("ReadTimeout", "retry")] * 3 + [
        ("ReadTimeout", "failed")
    ]
    core.close()


def test_an_answer_without_an_end_is_not_read_to_it():
    """Its status counts, and nothing else of it."""
    sent = []

    def answer_for_ever(server):
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            with contextlib.suppress(OSError):
                while len(sent) < 10_000:
                    connection.sendall(b"x" * 65_536)
                    sent.append(1)

    core = lab_core(allow_http_webhooks=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer_for_ever, args=(server,))
        thread.start()
        order(core, skip_draft=True, webhook_url=f"http://127.0.0.1:{server.getsockname()[1]}/")
        deliver(core)
        thread.join(20)
    assert [row["outcome"] for row in attempts(core)] == ["delivered"]
    assert len(sent) < 10_000
    core.close()


def test_a_slow_receiver_stops_neither_the_others_nor_their_clocks(hook, other):
    core = lab_core(allow_http_webhooks=True, webhook_timeout_seconds=20)
    stranger = seeding.add_organization(core.lab, "stranger", "Stranger")
    answer, reached = threading.Event(), threading.Event()
    hook.on_receive = lambda _: (reached.set(), answer.wait(20))
    slow = threading.Thread(target=advance, args=(core,), kwargs={"seconds": 1})
    core.start()
    place(core, hook)
    slow.start()
    try:
        assert reached.wait(10)
        body = {"experiment_spec": spec(), "name": "x", "skip_draft": True, "webhook_url": other.url}
        core.request("POST", "/experiments", json_body=body, token=stranger.member_token)
        core.clock_driver.advance(stranger.organization_id, EPOCH + timedelta(hours=1))
        assert len(other.received) >= 2
        assert not answer.is_set()
        assert slow.is_alive()
    finally:
        answer.set()
        slow.join(10)
        core.close()
    assert len(hook.received) >= 1


def test_receivers_that_call_back_do_not_wait_for_themselves(core, hook):
    seen = []

    def call_back(raw):
        experiment_id = json.loads(raw)["data"]["experiment_id"]
        seen.append(get(core, f"/experiments/{experiment_id}")["status"])
        core.request("PATCH", f"/experiments/{experiment_id}", json_body={"webhook_url": hook.url})

    hook.on_receive = call_back
    place(core, hook)
    advance(core, hours=1)
    assert seen == ["waiting_for_confirmation", "quote_sent"]


def test_a_lab_killed_in_the_middle_of_a_delivery_sends_it_again(tmp_path, hook):
    """At least once: what was sent and not written down is sent again, and nothing is lost."""
    lab = LocalLab(database=tmp_path / "lab.sqlite3", token="assay_lab" + "k" * 40)
    killed = threading.Event()

    def kill(_):
        if not killed.is_set():
            killed.set()
            assert lab._process is not None
            lab._process.kill()

    hook.on_receive = kill
    lab.start()
    body = {"experiment_spec": spec(), "name": "x", "skip_draft": True, "webhook_url": hook.url}
    with lab.http() as http, contextlib.suppress(httpx.TransportError):  # the kill may take the answer along
        http.post("/experiments", json=body)
    assert killed.wait(10)
    lab.kill()
    lab.start()
    try:
        lab.advance(seconds=1)
        experiment_id = json.loads(hook.received[0][1])["data"]["experiment_id"]
        (row,) = lab.deliveries(experiment_id=experiment_id)
        assert (row["outcome"], row["attempt"]) == ("delivered", 1)
        assert lab.outbox() == []
        ids = {json.loads(raw)["data"]["update_id"] for _, raw in hook.received}
        assert (len(hook.received), len(ids)) == (2, 1)
        lab.webhook_fault("drop", probability=1)
        assert [fault["count"] for fault in lab.webhook_faults()] == [None]
        lab.redeliver(row["id"])
        assert lab.deliveries()[-1]["outcome"] == "dropped"
        lab.clear_faults()
        (again,) = lab.redeliver(row["id"])
        assert again["outcome"] == "delivered"
        assert lab.release() == 0
    finally:
        lab.stop()
