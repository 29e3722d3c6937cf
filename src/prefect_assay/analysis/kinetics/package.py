"""A data package from its zip to the analysis of all its replicates.

Files that cannot be read are noted, and the rest is analysed. A package without raw binding or melting curves gives
an empty analysis.
"""

from collections import defaultdict
from pathlib import Path
from typing import BinaryIO

from prefect_assay.errors import ConfigurationError

try:
    import numpy as np
    import scipy  # noqa: F401
except ImportError:
    raise ConfigurationError.missing_extra("kinetics", "fitting raw curves") from None

from prefect_assay.analysis.kinetics.analysis import CONCENTRATION_ERROR, PackageAnalysis
from prefect_assay.analysis.kinetics.curves import (
    AnalyzedPackage,
    Curve,
    FittedMelt,
    FittedReplicate,
    FloatArray,
)
from prefect_assay.analysis.kinetics.melting import analyze_melt
from prefect_assay.analysis.kinetics.names import Index, RawFile, read_index
from prefect_assay.analysis.kinetics.replicate import analyze_replicate
from prefect_assay.analysis.kinetics.schedule import Schedule, find_schedule
from prefect_assay.analysis.kinetics.zip_reader import PackageFiles, UnreadableFile, columns
from prefect_assay.service.assays import TM

# Of odd curves of one replicate, which do not end the others.
_ODD_CURVES = (ArithmeticError, IndexError, ValueError)
_SENSORGRAM = ("t", "y")
_MELTING = ("T", "ratio")
_RATIOS = (0.02, 50.0)  # of the fluorescence at 350 and at 330 nm
_POINTS_MIN = 10
_STEPS_MAX = 1_000_000  # of the grid that a curve is brought on; a day in tenths of a second
_STEP_S = (0.01, 20.0)  # between two points of a sensorgram; public ones have 0.1 to 1 s
_NM = 1e-9
_HEADS = tuple(f"{mark}{name}{mark}{sign}" for name in "tT" for mark in ("", '"') for sign in ",;")
_MAC_COPIES = "__MACOSX"  # folder of what macOS adds to the files of a zip


def analyze(
    package: Path | bytes | BinaryIO,
    *,
    association_s: float | None = None,
    concentration_error: float = CONCENTRATION_ERROR,
    method: str | None = None,
) -> AnalyzedPackage:
    """Fit every replicate of a data package.

    Args:
        package: the zip as a path, as bytes, or as an open file.
        association_s: when the dissociation starts; None: as the curves show.
        concentration_error: standard deviation, as a share, of what all concentrations of a design are off together.
        method: of the experiment, `bli` or `spr`, for replicates whose method the package does not name.

    Raises:
        InputError: it is not a zip, or has more files than any package.
    """
    with PackageFiles(package) as files:
        index = read_index(files)
        notes = list(index.notes)
        sensorgrams: dict[tuple[str, int], list[tuple[RawFile, Curve]]] = defaultdict(list)
        melts: list[tuple[RawFile, FloatArray, FloatArray]] = []
        for path in files.paths:
            folders = path.split("/")[:-1]
            if "raw_data" in folders and _MAC_COPIES not in folders and path.lower().endswith(".csv"):
                try:
                    _read(path, files, index, sensorgrams, melts)
                except UnreadableFile as error:
                    notes.append(str(error))
    groups = sorted(sensorgrams.items())
    schedule = (
        Schedule(association_s)
        if association_s
        else find_schedule([curve for _, curve in group] for _, group in groups)
    )
    notes += [schedule.doubt] if schedule.doubt else []
    replicates: list[FittedReplicate] = []
    for (name, number), group in groups:
        try:
            replicates.append(
                analyze_replicate(
                    name,
                    number,
                    index.unit(group[0][0], method),
                    [curve for _, curve in group],
                    index.service(group[0][0]),
                    schedule,
                    concentration_error,
                )
            )
        except _ODD_CURVES as error:
            notes.append(f"the curves of {name}, replicate {number}, cannot be analysed: {error}")
    melted: list[FittedMelt] = []
    for file, celsius, signal in sorted(melts, key=lambda melt: (melt[0].name, melt[0].replicate)):
        try:
            melted.append(analyze_melt(file.name, file.replicate, celsius, signal, index.service(file)))
        except _ODD_CURVES as error:
            notes.append(
                f"the melting curve of {file.name}, replicate {file.replicate}, cannot be analysed: {error}"
            )
    analysis = PackageAnalysis(
        kinetics=tuple(item.kinetics for item in replicates),
        melting=tuple(item.melting for item in melted),
        notes=tuple(notes),
        concentration_error=concentration_error,
    )
    return AnalyzedPackage(analysis, tuple(replicates), tuple(melted))


def _read(
    path: str,
    files: PackageFiles,
    index: Index,
    sensorgrams: dict[tuple[str, int], list[tuple[RawFile, Curve]]],
    melts: list[tuple[RawFile, FloatArray, FloatArray]],
) -> None:
    text = files.read(path)
    try:
        names, first, second = columns(text)
    except UnreadableFile as error:
        if text.strip() and not text.startswith(_HEADS):
            return
        raise UnreadableFile(f"{path} {error}") from None
    if names not in {_SENSORGRAM, _MELTING}:
        if names[0] != "T" and not names[0].casefold().startswith("temp"):
            return
        raise UnreadableFile(
            f"{path} has the columns {','.join(names)}; melting curves are read as T,ratio, with T in °C and the ratio of the"
            " fluorescence at 350 and 330 nm. It was not read"
        )
    file = index.locate(path, melting=names == _MELTING)
    if file is None:
        raise UnreadableFile(f"{path} is not named <design>_<replicate>_<nM>.csv")
    if names == _SENSORGRAM:  # association starts at 0 s, and the model has nothing before it
        first, second = first[first >= 0], second[first >= 0]
    if len(first) < _POINTS_MIN:
        raise UnreadableFile(f"{path} has only {len(first)} points")
    if names == _MELTING:
        _check_melt_units(path, first, second)
        melts.append((file, first, second))
    else:
        _check_times(path, first)
        curve = Curve((file.concentration_nM or 0.0) * _NM, first, second)
        sensorgrams[file.name, file.replicate].append((file, curve))


def _check_times(path: str, seconds: FloatArray) -> None:
    """Refuse times that are in another unit, or too uneven."""
    step = np.median(np.diff(seconds))
    if not _STEP_S[0] <= step <= _STEP_S[1]:
        raise UnreadableFile(
            f"{path} has points {step:.3g} s apart, and sensorgrams have them {_STEP_S[0]:g} to "
            f"{_STEP_S[1]:g} s apart: are its times in another unit, such as milliseconds or minutes? It was not read"
        )
    if seconds[-1] - seconds[0] > _STEPS_MAX * step:
        raise UnreadableFile(f"{path} has points at times too uneven for a grid of their median step")


def _check_melt_units(path: str, celsius: FloatArray, ratio: FloatArray) -> None:
    """Refuse temperatures and ratios that are in another unit."""
    if celsius[-1] > TM.most:
        raise UnreadableFile(
            f"{path} has temperatures up to {celsius[-1]:g}, and none above {TM.most:g} °C is possible: are they in kelvin? "
            "It was not read"
        )
    if not _RATIOS[0] <= ratio.min() <= ratio.max() <= _RATIOS[1]:
        raise UnreadableFile(
            f"{path} has ratios from {ratio.min():g} to {ratio.max():g}, and those of the fluorescence at 350 and 330 nm are"
            " around 1: are they counts? It was not read"
        )
