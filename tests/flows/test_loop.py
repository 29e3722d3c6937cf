"""Loops without Prefect: rounds from functions and files until a rule stops them, and repeats of the same loop.

The functions of `campaigns.play` are stand-ins that measure at once; loops with real campaigns are in tests/stories.
"""
# ruff: noqa: A002 - the names of the designers' contract

import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound, Pause
from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_EPHEMERAL_ENABLED, temporary_settings
from prefect.states import Completed, Running, Suspended

from prefect_assay.analysis.results import ResultRow, to_csv
from prefect_assay.analysis.tables.candidates import read_proposals
from prefect_assay.archive import Document, archive_version
from prefect_assay.archive.layout import TABLE_CODE, TABLE_PATH
from prefect_assay.blocks import LocalArchive
from prefect_assay.campaigns import plan as plan_module
from prefect_assay.campaigns import starts
from prefect_assay.campaigns.loops import choosing, deployed, proposals
from prefect_assay.campaigns.loops import loop as loop_files
from prefect_assay.campaigns.loops import play as loop_module
from prefect_assay.campaigns.loops.loop_log import LoopLog
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.campaigns.suspension import RunContinues
from prefect_assay.designs.options import CampaignOptions, LoopOptions
from prefect_assay.designs.read import read_sequences
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.errors import (
    ApprovalExpired,
    ApprovalRejected,
    ArchiveUnavailable,
    CampaignFailed,
    ConfigurationError,
    DecisionNeeded,
    DesignerFailed,
    InputError,
    InvalidSequences,
    InvalidSpec,
    LoopFailed,
    Unauthorized,
)
from prefect_assay.flows import design_build_test
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    Started,
    StartedKind,
    list_open,
)
from prefect_assay.service.models.spec import Assay
from prefect_assay.tasks.collate import read_campaign_table, save_plan
from prefect_assay.tasks.read import plan_campaign
from support.accounts import flow_parameters, make_account
from support.archive.campaign_records import some_terms

flow_module = sys.modules["prefect_assay.flows.design_build_test"]
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
PRICE = 1000
TARGET = SimpleNamespace(id="0" * 8 + "-0000-0000-0000-" + "0" * 12, name="t", sequence=None)
HUMAN = SimpleNamespace(id="1" * 8 + "-0000-0000-0000-" + "0" * 12, name="human", sequence=None)
CATALOG = {"t": TARGET, "T-1": TARGET, "human": HUMAN}


class Laboratory:
    """Campaigns that end at once: K_D follows from the sequence, and each design costs the same."""

    def __init__(self, archive):
        self.archive = archive
        self.spent = {}
        self.measured = []
        self.priced = []  # campaigns, and what each may cost without asking
        self.broken = set()
        self.during = {}  # what happens while a campaign is played, by its id

    def begin(self, setup, plan, *, unasked_cents, asked_by, loop_id):
        assert loop_id == "loop"
        log = setup.log(plan.campaign_id)
        if not log.read().is_open:
            terms = setup.terms(unasked_cents)
            log.start(Started(what=StartedKind.CAMPAIGN, name=plan.campaign_id, terms=terms))
        return SimpleNamespace(setup=setup.under(log.read().terms), plan=plan, log=log)

    def approve(self, campaign):
        self.priced.append((campaign.plan.campaign_id, campaign.setup.unasked_cents))

    def play(self, campaign):
        plan = campaign.plan
        self.during.get(plan.campaign_id, lambda: None)()
        if plan.campaign_id in self.broken:
            raise CampaignFailed("canceled by the laboratory")
        designs = [value | {"name": name} for name, value in sequences_of(plan).items()]
        self.measured.append((plan.campaign_id, [design["name"] for design in designs]))
        self.spent[plan.campaign_id] = PRICE * len(designs)
        rows = [
            ResultRow(
                experiment_code=f"X-{plan.campaign_id}".upper(),
                result_id=f"r-{design['name']}",
                result_type="affinity",
                level="summary",
                name=design["name"],
                outcome="no_expression" if design["aa_string"].startswith("W") else "measured",
                kd_M=None if design["aa_string"].startswith("W") else 1e-6 / len(design["aa_string"]),
                aa_string=design["aa_string"],
            )
            for design in designs
        ]
        self.archive_table(plan.campaign_id, rows)
        campaign.log.finish("measured", complete=True)
        return SimpleNamespace(problems=())

    def archive_table(self, campaign_id, rows):
        archive_version(
            self.archive.get_store(),
            self.archive.prefix,
            campaign_id=campaign_id,
            experiment_id=campaign_id,
            experiment_code=TABLE_CODE,
            results_status="all",
            now=datetime.now(UTC),
            documents=[Document(path=TABLE_PATH, content_type="text/csv", body=to_csv(rows))],
        )

    def campaign_cents(self, campaign_id):
        return self.spent.get(campaign_id, 0)


def sequences_of(plan):
    return {name: {"aa_string": value.aa_string} for name, value in plan.sequences.items()}


class Ledgers:
    """What a loop asks of the ledgers; its orders are placed once their campaign is measured."""

    organisation, organisation_name, is_simulated, archive_id = "org", None, True, "archive-1"

    def __init__(self, laboratory):
        self.laboratory = laboratory
        self.budget = SimpleNamespace(read=lambda: laboratory)

    def open_order(self, campaign_id, _key):
        placed = campaign_id in self.laboratory.spent
        return SimpleNamespace(read=lambda: SimpleNamespace(placed=placed))


def longer(history, n, budget_cents, round):
    """Each round's designs are one residue longer than the best so far, and so bind better."""
    best = max((len(design.aa_string) for design in history), default=10)
    return [
        {"name": f"r{round}-{i}", "sequence": "A" * best + LETTERS[i], "parents": "p; q", "score": 0.5}
        for i in range(n + 2)
    ]


def flat(history, n, budget_cents, round):
    return [{"name": f"f{round}-{i}", "sequence": "A" * 10 + LETTERS[i] + LETTERS[round]} for i in range(n)]


def several(history, n, budget_cents, round):
    return [{"name": f"s{i}", "sequence": f"MKTAYIAK{LETTERS[i % 20] * (1 + i // 20)}"} for i in range(n)]


def controlled(history, n, budget_cents, round):
    return [entry | {"control": index < 4} for index, entry in enumerate(several(history, n, None, round))]


def same(history, n, budget_cents, round):
    return [{"name": f"s{round}", "sequence": "ACDEFGHIKL"}]


def with_control(history, n, budget_cents, round):
    return [
        {"name": "reference", "sequence": "ACDEFGHIKL", "control": True},
        {"name": f"d{round}", "sequence": "ACDEFGHIKW"},
    ]


def hopeless(history, n, budget_cents, round):
    return [{"name": f"h{round}", "sequence": "W" * 10 + LETTERS[round]}]


def silent(history, n, budget_cents, round):
    return []


def wrong(history, n, budget_cents, round):
    return [{"name": "a", "sequence": "ACDJ"}]


def broken(history, n, budget_cents, round):
    raise RuntimeError("no GPU")


@pytest.fixture(autouse=True)
def no_server():
    with temporary_settings({PREFECT_SERVER_EPHEMERAL_ENABLED: False, PREFECT_API_URL: None}):
        yield


