"""Loops of files at once in one installation, as their people see them: forms, budget, failures, events, assets."""

import json
import time
from dataclasses import dataclass, field

import pytest

from prefect_assay.looping import LoopBook
from prefect_assay.models.report import LoopReport
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import AFTER_MATERIALS
from prefect_assay.tasks.estimate import estimate_cost
from support.command import command
from support.runs.events import assets_of, names, of_campaign
from support.runs.world import EGFR, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

# Its published curves do not follow a 1:1 model.
BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
DESIGNS = ("MKTAYIAKQRQISFVKSHFSRQA", "MKTAYIAKQRQISFVKSHFSRQC", "MKTAYIAKQRQISFVKSHFSRQD")


@dataclass
class Loops:
    """The loops, and what people and the laboratory do meanwhile."""

    world: object
    prices: dict[int, int]
    runs: dict[str, object] = field(default_factory=dict)
    reports: dict[str, LoopReport] = field(default_factory=dict)
    forms: list[str] = field(default_factory=list)

    def start(self, loop_id, files, **changes):
        folder = self.world.folder / loop_id
        folder.mkdir()
        for name, designs in files.items():
            text = "".join(f">{name}{n}\n{residues}\n" for n, residues in enumerate(designs))
            (folder / f"{name}.fasta").write_text(text)
        given = self.world.shared() | {
            "loop_id": loop_id,
            "source": str(folder),
            "assay": {"experiment_type": "affinity", "method": "bli", "target": EGFR},
            "settle_seconds": 0,
        }
        self.runs[loop_id] = self.world.start("design-build-test", **given | changes)

    def pass_until_ended(self):
        advanced = time.monotonic()
        decisions = {"seen-yes": "approve", "seen-no": "reject"}

        def ended():
            nonlocal advanced
            states = {loop_id: self.world.run(run).state for loop_id, run in self.runs.items()}
            for loop_id, decision in decisions.items():
                state = states[loop_id]
                if state.name == "Suspended" and state.state_details.run_input_keyset:
                    answer = self.world.api.resume_flow_run(
                        self.runs[loop_id].id, run_input={"decision": decision, "note": f"I {decision}"}
                    )
                    self.forms.append(f"{loop_id} {answer.status.value}")
            for order in self.world.orders("seen-fails-"):
                if order.status in AFTER_MATERIALS:
                    self.world.stack.lab.event("force_status", order.id, status="canceled")
            if time.monotonic() > advanced + 5:
                self.world.advance(days=4)
                advanced = time.monotonic()
            return all(state.is_final() for state in states.values())

        eventually(ended, seconds=800, what="all loops to end")
        for loop_id, run in self.runs.items():
            self.reports[loop_id] = self.world.result(run, LoopReport)

    def rounds(self, loop_id):
        archive = self.world.archive
        return LoopBook(archive.get_store(), archive.prefix, loop_id).read().rounds


@pytest.fixture(scope="module")
def loops(world):
    target = next(t for t in world.service.iter_targets() if t.name == EGFR)

    def price(count):
        spec = ExperimentSpec.model_validate(
            {
                "experiment_type": "affinity",
                "method": "bli",
                "target_id": target.id,
                "sequences": {str(n): {"aa_string": text} for n, text in enumerate(DESIGNS[:count])},
            }
        )
        return estimate_cost.fn(world.credentials, spec).total_cents

    made = Loops(world, {count: price(count) for count in (1, 2, 3)})
    made.start("seen-events", {"a": [BINDER], "b": [DESIGNS[0]]})
    made.start("seen-yes", {"a": [DESIGNS[1]]}, ask_each_round=True)
    made.start("seen-no", {"a": [DESIGNS[2]]}, ask_each_round=True)
    made.start(
        "seen-budget",
        {"a": DESIGNS, "b": [BINDER + "A"]},
        designs_per_round=3,
        budget_cents=made.prices[2] + 1,
    )
    made.start("seen-fails", {"a": [BINDER + "C"]})
    made.pass_until_ended()
    return made


