"""Loops without Prefect: rounds from functions and files until a rule stops them, and repeats of the same loop."""
# ruff: noqa: A002 - the names of the designers' contract

import logging
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_EPHEMERAL_ENABLED, temporary_settings
from prefect.states import Completed, Failed

from prefect_assay import lake
from prefect_assay.archive import Document, archive_version
from prefect_assay.archive.layout import TABLE_CODE, TABLE_PATH
from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.designs import AS_WRITTEN
from prefect_assay.errors import (
    ApprovalRejected,
    ArchiveUnavailable,
    ConfigurationError,
    DesignerFailed,
    InvalidSequences,
    InvalidSpec,
    LoopFailed,
)
from prefect_assay.flows import campaign_plan, design_build_test
from prefect_assay.flows.campaign_plan import CampaignInput
from prefect_assay.looping import LoopBook, choosing, proposals
from prefect_assay.models.selection import SelectionSettings
from prefect_assay.models.spec import Assay
from prefect_assay.results import ResultRow, to_csv
from prefect_assay.runs import suspend
from prefect_assay.tasks.collate import keep_plan, kept_table

flow_module = sys.modules["prefect_assay.flows.design_build_test"]
rounds_module = sys.modules["prefect_assay.flows.loop_rounds"]
options_module = sys.modules["prefect_assay.flows.run_options"]
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
PRICE = 1000


class Laboratory:
    """Campaigns that end at once: K_D follows from the sequence, and each design costs the same."""

    def __init__(self, archive):
        self.archive = archive
        self.spent = {}
        self.measured = []
        self.broken = set()

    def campaign(self, *, designs, campaign_id, archive, limit_cents, return_state, **_):
        given = CampaignInput(designs, None, AS_WRITTEN, Assay(), campaign_id, 96)
        sequences = given.read(SimpleNamespace(options=SimpleNamespace(archive=archive)), AS_WRITTEN)
        if campaign_id in self.broken:
            return Failed(message="canceled by the laboratory")
        self.measured.append((campaign_id, [s.name for s in sequences.items]))
        self.spent[campaign_id] = PRICE * len(sequences)
        keep_plan.fn(
            archive,
            given.plan(sequences, SimpleNamespace(id="0" * 8 + "-0000-0000-0000-" + "0" * 12, name="t")),
        )
        rows = [
            ResultRow(
                experiment_code=f"X-{campaign_id}".upper(),
                result_id=f"r-{s.name}",
                result_type="affinity",
                level="summary",
                name=s.name,
                outcome="no_expression" if s.aa_string.startswith("W") else "measured",
                kd_M=None if s.aa_string.startswith("W") else 1e-6 / len(s.aa_string),
                aa_string=s.aa_string,
            )
            for s in sequences.items
        ]
        self.archive_table(campaign_id, rows)
        return Completed()

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


def longer(history, n, budget_cents, round):
    """Each round's designs are one residue longer than the best so far, and so bind better."""
    best = max((len(design.aa_string) for design in history), default=10)
    return [
        {"name": f"r{round}-{i}", "sequence": "A" * best + LETTERS[i], "parents": "p; q", "score": 0.5}
        for i in range(n + 2)
    ]


def flat(history, n, budget_cents, round):
    return [{"name": f"f{round}-{i}", "sequence": "A" * 10 + LETTERS[i] + LETTERS[round]} for i in range(n)]


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


