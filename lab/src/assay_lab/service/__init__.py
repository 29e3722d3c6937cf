"""One running lab: its parts, its seed, and what tests do to it. Knows nothing of HTTP: `lab.web` carries requests."""

from assay_lab.service.core import LabCore
from assay_lab.service.faults import Fault
from assay_lab.service.seeding import Seeded

__all__ = ["Fault", "LabCore", "Seeded"]