def test_a_person_decides_before_each_round(world, loops):
    assert sorted(loops.forms) == ["seen-no ACCEPT", "seen-yes ACCEPT"]
    yes, no = loops.reports["seen-yes"], loops.reports["seen-no"]
    assert (yes.stop, [bool(r.table) for r in yes.rounds]) == ("no_more_designs", [True])
    assert len(world.settlements("seen-yes-")) == 1
    assert (no.stop, [bool(r.table) for r in no.rounds]) == ("person", [False])
    assert "(I reject)" in no.stopped
    assert world.orders("seen-no-") == []


def test_the_budget_cuts_a_round_and_ends_the_loop_by_the_services_prices(world, loops):
    report = loops.reports["seen-budget"]
    first, *others = loops.rounds("seen-budget")
    assert (report.stop, others) == ("budget", [])
    assert (first.fixed.designs, first.ended.spent_cents) == (2, loops.prices[2])
    assert "the budget allows no more" in first.fixed.choices[0].reason
    assert loops.prices[2] + 1 < loops.prices[3]
    (order,) = world.orders("seen-budget-")
    assert [s["amount_cents"] for s in world.settlements("seen-budget-")] == [loops.prices[2]]
    assert len(list(world.service.iter_sequences(experiment_id=order.id))) == 2


def test_the_reason_of_a_failed_campaign_is_in_log_and_status(world, loops):
    (entry,) = loops.rounds("seen-fails")
    assert "was canceled" in entry.failed.problem
    assert entry.ended is None
    shown = command("status", "seen-fails", **world.stack.env)
    assert shown.code == 0, shown.err
    assert "was canceled" in " ".join(shown.out.split())
    (line,) = json.loads(command("status", "seen-fails", "--json", **world.stack.env).out)["loop"]["rounds"]
    assert line["problem"] == entry.failed.problem


def test_rounds_curves_and_assets_are_events_once(loops):
    campaigns = {"a": "seen-events-a", "b": "seen-events-b"}
    for campaign in (*campaigns.values(), "seen-fails-a"):  # the server writes events in batches
        eventually(
            lambda c=campaign: names(of_campaign(c))["assay.round.completed"],
            seconds=20,
            what=f"the event of {campaign}; there are {names(of_campaign(campaign))}",
        )
    for name, campaign in campaigns.items():
        events = of_campaign(campaign)
        assert names(events)["assay.round.completed"] == 1
        assert names(events)["assay.experiment.results-ready"] == 1
        (completed,) = (e for e in events if e.event == "assay.round.completed")
        assert (completed.payload["round"], completed.resource["prefect.resource.id"]) == (
            name,
            "assay.loop.seen-events",
        )
        assert completed.payload["table"]
    assert [names(of_campaign(c))["assay.curve.review"] for c in campaigns.values()] == [1, 0]
    (review,) = (e for e in of_campaign("seen-events-a") if e.event == "assay.curve.review")
    assert review.payload["designs"] == ["a0"]

    assets = {c: assets_of(c) for c in campaigns.values()}
    for campaign_id, events in assets.items():
        # The table, the report, the round, and each archived version of the experiment: with partial results, with all.
        assert len(events) == 3 + names(of_campaign(campaign_id))["assay.experiment.archived"]
        versions = [(event.resource["prefect.resource.id"], event.payload["version"]) for event in events]
        assert len({key for key, _ in versions}) == 4, versions
        assert len({*versions}) == len(versions), versions
        for event in events:
            assert event.roles()["asset-materialized-by"] == "prefect-assay"
    keys = {e.resource["prefect.resource.id"]: e for events in assets.values() for e in events}
    first, second = (f"assay://loop/seen-events/{name}" for name in campaigns)

    def upstream(key):
        return {
            r["prefect.resource.id"] for r in keys[key].related if r.get("prefect.resource.role") == "asset"
        }

    tables = {name: next(k for k in keys if k.endswith(f"{c}/TABLE")) for name, c in campaigns.items()}
    assert upstream(first) == {tables["a"]}
    assert upstream(second) == {first, tables["b"]}
    assert len(upstream(tables["a"])) == 1
    (experiment,) = upstream(tables["a"])
    assert keys[experiment].payload["rows"] > 0
    (failed,) = (e for e in of_campaign("seen-fails-a") if e.event == "assay.round.completed")
    assert "was canceled" in failed.payload["problem"]