class Prefect:
    """The server, with the runs that a test puts there. A deployed run that suspends ends with `Pause`."""

    def __init__(self):
        self.runs = {}
        self.resumed = []
        self.waits = []

    @contextmanager
    def __call__(self, **_):
        yield self

    def start(self, parameters=None):
        run = FlowRun(
            flow_id=uuid4(),
            name=f"run-{len(self.runs)}",
            deployment_id=uuid4(),
            state=Running(),
            parameters=parameters or {},
        )
        self.runs[run.id] = run
        return run

    def read_flow_run(self, run_id):
        if run_id not in self.runs:
            raise ObjectNotFound(LookupError(run_id))
        return self.runs[run_id]

    def read_deployment(self, _deployment_id):
        return SimpleNamespace(name="assay-design-build-test", flow_id=uuid4())

    def read_flow(self, _flow_id):
        return SimpleNamespace(name="design-build-test")

    def resume(self, _client, run_id):
        self.resumed.append(run_id)

    def suspend(self, message, *, look, has_news):
        self.waits.append((message, look, has_news))
        raise Pause(state=Suspended())


@pytest.fixture
def prefect(monkeypatch):
    made = Prefect()
    monkeypatch.setattr(loop_module, "get_client", made)
    monkeypatch.setattr(loop_module, "resume_run", made.resume)
    for module in (loop_module, starts):
        monkeypatch.setattr(module, "suspend_until_news", made.suspend)
        monkeypatch.setattr(module, "failures_before", lambda: 0)
    monkeypatch.setattr(starts, "get_client", made)
    monkeypatch.setattr(starts, "home_id", lambda _: "home-1")
    monkeypatch.setattr(loop_module, "add_tags", lambda *_: None)
    monkeypatch.setattr(loop_module, "name_run", lambda *_: None)
    monkeypatch.setattr(loop_module, "stop_with_run", lambda log, _run_id: log.read().stopped)
    return made


@pytest.fixture
def loop(tmp_path, monkeypatch, prefect):
    archive = LocalArchive(root=str(tmp_path / "archive"))
    laboratory = Laboratory(archive)
    monkeypatch.setattr(CampaignSetup, "ledgers", Ledgers(laboratory))
    for name in ("begin_campaign", "approve_price", "play_orders"):
        monkeypatch.setattr(
            loop_module,
            name,
            lambda *_, name=name, **options: getattr(laboratory, STEPS[name])(*_, **options),
        )
    monkeypatch.setitem(sys.modules, "loop_designers", sys.modules[__name__])
    for module in (flow_module, loop_module, plan_module):
        monkeypatch.setattr(module, "get_run_logger", logging.getLogger)
    monkeypatch.setattr(loop_module.artifacts, "show_loop", lambda *_: None)
    monkeypatch.setattr(plan_module, "plan_campaign", plan_module.plan_campaign.fn)
    monkeypatch.setattr(plan_module, "save_plan", save_plan.fn)
    monkeypatch.setattr(plan_module, "check_access", lambda _: None)
    monkeypatch.setattr(plan_module, "resolve_target", lambda _, assay: CATALOG[assay.target])
    monkeypatch.setattr(proposals, "propose_designs", proposals.propose_designs.fn)
    monkeypatch.setattr(choosing, "resolve_target", lambda *_: None)
    monkeypatch.setattr(
        choosing, "estimate_cost", lambda _, spec: SimpleNamespace(total_cents=PRICE * len(spec.sequences))
    )

    def run(flow_run=None, *, whole_state=False, **changes):
        """Play the loop in this process, or in a deployed run; returns its report, or the final state."""
        defaults = {
            "loop_id": "loop",
            "assay": Assay(target="t"),
            "account": make_account(archive=archive, policy={"per_campaign_usd": 10**4}),
            "designs_per_round": 3,
            "settle_seconds": 0,
            "poll_seconds": 0.05,
        }
        ended = True
        for module in (loop_module, starts):
            monkeypatch.setattr(module, "can_suspend", lambda: flow_run is not None)
            monkeypatch.setattr(module, "this_run", lambda: flow_run)
        try:
            state = design_build_test.fn(**typed(defaults | changes))
            return state if whole_state else state.result()
        except (Pause, Killed):
            ended = False
            raise
        finally:
            if flow_run is not None and ended:
                flow_run.state = Completed()

    reported = []
    monkeypatch.setattr(
        loop_module.facts,
        "round_completed",
        lambda loop_id, line, *, news: reported.append((line, news)),
    )
    run.reported = reported
    run.laboratory = laboratory
    run.prefect = prefect
    run.loop_log = lambda: LoopLog(archive.get_store(), archive.prefix, "loop")
    run.log = lambda: CampaignLog(archive.get_store(), archive.prefix, "loop", StartedKind.LOOP)
    run.campaign_log = lambda name: CampaignLog(archive.get_store(), archive.prefix, name)
    run.open_logs = lambda: [(log.what, log.name) for log in list_open(archive.get_store(), archive.prefix)]
    return run


def typed(flat):
    """The parameters of the flow, as Prefect hands them over."""
    parameters = flow_parameters(flat)
    models = {"rounds": LoopOptions, "options": CampaignOptions}
    return parameters | {
        name: kind(**parameters[name]) for name, kind in models.items() if name in parameters
    }


STEPS = {"begin_campaign": "begin", "approve_price": "approve", "play_orders": "play"}


def test_rounds_go_on_until_there_have_been_enough(loop):
    report = loop(designer="loop_designers:longer", max_rounds=3)
    assert [r.campaign_id for r in report.rounds] == [f"loop-round-00{n}" for n in (1, 2, 3)]
    assert report.stop_reason == "rounds"
    assert [r.designs for r in report.rounds] == [3, 3, 3]
    assert report.spent_cents == 9 * PRICE
    assert report.best == "K_D 76.9 nM"
    assert [len(names) for _, names in loop.laboratory.measured] == [3, 3, 3]


def test_a_round_never_takes_another_campaign_that_has_its_id(loop):
    """Such as a campaign that somebody has started under the name of a round, with designs of its own."""
    name = "loop-round-001"
    log = loop.campaign_log(name)
    log.start(Started(what=StartedKind.CAMPAIGN, name=name, terms=some_terms()))
    log.finish("measured", complete=True)
    loop.laboratory.archive_table(name, [])
    designs = read_sequences("designs", text=">other\nACDEFGHIKL\n")
    plan = plan_campaign.fn(designs, Assay(target="t"), TARGET, campaign_id=name, per_experiment=4)
    save_plan.fn(loop.laboratory.archive, plan)
    with pytest.raises(LoopFailed, match="has been used for other designs"):
        loop(designer="loop_designers:longer", max_rounds=1)
    assert loop.laboratory.measured == []


def test_the_same_loop_again_measures_nothing_again(loop):
    first = loop(designer="loop_designers:longer", max_rounds=2)
    assert loop(designer="loop_designers:longer", max_rounds=2).rounds == first.rounds
    further = loop(designer="loop_designers:longer", max_rounds=3)
    assert further.rounds[:2] == first.rounds
    assert len(loop.laboratory.measured) == 3


def test_what_a_round_measures_is_in_the_log_with_all_that_was_proposed(loop):
    loop(designer="loop_designers:longer", max_rounds=1)
    loop_log = loop.loop_log()
    (entry,) = loop_log.read().rounds
    assert [choice.rank for choice in entry.fixed.choices] == [1, 2, 3]
    assert entry.fixed.choices[0].candidate.parents == ("p", "q")
    assert entry.fixed.choices[0].candidate.columns == {"score": "0.5"}
    assert "first 3 of 5" in entry.fixed.choices[0].reason
    assert [c.name for c in loop_log.read_candidates(entry.fixed.pool)] == [f"r1-{i}" for i in range(5)]
    kept = read_proposals(loop_log.store, "", loop_log.loop_id)
    assert [(line.fate, line.candidates) for line in kept] == [("chosen", 3), ("not_reached", 2)]


