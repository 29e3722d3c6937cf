"""One number for one thing: report, status, results, CSV, tables and selection say the same of the same designs.

Two campaigns of one archive, both measured by a simulated service. The first has designs of every outcome, one of them with a K_D
above the highest concentration; one of its designs is also measured in the second.
"""

import csv
import io
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from prefect_assay.analysis.report.documents import archive_report, make_report
from prefect_assay.analysis.results import (
    count_hit_rates,
    make_table,
    read_results,
    to_csv,
)
from prefect_assay.analysis.selection import read_history
from prefect_assay.archive import Document, LocalStore, archive_version, read_latest
from prefect_assay.campaigns.report import describe_end
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from prefect_assay.orders.stages import Stage
from prefect_assay.service.models.sequences import ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay, Target
from prefect_assay.service.models.vocabulary import ExperimentType
from prefect_assay.tasks.read import plan_campaign
from support.archive.campaign_records import started
from support.command import command

GOLDEN = Path(__file__).parents[1] / "golden" / "cli"
TARGET = Target(id="11111111-1111-4111-8111-111111111111", name="Human EGFR")
STEM = "ACDEFGHIKLMNPQRSTVWY"
NAMES = ("tight", "weak", "none", "silent", "odd", "both")
RESIDUES = {name: STEM[offset:] + STEM for offset, name in enumerate((*NAMES, "later"))}
WEAK = 6.24e-6  # above the highest concentration of the contract's default, 1 µM


def entry(name, *kds, binding="true", **fields):
    replicates = [{"replicate": n, "kd": kd, "binding": binding} for n, kd in enumerate(kds, start=1)]
    return {
        "result_type": "affinity",
        "sequence": {"name": name, "aa_string": RESIDUES[name]},
        "kd_units": "M",
        "binding": binding,
        "replicates": replicates,
        **fields,
    }


CAMPAIGNS = {
    "first": [
        entry("tight", 1.0e-9, 1.2e-9, 1.1e-9, kd_mean=1.1e-9, binding_strength="strong"),
        entry(
            "weak", WEAK * 0.9, WEAK, WEAK / 0.9, binding_strength="weak"
        ),  # the laboratory has no mean of weak binders
        entry("none", binding="false"),
        entry("silent", binding="unknown", expression="none"),
        entry("odd", binding="unknown"),
        entry("both", 2.0e-8, 2.1e-8, 1.9e-8, kd_mean=2.0e-8, binding_strength="strong"),
    ],
    "second": [
        entry("both", 8.0e-8, 8.2e-8, 7.8e-8, kd_mean=8.0e-8, binding_strength="strong"),
        entry("later", binding="false"),
    ],
}


