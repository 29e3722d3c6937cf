"""What a loop knows of its earlier rounds: what was measured, and what was ordered and has no results."""

from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from prefect_assay.analysis.results import Outcome, to_csv
from prefect_assay.analysis.results.repeats import get_residues
from prefect_assay.analysis.selection import make_history, read_history, select_designs
from prefect_assay.archive import Document, archive_version
from prefect_assay.archive.layout import TABLE_CODE, TABLE_PATH
from prefect_assay.blocks import LocalArchive
from prefect_assay.campaigns.loops import choosing, proposals
from prefect_assay.campaigns.loops.history import loop_history, with_newest_tables
from prefect_assay.campaigns.loops.loop_log import LoopLog, PoolFile, RoundEnded, RoundFixed
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.options import LoopOptions, ReadingOptions
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.selection import Fate, SelectionSettings
from prefect_assay.errors import DesignerFailed
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.log import (
    Ordered,
    Refused,
    Sending,
    Withdrawn,
)
from prefect_assay.service.models.sequences import ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay
from prefect_assay.tasks.collate import read_campaign_table, save_plan
from prefect_assay.tasks.read import plan_campaign
from support.archive.campaigns import row

DESIGNS = {"a0": "ACDE", "a1": "ACDF", "b0": "ACDG", "b1": "ACDH"}
SENDING = Sending(attempt=1, route="quoted", rail="async_invoice")
ORDERED = Ordered(experiment_id="e-2")


class Campaign:
    """A round of two experiments of two designs each; the first one was ordered."""

    def __init__(self, folder):
        self.archive = LocalArchive(root=str(folder))
        self.store = self.archive.get_store()
        items = tuple(ProteinSequence(name, text, attributes={"m": name}) for name, text in DESIGNS.items())
        self.plan = plan_campaign.fn(
            Sequences(source="x", items=items),
            Assay(experiment_type="expression"),
            None,
            campaign_id="loop-1",
            per_experiment=2,
        )
        save_plan.fn(self.archive, self.plan)
        self.ledgers = Ledgers(self.store, "", "org-1")
        self.log(0, SENDING, Ordered(experiment_id="e-1"))
        loop_log = LoopLog(self.store, "", "loop")
        pool = loop_log.save_candidates([Candidate(name=n, sequence=s) for n, s in DESIGNS.items()], "f")
        loop_log.fix(
            RoundFixed(loop_id="loop", number=1, name="1", campaign_id="loop-1", origin="f", pool=pool)
        )
        self.rounds = loop_log.read().rounds

    def log(self, batch, *records):
        """The records of one order."""
        loop_log = self.ledgers.open_order("loop-1", self.plan.order_keys[batch])
        for record in records:
            loop_log.record(lambda _, record=record: record)

    def table(self, *names, results_status="all", **fields):
        """The campaign's table with a value for these designs, without their residues unless given."""
        values = {"concentration_nM": 5.0, "result_type": "expression", **fields}
        body = to_csv([row(name, "E-1", **values) for name in names])
        archive_version(
            self.store,
            "",
            campaign_id="loop-1",
            experiment_id="loop-1",
            experiment_code=TABLE_CODE,
            results_status=results_status,
            documents=[Document(path=TABLE_PATH, content_type="text/csv", body=body)],
            now=datetime.now(UTC),
        )

    def history(self):
        return loop_history(
            self.archive,
            self.rounds,
            lambda campaign, key: self.ledgers.open_order(campaign, key).read().placed,
        )


@pytest.fixture
def campaign(tmp_path):
    return Campaign(tmp_path)


def fates(designs):
    pool = pool_of([Candidate(name=name, sequence=text) for name, text in DESIGNS.items()])
    settings = SelectionSettings(policy="random", objective="expression")
    selection = select_designs(pool, make_history(designs), 4, settings)
    return {name: selection.fate(index) for index, name in enumerate(DESIGNS)}


def test_what_was_ordered_and_has_no_results_is_not_bought_again(campaign):
    campaign.table("a0", "a1")
    campaign.log(1, SENDING, ORDERED)
    designs = {design.name: design for design in campaign.history()}
    assert set(map(get_residues, designs.values())) == set(DESIGNS.values())
    assert set(fates(designs.values()).values()) == {Fate.MEASURED}
    assert (designs["b0"].outcome, designs["b0"].result_type) == (Outcome.PENDING, "expression")
    assert designs["b0"].attributes == {"m": "b0", "round": "1"}


def test_a_design_is_known_by_what_was_ordered_and_not_by_what_the_result_says(campaign):
    """A service may name the construct with its tag; such a design would be ordered again in the next round."""
    campaign.table("a0", "a1", aa_string="MKTHHHHHH")
    sequences = {design.name: design.aa_string for design in campaign.history()}
    assert sequences == {name: DESIGNS[name] for name in ("a0", "a1")}


