"""`prefect-assay check`, problem by problem, on a real Prefect server, lab and archive: each is named, with its next step."""

import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest
from prefect.blocks.core import Block
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import (
    BlockDocumentUpdate,
    GlobalConcurrencyLimitCreate,
    GlobalConcurrencyLimitUpdate,
    VariableCreate,
    WorkPoolCreate,
    WorkPoolUpdate,
)
from prefect.client.schemas.schedules import IntervalSchedule
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Scheduled

from prefect_assay.blocks import (
    AssayAccount,
    AssayCredentials,
    LocalArchive,
    SharedPaymentTokens,
    SpendingPolicy,
    WebhookEndpoint,
)
from prefect_assay.campaigns.runs.starting import find_obstacles, read_own_deployments
from prefect_assay.campaigns.sweep.watermarks import SweepMemory
from prefect_assay.cli.campaigns.problems import show_problems
from prefect_assay.cli.services import check
from prefect_assay.cli.services.receiver import receiver_word
from prefect_assay.cli.services.receiver_address import record_address
from prefect_assay.cli.services.saved_blocks import save_account
from prefect_assay.cli.services.signing_keys import signing_keys
from prefect_assay.service.client.http.exchange import RetryPolicy
from support.webhooks.deliveries import SIGNING_KEY
from support.webhooks.receiver_place import running

pytestmark = pytest.mark.timeout(300)

NOW = datetime.now(UTC)
CLOSED = "http://127.0.0.1:9"  # no process listens on the discard port
POOL = "assay"
POLICY = SpendingPolicy(per_experiment_usd=5_000, per_campaign_usd=20_000)


@pytest.fixture(scope="module")
def server():
    from prefect.testing.utilities import prefect_test_harness  # imports Prefect's server: not at collection

    with prefect_test_harness(server_startup_timeout=180), get_client(sync_client=True) as client:
        yield client


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """A client repeats what failed at once."""
    delay = RetryPolicy.delay
    monkeypatch.setattr(RetryPolicy, "delay", lambda *args: None if delay(*args) is None else 0.0)


@pytest.fixture
def seen(server, capsys):
    """Runs the command; returns its problems as (part, text), after a look at the exit code and the next steps."""

    def run():
        try:
            check.run_check(as_json=True)
            code = 0
        except SystemExit as end:
            code = end.code
        report = json.loads(capsys.readouterr().out)
        faults = [line for line in report["lines"] if not line["ok"]]
        assert report["ok"] == (not faults) == (code == 0)
        assert all(line["next_step"] for line in faults)
        return [(line["part"], line["text"]) for line in faults]

    return run


@contextmanager
def saved(name, **fields):
    """An account of this name with these fields; the rest of it is nobody's."""
    blocks = {
        "credentials": AssayCredentials(base_url=CLOSED, token="t"),
        "policy": POLICY,
        "archive": LocalArchive(root="/dev/shm/nobody"),
        **fields,
    }
    # Copies without names: a block that was saved before would keep its own.
    fresh = {key: _unsaved(value) if isinstance(value, Block) else value for key, value in blocks.items()}
    save_account(AssayAccount(**fresh), name)
    try:
        yield f"account {name}"
    finally:
        AssayAccount.delete(name)
        for block in (value for value in fresh.values() if isinstance(value, Block)):
            type(block).delete(name)


def _unsaved(block):
    return type(block)(**{field: getattr(block, field) for field in type(block).model_fields})


@contextmanager
def deployed(client, flow, **options):
    """A deployment as ours is named, and nothing else of it."""
    made = client.create_deployment(client.create_flow_from_name(flow), f"assay-{flow}", **options)
    try:
        yield made
    finally:
        client.delete_deployment(made)


def named(faults, part, *words):
    return [text for fault_part, text in faults if fault_part == part and all(word in text for word in words)]


