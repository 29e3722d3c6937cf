"""Before `run` and `loop` order: what is bought, what it costs, who is asked, and what is refused, against a real lab."""

import re
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.books import Books
from prefect_assay.books.log import Ordered
from prefect_assay.cli.app import app
from prefect_assay.cli.campaigns import purchase
from prefect_assay.cli.campaigns import run as running
from prefect_assay.cli.loops import start as looping
from prefect_assay.models.options import ReadingOptions
from prefect_assay.tasks.collate import keep_plan

EGFR = "Human EGFR, extracellular domain"
UNPRICED = "Human insulin receptor, extracellular domain"
BLOCKS = ["--credentials", "c", "--policy", "p", "--archive", "a"]


class Shop:
    """`run` and `loop` with blocks of a lab; `started` are the names of what was started."""

    def __init__(self, lab, folder, monkeypatch):
        self.archive = LocalArchive(root=str(folder / "archive"))
        self.policy = SpendingPolicy(per_experiment_cents=500_000, per_campaign_cents=2_000_000)
        self.credentials = AssayCredentials(base_url=lab.base_url, token=lab.token)
        self.started = []
        self.designs = folder / "designs.fasta"
        self.designs.write_text(
            ">one\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGG\n>two\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGGWW\n"
            ">again\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGG\n"
        )
        monkeypatch.setenv("COLUMNS", "80")
        for module in (running, looping):
            monkeypatch.setattr(module, "require_api", lambda: None)
            monkeypatch.setattr(module, "load_blocks", lambda _: self.blocks())
            monkeypatch.setattr(module, "start_deployed", self.start)
            monkeypatch.setattr(module, "announce", lambda *_, **__: None)

    def blocks(self):
        return {"credentials": self.credentials, "policy": self.policy, "archive": self.archive}

    def start(self, flow, _parameters, **_):
        self.started.append(flow)
        return SimpleNamespace(id="id", name="name")

    def run(self, *options, target=EGFR):
        done = CliRunner().invoke(app, ["run", str(self.designs), *BLOCKS, "--target", target, *options])
        assert max(map(len, done.stderr.splitlines()), default=0) <= 80 or done.exit_code
        return done

    def at_a_terminal(self, monkeypatch, answer):
        asked = []
        terminal = SimpleNamespace(isatty=lambda: True)
        plain = SimpleNamespace(print=lambda _: None)
        monkeypatch.setattr(purchase, "sys", SimpleNamespace(stdin=terminal, stderr=terminal))
        monkeypatch.setattr(purchase, "plain", lambda **_: plain)
        monkeypatch.setattr(purchase.typer, "confirm", lambda text, **_: asked.append(text) or answer)
        return asked


@pytest.fixture
def shop(lab, tmp_path, monkeypatch):
    return Shop(lab, tmp_path, monkeypatch)


def row(printed, name):
    """What a reader finds beside a word, over all its lines."""
    lines = printed.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"  {name} "))
    column = re.match(r"  \S+(?: \S+)* +", lines[start]).end()
    found = [lines[start][column:]]
    for line in lines[start + 1 :]:
        if line[:column].strip():
            break
        found.append(line[column:])
    return " ".join(" ".join(found).split())


def test_what_is_bought(shop):
    done = shop.run("--campaign-id", "egfr-1", "--replicates", "2")
    assert done.exit_code == 0, done.output
    assert row(done.stderr, "designs").endswith("32 to 34 residues; 1 duplicate left out")
    assert row(done.stderr, "designs").startswith("2 of ")
    assert row(done.stderr, "assay").endswith(f"against {EGFR}, 2 replicates")
    assert row(done.stderr, "campaign") == "egfr-1"
    assert shop.started == ["campaign"]


def test_what_it_costs_and_who_pays(shop):
    done = shop.run()
    assert re.fullmatch(r"1 experiment, [\d,.]+ USD without VAT", row(done.stderr, "price"))
    assert row(done.stderr, "caps") == "5,000.00 USD per experiment, 20,000.00 USD per campaign"
    assert row(done.stderr, "paid") == "by a person, at the page of the invoice"
    assert row(done.stderr, "asked").startswith("nobody: it is within the caps, and ordered at once")


