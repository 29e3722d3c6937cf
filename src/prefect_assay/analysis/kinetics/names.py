"""Finds the replicate and design of each raw file, and what the service reports for it.

File names are `raw_data/<name>_<replicate>_<nM>.csv` or, for melting, `<name>_<replicate>.csv`, with every unsafe
character replaced; a name may itself end in numbers, so names are compared with those of the summary.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from prefect_assay.analysis.kinetics.analysis import Estimate, ServiceValues
from prefect_assay.analysis.kinetics.zip_reader import PackageFiles, UnreadableFile, table
from prefect_assay.analysis.results.calls import Call, read_call
from prefect_assay.analysis.results.measurements import find_unit, read_recorded_quantity
from prefect_assay.analysis.results.quantities import Quantity, Unread
from prefect_assay.designs.scores import read_score
from prefect_assay.service.assays import KD, KOFF, KON, TM, QuantityKind

_CURVE: Final = re.compile(r"(?P<stem>.*)_(?P<replicate>\d+)_(?P<nM>[0-9.eE+-]+)\.(?i:csv)", re.DOTALL)
_MELT: Final = re.compile(r"(?P<stem>.*)_(?P<replicate>\d+)\.(?i:csv)", re.DOTALL)
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_DIGEST: Final = re.compile(r"-[0-9a-f]{8}$")
_CALLS: Final = {Call.BINDS: "true", Call.DOES_NOT_BIND: "false", Call.UNKNOWN: "unknown"}

_REPORTED: Final = {
    "kon_per_M_s": ("kon", KON),
    "koff_per_s": ("koff", KOFF),
    "kd_M": ("kd", KD),
    "tm_C": ("tm", TM),
}

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class RawFile:
    """Design and replicate of a file of `raw_data/`, and its concentration in nM; None for a melting curve."""

    name: str
    replicate: int
    concentration_nM: float | None  # noqa: N815


@dataclass(frozen=True)
class Index:
    """The tables of a package: the summary and the replicates. Unreadable ones are noted."""

    summary: list[Row] = field(default_factory=list)
    info: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def locate(self, path: str, *, melting: bool) -> RawFile | None:
        """Design and replicate of a raw file, or None if its name has another form."""
        match = (_MELT if melting else _CURVE).fullmatch(path.rsplit("/", 1)[-1])
        concentration = None if match is None or melting else read_score(match["nM"])
        if match is None or (not melting and (concentration is None or concentration < 0)):
            return None
        return RawFile(self._name(match["stem"]), int(match["replicate"]), concentration)

    def service(self, file: RawFile) -> ServiceValues:
        """What the summary and the table of replicates say."""
        row = _row(self.summary, file)
        info = _row(self.info, file)
        readings = {name: _read(row, column, kind) for name, (column, kind) in _REPORTED.items()}
        known = {name: reading for name, reading in readings.items() if isinstance(reading, Quantity)}
        values = {name: reading.value for name, reading in known.items() if reading.qualifier is None}
        return ServiceValues.model_validate(
            {
                **values,
                "limits": {name: _make_limit(known[name]) for name in known.keys() - values.keys()},
                "mae": read_score(info.get("MAE", "")),
                "relative_mae": read_score(info.get("rel_MAE", "")),
                "binding": _CALLS.get(read_call(row.get("binding")).call),
            }
        )

    def unit(self, file: RawFile, method: str | None = None) -> str:
        """RU for SPR, else nm; by the replicate's method, else that of the experiment, else that of another replicate."""
        others = (row.get("method") for row in self.info)
        first = next(filter(None, (_row(self.info, file).get("method"), method, *others)), "")
        return "RU" if first.lower() == "spr" else "nm"

    def _name(self, stem: str) -> str:
        names = dict.fromkeys(row.get("name", "") for row in self.summary)
        matches = [name for name in names if name and _matches(stem, name)]
        return matches[0] if len(matches) == 1 else stem


def read_index(files: PackageFiles) -> Index:
    """Read the tables; one that is missing or unreadable leaves its part empty."""
    index = Index()
    for path in files.paths:
        is_info = "/".join(path.split("/")[-2:]) == "aux/replicate_info.csv"
        if not is_info and not path.endswith("_summary.csv"):
            continue
        if "raw_data/" in path or "fit_data/" in path or "__MACOSX/" in path:
            continue
        try:
            rows = table(files.read(path))
        except UnreadableFile as error:
            index.notes.append(f"{path}: {error}")
            continue
        (index.info if is_info else index.summary).extend(rows)
    return index


def _read(row: Row, column: str, kind: QuantityKind) -> Quantity | Unread:
    unit = find_unit(kind, row)
    return unit if isinstance(unit, Unread) else read_recorded_quantity(kind, [column], row, unit)


def _make_limit(reading: Quantity) -> Estimate:
    if reading.qualifier == "<":
        return Estimate(value=None, high=reading.value)
    return Estimate(value=None, low=reading.value)


def _matches(stem: str, name: str) -> bool:
    """Whether a file name was made of `name`: unsafe characters replaced, spaces around it dropped, a digest added."""
    safe, plain = _UNSAFE.sub("_", name).strip("_"), stem.strip("_")
    if plain == safe:
        return True
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return bool(_DIGEST.search(plain)) and plain.endswith(digest) and safe.startswith(plain[:-9].strip("_"))


def _row(rows: Iterable[Row], file: RawFile) -> Row:
    for row in rows:
        replicate = read_score(row.get("replicate", ""))
        if row.get("name") == file.name and replicate == file.replicate:
            return row
    return {}