def test_a_goal_ends_the_loop(loop):
    report = loop(designer="loop_designers:longer", max_rounds=9, goal_kd_nM=80)
    assert report.stop_reason == "goal"
    assert len(report.rounds) == 3
    assert "round-003 reached the goal of 80.0 nM" in report.stop_message


def test_a_goal_that_only_preliminary_results_reached_stops_no_later_run(loop):
    """The round of an overdue campaign ends with preliminary results, and the released ones are archived later."""
    first = loop(designer="loop_designers:longer", max_rounds=9, goal_kd_nM=80)
    assert (first.stop_reason, first.best) == ("goal", "K_D 76.9 nM")
    table = read_campaign_table(loop.laboratory.archive, "loop-round-003")
    released = [row.model_copy(update={"kd_M": 3e-5}) for row in table.rows]
    loop.laboratory.archive_table("loop-round-003", released)
    again = loop(designer="loop_designers:longer", max_rounds=4, goal_kd_nM=80)
    assert [line.best for line in again.rounds[2:]] == ["K_D 30.0 µM", "K_D 71.4 nM"]
    assert "/TABLE/v002/" in again.rounds[2].table
    assert "round-004 reached the goal" in again.stop_message


def test_the_end_of_a_loop_reads_no_table_again(loop, monkeypatch):
    read = []

    def newest(*arguments):
        read.append(arguments)
        assert len(read) <= 2, "an archive that is away now must not fail a loop that has reached its goal"
        return arguments[1]

    monkeypatch.setattr(loop_module, "with_newest_tables", newest)
    assert loop(designer="loop_designers:longer", max_rounds=1).stop_reason == "rounds"


def test_a_loop_that_a_person_ended_outlasts_an_archive_that_is_away(loop, monkeypatch):
    away = iter([True, False, True])  # the second look is the report's

    def newest(_archive, rounds, _objective):
        if not next(away, False):
            return rounds
        raise ArchiveUnavailable("503")

    def reject(*_, **__):
        raise ApprovalRejected("a person ended the loop")

    loop.laboratory.approve = reject
    monkeypatch.setattr(loop_module, "with_newest_tables", newest)
    report = loop(designer="loop_designers:longer")
    assert (report.stop_reason, len(report.rounds)) == ("person", 1)
    assert next(away, None) is None
    assert loop.log().read().over.complete is False


def test_rounds_without_an_improvement_end_the_loop(loop):
    report = loop(designer="loop_designers:flat", max_rounds=9, stop_after_flat_rounds=2)
    assert (report.stop_reason, len(report.rounds)) == ("no_improvement", 3)


def test_the_budget_bounds_designs_and_rounds(loop):
    report = loop(designer="loop_designers:longer", max_rounds=9, budget_usd=(5 * PRICE + 1) / 100)
    assert [r.designs for r in report.rounds] == [3, 2]
    assert (report.stop_reason, report.spent_cents) == ("budget", 5 * PRICE)
    second = loop.loop_log().read().rounds[1].fixed
    assert "the budget allows no more" in second.choices[0].reason
    assert second.limit_cents == 2 * PRICE + 1


@pytest.mark.parametrize(
    ("designs", "affordable", "chosen"),
    [(8, 6, 4), (28, 15, 12), (24, 24, 24), (6, 24, 4), (8, 3, None)],
)
def test_a_budget_reduces_a_round_to_a_number_that_the_assay_takes(loop, designs, affordable, chosen):
    """Epitope binning takes multiples of four."""
    report = loop(
        designer="loop_designers:several",
        assay=Assay(experiment_type="epitope_binning", target="t"),
        designs_per_round=designs,
        max_rounds=1,
        budget_usd=affordable * PRICE / 100,
    )
    if chosen is None:
        assert report.stop_reason == "budget"
        assert report.stop_message.startswith("4 designs of round 1 would cost 40.00 USD")
    else:
        assert [line.designs for line in report.rounds] == [chosen]


BINNING = Assay(experiment_type="epitope_binning", target="t")


@pytest.mark.parametrize("selects", [False, True])
def test_a_round_has_a_number_of_designs_that_the_assay_takes(loop, selects):
    """Also without a budget, and where a selection leaves fewer than were asked for."""
    changes = {"designer": "loop_designers:longer", "assay": BINNING, "max_rounds": 1}
    if selects:
        changes["selection"] = SelectionSettings(policy="random", seed=3, max_per_parent=6)
    assert [line.designs for line in loop(**changes, designs_per_round=10 if selects else 6).rounds] == [4]


def test_a_number_of_designs_that_the_assay_never_takes_is_refused_before_its_round_is_fixed(loop, folder):
    for designer, count, words in (
        ("several", 3, "3 designs cannot"),
        ("controlled", 7, "3 designs with 4 controls"),
    ):
        with pytest.raises(InvalidSequences, match=f"multiples of 4; {words}"):
            loop(designer=f"loop_designers:{designer}", assay=BINNING, designs_per_round=count)
    write(folder, "a.fasta", *(f"ACDEF{letter}" for letter in LETTERS[:6]))
    write(folder, "c.fasta", *(f"ACDEG{letter}" for letter in LETTERS[:4]))
    refused, measured = loop(source=str(folder), assay=BINNING, designs_per_round=None).rounds
    assert "6 designs cannot be divided so" in refused.problem
    assert (measured.name, measured.designs) == ("c", 4)
    assert [entry.fixed.name for entry in loop.loop_log().read().rounds] == ["c"]


def test_a_selection_chooses_and_explains(loop):
    settings = SelectionSettings(
        policy="top_score", score_column="score", higher_is_better=True, seed=3, max_per_parent=2
    )
    report = loop(designer="loop_designers:longer", max_rounds=2, selection=settings)
    assert [r.designs for r in report.rounds] == [2, 2]
    for entry in loop.loop_log().read().rounds:
        fixed = entry.fixed
        assert (fixed.policy, fixed.seed) == ("top_score", 3)
        assert fixed.counts == {"chosen": 2, "parent_limit": 3}
        assert all("score" in choice.reason for choice in fixed.choices)
    kept = read_proposals(loop.loop_log().store, "", loop.loop_log().loop_id)
    assert [(line.round_number, line.fate, line.candidates) for line in kept] == [
        (1, "chosen", 2),
        (1, "parent_limit", 3),
        (2, "chosen", 2),
        (2, "parent_limit", 3),
    ]


def test_a_score_of_unknown_direction_is_refused_before_anything_is_proposed(loop):
    with pytest.raises(
        ConfigurationError, match=r"'magic' does not say .* --lower-is-better .* nothing was ordered"
    ):
        loop(
            designer="loop_designers:longer",
            selection=SelectionSettings(policy="top_score", score_column="magic"),
        )
    assert not loop.loop_log().read().rounds


@pytest.mark.parametrize("designer", [None, "loop_designers:flat"])
def test_a_file_of_which_the_selection_leaves_nothing_hides_no_other(loop, folder, designer):
    write(folder, "a.fasta", "ACDEF")
    write(folder, "b.fasta", "ACDEF")
    write(folder, "c.fasta", "ACDEG")
    changes = {"source": str(folder), "designer": designer, "selection": SelectionSettings(policy="random")}
    names = ["a", "c"] if designer is None else ["a", "c", "round-003"]
    for _ in range(2):
        report = loop(**changes, max_rounds=len(names) + (designer is None))
        assert [line.name for line in report.rounds if line.number] == names
        assert report.stop_reason == ("no_more_designs" if designer is None else "rounds")
    assert [name for name, _ in loop.laboratory.measured] == [f"loop-{name}" for name in names]