def test_a_server_without_anything_of_ours(seen):
    faults = seen()
    for flow in ("campaign", "design-build-test", "sweep", "decide"):
        assert named(faults, "deployment", flow, "not deployed")
    assert named(faults, "account", "there is no account")


def test_no_prefect_server(seen):
    with temporary_settings({PREFECT_API_URL: f"{CLOSED}/api"}):
        faults = seen()
    (part, text), *others = faults
    assert part == "server"
    assert "does not answer" in text
    assert dict.fromkeys(check.PARTS, "not looked at: it needs the Prefect server") == {
        part: others[0][1],
        **dict(others),
    }


def test_another_version_of_prefect(seen, monkeypatch):
    assert not named(seen(), "versions")
    monkeypatch.setattr(check, "version", lambda package: "3.1.0")
    assert named(seen(), "versions", "3.1.0")


@pytest.mark.parametrize(("minutes", "ok"), [(0, True), (-10, False), (10, False)])
def test_a_clock_that_differs(minutes, ok):
    line = check._check_clock(
        "service", {"date": format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)}
    )
    assert (line.ok, bool(line.next_step)) == (ok, not ok)


def problems(capsys):
    show_problems(as_json=True)
    entries = json.loads(capsys.readouterr().out)["problems"]
    assert all(problem["next_step"] for problem in entries)
    return [problem["text"] for problem in entries if problem["kind"] == "cannot-start"]


@pytest.fixture
def pool(server):
    """A pool with a worker, and the sweep's deployment in it: nothing is wrong."""
    server.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
    path = {"work_pool_name": POOL}
    server.request(
        "POST", "/work_pools/{work_pool_name}/workers/heartbeat", path_params=path, json={"name": "w"}
    )
    schedule = {"schedule": IntervalSchedule(interval=timedelta(minutes=5)), "active": True}
    with deployed(server, "sweep", work_pool_name=POOL, schedules=[schedule], tags=["assay"]) as made:
        yield made
    server.delete_work_pool(POOL)


def starts(seen):
    return [text for part, text in seen() if part in {"worker", "pool", "queue", "limit"} or "paused" in text]


def test_a_pool_with_a_worker_is_well(pool, seen, capsys):
    assert starts(seen) == []
    assert problems(capsys) == []


def test_a_paused_or_limited_pool_or_queue_is_named_by_both_commands(server, pool, seen, capsys):
    def is_named(*words):
        (text,) = starts(seen)
        assert all(word in text for word in words)
        assert problems(capsys) == [text]

    server.update_work_pool(POOL, WorkPoolUpdate(is_paused=True))
    is_named(POOL, "paused", "sweep")
    server.update_work_pool(POOL, WorkPoolUpdate(is_paused=False, concurrency_limit=0))
    is_named(POOL, "limit 0")
    server.update_work_pool(POOL, WorkPoolUpdate(concurrency_limit=3))
    queue = server.read_work_queue_by_name("default", work_pool_name=POOL)
    server.update_work_queue(queue.id, is_paused=True)
    is_named("queue default", "paused")
    server.update_work_queue(queue.id, is_paused=False, concurrency_limit=0)
    is_named("queue default", "limit 0")
    server.update_work_queue(queue.id, concurrency_limit=1)
    server.pause_deployment(pool)
    is_named("sweep is paused")
    server.resume_deployment(pool)
    assert starts(seen) == problems(capsys) == []


def test_a_queue_that_no_worker_of_its_pool_polls_is_named(server, pool):
    with deployed(server, "campaign", work_pool_name=POOL, work_queue_name="runs"):
        deployments = read_own_deployments(server)
        for queue in server.read_work_queues(work_pool_name=POOL):
            server.update_work_queue(queue.id, last_polled=NOW if queue.name == "runs" else None)
        (obstacle,) = [
            candidate for candidate in find_obstacles(server, deployments, NOW) if candidate.part == "worker"
        ]
        assert (obstacle.subject, "sweep cannot start" in obstacle.text) == (f"{POOL}/default", True)
        default = server.read_work_queue_by_name("default", work_pool_name=POOL)
        for last_polled, faults in ((NOW - timedelta(minutes=4), 1), (NOW - timedelta(minutes=1), 0)):
            server.update_work_queue(default.id, last_polled=last_polled)
            assert len(find_obstacles(server, deployments, NOW)) == faults


