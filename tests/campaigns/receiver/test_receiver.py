"""The receiver over real HTTP: what wakes runs, what is refused, and how it says so."""

import logging
import socket
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import httpx
import pytest
from starlette.testclient import TestClient

from prefect_assay.campaigns.receiver import endpoint
from prefect_assay.campaigns.receiver.receiver import create_app, from_environment
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.service.webhook_signature import derive_secret
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of, headers_of
from support.webhooks.receiver_place import PATH, SECRET, Wake, running, settings

NEW_KEY = "the-new-signing-key-of-the-tests-01"


def test_a_genuine_delivery_wakes_the_experiment_of_the_signed_body(receiver):
    body = body_of(data_experiment_id="e-1")
    answer = receiver.post(body)
    assert (answer.status_code, answer.json()) == (200, {"resumed": 1})
    assert (receiver.wake.asked, receiver.wake.orders) == (["e-1"], [ORDER_KEY])


def test_an_id_in_capitals_wakes_the_same_run_and_its_update_counts_once(receiver):
    experiment_id, update_id = "2f1a3c55-0000-4000-8000-00000000abcd", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
    for change in (str.upper, str.lower):
        receiver.post(body_of(data_experiment_id=change(experiment_id), data_update_id=change(update_id)))
    assert receiver.wake.asked == [experiment_id]


def test_a_delivery_without_a_waiting_run_gets_200(receiver):
    receiver.wake.resumes = 0
    answer = receiver.post(body_of())
    assert (answer.status_code, answer.json()) == (200, {"resumed": 0})


def test_a_doubled_delivery_is_acknowledged_and_wakes_once(receiver):
    body = body_of()
    assert [receiver.post(body).json() for _ in range(3)] == [{"resumed": 1}, {"resumed": 0}, {"resumed": 0}]
    assert len(receiver.wake.asked) == 1


def test_two_updates_of_one_experiment_wake_it_twice(receiver):
    for update in ("u-1", "u-2"):
        receiver.post(body_of(data_experiment_id="e-1", data_update_id=update))
    assert receiver.wake.asked == ["e-1", "e-1"]


def test_an_update_is_remembered_for_five_minutes(monkeypatch):
    wake, now = Wake(), [1000.0]
    monkeypatch.setattr(endpoint, "time", SimpleNamespace(monotonic=lambda: now[0]))
    client = TestClient(create_app(ReceiverSettings(signing_keys=[SIGNING_KEY]), wake=wake))
    body = body_of(data_experiment_id="e-1")
    for later, times in ((0, 1), (299.9, 1), (300.1, 2)):
        now[0] = 1000.0 + later
        assert client.post(PATH, content=body, headers=headers_of(body, SECRET)).status_code == 200
        assert wake.asked == ["e-1"] * times


def test_equal_update_ids_of_different_experiments_are_different_updates(receiver):
    for experiment in ("e-3", "e-4"):
        receiver.post(body_of(data_experiment_id=experiment, data_update_id="1"))
    assert receiver.wake.asked == ["e-3", "e-4"]


def forged(body):
    return headers_of(body, "f" * 64)


def unsigned(body):
    headers = headers_of(body, SECRET)
    del headers["X-Service-Signature"]
    return headers


def another_order(body):
    return headers_of(body, derive_secret(SIGNING_KEY, "f" * 20))


def not_ascii(body):
    return headers_of(body, SECRET) | {"X-Service-Signature": "sha256=é".encode()}


@pytest.mark.parametrize("headers", [forged, unsigned, another_order, not_ascii])
def test_what_is_not_genuine_gets_401_and_wakes_no_run(receiver, headers):
    body = body_of()
    answer = receiver.post(body, headers(body))
    assert answer.status_code == 401
    assert answer.json()["error"]
    assert receiver.wake.asked == []


def test_a_replayed_delivery_gets_401(receiver):
    body = body_of(timestamp=(datetime.now(UTC) - timedelta(hours=1)).isoformat())
    assert receiver.post(body).status_code == 401
    assert receiver.wake.asked == []


@settings(tolerance_seconds=None)
def test_a_service_on_a_virtual_clock(receiver):
    assert receiver.post(body_of(timestamp="2031-01-01T00:00:00Z")).status_code == 200


LAB_KEY = "local-lab-the-key-of-a-lab-0123456789"


@settings(signing_keys=(SIGNING_KEY, LAB_KEY))
def test_the_age_of_a_local_labs_deliveries_says_nothing_and_that_of_all_others_does(receiver):
    for years in (-3, 3):
        body = body_of(timestamp=(datetime.now(UTC) + timedelta(days=365 * years)).isoformat())
        assert receiver.post(body, headers_of(body, derive_secret(LAB_KEY, ORDER_KEY))).status_code == 200
        assert receiver.post(body, headers_of(body, SECRET)).status_code in {401, 503}
    assert len(receiver.wake.asked) == 2


@settings(words={"service": "Acme"})
def test_a_deployment_with_its_own_words(receiver):
    body = body_of()
    assert receiver.post(body, headers_of(body, SECRET, word="Acme")).status_code == 200
    assert receiver.post(body).status_code == 401


@settings(signing_keys=(NEW_KEY, SIGNING_KEY))
def test_old_and_new_key_while_a_key_is_replaced(receiver):
    body = body_of()
    assert receiver.post(body).status_code == 200
    assert receiver.post(body, headers_of(body, derive_secret(NEW_KEY, ORDER_KEY))).status_code == 200


