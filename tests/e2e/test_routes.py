"""The other ways through: quotes, approvals, hosted invoices, refusals before money, loops, plain scripts."""

import json
import pickle
import re
import threading
from collections import Counter
from pathlib import Path

import httpx
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.serializers import JSONSerializer
from prefect.states import Scheduled

from prefect_assay.archive import LocalStore, verify
from prefect_assay.blocks import AssayCredentials, SpendingPolicy
from prefect_assay.cli.campaigns.run import _run_here
from prefect_assay.errors import (
    ArchiveUnavailable,
    CampaignFailed,
    InvalidSequences,
    InvalidSpec,
    PaymentsDisabled,
    ServiceUnavailable,
    Unauthorized,
)
from prefect_assay.flows import campaign, design_build_test, loop_rounds
from prefect_assay.models.report import ExperimentReport, LoopReport
from prefect_assay.models.spec import Assay
from prefect_assay.runs.tags import INVOICE_LABEL, PRICE_LABEL
from support.pages import QUICK_START, README, blocks
from support.runs.events import stored_events
from support.runs.world import EGFR, UNPRICED, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


def assay(target, **changes):
    return {"experiment_type": "affinity", "method": "bli", "target": target} | changes


@pytest.fixture
def days_pass(world):
    """The laboratory works while a flow polls in the test's own process, and its clock moves no further than its work."""
    stop = threading.Event()

    def go_on():
        while not stop.wait(1.5):
            world.stack.lab.advance(until="idle")

    days = threading.Thread(target=go_on)
    days.start()
    yield
    stop.set()
    days.join()


def answer(run, **values):
    """Answer a run's approval form, as the UI does."""
    with get_client(sync_client=True) as client:
        return client.resume_flow_run(run.id, run_input=values).status.value


def test_a_target_without_a_price_waits_for_its_quote(world):
    designs = world.designs("quoted", DESIGN)
    run = world.campaign(designs, campaign_id="quoted", assay=assay(UNPRICED))
    (child,) = world.suspended_children("quoted")
    (order,) = world.orders("quoted")
    assert order.status == "waiting_for_confirmation"
    world.advance(days=2)  # the quote is sent, its webhook wakes the run, the run confirms and pays
    eventually(lambda: world.settlements("quoted"), seconds=60, what="the payment of the quoted order")
    world.suspended_children("quoted")
    world.advance(days=20)
    world.until(run, "Completed", seconds=90)
    assert world.run(child).state.name == "Completed"
    assert len(world.settlements("quoted")) == 1


def test_over_the_cap_the_run_asks_and_orders_nothing_before_the_answer(world):
    tight = SpendingPolicy(
        per_experiment_cents=0, per_campaign_cents=100, machine_payments=True, rolling_cents=10**8
    )
    tight.save("tight", overwrite=True)
    designs = world.designs("Asked_1.v", DESIGN)
    run = world.campaign(designs, campaign_id="Asked_1.v", policy=tight)
    world.until(run, "Suspended")
    assert world.orders("Asked_1.v") == []
    with get_client(sync_client=True) as client:
        assert client.resume_flow_run(run.id).status.value == "REJECT"  # no answer, no wake-up
    assert answer(run, decision="approve") == "ACCEPT"
    world.suspended_children("Asked_1.v")
    assert len(world.settlements("Asked_1.v")) == 1
    world.advance(days=16)
    world.until(run, "Completed", seconds=90)


def test_a_rejected_approval_orders_nothing(world):
    tight = SpendingPolicy(per_experiment_cents=0, per_campaign_cents=100)
    tight.save("tight-hosted", overwrite=True)
    run = world.campaign(
        world.designs("declined", DESIGN),
        campaign_id="declined",
        policy=tight,
        payment_method="async_invoice",
    )
    world.until(run, "Suspended")
    answer(run, decision="reject")
    failed = world.until(run, "Failed")
    assert "was not approved" in failed.state.message
    with get_client(sync_client=True) as client:  # the Retry button: the run asks again
        client.set_flow_run_state(run.id, Scheduled(name="AwaitingRetry"), force=True)
    world.until(run, "Suspended")
    assert world.orders("declined") == []
    answer(run, decision="reject")
    world.until(run, "Failed")
    assert world.orders("declined") == []


def woken_for_nothing(world, run):
    times = world.history(run).count("Suspended")
    with get_client(sync_client=True) as client:
        client.resume_flow_run(run.id)
    eventually(lambda: world.history(run).count("Suspended") > times, seconds=60, what="another suspension")
    world.asleep(run)