@pytest.mark.parametrize("name", ["tag:assay", "assay-requests"])
def test_a_limit_of_zero_on_our_runs_is_named(server, pool, seen, capsys, name):
    made = server.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=name, limit=0))
    other = server.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name="tag:other", limit=0))
    try:
        (text,) = starts(seen)
        assert name.removeprefix("tag:") in text
        assert problems(capsys) == [text]
    finally:
        server.delete_global_concurrency_limit_by_name(name)
        server.delete_global_concurrency_limit_by_name("tag:other")
    assert made != other


def test_a_deployment_limit_of_zero_is_named(server, seen, capsys):
    with deployed(server, "campaign", concurrency_limit=1) as made:
        deployment = server.read_deployment(made)
        limit = deployment.global_concurrency_limit
        server.update_global_concurrency_limit(limit.name, GlobalConcurrencyLimitUpdate(limit=0))
        assert named(seen(), "deployment", "campaign", "limit 0")
        assert any("limit 0" in text for text in problems(capsys))


def test_a_worker_that_is_gone_is_not_online_although_nothing_has_marked_it(server, pool):
    now = datetime.now(UTC)
    deployments = {"sweep": server.read_deployment(pool)}
    assert find_obstacles(server, deployments, now) == []
    later = find_obstacles(server, deployments, now + timedelta(minutes=5))
    assert any("no worker" in obstacle.text for obstacle in later)


def test_a_scheduler_that_does_not_run_is_named(server, pool):
    """The test server's scheduler is off: once the schedule is older than a plan takes, none is there."""
    later = datetime.now(UTC) + timedelta(minutes=4)
    deployments = {"sweep": server.read_deployment(pool)}
    texts = [obstacle.text for obstacle in find_obstacles(server, deployments, later)]
    assert any("scheduler does not run" in text for text in texts)
    server.create_flow_run_from_deployment(pool, state=Scheduled(scheduled_time=later + timedelta(minutes=1)))
    texts = [obstacle.text for obstacle in find_obstacles(server, deployments, later)]
    assert not any("scheduler does not run" in text for text in texts)


def test_a_receiver_that_is_away_is_a_problem(server, capsys):
    endpoint = WebhookEndpoint(url=f"{CLOSED}/assay", signing_key="k" * 32)
    with saved("away", webhook=endpoint) as name:
        show_problems(as_json=True)
        entries = json.loads(capsys.readouterr().out)["problems"]
    assert [problem["subject"] for problem in entries if problem["kind"] == "receiver-unreachable"] == [name]


def test_a_pool_without_a_worker(server, seen):
    server.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
    with deployed(server, "campaign", work_pool_name=POOL):
        assert named(seen(), "worker", POOL, "campaign")
    server.delete_work_pool(POOL)


def test_a_served_flow_whose_process_is_gone(server, seen):
    with deployed(server, "campaign"):
        assert named(seen(), "worker", "campaign", "process is not there")


def test_a_deployment_that_is_paused(server, seen):
    with deployed(server, "decide", paused=True):
        assert named(seen(), "deployment", "decide is paused")


def test_a_sweep_that_nothing_starts_or_that_is_silent(server, seen):
    schedule = {"schedule": IntervalSchedule(interval=timedelta(minutes=5)), "active": False}
    with deployed(server, "sweep", schedules=[schedule]):
        assert named(seen(), "schedule", "nothing starts the sweep")
    schedule["active"] = True
    with deployed(server, "sweep", schedules=[schedule]):
        (line,) = check._check_schedule(server)
        assert (line.ok, "the first one begins within minutes" in line.text) == (True, True), "just deployed"
        for minutes, faults in ((30, 1), (1, 0)):
            memory = SweepMemory(swept=datetime.now(UTC) - timedelta(minutes=minutes))
            value = VariableCreate(name="assay_sweep", value=memory.model_dump_json())
            server.create_variable(value)
            try:
                assert len(named(seen(), "schedule")) == faults
            finally:
                server.delete_variable_by_name("assay_sweep")


