"""The PostgreSQL server of one Prefect home: `EmbeddedDatabase` and its programs. Knows nothing of its contents."""

from prefect_assay.database.cluster import EmbeddedDatabase
from prefect_assay.database.host import Programs, find_programs

__all__ = ["EmbeddedDatabase", "Programs", "find_programs"]
