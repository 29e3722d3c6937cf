"""The PostgreSQL server of one Prefect home: `EmbeddedDatabase`, its programs and copies. Knows nothing of its contents."""

from prefect_assay.database.cluster import EmbeddedDatabase
from prefect_assay.database.copies import dump, load, version_of
from prefect_assay.database.host import Programs, find_programs

__all__ = ["EmbeddedDatabase", "Programs", "dump", "find_programs", "load", "version_of"]
