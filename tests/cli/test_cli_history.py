"""`prefect-assay designs history`, as a user runs it: a loop and a campaign without one in the same archive."""

import pytest
from scipy import stats

from prefect_assay.analysis.results.repeats import get_residues
from prefect_assay.analysis.selection import read_history
from prefect_assay.archive import LocalStore
from prefect_assay.campaigns.loops.candidates import update_candidates
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.log import Ordered
from prefect_assay.service.models.sequences import ProteinSequence
from support.archive.campaigns import archive_rows, row
from support.archive.loops import LOOP, archive_measured_round, archive_plan, selected_round, whole_round
from support.command import command


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    store = LocalStore(tmp_path_factory.mktemp("archive"))
    archive_measured_round(store, "", selected_round(store, ""))
    whole_round(store, "")
    designs = [
        ProteinSequence(name, f"MKV{'A' * number}", attributes={"method": "rfd", "ipTM": f"0.{number}"})
        for number, name in enumerate(("h1", "h2"), start=1)
    ]
    archive_plan(store, "", "by-hand", designs)
    rows = [row("h1", "HND-001", outcome="no_expression"), row("h2", "HND-001", kd_M=1e-9)]
    archive_rows(store, "", "by-hand", "HND-001", rows)
    done = command("archive", "tables", str(store.root))
    assert done.code == 0, done.err
    assert f"{store.root}/TABLES/candidates: 2 files, 2 written now" in done.out
    return store.root


def test_methods_of_all_campaigns_with_their_hit_rates(archive):
    shown = command("designs", "history", str(archive), "--json").json()
    assert [
        [entry[title] for title in ("method", "proposed", "bought", "measured", "hits", "hit_rate")]
        for entry in shown["methods"]
    ] == [["rfd", 5, 4, 4, 3, 0.75], ["old", 3, 2, 2, 1, 0.5], ["(no method)", 3, 0, 0, 0, None]]
    low, high = shown["methods"][0]["interval"]
    assert (low, high) == pytest.approx(stats.beta.interval(0.95, 3.5, 1.5))
    assert shown["notes"] == [f"loop {LOOP}, round 2: its experiment was canceled"]
    assert shown["passed_over"] == {"duplicate": 1, "ranked_lower": 2, "not_ordered": 2}
    scores = {entry["column"]: (entry["designs"], entry["rho"]) for entry in shown["scores"]}
    assert scores["selection_score"] == (3, pytest.approx(1))
    assert scores["ipTM"] == (4, pytest.approx(-0.2))