@settings(body_timeout_seconds=9)  # a receiver of its own: of many alike, only the first is logged at once
@pytest.mark.parametrize(
    ("changes", "headers", "logged"),
    [
        ({}, {"X-Service-Delivery-Id": "another"}, "delivery id in the header"),
        ({}, {"X-Service-Event": "experiment_deleted"}, "event is not experiment_update"),
        ({"event": "experiment_deleted"}, {}, "event is not experiment_update"),
    ],
    ids=["id", "event-in-header", "event-in-body"],
)
def test_labels_that_differ_are_logged_and_wake(receiver, caplog, changes, headers, logged):
    """A 4xx is never sent again (contract 6, rule 3): refusing what is signed would lose a wake-up."""
    body = body_of(data_experiment_id="e-1", **changes)
    answer = receiver.post(body, headers_of(body, SECRET) | headers)
    assert (answer.status_code, answer.json()) == (200, {"resumed": 1})
    assert receiver.wake.asked == ["e-1"]
    assert logged in caplog.text
    assert ORDER_KEY in caplog.text


@settings(body_timeout_seconds=9)
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_wrong_time_names_the_setting_in_answer_and_log(receiver, caplog, hours):
    answer = receiver.post(body_of(timestamp=(datetime.now(UTC) + timedelta(hours=hours)).isoformat()))
    for text in (answer.json()["error"], caplog.text):
        assert "PREFECT_ASSAY_RECEIVER_TOLERANCE_SECONDS" in text


def test_signed_but_malformed_gets_400(receiver):
    assert receiver.post(body_of(event=7)).status_code == 400
    assert receiver.post(body_of(data_update_id=None)).status_code == 400
    assert receiver.wake.asked == []


def test_a_genuine_delivery_from_the_future_is_asked_for_again(receiver):
    """No replay comes from the future: one of the clocks is wrong, and it may be ours."""
    answer = receiver.post(body_of(timestamp=(datetime.now(UTC) + timedelta(hours=1)).isoformat()))
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert receiver.wake.asked == []


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/assay",
        "/assay/",
        "/assay/short",
        PATH.upper(),
        PATH + "0",
        PATH + "/x",
        "/assay/" + "g" * 20,
        "/assay/health",
    ],
)
def test_other_paths_get_404(receiver, path):
    assert receiver.post(body_of(), path=path).status_code == 404
    assert receiver.wake.asked == []


def test_other_methods_get_405(receiver):
    assert httpx.get(receiver.url + PATH).status_code == 405


@settings(max_body_bytes=2000)
def test_an_oversize_body_gets_413_declared_or_not(receiver):
    body = body_of(data_description="x" * 3000)
    assert receiver.post(body).status_code == 413

    def chunks():
        yield body[:1500]
        yield body[1500:]

    assert receiver.post(chunks(), headers_of(body, SECRET)).status_code == 413
    assert receiver.post(body_of()).status_code == 200


@settings(body_timeout_seconds=0.2)
def test_a_sender_that_stalls_is_asked_to_send_again(receiver):
    """Not 408: a slow network passes, and a 4xx is never repeated (contract 6, rule 3)."""
    host, port = receiver.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 503")
        while connection.recv(1000):  # and the connection ends: the rest of the body is not waited for
            pass


def test_a_sender_that_disconnects_affects_no_other(receiver):
    host, port = receiver.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
    assert receiver.post(body_of()).status_code == 200


def test_unreachable_prefect_gets_503_and_the_retry_wakes(receiver):
    body = body_of()
    receiver.wake.failing = True
    answer = receiver.post(body)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    receiver.wake.failing = False
    assert receiver.post(body).json() == {"resumed": 1}


@pytest.mark.parametrize("echo", [SIGNING_KEY, NEW_KEY, SECRET, derive_secret(NEW_KEY, ORDER_KEY)])
def test_a_secret_that_the_service_echoes_is_in_no_log(caplog, echo):
    caplog.set_level(logging.DEBUG, "prefect_assay")
    escaped = "".join(f"\\u{ord(letter):04X}" for letter in echo)
    body = body_of(data_experiment_id="e-1", data_update_id=f"u-ESCAPED-{echo}").replace(
        b"ESCAPED", escaped.encode()
    )
    with running(signing_keys=(SIGNING_KEY, NEW_KEY)) as place:
        assert place.post(body).json() == {"resumed": 1}
    assert place.wake.asked == ["e-1"]
    assert "u-[secret]-[secret]" in caplog.text
    assert echo not in caplog.text


@settings(max_waiting=999)  # a receiver of its own: of many alike, only the first is logged at once
def test_logs_name_the_order_and_no_secret(receiver, caplog):
    caplog.set_level(logging.DEBUG)
    body = body_of()
    receiver.post(body, forged(body))
    receiver.wake.failing = True
    receiver.post(body)
    assert ORDER_KEY in caplog.text
    for secret in (
        SIGNING_KEY,
        SECRET,
        headers_of(body, SECRET)["X-Service-Signature"].removeprefix("sha256="),
    ):
        assert secret not in caplog.text


def test_the_factory_reads_its_settings_from_the_environment(monkeypatch):
    monkeypatch.setenv("PREFECT_ASSAY_RECEIVER_SIGNING_KEYS", f"{NEW_KEY}, {SIGNING_KEY}")
    with TestClient(from_environment()) as client:
        assert client.get("/assay/health").status_code == 200
        assert client.post(PATH, content=b"{}").status_code == 401


@pytest.mark.parametrize(
    ("root", "path"), [("/assay", "/assay"), ("/assay", "/assay/assay"), ("/lab/assay", "/lab/assay")]
)
def test_a_root_path_that_ends_with_the_prefix_is_served(root, path):
    app = create_app(ReceiverSettings(signing_keys=[SIGNING_KEY]), wake=Wake())
    client = TestClient(app, root_path=root)
    assert client.get(f"{path}/health").status_code == 200
    assert client.post(f"{path}/{ORDER_KEY}", content=b"{}").status_code == 401