@pytest.fixture
def loop(tmp_path, monkeypatch):
    archive = LocalArchive(root=str(tmp_path / "archive"))
    laboratory = Laboratory(archive)
    books = SimpleNamespace(budget=SimpleNamespace(read=lambda: laboratory))
    monkeypatch.setattr(rounds_module, "campaign", laboratory.campaign)
    monkeypatch.setattr(options_module.RunOptions, "books", books)
    monkeypatch.setattr(options_module.RunOptions, "scope", "scope")
    monkeypatch.setitem(sys.modules, "loop_designers", sys.modules[__name__])
    here = threading.local()
    monkeypatch.setattr(rounds_module, "this_run", lambda: here.run)
    monkeypatch.setattr(flow_module, "get_run_logger", logging.getLogger)
    monkeypatch.setattr(flow_module.artifacts, "show_loop", lambda _: None)
    monkeypatch.setattr(campaign_plan, "plan_campaign", campaign_plan.plan_campaign.fn)
    monkeypatch.setattr(proposals, "propose_designs", proposals.propose_designs.fn)
    monkeypatch.setattr(choosing, "resolve_target", lambda *_: None)
    monkeypatch.setattr(
        choosing, "estimate_cost", lambda _, spec: SimpleNamespace(total_cents=PRICE * len(spec.sequences))
    )

    def run(**changes):
        given = {
            "loop_id": "loop",
            "assay": Assay(target="t"),
            "credentials": AssayCredentials(base_url="https://lab.example", token="t"),
            "policy": SpendingPolicy(per_experiment_cents=10**6, per_campaign_cents=10**6),
            "archive": archive,
            "designs_per_round": 3,
            "settle_seconds": 0,
            "poll_seconds": 0.05,
        }
        here.run = FlowRun(flow_id=uuid4(), created=datetime.now(UTC))
        return design_build_test.fn(**given | changes).result()

    reported = []
    monkeypatch.setattr(
        rounds_module.facts,
        "round_completed",
        lambda loop_id, line, previous, *, news: reported.append((line, previous, news)),
    )
    run.reported = reported
    run.laboratory = laboratory
    run.book = lambda: LoopBook(archive.get_store(), archive.prefix, "loop")
    return run


def test_rounds_go_on_until_there_have_been_enough(loop):
    report = loop(designer="loop_designers:longer", max_rounds=3)
    assert [r.campaign_id for r in report.rounds] == [f"loop-round-00{n}" for n in (1, 2, 3)]
    assert report.stop == "rounds"
    assert [r.designs for r in report.rounds] == [3, 3, 3]
    assert report.spent_cents == 9 * PRICE
    assert report.best == "K_D 76.9 nM"
    assert [len(names) for _, names in loop.laboratory.measured] == [3, 3, 3]


def test_the_same_loop_again_measures_nothing_again(loop):
    first = loop(designer="loop_designers:longer", max_rounds=2)
    assert loop(designer="loop_designers:longer", max_rounds=2).rounds == first.rounds
    further = loop(designer="loop_designers:longer", max_rounds=3)
    assert further.rounds[:2] == first.rounds
    assert len(loop.laboratory.measured) == 3


def test_what_a_round_measures_is_in_the_log_with_all_that_was_proposed(loop):
    loop(designer="loop_designers:longer", max_rounds=1)
    book = loop.book()
    (entry,) = book.read().rounds
    assert [choice.rank for choice in entry.fixed.choices] == [1, 2, 3]
    assert entry.fixed.choices[0].candidate.parents == ("p", "q")
    assert entry.fixed.choices[0].candidate.columns == {"score": "0.5"}
    assert "first 3 of 5" in entry.fixed.choices[0].reason
    assert [c.name for c in book.candidates(entry.fixed.pool)] == [f"r1-{i}" for i in range(5)]
    kept = lake.proposals(book.store, "", book.loop_id)
    assert [(line.fate, line.candidates) for line in kept] == [("chosen", 3), ("not_reached", 2)]


def test_a_goal_ends_the_loop(loop):
    report = loop(designer="loop_designers:longer", max_rounds=9, goal_kd_nM=80)
    assert report.stop == "goal"
    assert len(report.rounds) == 3
    assert "round-003 reached the goal of 80 nM" in report.stopped


def test_a_goal_that_only_preliminary_results_reached_stops_no_later_run(loop):
    """The round of an overdue campaign ends with preliminary results, and the released ones are archived later."""
    first = loop(designer="loop_designers:longer", max_rounds=9, goal_kd_nM=80)
    assert (first.stop, first.best) == ("goal", "K_D 76.9 nM")
    table = kept_table(loop.laboratory.archive, "loop-round-003")
    released = [row.model_copy(update={"kd_M": 3e-5}) for row in table.rows]
    loop.laboratory.archive_table("loop-round-003", released)
    again = loop(designer="loop_designers:longer", max_rounds=4, goal_kd_nM=80)
    assert [line.best for line in again.rounds[2:]] == ["K_D 3e+04 nM", "K_D 71.4 nM"]
    assert "/TABLE/v002/" in again.rounds[2].table
    assert "round-004 reached the goal" in again.stopped