def test_an_account_that_is_well_says_whether_it_is_simulated(lab, server, tmp_path, capsys):
    good = AssayCredentials(base_url=lab.base_url, token=lab.token)
    with saved("good", credentials=good, archive=LocalArchive(root=str(tmp_path))):
        lines = [line for look in (check._check_accounts, check._check_archive) for line in look(server)]
    assert all(line.ok for line in lines)
    texts = [line.text for line in lines]
    assert f"account good (simulated): {lab.base_url} knows its token" in texts
    assert any("pays by async_invoice, caps 5,000.00 USD per experiment" in text for text in texts)
    assert f"account good: {tmp_path} takes objects, and overwrites none" in texts


def test_an_account_that_cannot_pay_as_it_says_is_named(lab, seen):
    wallet = SharedPaymentTokens(
        issuer_url="https://tokens.example.org", issuer_key="c", network_ids=["profile_1"]
    )
    with saved("rail", payment_method="mpp-spt", wallet=wallet) as name:
        (text,) = named(seen(), "account", "machine_payments")
    assert text.startswith(name)


def test_a_token_that_the_service_refuses(lab, seen):
    wrong = AssayCredentials(base_url=lab.base_url, token=lab.token[:-4] + "AAAA")
    with saved("wrong", credentials=wrong) as name:
        (text,) = named(seen(), "account", name)
    assert lab.token[:-4] not in text


def test_a_service_that_is_away_hides_no_other(lab, seen):
    away = AssayCredentials(base_url=CLOSED, token="svc-token-of-a-service-that-is-away")
    wrong = AssayCredentials(base_url=lab.base_url, token=lab.token[:-4] + "AAAA")
    with saved("away", credentials=away) as first, saved("wrong", credentials=wrong) as second:
        texts = "\n".join(named(seen(), "account"))
    assert first in texts
    assert second in texts
    assert "svc-token" not in texts


def test_a_receiver_that_is_away(seen):
    endpoint = WebhookEndpoint(url=f"{CLOSED}/assay", signing_key="k" * 32)
    with saved("hooks", webhook=endpoint) as name:
        (text,) = named(seen(), "receiver")
    assert name in text
    assert "k" * 32 not in text


@pytest.mark.parametrize(
    ("recorded", "advice"),
    [
        (None, "start prefect-assay up"),
        (f"{CLOSED}/assay", "start prefect-assay up"),
        ("http://127.0.0.1:21001/assay", "prefect-assay up listened at http://127.0.0.1:21001/assay"),
    ],
)
def test_the_advice_for_a_block_that_leads_to_another_port_names_the_port_of_up(
    server, monkeypatch, tmp_path, recorded, advice
):
    if recorded:
        record_address(tmp_path, recorded)
    monkeypatch.setattr(check, "get_current_settings", lambda: SimpleNamespace(home=tmp_path))
    with saved("hooks", webhook=WebhookEndpoint(url=f"{CLOSED}/assay", signing_key="k" * 32)):
        (line,) = check._check_receiver(server)
    assert line.next_step.startswith(advice)


