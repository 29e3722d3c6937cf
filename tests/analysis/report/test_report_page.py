"""The page: harmless whatever designs are called, complete, and the same bytes each time it is made."""

import hashlib
import html
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from prefect_assay.analysis.kinetics.analysis import ReplicateMelting
from prefect_assay.analysis.report import documents, figures
from prefect_assay.analysis.report.decision import Decision
from prefect_assay.analysis.report.details import details_table
from prefect_assay.analysis.report.documents import archive_report, kept_report, make_report
from prefect_assay.analysis.report.images import IMAGES_BYTES_MAX, experiment_images
from prefect_assay.analysis.report.render import render_page
from prefect_assay.analysis.results import is_hit
from prefect_assay.archive import LocalStore, read_latest, verify_versions
from prefect_assay.orders.ledger import check_orders
from prefect_assay.service.models.answer_json import is_open_link
from support.reporting.campaigns import melt, summary

CAMPAIGN = "round-1"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TESTS = Path(__file__).parents[2]
# Prints the digest of every derived file.
PROGRAM = """
import hashlib, json, sys
from prefect_assay.archive import LocalStore
from prefect_assay.analysis.report.documents import make_report
made = make_report(LocalStore(sys.argv[1]), "", "round-1")
digests = {d.path: hashlib.sha256(d.body).hexdigest() for d in made.documents}
print(json.dumps({"digests": digests, "notes": made.notes, "page": made.page is not None}))
"""
BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
"""


class Page(HTMLParser):
    """Tags with their attributes, and the text outside of styles."""

    def __init__(self, body):
        super().__init__()
        self.tags, self.words, self._styles = [], [], 0
        self.feed(body.decode())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._styles += tag == "style"

    def handle_endtag(self, tag):
        self._styles -= tag == "style"

    def handle_data(self, data):
        if not self._styles:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="session")
def made(lab_archive):
    return make_report(LocalStore(lab_archive[0]), "", CAMPAIGN)


@pytest.fixture(scope="session")
def page(made):
    return Page(made.page)


def elsewhere(archive, before="", seed="0"):
    done = subprocess.run(
        [sys.executable, "-c", before + PROGRAM, str(archive)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return json.loads(done.stdout)


def test_no_name_becomes_markup(page):
    tags = {tag for tag, _ in page.tags}
    assert not tags & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "link",
        "base",
        "form",
        "b><i",
        "foreignobject",
    }
    assert [a for _, attributes in page.tags for a in attributes if a.startswith("on")] == []
    assert "alert(1)" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "<i>1</i>" in page.text
    assert "\u202e" not in page.text


def test_an_invoice_over_nothing_has_a_price_per_design(made):
    def free(experiment):
        return experiment.model_copy(
            update={"order": experiment.order.model_copy(update={"amount_cents": 0})}
        )

    contents = made.contents
    free_contents = contents.model_copy(update={"experiments": tuple(map(free, contents.experiments))})
    shown = Page(
        render_page(free_contents, made.summaries, made.figures, (), (), Decision(lines=made.decision))
    ).text
    assert [experiment.price_per_sequence_cents for experiment in free_contents.experiments] == [0, 0]
    assert shown.count("0.00 USD 0.00 USD paid") == 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("0.8123456", "0.8123"),
        ("-12.34567", "-12.35"),
        ("1.234567e-05", "1.235e-05"),
        ("0.50", "0.50"),
        ("1.10", "1.10"),
        ("1_2", "1_2"),
        ("007", "007"),
        ("12345678901", "12345678901"),
        ("00.12345", "00.12345"),
        ("1_0.2345", "1_0.2345"),
        ("1.2345e-999", "1.2345e-999"),
        ("infinity", "infinity"),
    ],
)
def test_only_a_long_decimal_number_of_the_designer_is_rounded(value, shown):
    designs = [summary(name, 1e-8, attributes={"x": text}) for name, text in (("a", value), ("b", "other"))]
    assert [cells[-1] for _, cells in details_table(designs, ()).lines] == [shown, "other"]


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"tm_C": 95.0, "qualifier": ">"}, "T m > 95.0 °C"),
        ({"tm_C": 61.0}, "T m 61.0 °C"),
        ({"kd": 1e-9, "tm_C": 61.0, "qualifier": "<"}, "K D < 1.00 nM"),
    ],
)
def test_a_limit_keeps_its_sign_in_the_heading_of_its_curves(made, fields, shown):
    design = summary("d", outcome="measured", **fields)
    curve = figures.CurveFigure(experiment_code="EX-1", result_id="r", fit=melt("d").melting, svg=None)
    body = render_page(made.contents, (design,), figures.CampaignFigures(), (curve,), (), Decision(lines=()))
    assert f"measured {shown} 1 replicate, EX-1" in Page(body).text


def test_predicted_chances_are_shown_beside_what_hit(made):
    def predicted(design, reason):
        more = {"selection_score": "0.4", "selection_reason": reason}
        return design.model_copy(update={"attributes": {**design.attributes, **more}})

    def shown(reason):
        designs = tuple(predicted(design, reason) for design in made.summaries)
        return Page(
            render_page(made.contents, designs, figures.CampaignFigures(), (), (), Decision(lines=()))
        ).text

    known = [is_hit(design) for design in made.summaries]
    measured, hits = sum(hit is not None for hit in known), sum(hit is True for hit in known)
    assert 0 < hits < measured
    assert f"25% to 50% {measured} 40% {hits} " in shown("hits with 40% (10% to 70%)")
    # A chance of another limit, and another policy's score, are not chances to bind.
    assert "Mean predicted" not in shown("hits 100 with 40% (10% to 70%)")
    assert "Mean predicted" not in shown("ipTM 0.4, place 1 of 5")


def test_it_needs_no_network(made, page):
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "script" not in policy
    outside = {
        value
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in {"href", "src", "xlink:href", "srcset", "action"} and not value.startswith(("#", "data:"))
    }
    assert outside == {experiment.url for experiment in made.contents.experiments}
    assert b"@import" not in made.page
    assert b"url(http" not in made.page


def test_no_derived_file_repeats_a_link_that_works_without_a_token(made, lab_archive):
    def links(name, value):
        if isinstance(value, dict):
            return {link for key, item in value.items() for link in links(key, item)}
        if isinstance(value, list):
            return {link for item in value for link in links(name, item)}
        return {value} if is_open_link(name, value) else set()

    open_links = {
        link
        for path in lab_archive[0].glob(f"{CAMPAIGN}/LAB*/v001/raw/*.json")
        for link in links("", json.loads(path.read_text()))
    }
    assert len(open_links) > 3
    holding = [d.path for d in made.documents for link in open_links if link.encode() in d.body]
    assert holding == []


def test_it_says_what_was_paid_what_failed_and_of_what_it_is_made(made, page, lab_archive):
    amounts = [experiment.order.amount_cents for experiment in made.contents.experiments]
    assert f"{sum(amounts) / 100:,.2f} USD paid" in page.text
    assert "paid, hosted invoice, paid by a person" in page.text
    assert "1 of 3 experiments without archived results" in page.text
    assert "The design expressed, and the laboratory reports no binding." in page.text
    assert "simulated" in page.text
    assert re.search(r"Made with Python [\d.]+, prefect-assay [\w.]+, numpy [\d.]+, scipy", page.text)
    assert "github.com/agitter/adaptyvbio-egfr" in page.text
    for experiment in made.contents.experiments:
        folder = lab_archive[0] / CAMPAIGN / experiment.code / "v001"
        manifest = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
        assert f"{experiment.code} version 1, manifest SHA-256 {manifest}" in page.text
        assert hashlib.sha256((folder / "raw/results-0001.json").read_bytes()).hexdigest() in page.text


def test_every_replicate_has_its_curves(made):
    replicates = [
        row for row in made.contents.rows if row.level == "replicate" and row.expression not in {"none", None}
    ]
    drawn = made.page.count(b"<title>Sensorgrams of ")
    assert drawn == len(replicates) > 10


def test_the_same_archive_gives_the_same_bytes_elsewhere(made, archive):
    here = {d.path: hashlib.sha256(d.body).hexdigest() for d in made.documents}
    assert elsewhere(archive, seed="17")["digests"] == here
    assert {"report.html", "summary.csv", "plots/overview.svg"} <= here.keys()
    assert str(archive).encode() not in made.page


def test_names_that_differ_only_in_a_slash_have_files_of_their_own(made, tmp_path):
    names = ("VHH/1", "VHH_1", "vhh-1")
    curves = [
        figures.CurveFigure(
            experiment_code="E-1",
            result_id="r",
            fit=ReplicateMelting(name=name, replicate=1, verdict="agrees"),
            svg=name,
        )
        for name in names
    ]
    drawn = figures.CampaignFigures(predicted={name: name for name in names})
    plots = tuple(documents._make_plots(drawn, curves))
    assert [plot.body.decode() for plot in plots] == [*names, *names]
    store = LocalStore(tmp_path)
    archive_report(store, "", made.model_copy(update={"documents": plots}), now=NOW)
    kept = kept_report(store, "", CAMPAIGN).files
    assert len([path for path in kept if path.startswith("plots/")]) == 2 * len(names)


def test_an_unchanged_report_writes_nothing_and_the_archive_stays_intact(made, archive, store):
    first = archive_report(store, "", made, now=NOW)
    before = sorted(archive.rglob("*"))
    again = make_report(store, "", CAMPAIGN)
    assert archive_report(store, "", again, now=NOW).unchanged
    assert sorted(archive.rglob("*")) == before
    assert first.version == 1
    kept = kept_report(store, "", CAMPAIGN)
    assert kept.read("report.html") == made.page
    assert kept.manifest.results_status == "partial"  # an experiment is only ordered
    assert verify_versions(store).findings == ()
    assert [f for f in check_orders(store) if f.is_damage] == []


@pytest.mark.parametrize(
    ("names", "missing", "has_page"),
    [
        (
            {"numpy", "scipy", "jinja2", "markupsafe"},
            "fitting the raw curves, the HTML report",
            False,
        ),
        ({"numpy", "scipy"}, "fitting the raw curves", True),
    ],
)
def test_without_an_extra_the_rest_is_made_and_one_line_says_so(archive, names, missing, has_page):
    output = elsewhere(archive, BLOCKED.replace("{names}", repr(names)))
    assert {"summary.csv", "summary.json"} <= output["digests"].keys()
    assert output["page"] is has_page
    assert output["notes"] == [f"{missing} needs an extra: in a checkout, run pip install '.[report]'"]


def test_only_the_best_designs_are_drawn_beyond_the_bound(lab_archive, monkeypatch):
    monkeypatch.setattr(figures, "SENSORGRAMS_MAX", 5)
    made = make_report(LocalStore(lab_archive[0]), "", CAMPAIGN)
    assert made.page.count(b"<title>Sensorgrams of ") == 3
    best = html.escape(made.summaries[0].name, quote=False)
    assert f"<title>Sensorgrams of {best}: ".encode() in made.page
    assert "without a figure" in Page(made.page).text
    assert len([d for d in made.documents if d.path.startswith("kinetics/")]) == 2


def test_the_images_of_an_artifact_are_few(made, store):
    code = made.contents.experiments[0].code
    designs, images, notes = experiment_images(store, "", CAMPAIGN, code)
    assert any(design.verdict for design in designs)
    assert notes == ()
    assert images[0].alt == "overview of all designs"
    assert any(image.alt.startswith("curves of") for image in images)
    assert sum(len(image.svg.encode()) for image in images) <= IMAGES_BYTES_MAX
    assert read_latest(store, "", CAMPAIGN, "REPORT") is None