def test_a_file_of_which_the_selection_leaves_nothing_is_reported(loop, folder):
    write(folder, "a.fasta", "ACDEF")
    write(folder, "b.fasta", "ACDEF")
    report = loop(source=str(folder), selection=SelectionSettings(policy="random"))
    (line,) = (line for line in report.rounds if line.name == "b")
    assert (line.campaign_id, line.number, "1 measured" in line.problem) == ("loop-b", None, True)


def test_a_file_of_which_the_selection_cannot_choose_is_reported_and_hides_no_other(loop, folder):
    rows = "".join(f"c{number},ACDE{letter},true\n" for number, letter in enumerate("FGHK"))
    (folder / "a.csv").write_text(f"name,sequence,control\n{rows}")
    write(folder, "b.fasta", "ACDEF")
    report = loop(source=str(folder), selection=SelectionSettings(policy="random"))
    lines = {line.name: (line.number, line.problem) for line in report.rounds}
    assert lines["b"] == (1, None)
    assert "room for 3 designs, and 4 are controls" in lines["a"][1]


@pytest.mark.parametrize("designer", ["same", "with_control"])
def test_a_designer_of_whom_the_selection_leaves_nothing_but_controls_ends_the_loop(loop, designer):
    changes = {"designer": f"loop_designers:{designer}", "selection": SelectionSettings(policy="random")}
    report = loop(**changes, max_rounds=3)
    assert (report.stop_reason, len(report.rounds)) == ("nothing_to_measure", 1)
    assert "1 measured" in report.stop_message


def test_an_unknown_target_ends_a_loop_over_files_with_its_cause(loop, folder, monkeypatch):
    write(folder, "a.fasta", "ACDEF")

    def refuse(*_):
        raise InvalidSpec(("target: the catalog has no 'EGRF'",))

    monkeypatch.setattr(choosing, "resolve_target", refuse)
    with pytest.raises(InvalidSpec, match="EGRF"):
        loop(source=str(folder), budget_usd=1000)


def test_a_budget_leaves_no_round_of_controls_alone(loop, folder):
    (folder / "a.csv").write_text("name,sequence,control\nc,ACDEF,true\nd,ACDEG,\n")
    report = loop(source=str(folder), designs_per_round=2, budget_usd=1.5 * PRICE / 100)
    assert (report.stop_reason, loop.laboratory.measured) == ("budget", [])


class Deployment:
    """A deployed designer whose runs complete at once: each writes the next design to the address or the folder."""

    def __init__(self, folder, *residues):
        self.folder = folder
        self.residues = list(residues)
        self.by_key = {}

    def start_run(self, _name, parameters, *, name, tags, idempotency_key):
        if idempotency_key not in self.by_key:
            self.by_key[idempotency_key] = FlowRun(flow_id=uuid4(), name=name, tags=tags, state=Completed())
            number, residues = len(self.by_key), self.residues.pop(0)
            if self.folder is None:
                Path(parameters["candidates"]).write_text(f"name,sequence,parents\nd{number},{residues}\n")
            else:
                write(self.folder, f"{number}.fasta", residues)
        return self.by_key[idempotency_key]


@pytest.mark.parametrize("writes_files", [False, True])
def test_the_next_start_asks_a_deployment_again_of_which_the_selection_leaves_nothing(
    loop, folder, monkeypatch, writes_files
):
    made = Deployment(folder if writes_files else None, "ACDEF", "ACDEF", "ACDEG")
    monkeypatch.setattr(deployed, "start_run", made.start_run)
    monkeypatch.setattr(deployed, "_parameters_of", lambda _: set() if writes_files else {"candidates"})
    changes = {
        "designer": "design/gpu",
        "source": str(folder) if writes_files else None,
        "selection": SelectionSettings(policy="random"),
        "max_rounds": 2,
    }
    if writes_files:
        with pytest.raises(DesignerFailed, match="no file with designs to measure"):
            loop(**changes)
    else:
        assert loop(**changes).stop_reason == "nothing_to_measure"
    assert len(made.by_key) == 2
    assert loop(**changes).stop_reason == "rounds"
    assert (len(made.by_key), len(loop.laboratory.measured)) == (3, 2)


def test_the_next_start_asks_a_deployment_again_of_which_the_selection_cannot_choose(loop, monkeypatch):
    made = Deployment(None, "ACDEF,", "ACDEG,p")
    monkeypatch.setattr(deployed, "start_run", made.start_run)
    monkeypatch.setattr(deployed, "_parameters_of", lambda _: {"candidates"})
    selection = SelectionSettings(policy="random", max_per_parent=1)
    changes = {"designer": "design/gpu", "selection": selection, "max_rounds": 1}
    with pytest.raises(InputError, match="no candidate has parents"):
        loop(**changes)
    assert loop(**changes).stop_reason == "rounds"
    assert len(made.by_key) == 2


def test_a_goal_that_the_assay_cannot_reach_is_refused_before_anything(loop):
    with pytest.raises(InvalidSpec, match="melting temperature"):
        loop(designer="loop_designers:longer", goal_tm_C=70.0)
    with pytest.raises(ConfigurationError, match="source"):
        loop()
    with pytest.raises(ConfigurationError, match="neither a function"):
        loop(designer="nothing of the kind")
    assert loop.loop_log().read().rounds == ()


@pytest.mark.parametrize(
    ("designer", "error", "words"),
    [
        ("silent", DesignerFailed, "proposed nothing"),
        ("broken", DesignerFailed, "RuntimeError: no GPU"),
        ("wrong", InvalidSequences, "'J'"),
        ("absent", ConfigurationError, "absent"),
    ],
)
def test_a_designer_that_gives_nothing_ends_the_loop_and_orders_nothing(loop, designer, error, words):
    with pytest.raises(error, match=words):
        loop(designer=f"loop_designers:{designer}")
    assert loop.laboratory.measured == []
    assert len(loop(designer="loop_designers:longer", max_rounds=1).rounds) == 1


def test_designs_that_cannot_be_measured_stop_the_loop_until_a_person_goes_on(loop):
    with pytest.raises(LoopFailed, match="none of its 1 design could be measured"):
        loop(designer="loop_designers:hopeless", max_rounds=2)
    assert len(loop.laboratory.measured) == 1
    with pytest.raises(LoopFailed, match="round 2"):
        loop(designer="loop_designers:hopeless", max_rounds=3)
    assert len(loop.laboratory.measured) == 2


def test_a_campaign_that_fails_stops_a_designers_loop_and_is_tried_again(loop):
    loop.laboratory.broken.add("loop-round-002")
    with pytest.raises(LoopFailed, match="round 2 has no results: canceled by the laboratory"):
        loop(designer="loop_designers:longer", max_rounds=3)
    fixed = loop.loop_log().read().rounds[1].fixed
    loop.laboratory.broken.clear()
    report = loop(designer="loop_designers:longer", max_rounds=3)
    assert len(report.rounds) == 3
    assert loop.laboratory.measured[1] == ("loop-round-002", [c.candidate.name for c in fixed.choices])