def test_a_receiver_that_has_lost_the_key(seen, monkeypatch, tmp_path):
    keys = signing_keys(tmp_path)
    monkeypatch.setattr(check, "_is_here", lambda _client: True)
    monkeypatch.setattr(check, "get_current_settings", lambda: SimpleNamespace(home=tmp_path))
    monkeypatch.setattr(check.httpx, "get", lambda *_, **__: SimpleNamespace(raise_for_status=lambda: None))
    monkeypatch.setattr(check, "_explain_refusal", lambda *_: None)
    with saved("hooks", webhook=WebhookEndpoint(url=CLOSED, signing_key=keys.service)) as name:
        assert not named(seen(), "receiver")
        keys.file.write_text("other\n")
        (text,) = named(seen(), "receiver")
        assert text.startswith(f"{name}: {keys.file} does not hold its signing key")
        assert keys.service not in text


def test_a_receiver_without_the_services_word(seen):
    credentials = AssayCredentials(base_url=CLOSED, token="t", service_word="Acme")
    with running() as place:
        endpoint = WebhookEndpoint(url=f"{place.url}/assay", signing_key=SIGNING_KEY)
        with saved("hooks", credentials=credentials, webhook=endpoint) as name:
            (text,) = named(seen(), "receiver")
    assert text.startswith(f"{name}: {place.url}/assay refuses what its key signs under X-Acme-Signature")
    assert SIGNING_KEY not in text
    with running(words={"service": "Acme"}) as right:
        endpoint = WebhookEndpoint(url=f"{right.url}/assay", signing_key=SIGNING_KEY)
        with saved("hooks", credentials=credentials, webhook=endpoint):
            assert not named(seen(), "receiver")
        assert right.wake.asked == []


def test_the_receiver_of_up_reads_the_word_of_the_accounts_with_a_webhook(server):
    api = str(server.api_url)
    neutral, acme = (
        AssayCredentials(base_url=CLOSED, token="t", service_word=word) for word in ("Service", "Acme")
    )
    endpoint = WebhookEndpoint(url=CLOSED, signing_key=SIGNING_KEY)
    with saved("team", credentials=acme):
        assert receiver_word(api) == "Service"
    with saved("team", credentials=acme, webhook=endpoint):
        assert receiver_word(api) == "Acme"
        with saved("lab", credentials=neutral, webhook=endpoint):
            assert receiver_word(api) == "Service", "they do not agree"
            with saved("main", credentials=acme, webhook=endpoint):
                assert receiver_word(api) == "Acme"


def test_a_block_that_is_not_valid_is_named_without_its_secrets(lab, server, seen):
    good = AssayCredentials(base_url=lab.base_url, token=lab.token)
    with saved("wrong", credentials=AssayCredentials(base_url=CLOSED, token="secret-token")) as name:
        (document,) = server.read_block_documents_by_type("assay-credentials", include_secrets=True)
        refused = {**document.data, "base_url": [1]}
        change = BlockDocumentUpdate(data=refused, block_schema_id=document.block_schema_id)
        server.update_block_document(document.id, change)
        with saved("good", credentials=good):
            (text,) = named(seen(), "account")
        assert text.startswith(f"{name} is not valid (")
        assert "secret-token" not in text


def test_an_archive_that_takes_nothing(tmp_path, seen):
    (tmp_path / "file").write_text("no folder")
    with (
        saved("broken", archive=LocalArchive(root=str(tmp_path / "file"))) as name,
        saved("good", archive=LocalArchive(root=str(tmp_path / "good"))),
    ):
        (text,) = named(seen(), "archive")
    assert name in text


def test_a_part_that_hangs_stops_no_other(seen, monkeypatch):
    let_go = threading.Event()

    def hangs(client):
        let_go.wait(60)
        yield from ()

    monkeypatch.setattr(check, "_SECONDS", 5.0)
    monkeypatch.setitem(check.PARTS, "worker", hangs)
    faults = seen()
    let_go.set()
    assert named(faults, "worker", "no answer within 5 seconds")
    assert named(faults, "account", "there is no account")


def test_a_failure_of_prefect_is_a_fault_of_its_part(seen, monkeypatch):
    def fails(client):
        raise ObjectNotFound(None)
        yield

    monkeypatch.setitem(check.PARTS, "archive", fails)
    assert named(seen(), "archive")
