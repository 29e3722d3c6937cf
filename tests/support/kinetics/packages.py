"""Data packages of simulated or bundled curves, written without the lab's code."""

import io
import zipfile
from importlib import resources

from support.kinetics.simulate import CONCENTRATIONS_M

PUBLISHED = resources.files("assay_lab") / "data" / "egfr_round1"
SUMMARY_COLUMNS = ("name", "replicate", "expression", "binding", "kd", "kon", "koff", "sequence")


def zipped(files) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return buffer.getvalue()


def published_files() -> dict[str, bytes]:
    """The bundled published curves as the service publishes them: a summary and raw data, nothing else."""
    raw = {f"raw_data/{file.name}": file.read_bytes() for file in (PUBLISHED / "raw_data").iterdir()}
    return {"egfr_round1_summary.csv": (PUBLISHED / "egfr_round1_summary.csv").read_bytes(), **raw}


def curve_files(curves, stem, replicate=1) -> dict[str, str]:
    """One file per curve."""
    return {
        f"raw_data/{stem}_{replicate}_{round(curve.concentration_M * 1e9, 1)}.csv": "t,y\n"
        + "".join(f"{t:.1f},{y:.5f}\n" for t, y in zip(curve.time_s, curve.signal, strict=True))
        for curve in curves
    }


def summary_file(*rows) -> dict[str, str]:
    """A table of rows (name, replicate, binding, kd, kon, koff)."""
    lines = [",".join(f'"{column}"' for column in SUMMARY_COLUMNS)]
    for name, replicate, binding, kd, kon, koff in rows:
        values = ",".join("null" if value is None else repr(value) for value in (kd, kon, koff))
        lines.append(f'"{name}",{replicate},"high","{binding}",{values},"MKV"')
    return {"x_summary.csv": "\ufeff" + "\n".join(lines) + "\n"}


def flat(schedule):
    """Curves of a design that does not bind."""
    return dict.fromkeys(CONCENTRATIONS_M, 0.0 * schedule.times)
