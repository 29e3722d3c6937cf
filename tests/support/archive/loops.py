"""A loop in an archive: a round that was selected from a pool and measured, and a round of which a file was taken whole."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.results import summarize
from prefect_assay.analysis.results.tables import write_summary_json
from prefect_assay.analysis.selection import History, select_designs
from prefect_assay.archive import Document, archive_version
from prefect_assay.campaigns.loops.loop_log import LoopLog, RoundEnded, RoundFixed
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import read_pool
from prefect_assay.designs.selection import KeptFates, SelectionSettings
from prefect_assay.service.models.sequences import Sequences
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import ExperimentType
from prefect_assay.tasks.read import plan_campaign
from support.archive.campaigns import archive_rows, row

LOOP = "Binders"  # its folder has another, safe name
CODE = "LOP-001"
READING = ReadingOptions(sequence_column="protein")
STEM = "ACDEFGHIKLMNPQRSTVWY"
POOL = "name,protein,Method,ipTM,parents,note\n" + "".join(
    f"d{index},{STEM[index:]}{STEM},{method},{score},{parents},keep\n"
    for index, (method, score, parents) in enumerate(
        [
            ("rfd", 0.9, "wt"),
            ("rfd", 0.8, "wt; d9"),
            ("old", 0.7, ""),
            ("old", 0.6, ""),
            ("rfd", 0.5, ""),
            ("old", 0.1, ""),
        ]
    )
)
TWIN = f"twin,{STEM}{STEM},rfd,0.2,,\n"  # the residues of d0
OUTCOMES = (("d0", 5e-9), ("d1", 8e-8), ("d2", None), ("d3", 4e-7))
DAY = 4


def selected_round(store, prefix, pool=POOL + TWIN, n=4):
    """The record of round 1: four of six by score, with at most two of a method that is measured in another column."""
    loop_log = LoopLog(store, prefix, LOOP)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pool.csv"
        path.write_text(pool)
        designs = read_pool(str(path), reading=READING)
        kept = loop_log.keep_file(path, path.name, len(designs))
    settings = SelectionSettings(
        policy="top_score", score_column="ipTM", max_per_method=2, method_column="Method"
    )
    chosen = select_designs(designs, History(), n, settings, price_cents=19_900)
    return loop_log.fix(
        RoundFixed(
            loop_id=LOOP,
            number=1,
            name="round-001",
            campaign_id="binders-round-001",
            origin="designer test",
            pool=kept,
            choices=chosen.choices,
            policy=chosen.policy,
            seed=chosen.seed,
            fates=KeptFates.of(chosen),
            reading=READING,
            method_column="Method",
        )
    )


def whole_round(store, prefix):
    """The record of round 2: a file that is measured whole, and ends without results."""
    loop_log = LoopLog(store, prefix, LOOP)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "more.fasta"
        path.write_text(f">e1\nMMM{STEM}\n>e2\nKKK{STEM}\n")
        kept = loop_log.keep_file(path, path.name, 2)
    fixed = RoundFixed(
        loop_id=LOOP, number=2, name="more", campaign_id="binders-more", origin="file more.fasta", pool=kept
    )
    loop_log.fix(fixed)
    loop_log.end(RoundEnded(number=2, table="none", rows=0, problem="its experiment was canceled"))
    return fixed


def archive_plan(store, prefix, campaign_id, designs):
    """The plan of a campaign of these designs, as the flow keeps it."""
    sequences = Sequences(source="test", items=tuple(designs))
    assay = Assay(experiment_type=ExperimentType.EXPRESSION)
    plan = plan_campaign.fn(sequences, assay, None, campaign_id=campaign_id, per_experiment=96)
    _document(store, prefix, campaign_id, "PLAN", "plan.json", plan.model_dump_json().encode())
    return plan


def archive_measured_round(store, prefix, fixed, *, residues=False):
    """Plan, results (by default without residues, as some come) and report of a round; d2 does not bind."""
    plan = archive_plan(store, prefix, fixed.campaign_id, [choice.design() for choice in fixed.choices])
    sequences = {choice.candidate.name: choice.candidate.sequence for choice in fixed.choices}
    rows = []
    for name, kd in OUTCOMES:
        values = {"kd_M": kd} if kd else {"outcome": "no_binding", "binding": "false"}
        rows.append(row(name, CODE, aa_string=sequences[name] if residues else None, **values))
    archive_rows(store, prefix, fixed.campaign_id, CODE, rows)
    designs = summarize(
        rows, prices={CODE: 19_999.0}, attributes=plan.attributes, campaign_id=fixed.campaign_id
    )
    judged = [
        design.model_copy(update={"verdict": Verdict.AGREES}) if design.kd_M else design for design in designs
    ]
    _document(store, prefix, fixed.campaign_id, "REPORT", "summary.json", write_summary_json(judged))


def _document(store, prefix, campaign_id, code, path, body):
    archive_version(
        store,
        prefix,
        campaign_id=campaign_id,
        experiment_id=campaign_id,
        experiment_code=code,
        results_status="all",
        documents=[Document(path=path, content_type="text/plain", body=body)],
        now=datetime(2026, 3, DAY, tzinfo=UTC),
    )