def test_who_is_asked_over_a_cap_and_about_a_quote(shop):
    shop.policy = SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1, accept_quotes=False)
    assert row(shop.run().stderr, "asked").startswith("a person, because it is over a cap")
    quoted = shop.run(target=UNPRICED)
    assert row(quoted.stderr, "asked") == "a person, about each quote, before it is accepted"
    assert row(quoted.stderr, "price") == "1 experiment, by quote"
    assert row(quoted.stderr, "assay").startswith("affinity by BLI against")


def test_a_wrong_target_and_a_used_campaign_id_start_nothing(shop):
    wrong = shop.run(target="EGFR")
    assert wrong.exit_code == 2
    assert "did you mean" in wrong.stderr
    found = purchase.look_up(
        running.read_file(str(shop.designs), ReadingOptions()),
        running.assay_of("affinity", EGFR, None, None),
        ReadingOptions(),
        campaign_id="used",
        per_experiment=96,
        credentials=shop.credentials,
        archive=shop.archive,
    )
    keep_plan.fn(shop.archive, found.plan)
    goes_on = shop.run("--campaign-id", "used")
    assert "goes on: what it has ordered is found" in row(goes_on.stderr, "campaign")
    started = len(shop.started)
    other = shop.run("--campaign-id", "used", "--replicates", "5")
    assert (other.exit_code, len(shop.started)) == (2, started)
    assert "campaign_id: used has been used for other designs or another assay" in other.stderr


def test_designs_that_the_archive_has_ordered_before_are_named(shop):
    assay = running.assay_of("affinity", EGFR, None, None)
    one = running.read_file(">only\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGG\n", ReadingOptions())
    earlier = purchase.look_up(
        one,
        assay,
        ReadingOptions(),
        campaign_id="earlier",
        per_experiment=96,
        credentials=shop.credentials,
        archive=shop.archive,
    )
    keep_plan.fn(shop.archive, earlier.plan)
    assert "measured before" not in shop.run().stderr, "it was planned, and not ordered"
    books = Books(shop.archive.get_store(), shop.archive.prefix, "org")
    books.order("earlier", earlier.plan.order_keys[0]).record(lambda _: Ordered(experiment_id="e"))
    told = row(shop.run().stderr, "measured before")
    assert told == "1 of them are ordered already for this assay, in earlier: one"
    assert "measured before" not in shop.run(target=UNPRICED).stderr, "another target is another assay"


@pytest.mark.parametrize(
    ("yes", "answer", "ends"), [(False, True, False), (False, False, True), (True, None, False)]
)
def test_at_a_terminal_a_person_is_asked_once(shop, monkeypatch, yes, answer, ends):
    asked = shop.at_a_terminal(monkeypatch, answer)
    if ends:
        with pytest.raises(SystemExit, match="1"):
            purchase.confirm("Order this?", yes=yes)
    else:
        purchase.confirm("Order this?", yes=yes)
    assert asked == ([] if yes else ["Order this?"])


def test_a_loop_shows_its_rounds_budget_and_target_before_it_starts(shop, tmp_path):
    folder = tmp_path / "rounds"
    folder.mkdir()
    options = [*BLOCKS, "--budget-cents", "5000000", "--designs", "24"]
    wrong = CliRunner().invoke(app, ["loop", "egfr", str(folder), *options, "--target", "EGFR"])
    assert (wrong.exit_code, shop.started) == (2, [])
    done = CliRunner().invoke(app, ["loop", "egfr", str(folder), *options, "--target", EGFR])
    assert done.exit_code == 0, done.output
    assert "at most 24 designs a round, at most 10 rounds" in row(done.stderr, "designs")
    assert row(done.stderr, "price") == "estimated before each round; 50,000.00 USD for all rounds"
    assert EGFR in row(done.stderr, "assay")
    assert shop.started == ["design-build-test"]


def test_a_campaign_id_that_no_flow_takes_is_refused_in_words(shop):
    refused = shop.run("--campaign-id", "two words")
    assert (refused.exit_code, shop.started) == (2, [])
    assert "use at most 60 letters, digits and '._-', beginning with a letter or a digit" in refused.stderr
