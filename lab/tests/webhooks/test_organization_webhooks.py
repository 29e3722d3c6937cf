"""The organization's webhooks: the calls, who gets what, and whose secret signs (contract 4.6 and 6)."""

import hashlib
import hmac
import json

import pytest

from assay_lab.service import seeding
from assay_lab.webhooks.delivery import MASK
from lab_support.core import advance, get, lab_core, order, refusal

PUBLIC = "https://hooks.example.org/assay"
SECRETS = {name: f"{name}-secret-{'x' * 32}" for name in ("experiment", "first", "second", "seeded", "next")}


@pytest.fixture
def core():
    made = lab_core(allow_http_webhooks=True, deployment_secret="deployment")
    yield made
    made.close()


@pytest.fixture(scope="module")
def strict():
    made = lab_core()
    yield made
    made.close()


def add(core, url=PUBLIC, **fields):
    return core.request("POST", "/webhooks", json_body={"url": url, **fields}).body


def change(core, webhook, **fields):
    return core.request("PATCH", f"/webhooks/{webhook['id']}", json_body=fields).body


def deliver(core):
    core.sender.deliver(core.seeded.organization_id)


def signer(hook, number=-1):
    """Whose secret signed what was received."""
    headers, raw = hook.received[number]
    known = SECRETS | {"deployment": "deployment"}
    made = {
        "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest(): name
        for name, secret in known.items()
    }
    return made.get(headers["X-Service-Signature"])


def test_a_webhook_lives_from_post_to_delete(strict):
    answer = strict.request(
        "POST", "/webhooks", json_body={"url": PUBLIC, "secret": SECRETS["first"], "headers": {"X-Env": "ci"}}
    )
    made = answer.body
    assert answer.status == 201
    assert (made["url"], made["secret_set"], made["headers"], made["enabled"]) == (
        PUBLIC,
        True,
        {"X-Env": "ci"},
        True,
    )
    assert SECRETS["first"] not in json.dumps(made)
    listed = get(strict, "/webhooks")
    assert listed == [made]
    advance(strict, minutes=5)
    changed = change(strict, made, url=PUBLIC + "/2", headers={}, enabled=False, secret=None)
    assert (changed["url"], changed["secret_set"], changed["headers"], changed["enabled"]) == (
        PUBLIC + "/2",
        False,
        {},
        False,
    )
    assert changed["created_at"] == made["created_at"] < changed["updated_at"]
    assert change(strict, made) == changed
    gone = strict.request("DELETE", f"/webhooks/{made['id']}")
    assert (gone.status, gone.body) == (204, None)
    assert get(strict, "/webhooks") == []
    for method, body in (("DELETE", None), ("PATCH", {})):
        assert refusal(strict, method, f"/webhooks/{made['id']}", json_body=body).status == 404


def test_a_null_leaves_everything_but_the_secret_alone(strict):
    made = add(strict, secret=SECRETS["first"], headers={"X-A": "b"})
    assert change(strict, made, url=None, headers=None, enabled=None) == made
    assert change(strict, made, secret=None)["secret_set"] is False


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/x", "https://localhost/x", "https://localhost.:443/x", "https://receiver/x",
        "https://box.local/x", "https://a.internal", "https://127.0.0.1/x", "https://127.1/x",
        "https://2130706433/x", "https://0x7f.0.0.1/x", "https://10.0.0.8/x", "https://169.254.169.254/latest",
        "https://100.64.0.1", "https://[::1]/x", "https://[fd00::1]/x", "https://[::ffff:10.0.0.1]/x",
        "https://224.0.0.1", "https://user:pass@hooks.example.org/", "https:///path",
        "https://hooks.example.org:0/", "https://hooks.example.org:99999/", "https://-.example.org/",
        "https://hooks.example.org/a b", "https://hooks.example.org/a\nb", "ftp://hooks.example.org/", "",
        "https://" + "a" * 3000 + ".org",
    ],
)  # fmt: skip
def test_only_public_https_addresses_are_taken(strict, url):
    assert refusal(strict, "POST", "/webhooks", json_body={"url": url}).status == 400