@pytest.mark.parametrize(
    "records",
    [
        (),
        (SENDING, Refused(attempt=1, reason="no such target")),
        (SENDING, ORDERED, Withdrawn(reason="the quote was rejected")),
    ],
)
def test_what_was_not_ordered_in_the_end_is_offered_again(campaign, records):
    campaign.table("a0", "a1")
    campaign.log(1, *records)
    designs = campaign.history()
    assert {design.name for design in designs} == {"a0", "a1"}
    assert [name for name, fate in fates(designs).items() if fate is Fate.CHOSEN] == ["b0", "b1"]


def test_an_order_whose_answer_was_lost_may_be_one(campaign):
    campaign.table("a0", "a1")
    campaign.log(1, SENDING)
    assert {design.name for design in campaign.history()} == set(DESIGNS)


def test_a_round_without_any_table_counts_with_what_it_ordered(campaign):
    assert {(design.name, design.outcome) for design in campaign.history()} == {
        ("a0", Outcome.PENDING),
        ("a1", Outcome.PENDING),
    }


@pytest.mark.parametrize(
    ("assay", "objective", "used"),
    [
        ("thermostability", "affinity", "melting"),
        ("screening", "melting", "affinity"),
        ("affinity", "expression", "expression"),
        ("fluorescence", "affinity", "affinity"),
    ],
)
def test_a_loop_selects_by_what_its_assay_measures(campaign, monkeypatch, assay, objective, used):
    loop = SimpleNamespace(
        loop_id="loop",
        designer="design/gpu",
        loop_log=LoopLog(campaign.store, "", "loop"),
        archive=campaign.archive,
        placed=lambda *_: True,
        n=1,
        reading=ReadingOptions(),
        assay=Assay(experiment_type=assay, target="t" if assay in {"affinity", "screening"} else None),
        options=LoopOptions(selection=SelectionSettings(policy="random", objective=objective)),
    )
    seen = []

    def select(designs, history, n, settings, **options):
        seen.append(settings.objective)
        return select_designs(designs, history, n, settings, **options)

    monkeypatch.setattr(choosing, "select_designs", select)
    designs = pool_of([Candidate(name="c", sequence="ACDEF")])
    file = PoolFile(name="c.csv", key="c.csv", sha256="", size=1, designs=1)
    choosing.choose_round(loop, 2, file, designs, None)
    assert seen == [used]


def test_a_deployed_designer_gets_what_has_come_since_its_last_trial(campaign, monkeypatch):
    """Results may come between a trial and its Retry, and after the round has ended."""
    loop_log = LoopLog(campaign.store, "", "loop")
    loop = SimpleNamespace(
        loop_id="loop",
        source=None,
        designer="design/gpu",
        loop_log=loop_log,
        archive=campaign.archive,
        placed=lambda *_: True,
        n=2,
    )
    offers = []

    def run_designer(_loop, _number, offered, **_):
        offers.append(offered)
        raise DesignerFailed("no GPU")

    monkeypatch.setattr(proposals, "run_designer", run_designer)
    for names in (("a0",), ("a0", "a1")):
        campaign.table(*names)
        if not offers:
            first = read_campaign_table(campaign.archive, "loop-1").location
            loop_log.end(RoundEnded(number=1, table=first, rows=1))
        with pytest.raises(DesignerFailed):
            proposals.next_round(loop, 2, None, since=datetime.now(UTC))
    counts = [
        Counter(design.outcome for design in read_history(offered["history"]).designs) for offered in offers
    ]
    assert counts == [{"measured": 1, "pending": 3}, {"measured": 2, "pending": 2}]
    assert ["v001" in offered["measurements"] for offered in offers] == [True, False]
    assert offers[1]["measurements"] == read_campaign_table(campaign.archive, "loop-1").location


@pytest.mark.parametrize(
    ("status", "names", "problem"),
    [
        ("all", DESIGNS, None),
        ("all", ("a0", "a1"), "Overdue"),  # the other experiment came to nothing
        ("partial", DESIGNS, "Overdue"),
    ],
)
def test_a_round_has_no_problem_any_more_once_all_of_its_results_are_released(
    campaign, status, names, problem
):
    campaign.table("a0", results_status="partial")
    loop_log = LoopLog(campaign.store, "", "loop")
    first = read_campaign_table(campaign.archive, "loop-1").location
    loop_log.end(RoundEnded(number=1, table=first, rows=1, problem="Overdue"))
    (before,) = with_newest_tables(campaign.archive, loop_log.read().rounds, None)
    assert (before.problem, before.ended.table) == ("Overdue", first)
    campaign.table(*names, results_status=status)
    (after,) = with_newest_tables(campaign.archive, loop_log.read().rounds, None)
    assert (after.problem, after.ended.rows) == (problem, len(names))
