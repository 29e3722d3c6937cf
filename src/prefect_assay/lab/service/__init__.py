"""One running lab: its parts, its seed, and what tests do to it. Knows nothing of HTTP: `lab.web` carries requests."""

from prefect_assay.lab.service.core import LabCore
from prefect_assay.lab.service.faults import Fault
from prefect_assay.lab.service.seeding import Seeded

__all__ = ["Fault", "LabCore", "Seeded"]