@pytest.mark.parametrize(
    "url", ["https://8.8.8.8/x", "https://[2606:4700::1]:8443/x", "https://Hooks.Example.org."]
)
def test_public_addresses_come_in_every_form(strict, url):
    assert add(strict, url)["url"] == url


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("http://127.0.0.1:9/x", True),
        ("http://receiver:8080/x", True),
        ("https://10.0.0.8/x", True),
        ("http://hooks.example.org/x", False),
        ("http://134744072/x", False),
    ],
)
def test_a_lab_for_tests_takes_private_addresses_too(core, url, taken):
    if taken:
        assert add(core, url)["url"] == url
    else:
        assert refusal(core, "POST", "/webhooks", json_body={"url": url}).status == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Service-Signature": "sha256=00"}, {"x-service-anything": "x"}, {"Content-Type": "text/plain"},
        {"content-length": "0"}, {"Host": "elsewhere"}, {"Transfer-Encoding": "chunked"},
        {"Proxy-Authorization": "Basic x"}, {"X Y": "x"}, {"": "x"}, {"X-A": "one\r\nX-B: two"}, {"X-A": "one\n"},
        {"X-A": ""}, {"X-A": " x"}, {"X-A": "\x00"}, {"X-A": "grün"}, {"X-A": "x" * 5000},
        {"X-A": "1", "x-a": "2"}, {"X-A": MASK}, {f"X-{number}": "x" for number in range(21)},
    ],
)  # fmt: skip
def test_headers_leave_the_services_own_alone_and_can_be_sent(strict, headers):
    assert refusal(strict, "POST", "/webhooks", json_body={"url": PUBLIC, "headers": headers}).status == 422


def test_the_deployments_own_word_is_reserved():
    from assay_lab.words import WireWords

    core = lab_core(words=WireWords(service="Acme"))
    body = {"url": PUBLIC, "headers": {"X-Acme-Event": "mine"}}
    assert refusal(core, "POST", "/webhooks", json_body=body).status == 422
    assert add(core, headers={"X-Service-Event": "mine"})["headers"] == {"X-Service-Event": "mine"}
    core.close()


@pytest.mark.parametrize(
    "body",
    [
        {}, [], {"url": 1}, {"url": PUBLIC, "secret": "short"}, {"url": PUBLIC, "headers": {"X-A": 1}},
        {"url": PUBLIC, "headers": []}, {"url": PUBLIC, "enabled": True}, {"url": PUBLIC, "other": 1},
    ],
)  # fmt: skip
def test_bodies_are_read_strictly(strict, body):
    assert refusal(strict, "POST", "/webhooks", json_body=body).status == 400


def test_a_viewer_reads_without_the_values_of_headers(strict):
    add(strict, headers={"Authorization": "Bearer hush"})
    viewer = strict.seeded.viewer_token
    seen = strict.request("GET", "/webhooks", token=viewer).body
    assert seen[-1]["headers"] == {"Authorization": MASK}
    assert get(strict, "/webhooks")[-1]["headers"] == {"Authorization": "Bearer hush"}
    assert "hush" not in json.dumps(seen)


def test_every_enabled_webhook_gets_what_has_no_address_of_its_own(core, hook, other):
    add(core, hook.url, headers={"X-Env": "ci", "Authorization": "Bearer hush"})
    add(core, other.url)
    off = add(core, "http://127.0.0.1:9/off")
    change(core, off, enabled=False)
    body = order(core, skip_draft=True).body
    deliver(core)
    bodies = [json.loads(place.received[0][1]) for place in (hook, other)]
    assert bodies[0]["data"] == bodies[1]["data"]
    assert bodies[0]["data"]["experiment_id"] == body["experiment_id"]
    assert bodies[0]["delivery_id"] != bodies[1]["delivery_id"]
    headers = hook.received[0][0]
    assert (headers["X-Env"], headers["Authorization"]) == ("ci", "Bearer hush")
    assert headers["X-Service-Delivery-Id"] == bodies[0]["delivery_id"]
    assert len(hook.received) == len(other.received) == 1


