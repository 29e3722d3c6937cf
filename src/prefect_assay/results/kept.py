"""Tidy rows as the archive keeps them: of one experiment, and of a whole campaign."""

from prefect_assay.models.archived import ArchiveRecord
from prefect_assay.models.base import Model
from prefect_assay.results.row import ResultRow


class KeptResults(Model):
    """One archived version, with the rows of its table, and a line for whatever it lacks or could not be read."""

    record: ArchiveRecord
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...] = ()


class CampaignTable(Model):
    """All rows of a campaign. `best_kd_M` is the lowest mean K_D of its designs, in M."""

    location: str | None
    rows: tuple[ResultRow, ...]
    best_kd_M: float | None  # noqa: N815 - M is the unit