def test_one_loop_on_the_screen_and_as_a_table_for_the_next_selection(archive, tmp_path):
    done = command("designs", "history", str(archive), "--loop", LOOP, "--csv", "h.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    (line,) = (line for line in done.out.splitlines() if "│ rfd " in line)
    assert [cell.strip() for cell in line.strip("│").split("│")][:6] == ["rfd", "3", "2", "2", "2", "100%"]
    assert "not bought: 2 ranked lower, 2 not ordered, 1 duplicate" in done.out
    history = read_history(tmp_path / "h.csv")
    assert {design.name: design.attributes["round"] for design in history.designs} == dict.fromkeys(
        ("d0", "d1", "d2", "d3"), "1"
    )
    assert len(set(map(get_residues, history.designs))) == 4


def test_designs_that_were_ordered_and_have_no_results_are_in_the_table_as_pending(tmp_path):
    store = LocalStore(tmp_path / "archive")
    fixed = selected_round(store, "")
    plan = archive_plan(store, "", fixed.campaign_id, [choice.design() for choice in fixed.choices])
    update_candidates(store, "")
    arguments = ("designs", "history", str(store.root), "--csv", "h.csv")
    assert command(*arguments, cwd=tmp_path).code == 0
    assert len(read_history(tmp_path / "h.csv")) == 0
    order = Ledgers(store, "", "org-1").open_order(fixed.campaign_id, plan.order_keys[0])
    order.record(lambda _: Ordered(experiment_id="e-1"))
    assert command(*arguments, cwd=tmp_path).code == 0
    designs = read_history(tmp_path / "h.csv").designs
    assert {(design.name, design.outcome, design.aa_string) for design in designs} == {
        (choice.candidate.name, "pending", choice.candidate.sequence) for choice in fixed.choices
    }


@pytest.mark.parametrize("measured", [False, True])
def test_designs_of_a_plain_campaign_that_are_in_the_laboratory_are_pending_too(tmp_path, measured):
    """No loop knows of them, and the next selection must not buy them again."""
    store = LocalStore(tmp_path / "archive")
    designs = [
        ProteinSequence("h1", "MKVAA", attributes={"method": "rfd"}),
        ProteinSequence("h2", "MKVGG", attributes={"method": "rfd"}),
        ProteinSequence("c1", "MKVCC", control=True),
    ]
    plan = archive_plan(store, "", "By hand", designs)
    archive_plan(store, "", "not-ordered", [ProteinSequence("n1", "MKVDD")])
    if measured:
        archive_rows(store, "", "By hand", "HND-001", [row("h1", "HND-001", kd_M=1e-9)])
        assert command("archive", "tables", str(store.root)).code == 0
    Ledgers(store, "", "org-1").open_order("By hand", plan.order_keys[0]).record(
        lambda _: Ordered(experiment_id="e-1")
    )
    done = command("designs", "history", str(store.root), "--csv", "h.csv", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    outcomes = {
        entry.name: (entry.outcome, entry.aa_string) for entry in read_history(tmp_path / "h.csv").designs
    }
    first = "measured" if measured else "pending"
    assert outcomes == {"h1": (first, "MKVAA"), "h2": ("pending", "MKVGG")}
    assert [(entry["method"], entry["bought"]) for entry in done.json()["methods"]] == [("rfd", 2)]


def test_a_table_that_would_lack_ordered_designs_is_not_written(tmp_path):
    """The next selection would buy them again."""
    store = LocalStore(tmp_path / "archive")
    plan = archive_plan(
        store, "", "by-hand", [ProteinSequence("h1", "MKVAA"), ProteinSequence("h2", "MKVGG")]
    )
    archive_rows(store, "", "by-hand", "HND-001", [row("h1", "HND-001", kd_M=1e-9)])
    assert command("archive", "tables", str(store.root)).code == 0
    Ledgers(store, "", "org-1").open_order("by-hand", plan.order_keys[0]).record(
        lambda _: Ordered(experiment_id="e-1")
    )
    (kept,) = store.root.glob("by-hand/PLAN/v*/plan.json")
    kept.chmod(0o644)
    kept.write_bytes(b"{}")
    refused = command("designs", "history", str(store.root), "--csv", "h.csv", cwd=tmp_path)
    assert refused.code == 1
    assert "campaign by-hand: its open designs are not known" in refused.err
    assert "`prefect-assay archive verify`" in refused.err
    assert not (tmp_path / "h.csv").exists()
    shown = command("designs", "history", str(store.root))
    assert shown.code == 0
    assert "campaign by-hand: its open designs are not known" in shown.err


def test_designs_of_a_plan_that_cannot_be_read_are_not_called_not_ordered(tmp_path):
    """Their order may have been placed: only the plan names it."""
    store = LocalStore(tmp_path / "archive")
    fixed = selected_round(store, "")
    plan = archive_plan(store, "", fixed.campaign_id, [choice.design() for choice in fixed.choices])
    update_candidates(store, "")
    Ledgers(store, "", "org-1").open_order(fixed.campaign_id, plan.order_keys[0]).record(
        lambda _: Ordered(experiment_id="e-1")
    )
    before = command("designs", "history", str(store.root), "--json").json()
    (kept,) = store.root.glob(f"{fixed.campaign_id}/PLAN/v*/plan.json")
    kept.chmod(0o644)
    kept.write_bytes(b"{}")
    shown = command("designs", "history", str(store.root), "--json").json()
    assert "its open designs are not known" in shown["notes"][0]
    assert shown["passed_over"] == before["passed_over"] == {"duplicate": 1, "ranked_lower": 2}
    counted = [
        {method["method"]: (method["proposed"], method["bought"]) for method in track["methods"]}
        for track in (before, shown)
    ]
    assert counted == [
        {"rfd": (3, 2), "old": (3, 2), "(no method)": (1, 0)},
        {"rfd": (3, 0), "old": (3, 0), "(no method)": (1, 0)},
    ]


def test_notes_stay_out_of_a_table_on_stdout(tmp_path):
    store = LocalStore(tmp_path)
    plan = archive_plan(store, "", "by-hand", [ProteinSequence("h1", "MKVAA")])
    Ledgers(store, "", "org-1").open_order("by-hand", plan.order_keys[0]).record(
        lambda _: Ordered(experiment_id="e-1")
    )
    archive_rows(store, "", "by-hand", "HND-001", [row("h1", "HND-001", kd_M=1e-9)])
    done = command("designs", "history", str(store.root), "--csv", "-")
    assert done.code == 0, done.err
    assert [design.outcome for design in read_history(done.out.encode()).designs] == ["pending"]
    assert "HND-001 has results that are not in the tables; run `prefect-assay archive tables`" in done.err


def test_an_archive_without_a_history_says_what_to_do(archive, tmp_path):
    for arguments, what in (
        ((str(tmp_path),), "of any design"),
        ((str(archive), "--loop", "no"), "of loop no"),
    ):
        done = command("designs", "history", *arguments)
        assert done.code == 1
        assert f"has no history {what} in its tables; `prefect-assay archive tables` writes them" in done.err


def test_an_experiment_that_two_campaigns_archived_counts_once(tmp_path):
    store = LocalStore(tmp_path / "archive")
    designs = [ProteinSequence("h1", "MKVA", attributes={"method": "rfd"})]
    for campaign in ("first", "again"):
        archive_plan(store, "", campaign, designs)
        archive_rows(store, "", campaign, "HND-001", [row("h1", "HND-001", kd_M=1e-9, aa_string="MKVA")])
    assert command("archive", "tables", str(store.root)).code == 0
    shown = command("designs", "history", str(store.root), "--json").json()
    assert shown["designs"] == 1
    assert (
        "1 of 2 designs in the tables are there twice, with the same experiment; each counts once"
        in shown["notes"]
    )


def test_what_was_predicted_is_shown_beside_what_was_found(tmp_path):
    store = LocalStore(tmp_path / "archive")
    designs = [
        ProteinSequence(
            f"h{number}",
            f"MKV{'A' * number}",
            attributes={"selection_score": f"0.3{number}", "selection_reason": "hits with 30% (10% to 60%)"},
        )
        for number in range(4)
    ]
    archive_plan(store, "", "chosen", designs)
    outcomes = [
        {"kd_M": 1e-9},
        {"outcome": "no_binding"},
        {"outcome": "no_binding"},
        {"outcome": "no_expression"},
    ]
    archive_rows(
        store,
        "",
        "chosen",
        "HND-001",
        [row(f"h{number}", "HND-001", **outcome) for number, outcome in enumerate(outcomes)],
    )
    assert command("archive", "tables", str(store.root)).code == 0
    (band,) = command("designs", "history", str(store.root), "--json").json()["predictions"]
    assert (band["predicted"], band["measured"], band["hits"]) == (pytest.approx(0.315), 4, 1)
    shown = command("designs", "history", str(store.root)).out
    (line,) = (line for line in shown.splitlines() if f"{band['low']:.0%} to {band['high']:.0%}" in line)
    assert [cell.strip() for cell in line.strip("│").split("│")][1:5] == [
        "4",
        f"{band['predicted']:.0%}",
        "1",
        "25%",
    ]
