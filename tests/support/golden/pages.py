"""Report pages of small campaigns, each with one thing that a page must not get wrong; without figures, so that they are the same
in every environment.

`cd tests && python -m support.golden.pages` writes `tests/golden/pages` again: look at each page that changes.
"""

import json
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from prefect_assay.analysis.kinetics.analysis import (
    Estimate,
    KineticsFit,
    PackageAnalysis,
    ReplicateKinetics,
    ServiceValues,
)
from prefect_assay.analysis.report.contents import collect_contents
from prefect_assay.analysis.report.decision import summarize_decision
from prefect_assay.analysis.report.figures import CampaignFigures, CurveFigure
from prefect_assay.analysis.report.render import render_page
from prefect_assay.analysis.results import summarize
from prefect_assay.analysis.results.summary import pool_scatters
from prefect_assay.archive import Document, LocalStore, archive_version

PAGES = Path(__file__).parents[2] / "golden" / "pages"
RESIDUES = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
CODE = "LAB-001-001"


def design(
    name, *kds, words=("strong",) * 3, reported=None, control=False, binding="true", position=0, **fields
):
    """An entry of an affinity result; K_D in nM, `position` is the residue in which it differs from the others."""
    residues = RESIDUES[:position] + "A" + RESIDUES[position + 1 :] if position else RESIDUES
    words = list(zip(kds, words, strict=False))
    return {
        "result_type": "affinity",
        "sequence": {"name": name, "aa_string": residues, "control": control},
        "kd_units": "M",
        "kd_mean": None if reported is None else reported * 1e-9,
        "binding": binding,
        "binding_strength": words[0][1] if words else "none",
        "expression": "high",
        "positive_control": control,
        "replicates": [
            {
                "replicate": n,
                "kd": kd * 1e-9,
                "binding": "true",
                "binding_strength": word,
                "expression": "high",
            }
            for n, (kd, word) in enumerate(words, start=1)
        ],
        **fields,
    }


def silent(name, **fields):
    return design(name, binding="false", **fields)


def control(name="EGF", *kds, **fields):
    return design(name, *(kds or (95, 100, 105)), reported=100, control=True, **fields)


CASES = {
    "weak-binders": [
        design("weak-1", 3210, 1780, 2860, words=("weak",) * 3, position=3),
        design("weak-2", 5000, 5900, 5300, words=("weak",) * 3, position=9),
        control(),
        silent("none", position=12),
    ],
    "failed-control": [
        design("binder", 20, 22, 24, reported=22, position=3),
        silent("silent-1", position=9),
        silent("silent-2", position=12),
        silent("EGF", control=True),
    ],
    "one-replicate-used": [
        design("rank-1", 34.8, 54.3, 66.5, words=("strong", "medium", "medium"), reported=34.8, position=3),
        design("rank-2", 37.6, 62.2, 69.4, words=("strong", "medium", "medium"), reported=37.6, position=9),
        control(),
    ],
    "tight-limit": [
        design("tight", 0.56, 0.975, 1.65, reported=0.975, position=3),
        design("known", 4.0, 4.4, 4.9, reported=4.4, position=9),
        control(),
    ],
    "two-groups": [
        design("first", 1.0, 1.2, 0.9, reported=1.03, position=3),
        design("second", 1.1, 1.3, 1.0, reported=1.13, position=9),
        design("third", 20, 24, 18, reported=20.7, position=12),
        design("fourth", 21, 26, 19, reported=22, position=15),
        control(),
    ],
}


def page_of(case):
    """The page of a case, without styles and versions."""
    entries = CASES[case]
    result = {"id": "r1", "title": "t", "result_type": "affinity", "summary": entries}
    body = json.dumps({"items": [result], "total": 1}).encode()
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder))
        archive_version(
            store,
            "",
            campaign_id=case,
            experiment_id="e1",
            experiment_code=CODE,
            results_status="all",
            documents=[Document(path="raw/results-0001.json", content_type="application/json", body=body)],
            now=datetime(2026, 1, 1, tzinfo=UTC),
        )
        contents = collect_contents(store, "", case)
    fits = tuple(_fits(entries))
    designs = summarize(contents.rows, analyses={(CODE, "r1"): PackageAnalysis(kinetics=fits)})
    curves = tuple(CurveFigure(experiment_code=CODE, result_id="r1", fit=fit, svg=None) for fit in fits)
    decided = summarize_decision(contents, designs, pool_scatters(contents.rows))
    page = render_page(contents, designs, CampaignFigures(), curves, (), decided).decode()
    page = re.sub(r"<style>.*?</style>", "<style></style>", page, flags=re.DOTALL)
    page = re.sub(r"(Made with|Made from the archive alone by|Report by) [^<\n]*", r"\1 ...", page)
    return re.sub(r'href="data:[^"]*"', 'href="data:"', page)


def _fits(entries):
    """What the raw curves say: that they agree, and of `tight` that they bound K_D from above only."""
    for entry in entries:
        name = entry["sequence"]["name"]
        for replicate in entry["replicates"]:
            kd, is_open = replicate["kd"], name == "tight"
            fitted = {"value": None, "high": 1.91e-9} if is_open else _within(kd, 0.05)
            yield ReplicateKinetics(
                name=name,
                replicate=replicate["replicate"],
                unit="nm",
                concentrations_nM=(0.0, 31.6, 100.0, 316.2, 1000.0),
                verdict="review" if is_open else "agrees",
                reasons=("the curves do not bound K_D from below",) if is_open else (),
                fit=KineticsFit(
                    kon_per_M_s=Estimate(value=1e5, low=9e4, high=1.1e5),
                    koff_per_s=Estimate(
                        **({"value": None, "high": 1.8e-4} if is_open else _within(kd * 1e5, 0.04))
                    ),
                    kd_M=Estimate(**fitted),
                    kd_uncertainty_M=Estimate(**(fitted if is_open else _within(kd, 0.3))),
                    rmax=(1.0,),
                    mae=0.01,
                    relative_mae=0.01,
                    misfit=0.002,
                ),
                service=ServiceValues(kd_M=kd, binding="true"),
            )


def _within(value, share):
    return {"value": value, "low": value * (1 - share), "high": value * (1 + share)}


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for case in CASES:
        (PAGES / f"{case}.html").write_text(page_of(case), encoding="utf-8")
