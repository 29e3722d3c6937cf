"""Every alert fires by the real fault: on a real server, lab and receiver; and it is over when the fault is."""

import http.server
import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from prefect.client.orchestration import get_client
from prefect.states import Cancelled, Crashed, Failed, Scheduled
from pydantic import SecretStr

from prefect_assay.alerts import ALERTS
from prefect_assay.alerts.saved import read_saved
from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy, X402Wallet
from prefect_assay.cli.campaigns.problems import show_problems
from prefect_assay.client import AssayClient
from prefect_assay.models.problem import AlertLimits
from prefect_assay.models.tokens import Attenuation
from prefect_assay.runs.block_references import as_parameter
from prefect_assay.webhooks.problem_watch import ProblemWatch
from support.runs.events import stored_events
from support.runs.held import DESIGN
from support.runs.suspended import suspend_many
from support.runs.sweeps import swept
from support.runs.world import UNPRICED, eventually
from support.services.serving import serving

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(180)]


@pytest.fixture
def place(world, held, tmp_path):
    """An organisation with an archive of its own, and runs that wait there. Its blocks go: some tests leave them broken."""
    made = Place(world, held, tmp_path)
    yield made
    for kind in (AssayCredentials, LocalArchive):
        for document in world.api.read_block_documents_by_type(kind.get_block_type_slug()):
            if document.name == made.name:
                world.api.delete_block_document(document.id)


class Place:
    def __init__(self, world, held, folder):
        self.world, self.held = world, held
        self.name = f"alert{uuid4().hex[:6]}"
        self.lab = world.stack.lab.seed(self.name)
        self.credentials = AssayCredentials(base_url=self.lab.base_url, token=self.lab.token)
        self.credentials.save(self.name, overwrite=True)
        self.folder = folder / "archive"
        self.archive = LocalArchive(root=str(self.folder))
        self.archive.save(self.name, overwrite=True)

    def waiting(self, **changes):
        (experiment_id,) = self.lab.fill(1, stage="ordered", sequences=1)
        spec = {"experiment_type": "thermostability", "sequences": {"d": {"aa_string": DESIGN}}}
        blocks = {"credentials": self.credentials, "policy": self.world.policy, "archive": self.archive}
        parameters = {name: as_parameter(block) for name, block in (blocks | changes).items()}
        parameters |= {"spec": spec, "campaign_id": self.name}
        deployment = self.world.api.read_deployment_by_name(f"experiment/{self.held.name}")
        (run,) = suspend_many(self.world.api, deployment.id, [experiment_id], parameters)
        return run

    def ordered(self, **changes):
        mine = {"credentials": self.credentials, "archive": self.archive}
        run = self.held.experiment(self.name, **mine | changes)
        self.held.execute(run)
        return self.world.run(run)


def problems(kind, words):
    with get_client(sync_client=True) as client:
        return [p for p in read_saved(client).problems if p.kind == kind and words in p.line]


def fires(kind, words, capsys):
    """The problem is saved, shown and sent."""
    (found,) = problems(kind, words)
    capsys.readouterr()
    show_problems(as_json=True)
    shown = json.loads(capsys.readouterr().out)["problems"]
    assert [p["next_step"] for p in shown if (p["kind"], p["subject"]) == found.identity] == [found.next_step]
    sent(found, "assay.problem.opened")
    return found


def sent(problem, event):
    resource = f"assay.problem.{problem.kind}.{problem.subject}"

    def one():
        return [e for e in stored_events(event) if e.resource["prefect.resource.id"] == resource]

    eventually(one, seconds=30, what=f"{event} of {resource}")
    assert len({e.id for e in one()}) == 1


def test_run_stuck(world, place, capsys):
    run = place.waiting()
    world.api.set_flow_run_state(run.id, Crashed(), force=True)
    swept()  # reschedules it, and no worker serves its deployment
    swept(after=timedelta(minutes=15))
    fires("run-stuck", run.name, capsys)
    world.api.delete_flow_run(run.id)
    swept(after=timedelta(minutes=15))
    assert problems("run-stuck", run.name) == []


def test_deadline_near(place, capsys):
    run = place.waiting()
    swept()
    assert problems("deadline-near", place.name) == []
    swept(after=timedelta(days=41))
    (found,) = [p for p in problems("deadline-near", "deadline") if run.name in p.runs]
    fires("deadline-near", found.subject, capsys)


def test_service_away_and_token_refused(place, capsys):
    place.waiting()
    with place.world.stack.lab.fault("status", method="GET", path="/api/v1/updates", status=503, count=1000):
        swept()
        found = fires("service-away", place.name, capsys)
    swept()
    assert problems("service-away", place.name) == []
    sent(found, "assay.problem.solved")
    refused = AssayCredentials(base_url=place.lab.base_url, token=SecretStr("revoked"))
    refused.save(place.name, overwrite=True)
    swept()
    fires("token-expiring", place.name, capsys)


def test_token_expiring(place, capsys):
    soon = Attenuation(expires_at=datetime.now(UTC) + timedelta(days=5))
    with AssayClient(place.lab.base_url, place.lab.token) as client:
        made = client.attenuate_token(place.lab.token, soon, "soon")
    AssayCredentials(base_url=place.lab.base_url, token=made.token).save(place.name, overwrite=True)
    place.waiting()
    swept()
    fires("token-expiring", place.name, capsys)