def tasks_of(world, run):
    return world.api.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id])))


def test_a_hosted_invoice_is_shown_and_paid_by_a_person(world):
    run = world.experiment("hosted", DESIGN, payment_method="async_invoice", wallet=None)
    world.asleep(run)
    (artifact,) = world.artifacts(run, "assay-invoice-")
    address = re.search(r"http://[^)\s]+", artifact.data)[0]
    assert "/portal/" in address
    begun = len(tasks_of(world, run))
    woken_for_nothing(world, run)
    assert httpx.post(f"{address.rstrip('/')}/pay", follow_redirects=True).is_success
    for _ in range(2):  # the first look finds it paid, the second finds nothing new
        woken_for_nothing(world, run)
    # All of it is recorded before the results, and before any task.
    assert len(tasks_of(world, run)) == begun
    assert world.log("hosted").read().settled is not None
    labels = world.run(run).labels
    assert (labels[INVOICE_LABEL], int(labels[PRICE_LABEL]) > 0) == ("", True)
    assert len([a for a in world.artifacts(run, "assay-invoice-") if "is paid" in a.data]) == 1
    eventually(lambda: paid_events(run) == 1, seconds=30, what="the event in Prefect's database")
    world.advance(days=16)
    done = world.until(run, "Completed", seconds=90)
    assert world.result(done, ExperimentReport).payment.already_paid
    # Each is shown once, however often the run has been woken: the invoice when it is open and when it is paid.
    shown = Counter(artifact.key.rsplit("-", 2)[0] for artifact in world.artifacts(run, "assay-"))
    assert (shown["assay-experiment"], shown["assay-invoice"], shown["assay-receipt"]) == (1, 2, 0), shown
    newest = max(world.artifacts(run, "assay-invoice-"), key=lambda made: made.created)
    assert "is paid" in newest.data
    assert address not in newest.data

    def names():
        return Counter(task.name.rsplit("-", 1)[0] for task in tasks_of(world, run))

    # The server records task runs together, up to a second later.
    eventually(lambda: names()["read-invoice"] == 2, seconds=30, what="one at the order, one at the results")
    assert "pay-invoice" not in names()
    assert paid_events(run) == 1


def paid_events(run):
    return sum(
        event.roles()["flow-run"] == f"prefect.flow-run.{run.id}"
        for event in stored_events("assay.experiment.paid")
    )


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"payment_method": "mpp-spt"}, PaymentsDisabled, "mpp-spt pays with shared payment tokens"),
        ({"wallet": None}, PaymentsDisabled, "x402-exact pays from a wallet"),
        ({"assay": assay("no such antigen")}, InvalidSpec, "is not in the service's catalog"),
        ({"assay": assay("EGFR")}, InvalidSpec, "did you mean"),
        ({"designs": "/nowhere/designs.fasta"}, InvalidSequences, "/nowhere/designs.fasta"),
        ({"designs": ">a\nACDJ\n"}, InvalidSequences, "'J'"),
        (
            {"credentials": AssayCredentials(base_url="http://127.0.0.1:9", token="t")},
            ServiceUnavailable,
            ":9",
        ),
    ],
)
def test_what_cannot_work_fails_before_anything_is_ordered(world, changes, error, message):
    before = world.creates()
    parameters = world.shared() | {"designs": f">a\n{DESIGN}\n", "assay": assay(EGFR)} | changes
    with pytest.raises(error, match=re.escape(message)):
        campaign(**parameters)
    assert world.creates() == before


def test_a_wrong_token_is_refused_in_words_that_do_not_hold_it(world):
    wrong = AssayCredentials(base_url=world.stack.lab.base_url, token="assay_wrongtoken")
    parameters = world.shared() | {"designs": f">a\n{DESIGN}\n", "assay": assay(EGFR), "credentials": wrong}
    with pytest.raises(Unauthorized) as caught:
        campaign(**parameters)
    assert "assay_wrongtoken" not in str(caught.value)
    assert caught.value.request_id


def test_a_plain_script_polls_and_ends_with_the_same_archive(world, days_pass):
    """Without a deployment the same flows run side by side in one process."""
    parameters = world.shared() | {"webhook": None, "sequences_per_experiment": 1, "poll_seconds": 0.5}
    report = campaign(
        designs=f">a\n{DESIGN}\n>b\n{BINDER}\n",
        assay=Assay.model_validate(assay(EGFR)),
        campaign_id="script",
        **parameters,
    )
    assert len(report.experiments) == 2
    assert report.problems == ()
    assert len(world.orders("script")) == 2
    assert len(world.settlements("script")) == 2
    assert verify(LocalStore(world.folder / "archive"), "script").ok