@pytest.mark.parametrize(
    ("corrected", "is_ordered", "measured"),
    [
        (Assay(target="human"), False, 0),
        (Assay(target="t", n_replicates=5), False, 0),
        (Assay(target="human"), True, 1),
        (Assay(target="T-1"), False, 1),
        (Assay(target="t", method="bli"), False, 1),
    ],
    ids=["target", "replicates", "ordered", "the same", "its usual method"],
)
def test_a_planned_round_is_not_ordered_with_another_assay_than_the_loops(
    loop, corrected, is_ordered, measured
):
    loop.laboratory.during["loop-round-001"] = kill
    first = loop.prefect.start(PARAMETERS)
    with pytest.raises(Killed):
        loop(first, designer="loop_designers:flat", max_rounds=1)
    del loop.prefect.runs[first.id]
    loop.laboratory.during.clear()
    if is_ordered:
        loop.laboratory.spent["loop-round-001"] = PRICE
    again = loop.prefect.start({**PARAMETERS, "assay": corrected.model_dump(mode="json")})
    changes = {"designer": "loop_designers:flat", "max_rounds": 1, "assay": corrected}
    if measured:
        assert loop(again, **changes).stop_reason == "rounds"
    else:
        with pytest.raises(
            LoopFailed, match=r"for other designs or another assay; nothing .* another loop id"
        ):
            loop(again, **changes)
    assert len(loop.laboratory.measured) == measured
    assert loop.open_logs() == []


@pytest.mark.parametrize("designs_per_round", [None, 2], ids=["the whole file", "chosen"])
def test_a_planned_round_is_not_ordered_as_an_earlier_reading_gave_its_designs(
    loop, folder, designs_per_round
):
    """The first round fails, and the second one is ordered: it goes on as it is."""
    for name in "ac":
        (folder / f"{name}.csv").write_text(f"name,heavy,light\nx,ACDEF{name.upper()},ACDEG\n")
    changes = {"source": str(folder), "designs_per_round": designs_per_round}
    loop.laboratory.broken.add("loop-a")
    loop.laboratory.during["loop-c"] = kill
    first = loop.prefect.start({**PARAMETERS, "sequence_column": "heavy"})
    with pytest.raises(Killed):
        loop(first, **changes, sequence_column="heavy")
    del loop.prefect.runs[first.id]
    loop.laboratory.broken.clear()
    loop.laboratory.during.clear()
    loop.laboratory.spent["loop-c"] = PRICE
    again = loop.prefect.start({**PARAMETERS, "sequence_column": "light"})
    refused, ordered = loop(again, **changes, sequence_column="light", as_is=True).rounds
    assert "nothing new was ordered" in refused.problem
    assert (ordered.problem, loop.laboratory.measured) == (None, [("loop-c", ["x"])])


def test_each_round_is_reported(loop):
    loop(designer="loop_designers:longer", max_rounds=2)
    told = {line.name: (bool(line.table), news) for line, news in loop.reported}
    assert told == {"round-001": (True, True), "round-002": (True, True)}


def test_why_a_campaign_failed_is_in_the_log_of_the_loop(loop):
    loop.laboratory.broken.add("loop-round-001")
    for _ in range(2):
        with pytest.raises(LoopFailed) as caught:
            loop(designer="loop_designers:longer", max_rounds=1)
    (entry,) = loop.loop_log().read().rounds
    assert (entry.failed.problem, entry.ended) == ("canceled by the laboratory", None)
    assert loop.loop_log().read().count == 3, "once for each start"
    assert [line.problem for line in caught.value.report.rounds] == [entry.failed.problem]
    assert loop.reported[-1][0].problem == entry.failed.problem
    loop.laboratory.broken.clear()
    assert [line.problem for line in loop(designer="loop_designers:longer", max_rounds=1).rounds] == [None]


def test_what_a_round_has_cost_that_failed_is_in_the_report(loop, folder):
    """Such as one that was billed and is overdue."""
    write(folder, "a.fasta", "ACDEF", "ACDEG")
    write(folder, "b.fasta", "ACDEH")
    write(folder, "c.fasta", "ACDEI")
    loop.laboratory.broken.update({"loop-a", "loop-c"})
    loop.laboratory.during["loop-a"] = lambda: loop.laboratory.spent.update({"loop-a": 2 * PRICE})
    report = loop(source=str(folder), budget_usd=PRICE)
    assert [line.spent_cents for line in report.rounds] == [2 * PRICE, PRICE, None]
    assert report.spent_cents == 3 * PRICE


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "designs"
    made.mkdir()
    return made


def write(folder, name, *residues):
    (folder / name).write_text("".join(f">{name[0]}{n}\n{text}\n" for n, text in enumerate(residues)))


def test_files_are_rounds_in_the_order_of_their_names_and_a_bad_one_hides_no_other(loop, folder):
    write(folder, "c.fasta", "ACDEF", "ACDEFG")
    write(folder, "a.fasta", "ACDJ")
    write(folder, "b.csv.part", "ACD")
    write(folder, ".d.fasta", "ACD")
    write(folder, "e.fasta", "ACDEFGH")
    loop.laboratory.broken.add("loop-c")
    report = loop(source=str(folder), designs_per_round=None)
    assert [(r.name, r.designs) for r in report.rounds] == [("a", None), ("c", 2), ("e", 1)]
    assert "'J'" in report.rounds[0].problem
    assert report.rounds[1].problem == "canceled by the laboratory"
    assert report.stop_reason == "no_more_designs"
    (folder / "c.fasta").write_text(">other\nACDEFW\n")
    loop.laboratory.broken.clear()
    again = loop(source=str(folder), designs_per_round=None)
    assert [r.problem for r in again.rounds][1:] == [None, None]
    assert loop.laboratory.measured == [("loop-e", ["e0"]), ("loop-c", ["c0", "c1"])]


def test_a_file_that_grows_for_seconds_is_waited_for_in_the_process(loop, folder, monkeypatch):
    write(folder, "a.fasta", "ACDEF")
    held = []

    def hold(seconds):
        held.append(seconds)
        write(folder, "a.fasta", "ACDEF", "ACDEFG")
        os.utime(folder / "a.fasta", (1e9, 1e9))

    monkeypatch.setattr(proposals, "sleep", hold)
    report = loop(source=str(folder), settle_seconds=30, designs_per_round=None)
    assert [r.designs for r in report.rounds] == [2]
    assert len(held) == 1
    assert 0 < held[0] <= 31


def test_a_file_that_grows_for_long_is_not_taken_and_the_run_waits(loop, folder):
    write(folder, "a.fasta", "ACDEF")
    run = loop.prefect.start()
    with pytest.raises(Pause):
        loop(run, source=str(folder), settle_seconds=600, designs_per_round=None)
    ((message, look, has_news),) = loop.prefect.waits
    assert "until" in message
    assert "a.fasta is complete" in message
    assert timedelta(seconds=500) < look.at - datetime.now(UTC) < timedelta(seconds=601)
    assert (look.failures, has_news()) == (0, False)
    os.utime(folder / "a.fasta", (1e9, 1e9))
    assert has_news()
    assert loop(run, source=str(folder), settle_seconds=600).stop_reason == "no_more_designs"


def test_the_next_file_is_waited_for_as_long_as_was_asked(loop, folder, monkeypatch):
    write(folder, "a.fasta", "ACDEF")
    run = loop.prefect.start()
    with pytest.raises(Pause):
        loop(run, source=str(folder), wait_days=3, max_rounds=2)
    ((message, look, has_news),) = loop.prefect.waits
    until = loop.loop_log().read().rounds[0].ended.at + timedelta(days=3)
    assert f"the next design file in {folder}, until {until:%Y-%m-%d %H:%M} UTC" in message
    assert timedelta(minutes=4) < look.at - datetime.now(UTC) < timedelta(minutes=6)
    assert not has_news()
    write(folder, "b.fasta", "ACDEG")
    assert has_news()
    report = loop(run, source=str(folder), wait_days=3, max_rounds=2)
    assert ([r.name for r in report.rounds], report.stop_reason) == (["a", "b"], "rounds")