def test_an_experiments_own_webhook_overrides_the_organisations(core, hook, other):
    add(core, hook.url)
    order(core, skip_draft=True, webhook_url=other.url)
    deliver(core)
    assert (len(hook.received), len(other.received)) == (0, 1)


def test_the_secret_is_found_in_three_steps(core, hook):
    """contract 6, rule 2, and what the organization's secret is."""
    org_id = core.seeded.organization_id
    first = add(core, hook.url)
    address_fields = {"webhook_url": hook.url}

    def signers():
        """Of: the organization's webhooks, an experiment's own address, an experiment with a secret."""
        hook.received.clear()
        order(core, skip_draft=True)
        order(core, skip_draft=True, **address_fields)
        order(core, skip_draft=True, webhook_secret=SECRETS["experiment"])
        order(core, skip_draft=True, webhook_secret=SECRETS["experiment"], **address_fields)
        deliver(core)
        return [signer(hook, number) for number in range(len(hook.received))]

    assert signers() == ["deployment", "deployment", "experiment", "experiment"]
    change(core, first, secret=SECRETS["first"])
    assert signers() == ["first", "first", "experiment", "experiment"]
    second = add(core, hook.url, secret=SECRETS["second"])
    assert signers()[:3] == ["first", "second", "first"]
    change(core, first, secret=None)
    assert signers()[:3] == ["second", "second", "second"]
    with core.lab.store.transaction() as db:
        db.update("organizations", org_id, webhook_secret=SECRETS["seeded"])
    assert signers()[:3] == ["seeded", "second", "seeded"]
    with core.lab.store.transaction() as db:
        db.update("organizations", org_id, webhook_secret=None)
    change(core, second, enabled=False)
    assert signers()[:2] == ["deployment", "deployment"]
    change(core, first, enabled=False)
    assert signers() == ["deployment", "experiment"]


def test_changes_hold_from_the_next_attempt_on(core, hook, other):
    hook.statuses = [500]
    made = add(core, hook.url, secret=SECRETS["first"], headers={"X-A": "old"})
    order(core, skip_draft=True)
    deliver(core)
    change(core, made, url=other.url, secret=SECRETS["next"], headers={"X-A": "new"})
    advance(core, seconds=30)
    assert (len(hook.received), len(other.received)) == (1, 1)
    assert signer(other) == "next"
    assert other.received[0][0]["X-A"] == "new"


@pytest.mark.parametrize("end", ["disable", "delete"])
def test_what_has_nowhere_to_go_is_not_sent(core, hook, end):
    made = add(core, hook.url)
    order(core, skip_draft=True)
    if end == "disable":
        change(core, made, enabled=False)
    else:
        core.request("DELETE", f"/webhooks/{made['id']}")
    advance(core, seconds=1)
    assert hook.received == []
    with core.lab.store.transaction() as db:
        assert db.all("SELECT * FROM outbox") == []


def test_who_gets_an_update_is_decided_when_it_is_written(core, hook, other):
    late = add(core, hook.url)
    change(core, late, enabled=False)
    add(core, other.url)
    order(core, skip_draft=True)
    change(core, late, enabled=True)
    add(core, hook.url)
    deliver(core)
    assert (len(hook.received), len(other.received)) == (0, 1)


def test_organisations_do_not_hear_of_each_other(core, hook, other):
    stranger = seeding.add_organization(core.lab, "stranger", "Stranger")
    add(core, hook.url)
    core.request("POST", "/webhooks", json_body={"url": other.url}, token=stranger.member_token)
    order(core, skip_draft=True)
    deliver(core)
    core.sender.deliver(stranger.organization_id)
    assert (len(hook.received), len(other.received)) == (1, 0)