def test_archive_refusing(place, capsys):
    place.waiting()
    swept()
    assert problems("archive-refusing", place.name) == []
    for path in sorted(Path(place.folder).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    if place.folder.exists():
        place.folder.rmdir()
    place.folder.write_text("a file in place of the folder")
    swept()
    fires("archive-refusing", place.name, capsys)


def test_invoice_unpaid(place, capsys):
    run = place.ordered(payment_method="async_invoice", wallet=None)
    assert run.state.name == "Suspended", run.state
    place.lab.advance(days=1)
    for minutes in (
        0,
        15,
        30,
        45,
    ):  # until nothing is news any more: an open invoice may be paid by each update
        swept(after=timedelta(minutes=minutes))
        if place.world.run(run).state.name != "Suspended":
            assert place.held.execute(run).name == "Suspended"
    assert not [p for p in problems("invoice-unpaid", "") if run.name in p.runs]
    swept(after=timedelta(days=8))
    (found,) = [p for p in problems("invoice-unpaid", "") if run.name in p.runs]
    fires("invoice-unpaid", found.subject, capsys)


def test_cap_reached(place, capsys):
    low = SpendingPolicy(
        per_experiment_cents=1, per_campaign_cents=5_000_000, machine_payments=True, rolling_cents=50_000_000
    )
    low.save(place.name, overwrite=True)
    run = place.ordered(policy=low)
    swept()
    fires("cap-reached", run.name, capsys)


def test_quote_expiring(place, capsys):
    careful = SpendingPolicy(
        accept_quotes=False,
        per_experiment_cents=2_000_000,
        per_campaign_cents=5_000_000,
        machine_payments=True,
        rolling_cents=50_000_000,
    )
    careful.save(place.name, overwrite=True)
    run = place.ordered(policy=careful, target=UNPRICED)
    place.lab.advance(days=3)
    swept()
    assert place.held.execute(run).name == "Suspended"  # it was woken by its quote, and asks
    swept(limits=AlertLimits(quote_days=90))
    (found,) = [p for p in problems("quote-expiring", "") if run.name in p.runs]
    fires("quote-expiring", found.subject, capsys)


def test_webhooks_silent(world, place, capsys):
    run = place.waiting(webhook=world.webhook)
    swept()
    swept()
    world.stack.stop_receiver()
    try:
        place.lab.advance(days=16)
        swept()
        fires("webhooks-silent", run.name, capsys)
    finally:
        world.stack.start_receiver()


@contextmanager
def node(balance):
    """A node of a chain on which every wallet holds so many units of a token with six decimals."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            value = 84532
            if body["method"] == "eth_call":
                value = 6 if body["params"][0]["data"] == "0x313ce567" else balance
            answer = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": hex(value)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        yield address


def test_wallet_low(world, place, capsys):
    place.waiting()

    def save(address):
        fields = world.wallet.model_dump(include={"networks", "assets", "pay_to"})
        X402Wallet(**fields, private_key=world.wallet.private_key, node_url=address).save(
            place.name, overwrite=True
        )

    with node(700 * 10**6) as address:
        save(address)
        swept()
        assert problems("wallet-low", place.name) == []
    with node(499 * 10**6) as address:
        save(address)
        swept()
        assert "499.00 USD" in fires("wallet-low", place.name, capsys).text


def test_sweep_silent(world, place, capsys):
    """The receiver notices it, `status --problems` shows it, and both see that it is over."""
    swept()
    watch = ProblemWatch()
    watch.look(datetime.now(UTC))
    assert "sweep-silent" not in {p.kind for p in watch.state.problems}
    watch.look(datetime.now(UTC) + timedelta(minutes=21))
    (found,) = [p for p in watch.state.problems if p.kind == "sweep-silent"]
    sent(found, "assay.problem.opened")
    watch.look(datetime.now(UTC))
    assert "sweep-silent" not in {p.kind for p in watch.state.problems}
    sent(found, "assay.problem.solved")


def test_order_open(world, place, capsys):
    run = place.ordered()
    world.api.set_flow_run_state(run.id, Failed(message="an error that nothing mends"), force=True)
    swept()
    fires("order-open", run.name, capsys)
    world.api.set_flow_run_state(run.id, Scheduled(), force=True)  # Retry
    swept()
    assert problems("order-open", run.name) == []


def test_money_open(world, place, capsys):
    """Paid and never collected: nobody waits for the results of a run that has ended."""
    run = place.ordered()
    world.api.set_flow_run_state(run.id, Cancelled(), force=True)
    swept()
    assert problems("money-open", place.name) == [], "it is young"
    swept(after=timedelta(days=2))
    fires("money-open", place.name, capsys)


def test_run_deleted(world, place, capsys):
    """Whoever deletes a run in the UI loses no result: the sweep names the order, and the next run adopts it."""
    run = place.ordered()
    assert run.state.name == "Suspended"
    world.api.delete_flow_run(run.id)
    swept()
    found = fires("run-deleted", run.name, capsys)
    again = place.ordered()  # the same campaign id
    assert again.id != run.id
    assert again.state.name == "Suspended"
    with AssayClient(place.lab.base_url, place.lab.token) as service:
        (order,) = service.iter_experiments(search=place.name)
    assert len([s for s in world.stack.lab.settlements() if s["experiment_id"] == order.id]) == 1
    swept()
    assert problems("run-deleted", run.name) == []
    sent(found, "assay.problem.solved")


def test_every_kind_has_a_test_here():
    tests = Path(__file__).read_text(encoding="utf-8")
    assert [kind for kind in ALERTS if f'"{kind}"' not in tests] == []