def test_the_end_of_a_loop_reads_no_table_again(loop, monkeypatch):
    read = []

    def newest(*given):
        read.append(given)
        assert len(read) <= 2, "an archive that is away now must not fail a loop that has reached its goal"
        return given[1]

    monkeypatch.setattr(rounds_module, "with_newest_tables", newest)
    assert loop(designer="loop_designers:longer", max_rounds=1).stop == "rounds"


def test_a_loop_that_a_person_ended_outlasts_an_archive_that_is_away(loop, monkeypatch):
    away = iter([True, False, True])  # the second look is the report's

    def newest(_archive, rounds, _objective):
        if not next(away, False):
            return rounds
        raise ArchiveUnavailable("503")

    def reject(**_):
        raise ApprovalRejected("a person ended the loop")

    monkeypatch.setattr(suspend, "get_run_logger", logging.getLogger)
    monkeypatch.setattr(rounds_module, "with_newest_tables", newest)
    monkeypatch.setattr(rounds_module, "approve_round", reject)
    report = loop(designer="loop_designers:longer", ask_each_round=True)
    assert (report.stop, len(report.rounds)) == ("person", 1)
    assert next(away, None) is None


def test_rounds_without_an_improvement_end_the_loop(loop):
    report = loop(designer="loop_designers:flat", max_rounds=9, stop_after_flat_rounds=2)
    assert (report.stop, len(report.rounds)) == ("no_improvement", 3)


def test_the_budget_bounds_designs_and_rounds(loop):
    report = loop(designer="loop_designers:longer", max_rounds=9, budget_cents=5 * PRICE + 1)
    assert [r.designs for r in report.rounds] == [3, 2]
    assert (report.stop, report.spent_cents) == ("budget", 5 * PRICE)
    second = loop.book().read().rounds[1].fixed
    assert "the budget allows no more" in second.choices[0].reason
    assert second.limit_cents == 2 * PRICE + 1


def test_a_selection_chooses_and_explains(loop):
    settings = SelectionSettings(
        policy="top_score", score_column="score", higher_is_better=True, seed=3, max_per_parent=2
    )
    report = loop(designer="loop_designers:longer", max_rounds=2, selection=settings)
    assert [r.designs for r in report.rounds] == [2, 2]
    for entry in loop.book().read().rounds:
        fixed = entry.fixed
        assert (fixed.policy, fixed.seed) == ("top_score", 3)
        assert fixed.counts == {"chosen": 2, "parent_limit": 3}
        assert all("score" in choice.reason for choice in fixed.choices)
    kept = lake.proposals(loop.book().store, "", loop.book().loop_id)
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
    assert not loop.book().read().rounds


def test_a_selection_that_leaves_nothing_ends_the_loop(loop, folder):
    write(folder, "a.fasta", "ACDEF")
    write(folder, "b.fasta", "ACDEF")
    report = loop(source=str(folder), selection=SelectionSettings(policy="random"))
    assert (report.stop, len(report.rounds)) == ("nothing_to_measure", 1)
    assert "1 measured" in report.stopped


def test_a_goal_that_the_assay_cannot_reach_is_refused_before_anything(loop):
    with pytest.raises(InvalidSpec, match="melting temperature"):
        loop(designer="loop_designers:longer", goal_tm_C=70.0)
    with pytest.raises(ConfigurationError, match="source"):
        loop()
    with pytest.raises(ConfigurationError, match="neither a function"):
        loop(designer="nothing of the kind")
    assert loop.book().read().rounds == ()


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
    with pytest.raises(LoopFailed, match="round 2 has no results: Failed: canceled by the laboratory"):
        loop(designer="loop_designers:longer", max_rounds=3)
    fixed = loop.book().read().rounds[1].fixed
    loop.laboratory.broken.clear()
    report = loop(designer="loop_designers:longer", max_rounds=3)
    assert len(report.rounds) == 3
    assert loop.laboratory.measured[1] == ("loop-round-002", [c.candidate.name for c in fixed.choices])