def test_a_script_without_results_raises_with_the_report(world, capsys):
    parameters = world.shared() | {
        "designs": f">a\n{DESIGN}\n",
        "assay": Assay.model_validate(assay(EGFR)),
        "policy": SpendingPolicy(per_experiment_cents=1, per_campaign_cents=10**7),
        "payment_method": "async_invoice",
        "wallet": None,
        "campaign_id": "none",
        "webhook": None,
    }
    with pytest.raises(
        CampaignFailed, match=r"results of 0 of 1 experiment, 0 rows; .* the cap is"
    ) as caught:
        campaign(**parameters)
    (line,) = caught.value.report.experiments
    assert (line.location, line.problem in str(caught.value)) == (None, True)
    assert pickle.loads(pickle.dumps(caught.value)).report == caught.value.report
    kept = JSONSerializer()
    assert str(kept.loads(kept.dumps(caught.value))) == str(caught.value)
    with pytest.raises(SystemExit):  # `prefect-assay run --here --json`
        _run_here(parameters, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["rows"]) == ("Failed", 0)
    assert shown["experiments"][0]["problem"] == line.problem
    assert world.orders("none") == []


def test_the_readme_example_runs(world, days_pass, monkeypatch, tmp_path, capsys):
    (example,) = blocks(README, "python") + blocks(QUICK_START, "python")
    (tmp_path / "designs.fasta").write_text(f">readme\n{BINDER}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for block in (world.credentials, world.policy, world.archive):
        block.model_copy().save("main", overwrite=True)
    exec(example, {})
    table = Path(capsys.readouterr().out.strip().splitlines()[-1])
    assert "readme" in table.read_text()


def loop_parameters(world, folder, loop_id):
    return world.shared() | {
        "source": str(folder),
        "loop_id": loop_id,
        "goal_kd_nM": 200.0,
        "settle_seconds": 1,
    }


def test_a_deployed_loop_measures_a_design_file_once(world):
    folder = world.folder / "deployed-rounds"
    folder.mkdir()
    (folder / "round 1.fasta").write_text(f">b\n{BINDER}\n")
    parameters = loop_parameters(world, folder, "loop") | {"assay": assay(EGFR)}
    run = world.start("design-build-test", **parameters)
    world.suspended_children("loop-round-1")
    world.advance(days=16)
    report = world.result(world.until(run, "Completed", seconds=120), LoopReport)
    assert [r.campaign_id for r in report.rounds] == ["loop-round-1"]
    assert report.rounds[0].best_kd_M == pytest.approx(9e-8, rel=0.3)
    assert "reached the goal" in report.stopped
    later = world.until(world.start("design-build-test", **parameters), "Completed", seconds=60)
    assert world.result(later, LoopReport).rounds == report.rounds
    assert len(world.orders("loop-")) == 1


@pytest.fixture
def archive_away(monkeypatch):
    """The first table that a loop reads is away for a moment."""
    read, away = loop_rounds.kept_table, [ArchiveUnavailable("the archive does not answer")]

    def kept_table(*wanted):
        if away:
            raise away.pop()
        return read(*wanted)

    monkeypatch.setattr(loop_rounds, "kept_table", kept_table)
    yield
    assert not away


@pytest.mark.usefixtures("archive_away")
def test_a_loop_in_a_script_goes_on_until_the_goal_and_survives_a_bad_file(world, days_pass):
    folder = world.folder / "script-rounds"
    folder.mkdir()
    (folder / "round0.fasta").write_text(">bad\nACDJ\n")
    (folder / "round1.fasta").write_text(f">a\n{DESIGN}\n")
    (folder / "round2.fasta").write_text(f">b\n{BINDER}\n")
    (folder / "round3.fasta").write_text(f">c\n{DESIGN}A\n")
    parameters = loop_parameters(world, folder, "scripted") | {"webhook": None, "poll_seconds": 0.5}
    report = design_build_test(assay=Assay.model_validate(assay(EGFR)), **parameters)
    assert [r.name for r in report.rounds] == ["round0", "round1", "round2"]
    assert "'J'" in report.rounds[0].problem
    assert [r.best_kd_M is None for r in report.rounds] == [True, True, False]
    assert len(world.orders("scripted-")) == 2