def test_a_loop_whose_time_for_files_is_over_ends(loop, folder, monkeypatch):
    write(folder, "a.fasta", "ACDEF")
    run = loop.prefect.start()
    with pytest.raises(Pause):
        loop(run, source=str(folder), wait_days=3)

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=4)

    monkeypatch.setattr(proposals, "datetime", Later)
    assert loop(run, source=str(folder), wait_days=3).stop_reason == "no_more_designs"


@pytest.mark.parametrize(
    ("waited", "pause"),
    [
        (timedelta(0), timedelta(minutes=5)),
        (timedelta(hours=4), timedelta(minutes=24)),
        (timedelta(days=9), timedelta(hours=1)),
    ],
)
def test_the_longer_a_loop_waits_the_rarer_it_looks(waited, pause):
    assert loop_files.pause_after(waited) == pause


def test_the_files_of_a_source_come_before_the_designers_rounds(loop, folder):
    write(folder, "start.fasta", "ACDEFGHIKLMN", "ACDEF")
    report = loop(source=str(folder), designer="loop_designers:longer", max_rounds=2)
    assert [r.name for r in report.rounds] == ["start", "round-002"]
    assert loop.laboratory.measured[0] == ("loop-start", ["s0", "s1"])
    assert len(loop.loop_log().read().rounds[1].fixed.choices[0].candidate.sequence) == 13


def test_a_designers_round_gives_way_to_a_file_of_its_name(loop, folder):
    write(folder, "round-002.fasta", "ACDEFGHIKLMN")
    report = loop(source=str(folder), designer="loop_designers:longer", max_rounds=3)
    assert [r.name for r in report.rounds] == ["round-002", "round-002-2", "round-003"]
    assert [name for name, _ in loop.laboratory.measured] == [f"loop-{r.name}" for r in report.rounds]


def test_a_file_named_as_a_designers_round_is_reported_and_hides_no_other(loop, folder):
    """Its campaign id is taken, so it would never be measured."""
    loop(designer="loop_designers:longer", max_rounds=2)
    write(folder, "round-002.fasta", "ACDEF")
    write(folder, "seeds.fasta", "ACDEFG")
    with pytest.raises(
        InvalidSequences, match=r"round-002\.fasta is not measured: round 2, of designer .*Rename"
    ):
        loop(source=str(folder), designer="loop_designers:longer", max_rounds=4)
    report = loop(source=str(folder))
    assert [name for name, _ in loop.laboratory.measured][2:] == ["loop-seeds"]
    (bad,) = (line for line in report.rounds if line.problem)
    assert ("Rename the file" in bad.problem, bad.campaign_id) == (True, "loop-round-002")
    assert loop(source=str(folder)).rounds == report.rounds


def test_a_round_that_another_run_finishes_meanwhile_counts_for_the_rules(loop, monkeypatch):
    """Between this run's decision to go on and its proposal another run fixes and measures the last round."""
    decide = loop_module.stop_reason
    others = []

    def overtaken(rules, ended, spent):
        reason = decide(rules, ended, spent)
        if len(ended) == 1 and not others:
            others.append(None)
            others.append(loop(designer="loop_designers:flat", max_rounds=2))
        return reason

    monkeypatch.setattr(loop_module, "stop_reason", overtaken)
    report = loop(designer="loop_designers:flat", max_rounds=2)
    assert [entry.number for entry in report.rounds] == [1, 2]
    assert report.rounds == others[1].rounds
    assert {name for name, _ in loop.laboratory.measured} == {"loop-round-001", "loop-round-002"}


def test_two_runs_of_one_loop_at_once_measure_the_same_rounds(loop):
    def run(_):
        return loop(designer="loop_designers:flat", max_rounds=2)

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(run, range(2))
    assert one.rounds == other.rounds
    assert {name for name, _ in loop.laboratory.measured} == {"loop-round-001", "loop-round-002"}
    assert len({tuple(names) for _, names in loop.laboratory.measured}) == 2


def test_a_loop_is_in_the_archive_with_its_parameters_before_anything_is_proposed(loop, monkeypatch):
    """A run that is killed between two rounds has left all that the sweep needs to start another one."""
    run = loop.prefect.start(
        {"loop_id": "loop", "designer": "loop_designers:longer", "account": {"$ref": "x"}}
    )
    fix = LoopLog.fix
    monkeypatch.setattr(
        LoopLog, "fix", lambda loop_log, record: kill() if record.number == 2 else fix(loop_log, record)
    )
    with pytest.raises(Killed):
        loop(run, designer="loop_designers:longer", max_rounds=2)
    state = loop.log().read()
    assert state.is_open
    assert (state.started.deployment, state.home) == ("design-build-test/assay-design-build-test", "home-1")
    assert state.started.parameters == {"loop_id": "loop", "designer": "loop_designers:longer"}
    assert list(state.runs) == [str(run.id)]
    assert loop.open_logs() == [("loop", "loop")], "the campaign of the first round is over"


def test_a_run_after_a_kill_goes_on_with_the_round_that_was_not_over(loop, monkeypatch):
    first = loop.prefect.start(PARAMETERS)
    loop.laboratory.during["loop-round-002"] = kill
    with pytest.raises(Killed):
        loop(first, designer="loop_designers:flat", max_rounds=2)
    assert loop.open_logs() == [("campaign", "loop-round-002"), ("loop", "loop")]
    assert loop.campaign_log("loop-round-002").read().started.deployment is None
    del loop.prefect.runs[first.id]
    loop.laboratory.during.clear()
    second = loop.prefect.start(PARAMETERS)
    assert loop(second, designer="loop_designers:flat", max_rounds=2).stop_reason == "rounds"
    assert [name for name, _ in loop.laboratory.measured] == ["loop-round-001", "loop-round-002"]
    assert list(loop.log().read().runs) == [str(first.id), str(second.id)]
    assert loop.log().read().over.complete
    assert loop.open_logs() == []


def test_a_kill_between_the_end_of_a_campaign_and_that_of_its_round_plays_nothing_again(loop, monkeypatch):
    run = loop.prefect.start(PARAMETERS)
    with monkeypatch.context() as killing:
        killing.setattr(LoopLog, "end", lambda *_: kill())
        with pytest.raises(Killed):
            loop(run, designer="loop_designers:flat", max_rounds=1)
    assert loop(run, designer="loop_designers:flat", max_rounds=1).stop_reason == "rounds"
    assert len(loop.laboratory.measured) == 1


@pytest.mark.parametrize("waits_for_files", [False, True])
def test_another_start_leaves_a_live_loop_alone_and_wakes_one_that_waits_for_files(
    loop, folder, waits_for_files
):
    write(folder, "a.fasta", "ACDEF")
    first = loop.prefect.start(PARAMETERS)
    if not waits_for_files:
        loop.laboratory.during["loop-a"] = lambda: loop.prefect.suspend(
            "in the laboratory", look=None, has_news=None
        )
    with pytest.raises(Pause):
        loop(first, source=str(folder), wait_days=3)
    records = loop.log().read().count
    second = loop.prefect.start({**PARAMETERS, "max_rounds": 7})
    report = loop(second, source=str(folder), max_rounds=7)
    assert report.stop_reason == "runs_elsewhere"
    assert str(first.id) in report.stop_message
    assert loop.log().read().count == records
    assert loop.prefect.resumed == ([first.id] if waits_for_files else [])


