"""`approve`, `reject` and `cancel` against a real server and lab. The lab's books are the judge."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed
from typer.testing import CliRunner

from prefect_assay.blocks.order_books import open_books
from prefect_assay.cli.app import app
from prefect_assay.runs.queries import recoverable_runs
from prefect_assay.runs.states import reschedule
from prefect_assay.runs.tags import CANCELED_TAG, CHILDREN_TAG, GROUP_TAG
from support.command import command
from support.runs.held import DESIGN
from support.runs.world import EGFR, UNPRICED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


def policy(world, name, **changes):
    block = world.policy.model_copy(update=changes)
    block.save(f"answers-{name}", overwrite=True)
    return block


def here(*arguments):
    """A command in this process: starting one costs more than most of them do. Its input is no terminal."""
    return CliRunner().invoke(app, arguments)


def test_a_question_is_answered_once_by_the_one_who_has_seen_it(world, held):
    creates = world.creates()
    tight = policy(world, "tight", per_experiment_cents=100)
    run = held.experiment("answered", policy=tight, payment_method="async_invoice", wallet=None)
    assert held.execute(run).name == "Suspended"

    looked = json.loads(here("approve", str(run.id), "--json").stdout)["question"]
    assert "219.00 USD" in looked["description"]
    assert looked["decisions"] == ["approve", "reject", "change_cap"]
    unconfirmed = here("approve", str(run.id))
    assert unconfirmed.exit_code == 2
    assert f"--yes --question {looked['key']}" in unconfirmed.stderr
    assert held.state(run).name == "Suspended"

    refused = here("reject", str(run.id), "--yes", "--note", "too dear", "--json")
    assert json.loads(refused.stdout)["answer"]["decision"] == "reject"
    ended = held.execute(run)
    assert ended.name == "Failed"
    assert "(too dear)" in ended.message
    asks_nothing = here("approve", str(run.id), "--yes")
    assert (asks_nothing.exit_code, "asks nothing; it is Failed" in asks_nothing.stderr) == (2, True)

    assert reschedule(world.api, run.id, "a retry asks again", force=True)
    assert held.execute(run).name == "Suspended"
    outdated = here("approve", str(run.id), "--yes", "--question", looked["key"])
    assert (outdated.exit_code, "asks another question by now" in outdated.stderr) == (1, True)
    assert held.state(run).name == "Suspended"
    assert world.creates() == creates

    def approve(name):
        return command("approve", str(run.id), "--yes", "--by", name, **world.stack.env)

    with ThreadPoolExecutor(2) as both:
        done = list(both.map(approve, ("Ada", "Grace")))
    # 2: it read the run after the other's answer
    assert sorted(one.code for one in done) in ([0, 1], [0, 2]), [one.err for one in done]
    first = ("Ada", "Grace")[[one.code for one in done].index(0)]
    assert not held.execute(run).state_details.run_input_keyset  # it waits for the laboratory
    assert len(world.orders("answered")) == 1
    books = open_books(world.credentials, world.archive)
    (book,) = [book for book in books.orders() if book.campaign_id == "answered"]
    assert first in book.read().approved.approver


def test_a_canceled_campaign_says_what_remains(world, held):
    designs = str(world.designs("canceled-cli", DESIGN))

    def start(campaign_id, target, **changes):
        assay = {"experiment_type": "affinity", "method": "bli", "target": target}
        given = world.shared() | {"designs": designs, "campaign_id": campaign_id, "webhook": None} | changes
        run = held.start("campaign", **given, assay=assay)
        assert held.execute(run, "campaign").name == "Suspended"

    start("canceled-quoted", UNPRICED, policy=policy(world, "quotes", accept_quotes=False))
    start("canceled-asking", EGFR, policy=policy(world, "campaign", per_campaign_cents=100))
    paid = held.experiment("canceled-paid")
    assert held.execute(paid).name == "Suspended"
    (child,) = world.children("canceled-quoted")
    world.asleep(child)
    world.advance(days=2)
    (order,) = world.orders("canceled-quoted")
    assert order.status == "quote_sent"

    unconfirmed = here("cancel", "canceled-quoted")
    assert (unconfirmed.exit_code, "nothing was canceled" in unconfirmed.stderr) == (2, True)
    nothing = here("cancel", "canceled-asking", "--yes")
    assert "It had started no experiment: nothing was ordered." in nothing.stdout
    (quoted,) = json.loads(here("cancel", "canceled-quoted", "--yes", "--json").stdout)["experiments"]
    assert (quoted["outcome"], quoted["billed_cents"]) == ("quote-rejected", None)
    (order,) = world.orders("canceled-quoted")
    assert order.status == "draft"
    done = command("cancel", str(paid.id), "--yes", **world.stack.env)
    assert done.code == 0
    assert "ordered and billed: 219.00 USD, paid" in done.out
    assert "Billed together: 219.00 USD" in done.out
    assert len(world.settlements("canceled-paid")) == 1
    for run in (world.run(child), world.run(paid)):
        assert run.state.name == "Cancelled"
        assert len(world.artifacts(run, "assay-canceled-")) == 1
    (again,) = json.loads(here("cancel", str(paid.id), "--json").stdout)["experiments"]
    assert (again["outcome"], again["billed_cents"]) == ("invoiced", 21_900)


@pytest.mark.parametrize("campaign", ["Crashed", "Scheduled", "Cancelled"])
def test_a_crashed_run_is_canceled_and_not_started_again(world, held, campaign):
    """Also below a campaign whose cancellation was reported before, when the run had not crashed yet."""
    group = f"crashed-{campaign}"
    parent = held.start("campaign", **world.shared(), designs="d.fasta", assay={"target": EGFR})
    child = held.experiment(group)
    reported = [f"{CANCELED_TAG}0-told"] if campaign == "Cancelled" else []
    world.api.update_flow_run(parent.id, tags=["assay", CHILDREN_TAG + group, *reported])
    world.api.update_flow_run(child.id, tags=["assay", GROUP_TAG + group])
    if campaign == "Crashed":
        world.api.set_flow_run_state(parent.id, Crashed(), force=True)
    elif campaign == "Cancelled":
        held.cancel(parent)
    world.api.set_flow_run_state(child.id, Crashed(), force=True)
    done = here("cancel", str(parent.id), "--yes", "--json")
    (line,) = json.loads(done.stdout)["experiments"]
    assert (done.exit_code, line["outcome"]) == (0, "canceled")
    assert [world.run(run).state.name for run in (parent, child)] == ["Cancelled"] * 2
    started_again = {run.id for run in recoverable_runs(world.api, StateType.CRASHED)}
    assert not started_again & {parent.id, child.id}
    assert len(world.artifacts(world.run(parent), "assay-canceled-")) == (0 if reported else 1)
