"""Strict schemas of the custom target requests (service shapes, Targets)."""

from typing import Annotated

from pydantic import Field

from prefect_assay.lab.schemas import Body

# The four characters of a classic accession, or the extended form that the PDB is moving to.
PDB_ID = r"^([0-9][A-Za-z0-9]{3}|(pdb|PDB)_[0-9A-Za-z]{8})$"


class RequestCustomTarget(Body):
    """POST /targets/request-custom: what the antigen is, by its residues or by its structure."""

    name: Annotated[str, Field(min_length=1)]
    product_id: Annotated[str, Field(min_length=1)]
    sequence: str | None = None
    pdb_id: Annotated[str, Field(pattern=PDB_ID)] | None = None