def test_a_run_that_was_thought_dead_leaves_the_loop_to_its_successor(loop, folder):
    write(folder, "a.fasta", "ACDEF")
    first, second = loop.prefect.start(PARAMETERS), loop.prefect.start(PARAMETERS)
    with pytest.raises(Pause):
        loop(first, source=str(folder), wait_days=3)
    loop.log().note_run(str(second.id), second.name, restarted=True, why="no heartbeat")
    assert loop(first, source=str(folder), wait_days=3).stop_reason == "runs_elsewhere"
    with pytest.raises(Pause):
        loop(second, source=str(folder), wait_days=3)


def test_of_two_starts_at_once_one_carries_the_loop(loop, folder, monkeypatch):
    write(folder, "a.fasta", "ACDEF")
    first, second = loop.prefect.start(PARAMETERS), loop.prefect.start(PARAMETERS)
    append = CampaignLog.append_unless_changed
    overtaken = []

    def overtake(log, record, seen):
        if record.kind == "ran" and not overtaken:
            overtaken.append(record)
            CampaignLog(log.store, log.prefix, log.name, log.what).note_run(str(second.id), second.name)
        return append(log, record, seen)

    monkeypatch.setattr(CampaignLog, "append_unless_changed", overtake)
    assert loop(first, source=str(folder)).stop_reason == "runs_elsewhere"
    assert loop.laboratory.measured == []


def test_a_canceled_loop_orders_nothing_more_until_a_person_reopens_it(loop):
    first = loop.prefect.start(PARAMETERS)
    loop.laboratory.during["loop-round-001"] = lambda: loop.log().stop("Ada", "the command")
    report = loop(first, designer="loop_designers:flat", max_rounds=3)
    assert report.stop_reason == "person"
    assert "loop loop was canceled on" in report.stop_message
    assert "by Ada (the command)" in report.stop_message
    assert "start the loop by command with --reopen" in report.stop_message
    assert len(loop.loop_log().read().rounds) == 1
    scheduled = loop.prefect.start({**PARAMETERS, "max_rounds": 9})
    assert loop(scheduled, designer="loop_designers:flat", max_rounds=9).stop_reason == "person"
    assert loop.log().read().needs_sweep, "what is left of it is still to be reported"
    loop.log().reopen("Ada")
    assert loop(scheduled, designer="loop_designers:flat", max_rounds=3).stop_reason == "rounds"
    assert len(loop.laboratory.measured) == 3


def test_a_loop_that_is_canceled_while_a_round_begins_orders_nothing_of_it(loop, monkeypatch):
    begin = loop.laboratory.begin

    def cancel(*arguments, **options):
        campaign = begin(*arguments, **options)
        loop.log().stop("Ada", "the command")
        return campaign

    loop.laboratory.begin = cancel
    assert loop(designer="loop_designers:flat").stop_reason == "person"
    assert (loop.laboratory.priced, loop.laboratory.measured) == ([], [])


def test_a_round_that_a_person_cancels_ends_the_loop_also_at_its_next_start(loop):
    def cancel():
        loop.campaign_log("loop-round-002").stop("Ada", "the command")

    loop.laboratory.during["loop-round-002"] = cancel
    report = loop(loop.prefect.start(PARAMETERS), designer="loop_designers:flat", max_rounds=3)
    assert (report.stop_reason, report.rounds[1].problem) == ("person", None)
    assert "round 2 was canceled" in report.stop_message
    assert (loop.log().read().over.complete, loop.log().read().stopped) == (False, None)
    loop.laboratory.measured.clear()
    assert (
        loop(loop.prefect.start(PARAMETERS), designer="loop_designers:flat", max_rounds=3).stop_reason
        == "person"
    )
    assert loop.laboratory.measured == []


def test_a_loop_that_has_ended_is_started_again_by_a_schedule(loop, folder):
    write(folder, "a.fasta", "ACDEF")
    parameters = {**PARAMETERS, "source": str(folder)}
    assert loop(loop.prefect.start(parameters), source=str(folder)).stop_reason == "no_more_designs"
    assert loop.open_logs() == []
    write(folder, "b.fasta", "ACDEG")
    report = loop(loop.prefect.start(parameters), source=str(folder))
    assert ([r.name for r in report.rounds], report.stop_reason) == (["a", "b"], "no_more_designs")
    assert [record.kind for record in loop.log().records()] == ["started", "ran", "over"] * 2


def test_a_file_whose_campaign_has_failed_is_tried_once_in_each_start(loop, folder):
    write(folder, "a.fasta", "ACDEF")
    loop.laboratory.broken.add("loop-a")
    tries = []
    loop.laboratory.during["loop-a"] = lambda: tries.append("a")
    run = loop.prefect.start(PARAMETERS)
    for _ in range(3):  # executions of one run, which waits for the next file
        with pytest.raises(Pause):
            loop(run, source=str(folder), wait_days=3)
    assert tries == ["a"]
    loop.log().finish("a person has ended it", complete=False)
    with pytest.raises(Pause):
        loop(run, source=str(folder), wait_days=3)
    assert tries == ["a", "a"]


@pytest.mark.parametrize(
    "change", [{"is_simulated": False}, {"organisation": "another"}, {"archive_id": "another"}]
)
def test_an_account_that_is_another_one_by_now_orders_nothing(loop, monkeypatch, change):
    """An account that was edited from the lab to the live service would order everything for real."""
    run = loop.prefect.start(PARAMETERS)
    assert loop(run, designer="loop_designers:flat", max_rounds=1).stop_reason == "rounds"
    for name, value in change.items():
        monkeypatch.setattr(Ledgers, name, value)
    monkeypatch.setattr(starts, "Questions", Unanswered)
    monkeypatch.setattr(CampaignSetup, "read_service_time", lambda _: datetime.now(UTC))
    with pytest.raises(DecisionNeeded):
        loop(designer="loop_designers:flat", max_rounds=2)
    again = loop.prefect.start(PARAMETERS)
    with pytest.raises(Pause):
        loop(again, designer="loop_designers:flat", max_rounds=2)
    assert "another one than at its start" in loop.prefect.waits[-1][0]
    assert len(loop.laboratory.measured) == 1
    monkeypatch.undo()


class Unanswered:
    def __init__(self, *_):
        pass

    def decide(self, *_, **__):
        return None


def test_a_round_is_played_under_the_lower_cap_of_the_start_and_of_now(loop):
    run = loop.prefect.start(PARAMETERS)
    caps = []
    begin = loop.laboratory.begin

    def noting(setup, *arguments, **options):
        caps.append(options["unasked_cents"])
        return begin(setup, *arguments, **options)

    loop.laboratory.begin = noting
    loop.laboratory.during["loop-round-002"] = kill
    changes = {"designer": "loop_designers:flat", "max_rounds": 2, "budget_usd": PRICE / 10}
    capped = make_account(archive=loop.laboratory.archive, policy={"per_campaign_usd": 8 * PRICE / 100})
    with pytest.raises(Killed):
        loop(run, **changes, account=capped)
    loop.laboratory.during.clear()
    loop(run, **changes)
    assert caps == [8 * PRICE, 7 * PRICE, 7 * PRICE]
    capped = make_account(archive=loop.laboratory.archive, policy={"per_campaign_usd": 2 * PRICE / 100})
    loop(loop.prefect.start({**PARAMETERS, "max_rounds": 3}), **changes | {"max_rounds": 3}, account=capped)
    assert caps[3:] == [2 * PRICE]