def test_each_round_is_reported_with_the_round_before_it(loop):
    loop(designer="loop_designers:longer", max_rounds=2)
    told = {line.name: (previous, bool(line.table), news) for line, previous, news in loop.reported}
    assert told == {"round-001": (None, True, True), "round-002": ("round-001", True, True)}


def test_why_a_campaign_failed_is_in_the_log_of_the_loop(loop):
    loop.laboratory.broken.add("loop-round-001")
    for _ in range(2):
        with pytest.raises(LoopFailed) as caught:
            loop(designer="loop_designers:longer", max_rounds=1)
    (entry,) = loop.book().read().rounds
    assert (entry.failed.problem, entry.ended) == ("Failed: canceled by the laboratory", None)
    assert loop.book().read().count == 2
    assert [line.problem for line in caught.value.report.rounds] == [entry.failed.problem]
    assert loop.reported[-1][0].problem == entry.failed.problem
    loop.laboratory.broken.clear()
    assert [line.problem for line in loop(designer="loop_designers:longer", max_rounds=1).rounds] == [None]


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
    assert report.rounds[1].problem == "Failed: canceled by the laboratory"
    assert report.stop == "no_more_designs"
    (folder / "c.fasta").write_text(">other\nACDEFW\n")
    loop.laboratory.broken.clear()
    again = loop(source=str(folder), designs_per_round=None)
    assert [r.problem for r in again.rounds][1:] == [None, None]
    assert loop.laboratory.measured == [("loop-e", ["e0"]), ("loop-c", ["c0", "c1"])]


def test_a_file_is_not_taken_while_it_grows(loop, folder, monkeypatch):
    write(folder, "a.fasta", "ACDEF")
    held, keys = [], []

    def hold(seconds):
        held.append(seconds)
        write(folder, "a.fasta", "ACDEF", "ACDEFG")

    def suspend(ready, *, key, **_):
        assert ready() is None
        keys.append(key)
        os.utime(folder / "a.fasta", (1e9, 1e9))
        return ready()

    monkeypatch.setattr(proposals, "sleep", hold)
    monkeypatch.setattr(proposals, "wait_until", suspend)
    report = loop(source=str(folder), settle_seconds=600, designs_per_round=None)
    assert [r.designs for r in report.rounds] == [2]
    assert len(held) == 1
    assert held[0] > 500
    assert re.fullmatch(r"designs-[0-9a-f]{16}-until-\d+", keys[0])


def test_the_next_file_is_waited_for_as_long_as_was_asked(loop, folder, monkeypatch):
    write(folder, "a.fasta", "ACDEF")

    def suspend(ready, *, timeout, **_):
        assert timeout > timedelta(days=3)
        assert ready() is None
        write(folder, "b.fasta", "ACDEG")
        return ready()

    monkeypatch.setattr(proposals, "wait_until", suspend)
    report = loop(source=str(folder), wait_days=3, max_rounds=2)
    assert ([r.name for r in report.rounds], report.stop) == (["a", "b"], "rounds")


def test_the_files_of_a_source_come_before_the_designers_rounds(loop, folder):
    write(folder, "start.fasta", "ACDEFGHIKLMN", "ACDEF")
    report = loop(source=str(folder), designer="loop_designers:longer", max_rounds=2)
    assert [r.name for r in report.rounds] == ["start", "round-002"]
    assert loop.laboratory.measured[0] == ("loop-start", ["s0", "s1"])
    assert len(loop.book().read().rounds[1].fixed.choices[0].candidate.sequence) == 13


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
    decide = rounds_module.stop_reason
    others = []

    def overtaken(rules, ended, spent):
        reason = decide(rules, ended, spent)
        if len(ended) == 1 and not others:
            others.append(None)
            others.append(loop(designer="loop_designers:flat", max_rounds=2))
        return reason

    monkeypatch.setattr(rounds_module, "stop_reason", overtaken)
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
