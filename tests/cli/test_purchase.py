"""Before `run` and `loop` order: what is bought, what it costs, who is asked, and what is refused, against a real lab."""

import getpass
import re
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.cli import asking
from prefect_assay.cli.app import app
from prefect_assay.cli.campaigns import estimate as estimating
from prefect_assay.cli.campaigns import run as running
from prefect_assay.cli.loops import start as looping
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger.log import Ordered, Sending
from prefect_assay.orders.purchase import PAID_AGAIN
from prefect_assay.orders.targets import resolve_target
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks.collate import save_plan
from prefect_assay.tasks.read import plan_campaign
from support.accounts import make_account

EGFR = "Human EGFR, extracellular domain"
ASSAY = Assay(target=EGFR)


class Shop:
    """`run` and `loop` with an account at a lab; `started` are the flows that were started, with their parameters."""

    def __init__(self, lab, folder, monkeypatch):
        self.account = make_account(
            base_url=lab.base_url,
            token=lab.token,
            archive=folder / "archive",
            policy={"per_experiment_usd": 5_000, "per_campaign_usd": 20_000},
        )
        self.started = []
        self.designs = folder / "designs.fasta"
        self.designs.write_text(
            ">one\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGG\n>two\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGGWW\n"
            ">again\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGG\n"
        )
        monkeypatch.setenv("COLUMNS", "80")
        for module in (running, looping):
            monkeypatch.setattr(module, "require_api", lambda: None)
            monkeypatch.setattr(module, "start_temporary_server", lambda: None)
            monkeypatch.setattr(module, "load_account", lambda _: self.account)
            monkeypatch.setattr(module, "start_deployed", self.start)
            monkeypatch.setattr(module, "announce_run", lambda *_, **__: None)
        monkeypatch.setattr(estimating, "saved_account", lambda _: self.account)

    @property
    def archive(self):
        return self.account.archive

    def start(self, flow, parameters, *, tags=(), **_):
        self.started.append((flow, parameters))
        self.tags = tags
        return SimpleNamespace(id="id", name="name")

    def run(self, *options, target=EGFR):
        done = CliRunner().invoke(app, ["run", str(self.designs), "--target", target, *options])
        assert max(map(len, done.stderr.splitlines()), default=0) <= 130 or done.exit_code
        return done

    def plan(self, campaign_id, text=None):
        """The archived plan of a campaign for the target of the tests."""
        sequences = running.read_file(text or str(self.designs), ReadingOptions())
        with self.account.credentials.get_client() as client:
            target = resolve_target(client, ASSAY)
        plan = plan_campaign.fn(sequences, ASSAY, target, campaign_id=campaign_id, per_experiment=96)
        save_plan.fn(self.archive, plan)
        return plan

    def at_a_terminal(self, monkeypatch, answer):
        asked = []
        monkeypatch.setattr(asking, "sys", SimpleNamespace(stdin=Terminal, stderr=Terminal))
        monkeypatch.setattr(asking.typer, "confirm", lambda text, **_: asked.append(text) or answer)
        return asked


class Terminal:
    isatty = staticmethod(lambda: True)
    write = staticmethod(lambda _text: None)


@pytest.fixture
def shop(lab, tmp_path, monkeypatch):
    return Shop(lab, tmp_path, monkeypatch)


def row(printed, name):
    """What a reader finds beside a word, over all its lines."""
    lines = printed.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"  {name} "))
    column = re.match(r"  \S+(?: \S+)* +", lines[start]).end()
    parts = [lines[start][column:]]
    for line in lines[start + 1 :]:
        if line[:column].strip():
            break
        parts.append(line[column:])
    return " ".join(" ".join(parts).split())