def test_what_fails_for_certain_ends_the_loop_for_the_sweep(loop):
    with pytest.raises(DesignerFailed):
        loop(loop.prefect.start(PARAMETERS), designer="loop_designers:silent")
    assert "proposed nothing" in loop.log().read().over.words
    assert loop.open_logs() == []


def test_a_failure_that_may_pass_suspends_the_run_and_the_loop_stays_open(loop, monkeypatch):
    def away(*_):
        raise ArchiveUnavailable("503")

    run = loop.prefect.start(PARAMETERS)
    with monkeypatch.context() as failing:
        failing.setattr(loop_module, "with_newest_tables", away)
        with pytest.raises(Pause):
            loop(run, designer="loop_designers:flat", max_rounds=1)
    ((message, look, _),) = loop.prefect.waits
    assert (message, look.failures) == ("will look again, because of: 503", 1)
    assert loop.log().read().is_open
    assert loop(run, designer="loop_designers:flat", max_rounds=1).stop_reason == "rounds"


def test_a_token_that_is_refused_after_an_order_is_waited_for(loop):
    def refuse():
        loop.laboratory.spent["loop-round-001"] = PRICE
        raise Unauthorized("the token was revoked")

    run = loop.prefect.start(PARAMETERS)
    loop.laboratory.during["loop-round-001"] = refuse
    with pytest.raises(Pause):
        loop(run, designer="loop_designers:flat", max_rounds=1)
    assert loop.loop_log().read().rounds[0].failed is None
    assert loop.campaign_log("loop-round-001").read().is_open
    loop.laboratory.during.clear()
    assert loop(run, designer="loop_designers:flat", max_rounds=1).stop_reason == "rounds"


def test_a_token_that_is_refused_before_an_order_fails_the_round(loop):
    def refuse():
        raise Unauthorized("the token was revoked")

    loop.laboratory.during["loop-round-001"] = refuse
    with pytest.raises(LoopFailed, match="token was revoked"):
        loop(loop.prefect.start(PARAMETERS), designer="loop_designers:flat", max_rounds=1)
    assert loop.campaign_log("loop-round-001").read().over.words == "the token was revoked"
    assert loop.open_logs() == []


def test_a_token_that_is_refused_in_a_later_round_is_waited_for(loop):
    def refuse():
        raise Unauthorized("the token was revoked")

    run = loop.prefect.start(PARAMETERS)
    loop.laboratory.during["loop-round-002"] = refuse
    with pytest.raises(Pause):
        loop(run, designer="loop_designers:flat", max_rounds=2)
    assert loop.log().read().is_open
    loop.laboratory.during.clear()
    assert loop(run, designer="loop_designers:flat", max_rounds=2).stop_reason == "rounds"


def test_a_run_that_was_suspended_too_often_ends_and_the_loop_stays_open(loop, folder, monkeypatch):
    """A loop that waits a year for files would fill one run with thousands of states."""

    def refuse(message, **_):
        raise RunContinues(f"another run goes on: {message}")

    write(folder, "a.fasta", "ACDEF")
    first, second = loop.prefect.start(PARAMETERS), loop.prefect.start(PARAMETERS)
    suspend = loop_module.suspend_until_news
    monkeypatch.setattr(loop_module, "suspend_until_news", refuse)
    state = loop(first, whole_state=True, source=str(folder), wait_days=300)
    assert (state.name, "next design file" in state.message) == ("Continued", True)
    assert loop.log().read().is_open
    monkeypatch.setattr(loop_module, "suspend_until_news", suspend)
    with pytest.raises(Pause):
        loop(second, source=str(folder), wait_days=300)
    assert len(loop.laboratory.measured) == 1


@pytest.mark.parametrize(
    ("budget_usd", "unasked"), [(None, [0, 0]), (PRICE / 10, [10 * PRICE, 7 * PRICE])], ids=["none", "some"]
)
def test_a_budget_approves_the_rounds_and_without_one_each_round_is_asked_about(loop, budget_usd, unasked):
    loop(designer="loop_designers:flat", max_rounds=2, budget_usd=budget_usd)
    assert loop.laboratory.priced == list(zip(("loop-round-001", "loop-round-002"), unasked, strict=True))


@pytest.mark.parametrize(
    ("refused", "again_usd", "limits"),
    [
        (("loop-a", "loop-b"), 5, [("loop-a", 5), ("loop-b", 2)]),
        (("loop-a",), 5, [("loop-a", 1)]),
        (("loop-a", "loop-b"), 4, [("loop-a", 4), ("loop-b", 1)]),
        (("loop-a", "loop-b"), 3, [("loop-a", 3), ("loop-b", 0)]),
        (("loop-a", "loop-b"), None, [("loop-a", 0), ("loop-b", 0)]),
    ],
    ids=["both", "one", "smaller", "used up", "none"],
)
def test_rounds_that_are_tried_again_share_the_budget(loop, folder, refused, again_usd, limits):
    """Such as two files that a token for reading could not order; amounts in prices of one design."""
    write(folder, "a.fasta", "ACDEF", "ACDEG", "ACDEH")
    write(folder, "b.fasta", "ACDEI", "ACDEK", "ACDEL", "ACDEM")

    def play(budget):
        budget_usd = None if budget is None else budget * PRICE / 100
        loop(source=str(folder), designs_per_round=None, max_rounds=2, budget_usd=budget_usd)

    loop.laboratory.broken.update(refused)
    play(5)
    loop.laboratory.broken.clear()
    loop.laboratory.priced.clear()
    play(again_usd)
    assert loop.laboratory.priced == [(name, limit * PRICE) for name, limit in limits]


def test_a_round_that_goes_on_may_cost_no_more_than_the_budget_leaves_by_then(loop, folder):
    """Its campaign keeps the terms of its start; another round has cost more than was expected meanwhile."""
    write(folder, "a.fasta", "ACDEF", "ACDEG", "ACDEH")
    write(folder, "b.fasta", "ACDEI")
    loop.laboratory.during["loop-b"] = kill
    changes = {"source": str(folder), "designs_per_round": None, "budget_usd": 5 * PRICE / 100}
    with pytest.raises(Killed):
        loop(**changes)
    loop.laboratory.during.clear()
    loop.laboratory.spent["loop-a"] = 4 * PRICE
    loop(**changes)
    limits = [("loop-a", 5 * PRICE), ("loop-b", 2 * PRICE), ("loop-b", PRICE)]
    assert loop.laboratory.priced == limits


@pytest.mark.parametrize("error", [ApprovalRejected("rejected"), ApprovalExpired("not answered")])
def test_a_round_that_is_not_approved_is_asked_about_again_by_the_next_start(loop, error):
    def refuse(*_, **__):
        raise error

    approve, loop.laboratory.approve = loop.laboratory.approve, refuse
    if isinstance(error, ApprovalExpired):
        with pytest.raises(ApprovalExpired):
            loop(loop.prefect.start(PARAMETERS), designer="loop_designers:flat")
    else:
        report = loop(loop.prefect.start(PARAMETERS), designer="loop_designers:flat")
        assert (report.stop_reason, report.stop_message) == ("person", "rejected")
    assert loop.open_logs() == []
    assert loop.laboratory.measured == []
    loop.laboratory.approve = approve
    again = loop(loop.prefect.start(PARAMETERS), designer="loop_designers:flat", max_rounds=1)
    assert (again.stop_reason, len(loop.laboratory.measured)) == ("rounds", 1)


PARAMETERS = {"loop_id": "loop", "designer": "loop_designers:flat"}


class Killed(BaseException):
    pass


def kill():
    raise Killed