def archive_campaign(store, campaign_id, entries):
    """Plan, one experiment, log and report of a campaign, as its run archives them."""
    names = [summary["sequence"]["name"] for summary in entries]
    designs = [ProteinSequence(name, RESIDUES[name], attributes={"method": "rfd"}) for name in names]
    assay = Assay(experiment_type=ExperimentType.AFFINITY, target="egfr")
    sequences = Sequences(source="test", items=tuple(designs))
    plan = plan_campaign.fn(sequences, assay, TARGET, campaign_id=campaign_id, per_experiment=96)
    code = f"LAB-{campaign_id.upper()}"
    answer = {"items": [{"id": f"r-{campaign_id}", "result_type": "affinity", "summary": entries}]}
    raw = {"results-0001.json": json.dumps(answer).encode()}
    results, _ = read_results(raw)
    spec = plan.experiments[0].spec
    table = make_table(results, spec, experiment_code=code, complete=True, has_unread_answers=False)
    for experiment, documents in (
        ("PLAN", {"plan.json": plan.model_dump_json().encode()}),
        (
            code,
            {
                "raw/results-0001.json": raw["results-0001.json"],
                "spec.json": json.dumps(spec.wire()).encode(),
                "results.csv": to_csv(table.rows),
            },
        ),
    ):
        archive_version(
            store,
            "",
            campaign_id=campaign_id,
            experiment_id=f"id-{experiment}",
            experiment_code=experiment,
            results_status="all",
            documents=[
                Document(path=path, content_type="text/plain", body=body) for path, body in documents.items()
            ],
            now=datetime(2026, 3, 1, tzinfo=UTC),
        )
    log = CampaignLog(store, "", campaign_id)
    log.start(started(campaign_id, archive_id=Ledgers(store, "", "org-1").archive_id))
    made = make_report(store, "", campaign_id)
    archive_report(store, "", made, now=datetime(2026, 3, 2, tzinfo=UTC))
    log.finish(describe_end(made.summaries, [Stage.MEASURED], []), complete=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = LocalStore(tmp_path_factory.mktemp("archive"))
    for campaign_id, entries in CAMPAIGNS.items():
        archive_campaign(store, campaign_id, entries)
    assert command("archive", "tables", str(store.root)).code == 0
    return store


def reported(store, campaign_id, path):
    return read_latest(store, "", campaign_id, "REPORT").read(path)


def test_every_place_has_the_hit_rate_without_unknown_designs(store):
    words = "3 of 5 bind, 1 did not express, 1 unknown"
    page = " ".join(re.sub(r"<[^>]+>", " ", reported(store, "first", "report.html").decode()).split())
    assert f"{words}; best 1.10 nM (tight); simulated." in page
    assert "3 of 5 designs bind, 1 did not express, 1 unknown" in page
    status = command("status", "first", "--archive", str(store.root))
    assert f"{words}; best 1.10 nM" in " ".join(status.out.split())
    shown = command("results", "first", "--archive", str(store.root))
    assert f"{words}; best 1.10 nM (tight); simulated; hit rate 60% (" in " ".join(shown.out.split())
    rate = command("results", "first", "--archive", str(store.root), "--json").json()["rate"]
    assert (rate["hits"], rate["measured"]) == (3, 5)
    read = read_history(reported(store, "first", "summary.csv"))
    assert count_hit_rates(read.designs, lambda _: "all")["all"].words == "3 of 5"
    compared = command("results", "--compare", "first", "second", "--archive", str(store.root))
    assert f"first: {words}; hit rate 60% (" in compared.out


def test_a_design_of_two_campaigns_is_one_design(store):
    """`both` is a hit of each campaign, and one of the three hits of six designs in all."""
    rate = command("results", "--archive", str(store.root), "--json").json()["rate"]
    assert (rate["hits"], rate["measured"]) == (3, 6)
    history = command("designs", "history", str(store.root), "--json").json()
    (method,) = history["methods"]
    assert [method[name] for name in ("method", "bought", "measured", "hits")] == ["rfd", 7, 6, 3]
    assert method["interval"] == rate["interval"]
    tables = [reported(store, name, "summary.csv") for name in CAMPAIGNS]
    designs = read_history(*tables).designs
    assert count_hit_rates(designs, lambda _: "all")["all"].as_json() == rate


def test_the_csv_of_a_campaign_is_its_archived_summary(store):
    done = command("results", "first", "--archive", str(store.root), "--csv", "-")
    assert done.out.encode() == reported(store, "first", "summary.csv").replace(b"\r\n", b"\n")


def test_values_intervals_and_marks_are_the_same_in_every_place(store, tmp_path):
    columns = ("kd_M", "kd_low_M", "kd_high_M", "extrapolated", "simulated", "outcome")
    by_place = {}
    shown = command("results", "--archive", str(store.root), "--json").json()["results"]
    by_place["results"] = {(row["campaign_id"], row["name"]): row for row in shown}
    by_place["tables"] = {
        (row["campaign_id"], row["name"]): row
        for row in pq.read_table(store.root / "TABLES/designs").to_pylist()
    }
    history = tmp_path / "history.csv"
    assert command("designs", "history", str(store.root), "--csv", str(history)).code == 0
    by_place["history"] = {
        (row.campaign_id, row.name): row.model_dump(mode="json") for row in read_history(history).designs
    }
    by_place["report"] = {
        (row["campaign_id"], row["name"]): {
            name: json.loads(row[name] or "null") if name != "outcome" else row[name] for name in columns
        }
        for campaign_id in CAMPAIGNS
        for row in csv.DictReader(
            io.StringIO(reported(store, campaign_id, "summary.csv").decode("utf-8-sig"))
        )
    }
    expected = {place: [design[name] for name in columns] for place, design in by_place["report"].items()}
    assert len(expected) == 8
    for designs in by_place.values():
        assert {place: [design[name] for name in columns] for place, design in designs.items()} == expected
    weak = by_place["tables"]["first", "weak"]
    assert (weak["kd_M"], weak["extrapolated"], weak["simulated"]) == (pytest.approx(WEAK), True, True)
    assert not by_place["tables"]["first", "tight"]["extrapolated"]


def test_an_extrapolated_value_is_called_so_on_the_page_and_on_the_screen(store):
    page = reported(store, "first", "report.html").decode()
    screen = command("results", "first", "--archive", str(store.root)).out
    for text in (page, screen):
        assert "6.24 µM" in text
        assert "extrapolated: " in re.sub(r"<[^>]+>", "", text)
    (line,) = (line for line in screen.splitlines() if " weak " in line)
    assert line.split()[-1] == "extrapolated"


@pytest.mark.parametrize(
    ("file", "arguments"),
    [
        ("results.txt", ["first"]),
        ("results.csv", ["first", "--csv", "-"]),
        ("compare.txt", ["--compare", "first", "second"]),
    ],
)
def test_the_output_is_as_it_was_looked_at(store, file, arguments):
    """After an intended change: `UPDATE_GOLDEN=1 pytest tests/cli/test_one_number.py`, and look at the difference."""
    shown = command("results", *arguments, "--archive", str(store.root)).out
    golden = GOLDEN / file
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def test_campaigns_are_compared_by_what_they_have_in_common(store, tmp_path):
    comparison = command(
        "results", "--compare", "second", "first", "--archive", str(store.root), "--json"
    ).json()
    (common,) = comparison["common"]
    (change,) = common["changes"]
    assert (change["kd_ratio"], change["intervals_overlap"]) == (pytest.approx(1 / 4, rel=1e-2), False)
    assert [
        (campaign["campaign"], campaign["hits"], campaign["measured"]) for campaign in comparison["campaigns"]
    ] == [
        ("second", 1, 2),
        ("first", 3, 5),
    ]
    file = tmp_path / "compared.csv"
    command("results", "--compare", "first", "second", "--archive", str(store.root), "--csv", str(file))
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"))))
    assert [(row["name"], row["campaign_id"]) for row in rows] == [("both", "first"), ("both", "second")]
    assert (rows[0]["kd_ratio"], float(rows[1]["kd_ratio"])) == ("", pytest.approx(4, rel=1e-2))
