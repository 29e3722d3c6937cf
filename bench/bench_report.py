"""The report of 96 designs in three replicates: size of the page, processor time, and peak memory.

The lab measures eleven published designs and 85 modelled ones. Making the report is compared, in turns, with importing its
libraries alone, so that the machine's mood hits both alike.
"""

import argparse
import resource
import sys
import tempfile
from pathlib import Path

from figures import Ratio, report
from side_by_side import compare, cpu_seconds, python

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "lab" / "tests"))

from assay_lab.measure.bundled import data_folder
from assay_lab.testing import LocalLab
from lab_support.designs import invented_designs
from prefect_assay.analysis.report.documents import make_report
from prefect_assay.archive import LocalStore
from support.archive.campaign_archive import lab_campaign

LIMIT_BYTES = 5_000_000
LIBRARIES = "import prefect_assay.analysis.report.documents, scipy.optimize, jinja2"
MAKE = (
    "from prefect_assay.archive import LocalStore; from prefect_assay.analysis.report.documents import make_report; "
    "make_report(LocalStore({folder!r}), '', 'round-1')"
)

PLAIN = """
import io, numpy
from matplotlib.figure import Figure
time = numpy.linspace(0, 600, 300)
for _ in range({figures}):
    figure = Figure(figsize=(5, 3))
    axes = figure.add_subplot()
    for scale in range(1, 11):
        axes.plot(time, scale * (1 - numpy.exp(-time / 100)))
    figure.savefig(io.BytesIO(), format="svg")
"""

options = argparse.ArgumentParser()
options.add_argument("--rounds", type=int, default=3)
rounds = options.parse_args().rounds

with tempfile.TemporaryDirectory() as folder:
    fasta = (data_folder() / "egfr_round1_designs.fasta").read_text(encoding="utf-8")
    fasta += "".join(f">{design['name']}\n{design['aa_string']}\n" for design in invented_designs(85))
    with LocalLab() as lab:
        lab_campaign(lab, Path(folder), fasta)
    made = make_report(LocalStore(folder), "", "round-1")
    size = len(made.page or b"")
    figures = (made.page or b"").count(b"<title>Sensorgrams of ")
    print(
        f"{len(made.summaries)} designs, {figures} sensorgrams: {size / 1e6:.2f} MB of {LIMIT_BYTES / 1e6:.0f} allowed"
    )
    print(f"{len(made.documents)} files, {sum(len(d.body) for d in made.documents) / 1e6:.2f} MB")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    medians = compare(
        {
            "libraries": python(LIBRARIES),
            "report": python(MAKE.format(folder=folder)),
            "plain figures": python(PLAIN.format(figures=figures)),
        },
        rounds=rounds,
        measure=cpu_seconds,
    )
    for name, seconds in medians.items():
        print(f"{name:10} {seconds:6.1f} s")
    print(f"the report alone {medians['report'] - medians['libraries']:.1f} s")
    report(
        Ratio(
            "report",
            f"{len(made.summaries)} designs: read, fitted, drawn, written (CPU)",
            ours=medians["report"],
            beside=f"{figures} plain matplotlib figures of ten curves as SVG",
            other=medians["plain figures"],
            unit="s",
            goal=1.0,
        )
    )
    report(
        Ratio(
            "report",
            "the whole of it (CPU)",
            ours=medians["report"],
            beside="the limit that was set",
            other=60.0,
            unit="s",
            goal=1.0,
        )
    )
    if size >= LIMIT_BYTES:
        raise SystemExit("the page is too large")