def test_what_is_bought_what_it_costs_and_who_is_asked(shop):
    done = shop.run("--campaign-id", "egfr-1", "--replicates", "2")
    assert done.exit_code == 0, done.output
    assert row(done.stderr, "designs").endswith("32 to 34 residues; 1 duplicate left out")
    assert row(done.stderr, "designs").startswith("2 of ")
    assert row(done.stderr, "assay").endswith(f"against {EGFR}, 2 replicates")
    assert row(done.stderr, "campaign") == "egfr-1"
    assert [flow for flow, _ in shop.started] == ["campaign"]
    assert row(shop.run().stderr, "due now") == "438.00 USD without VAT"
    assert row(done.stderr, "account").startswith("account without a name (simulated), http://127.0.0.1")
    assert row(done.stderr, "paid") == "by a person, at the page of the invoice"
    assert row(done.stderr, "asked") == "you, before anything is ordered. An order cannot be withdrawn."
    assert row(done.stderr, "warning").startswith("no control: nothing will show that the assay worked")


def test_a_wrong_target_and_a_used_campaign_id_start_nothing(shop):
    shop.plan("used")
    for wrong in (shop.run(target="EGFR"), shop.run("--campaign-id", "used", "--replicates", "5")):
        assert (wrong.exit_code, shop.started) == (2, [])
    goes_on = shop.run("--campaign-id", "used")
    assert "goes on: what it has ordered is found" in row(goes_on.stderr, "campaign")


def test_designs_that_the_archive_has_ordered_before_are_named(shop):
    earlier = shop.plan("earlier", ">only\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGG\n")
    ledger = CampaignSetup(shop.account).ledgers.open_order("earlier", earlier.order_keys[0])
    ledger.record(lambda _: Sending(attempt=1, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE))
    ledger.record(lambda _: Ordered(experiment_id="e"))
    told = row(shop.run().stderr, "bought again")
    assert told.startswith("1 of the 2 designs was ordered before")
    folder = shop.designs.parent / "files"
    folder.mkdir()
    (folder / "round.fasta").write_text(shop.designs.read_text())
    loop = ["loop", "egfr", str(folder), "--target", EGFR, "--budget-usd", "9000"]
    again = row(CliRunner().invoke(app, loop).stderr, "bought again")
    assert again.startswith("1 of 2 designs to be ordered, which earlier ordered before")
    assert again.endswith(PAID_AGAIN)
    estimate = ["estimate", str(shop.designs), "--target", EGFR]
    assert row(CliRunner().invoke(app, estimate).stdout, "bought again") == told


def test_a_finished_campaign_has_nothing_to_confirm(shop, monkeypatch):
    plan = shop.plan("done")
    ledger = CampaignSetup(shop.account).ledgers.open_order("done", plan.order_keys[0])
    ledger.record(lambda _: Sending(attempt=1, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE))
    ledger.record(lambda _: Ordered(experiment_id="e"))
    ledger.deliver("SIM-1")
    asked = shop.at_a_terminal(monkeypatch, answer=False)
    done = shop.run("--campaign-id", "done")
    assert (done.exit_code, asked) == (0, [])
    assert row(done.stderr, "due now") == "nothing more to order: 0.00 USD"
    assert "Nothing is ordered yet" not in done.stderr


PRICE = 438.0  # of the two designs at the lab, in USD


def test_a_yes_at_the_terminal_approves_exactly_the_price_that_is_shown(shop, monkeypatch):
    asked = shop.at_a_terminal(monkeypatch, answer=True)
    done = shop.run("--max-usd", "20000")
    assert done.exit_code == 0, done.output
    assert asked == ["Order this, 438.00 USD without VAT?"]
    ((_, parameters),) = shop.started
    assert parameters["spend_up_to_usd"] == PRICE
    assert parameters["options"].spending.requester == getpass.getuser()
    assert shop.tags == ["assay-approved:`y` at the terminal"]
    assert "Nothing is ordered yet" not in done.stderr


def test_a_no_at_the_terminal_starts_nothing(shop, monkeypatch):
    shop.at_a_terminal(monkeypatch, answer=False)
    assert (shop.run().exit_code, shop.started) == (1, [])


