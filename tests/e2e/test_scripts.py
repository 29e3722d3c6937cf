"""Without a deployment: refusals before money, plain scripts, the example of the README, a loop."""

import json
import pickle
import re
import threading
from pathlib import Path

import pytest
from prefect.serializers import JSONSerializer

from prefect_assay.archive import LocalStore, verify_versions
from prefect_assay.blocks import AssayCredentials, SpendingPolicy
from prefect_assay.cli.campaigns.run import _run_here
from prefect_assay.errors import (
    CampaignFailed,
    DecisionNeeded,
    InvalidSequences,
    InvalidSpec,
    PaymentsDisabled,
    ServiceUnavailable,
    Unauthorized,
)
from prefect_assay.flows import campaign, design_build_test
from prefect_assay.service.models.spec import Assay
from support.accounts import flow_parameters
from support.pages import QUICK_START, README, blocks
from support.runs.world import EGFR

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


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"payment_method": "mpp-spt"}, PaymentsDisabled, "mpp-spt pays with a wallet of its kind"),
        ({"wallet": None}, PaymentsDisabled, "x402-exact pays with a wallet of its kind"),
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
        campaign(**flow_parameters(parameters))
    assert world.creates() == before


def test_a_wrong_token_is_refused_in_words_that_do_not_hold_it(world):
    wrong = AssayCredentials(base_url=world.stack.lab.base_url, token="assay_wrongtoken")
    parameters = world.shared() | {"designs": f">a\n{DESIGN}\n", "assay": assay(EGFR), "credentials": wrong}
    with pytest.raises(Unauthorized) as caught:
        campaign(**flow_parameters(parameters))
    assert "assay_wrongtoken" not in str(caught.value)
    assert caught.value.request_id


def test_a_plain_script_polls_and_ends_with_the_same_archive(world, days_pass):
    """Without a deployment the same flows run side by side in one process."""
    parameters = world.shared() | {"webhook": None, "designs_per_experiment": 1, "poll_seconds": 0.5}
    report = campaign(
        designs=f">a\n{DESIGN}\n>b\n{BINDER}\n",
        assay=Assay.model_validate(assay(EGFR)),
        campaign_id="script",
        **flow_parameters(parameters),
    )
    assert len(report.experiments) == 2
    assert report.problems == ()
    assert len(world.orders("script")) == 2
    assert len(world.settlements("script")) == 2
    assert verify_versions(LocalStore(world.folder / "archive"), "script").ok


def test_a_script_over_the_cap_of_an_experiment_orders_nothing_and_says_where_to_be_asked(world):
    parameters = world.shared() | {
        "designs": f">a\n{DESIGN}\n",
        "assay": Assay.model_validate(assay(EGFR)),
        "policy": SpendingPolicy(per_experiment_cents=1, per_campaign_cents=10**7),
        "payment_method": "async_invoice",
        "wallet": None,
        "campaign_id": "capped",
        "webhook": None,
    }
    with pytest.raises(DecisionNeeded, match=r"cap per experiment, 0\.01 USD.* from its deployment"):
        campaign(**flow_parameters(parameters))
    assert world.orders("capped") == []


def test_a_script_without_results_raises_with_the_report(world, capsys):
    world.fault("status", status=422, method="POST", path="/api/v1/experiments", count=2)
    parameters = world.shared() | {
        "designs": f">a\n{DESIGN}\n",
        "assay": Assay.model_validate(assay(EGFR)),
        "payment_method": "async_invoice",
        "wallet": None,
        "campaign_id": "none",
        "webhook": None,
    }
    with pytest.raises(CampaignFailed, match=r"1 not ordered; .* answered 422") as caught:
        campaign(**flow_parameters(parameters))
    (line,) = caught.value.report.experiments
    assert (line.location, line.problem in str(caught.value)) == (None, True)
    assert pickle.loads(pickle.dumps(caught.value)).report == caught.value.report
    kept = JSONSerializer()
    assert str(kept.loads(kept.dumps(caught.value))) == str(caught.value)
    with pytest.raises(SystemExit):  # `prefect-assay run --here --json`
        _run_here(flow_parameters(parameters), as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["rows"]) == ("Failed", 0)
    problem, request, _ = line.problem.partition("(request ")
    assert request
    assert shown["experiments"][0]["problem"].startswith(problem)
    assert world.orders("none") == []


def test_the_readme_example_runs_without_an_account(world, monkeypatch, tmp_path, capsys):
    (example,) = blocks(README, "python")
    example = example.replace("lab/src/", f"{README.parent}/lab/src/")
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    table, report = (Path(path) for path in capsys.readouterr().out.split()[-2:])
    assert len(table.read_text().splitlines()) > 11
    assert table.is_relative_to(tmp_path / "assay-archive")
    assert report.is_file()


def test_the_quick_start_example_runs(world, days_pass, monkeypatch, tmp_path, capsys):
    (example,) = blocks(QUICK_START, "python")
    (tmp_path / "designs.fasta").write_text(f">readme\n{BINDER}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    world.save_documented_blocks()
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


def test_a_loop_in_a_script_goes_on_until_the_goal_and_survives_a_bad_file(world, days_pass):
    folder = world.folder / "script-rounds"
    folder.mkdir()
    (folder / "round0.fasta").write_text(">bad\nACDJ\n")
    (folder / "round1.fasta").write_text(f">a\n{DESIGN}\n")
    (folder / "round2.fasta").write_text(f">b\n{BINDER}\n")
    (folder / "round3.fasta").write_text(f">c\n{DESIGN}A\n")
    parameters = loop_parameters(world, folder, "scripted") | {"webhook": None, "poll_seconds": 0.5}
    report = design_build_test(**flow_parameters(parameters | {"assay": assay(EGFR)}))
    assert [r.name for r in report.rounds] == ["round0", "round1", "round2"]
    assert "'J'" in report.rounds[0].problem
    assert [r.best_kd_M is None for r in report.rounds] == [True, True, False]
    assert len(world.orders("scripted-")) == 2


def test_a_round_never_takes_the_designs_of_another_campaign_for_its_own(world, days_pass):
    folder = world.folder / "taken-rounds"
    folder.mkdir()
    (folder / "round-1.fasta").write_text(f">b\n{BINDER}\n")
    shared = {"webhook": None, "poll_seconds": 0.5, "assay": assay(EGFR)}
    earlier = {"designs": f">a\n{DESIGN}\n", "campaign_id": "taken-round-1"}
    campaign(**flow_parameters(world.shared() | shared | earlier))
    report = design_build_test(**flow_parameters(loop_parameters(world, folder, "taken") | shared))
    (only,) = report.rounds
    assert "taken-round-1 has been used for other designs" in only.problem
    assert only.best_kd_M is None
    assert len(world.orders("taken-round-1")) == 1
