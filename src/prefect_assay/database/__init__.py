"""The PostgreSQL server that belongs to one Prefect home: `EmbeddedDatabase`, and where its programs are."""

from prefect_assay.database.cluster import EmbeddedDatabase
from prefect_assay.database.programs import Programs, find_programs

__all__ = ["EmbeddedDatabase", "Programs", "find_programs"]
