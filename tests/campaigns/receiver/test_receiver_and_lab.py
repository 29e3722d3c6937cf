"""The receiver behind a real lab: genuine deliveries wake, forged, old and replayed ones do not (contract 6)."""

import pytest
from pydantic import SecretStr

from assay_lab.control import actions as sim_actions
from assay_lab.control import bodies
from assay_lab.control import deliveries as sim_deliveries
from assay_lab.kernel.faults import WebhookFault
from assay_lab.kernel.settings import LabSettings
from assay_lab.service.core import LabCore
from lab_support.core import order
from prefect_assay.campaigns.receiver.receiver import create_app
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.webhook_signature import delivery_url, derive_secret
from support.services.asgi import served
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY

OLD_KEY = "the-signing-key-before-the-rotation-01"
ORGANIZATION_KEY = "0" * 20  # an organisation's webhook has no order of its own
SECRET, OLD = derive_secret(SIGNING_KEY, ORGANIZATION_KEY), derive_secret(OLD_KEY, ORGANIZATION_KEY)
WORDS = WireWords(service="Acme")


class Woken(list):
    """The experiments that were asked for."""

    async def __call__(self, experiment_id, *_):
        self.append(experiment_id)
        return 1


@pytest.fixture(scope="module")
def woken():
    return Woken()


@pytest.fixture(scope="module")
def receiver(woken):
    """Knows one key, and takes deliveries of the last 15 minutes: this lab runs on real time."""
    settings = ReceiverSettings(signing_keys=(SecretStr(SIGNING_KEY),), words=WORDS, announce=False)
    with served(create_app(settings, wake=woken)) as url:
        yield f"{url}/assay"


@pytest.fixture(scope="module")
def rotating(woken):
    """Knows the key before as well: the window of a rotation."""
    settings = ReceiverSettings(
        signing_keys=(SecretStr(SIGNING_KEY), SecretStr(OLD_KEY)), words=WORDS, announce=False
    )
    with served(create_app(settings, wake=woken)) as url:
        yield f"{url}/assay"


@pytest.fixture
def core(woken):
    woken.clear()
    made = LabCore(LabSettings(allow_http_webhooks=True, words=WORDS))
    yield made
    made.close()


def of_organization(core, receiver, secret=SECRET):
    """An organisation's webhook at the receiver; an experiment whose updates go there."""
    url = delivery_url(receiver, ORGANIZATION_KEY)
    webhook = core.request("POST", "/webhooks", json_body={"url": url, "secret": secret}).body
    return webhook["id"], order(core, skip_draft=True).body["experiment_id"]


def sent(core):
    """Statuses of the attempts made now."""
    before = len(sim_deliveries.list_attempts(core, 0))
    core.sender.deliver(core.seeded.organization_id)
    return [row["status"] for row in sim_deliveries.list_attempts(core, 0)[before:]]


def test_deliveries_of_both_kinds_of_webhook_wake(core, receiver, woken):
    _, first = of_organization(core, receiver)
    url, secret = delivery_url(receiver, ORDER_KEY), derive_secret(SIGNING_KEY, ORDER_KEY)
    second = order(core, skip_draft=True, webhook_url=url, webhook_secret=secret).body["experiment_id"]
    assert sent(core) == [200, 200]
    assert woken == [first, second]


def test_the_same_update_wakes_once_however_often_it_comes(core, receiver, woken):
    core.webhook_faults.append(WebhookFault(action="double"))
    _, experiment_id = of_organization(core, receiver)
    assert sent(core) == [200]
    for body in (bodies.Redelivery(), bodies.Redelivery(identical=True)):
        (again,) = sim_deliveries.redeliver_attempt(core, body, "1")["items"]
        assert again["status"] == 200
    assert woken == [experiment_id]


@pytest.mark.parametrize(("fault", "details"), [("bad_signature", {}), ("stale", {"seconds": 1000})])
def test_forged_and_stale_deliveries_are_refused_for_good(core, receiver, woken, fault, details):
    core.webhook_faults.append(WebhookFault(action=fault, count=1, **details))
    of_organization(core, receiver)
    assert sent(core) == [401]
    assert woken == []
    assert sim_deliveries.list_waiting(core) == []


def test_the_old_secret_counts_within_the_window_of_a_rotation_only(core, receiver, rotating, woken):
    webhook_id, experiment_id = of_organization(core, rotating, OLD)
    assert sent(core) == [200]
    core.request("PATCH", f"/webhooks/{webhook_id}", json_body={"secret": SECRET})
    core.webhook_faults.append(WebhookFault(action="old_secret", count=2))
    progress = {"event": "progress", "experiment_id": experiment_id}
    sim_actions.trigger_event(core, progress)
    assert sent(core) == [200]
    core.request(
        "PATCH", f"/webhooks/{webhook_id}", json_body={"url": delivery_url(receiver, ORGANIZATION_KEY)}
    )
    sim_actions.trigger_event(core, progress)
    assert sent(core) == [401]
    sim_actions.trigger_event(core, progress)
    assert sent(core) == [200]
    assert len(woken) == 3