@pytest.mark.parametrize(("ends", "code"), [(typer.Abort, 130)])
def test_ctrl_c_at_the_question_says_that_nothing_was_ordered(shop, monkeypatch, capsys, ends, code):
    shop.at_a_terminal(monkeypatch, answer=True)

    def interrupt(*_, **__):
        raise ends

    monkeypatch.setattr(asking.typer, "confirm", interrupt)
    with pytest.raises(SystemExit) as ended:
        asking.require_consent("Order this?", nothing="ordered")
    assert ended.value.code == code
    assert shop.started == []


@pytest.mark.parametrize(
    ("options", "amount", "asks"),
    [
        (["--yes", "--max-usd", "5,000"], 5000, False),
        (["--max-usd", "438"], 438, False),
        (["--max-usd", "437.99"], 437.99, True),
        ([], None, True),
    ],
)
def test_without_a_terminal_the_amount_is_what_was_typed_and_else_the_run_asks(shop, options, amount, asks):
    done = shop.run(*options)
    assert done.exit_code == 0, done.output
    ((_, parameters),) = shop.started
    assert parameters["spend_up_to_usd"] == amount
    assert ("Nothing is ordered yet: the run asks with the price first" in done.stderr) is asks
    assert shop.tags == ([] if asks else ["assay-approved:--max-usd"]), "less than the price approves nothing"


def test_yes_without_an_amount_starts_nothing(shop):
    done = shop.run("--yes")
    assert (done.exit_code, shop.started) == (2, [])
    assert "--yes needs --max-usd" in done.stderr


@pytest.mark.parametrize("options", [[], ["--max-usd", "100"]])
def test_here_without_a_sufficient_amount_names_price_and_option_and_orders_nothing(
    shop, monkeypatch, options
):
    monkeypatch.setattr(running, "_run_here", lambda *_, **__: shop.started.append("here"))
    done = shop.run("--here", *options)
    assert (done.exit_code, shop.started) == (2, [])
    told = " ".join(done.stderr.split())
    assert "it costs 438.00 USD without VAT" in told
    assert "--max-usd 438.00 --yes" in told
    assert shop.run("--here", "--max-usd", "438", "--yes").exit_code == 0
    assert shop.started == ["here"]


def test_a_loop_shows_its_rounds_budget_and_target_before_it_starts(shop, tmp_path):
    folder = tmp_path / "rounds"
    folder.mkdir()
    options = ["--budget-usd", "50,000", "--designs-per-round", "24"]
    wrong = CliRunner().invoke(app, ["loop", "egfr", str(folder), *options, "--target", "EGFR"])
    assert (wrong.exit_code, shop.started) == (2, [])
    done = CliRunner().invoke(app, ["loop", "egfr", str(folder), *options, "--target", EGFR])
    assert done.exit_code == 0, done.output
    assert "(simulated), http://127.0.0.1" in row(done.stderr, "account")
    assert "at most 24 designs a round, at most 10 rounds" in row(done.stderr, "designs")
    assert row(done.stderr, "price") == "estimated before each round; 50,000.00 USD for all rounds"
    assert EGFR in row(done.stderr, "assay")
    ((flow, parameters),) = shop.started
    assert (flow, parameters["budget_usd"]) == ("design-build-test", 50_000)


def test_a_loop_without_a_budget_asks_before_each_round(shop, tmp_path):
    done = CliRunner().invoke(app, ["loop", "egfr", str(tmp_path), "--target", EGFR])
    assert row(done.stderr, "asked") == "a person, before each round"
    ((_, parameters),) = shop.started
    assert parameters["budget_usd"] is None
    for option, words in (
        ("--yes", "--yes needs --budget-usd"),
        ("--here", "--budget-usd what all rounds may cost"),
    ):
        done = CliRunner().invoke(app, ["loop", "egfr", str(tmp_path), "--target", EGFR, option])
        assert done.exit_code == 2
        assert words in " ".join(done.stderr.split())
    assert len(shop.started) == 1


def test_a_campaign_id_that_no_flow_takes_is_refused_in_words(shop):
    refused = shop.run("--campaign-id", "two words")
    assert (refused.exit_code, shop.started) == (2, [])
    assert "use at most 60 letters, digits and '._-', beginning with a letter or a digit" in refused.stderr
