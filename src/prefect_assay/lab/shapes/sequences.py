"""Sequences (contract 4.3 and service shapes)."""

from typing import Any
from uuid import UUID

from pydantic import Field

from prefect_assay.lab.shapes.base import Count, Moment, Page, Shape, absent
from prefect_assay.models.vocabulary import ExperimentStatus


class SequenceItem(Shape):
    """A sequence in a list."""

    id: UUID
    name: str | None = None
    aa_preview: str = Field(max_length=50, description="The first 50 letters.")
    length: Count = Field(description="Residues, chains added up.")
    experiment_id: UUID
    experiment_code: str
    is_control: bool
    created_at: Moment


class SequencePage(Page[SequenceItem]):
    """A page of sequences."""


class SequenceOwner(Shape):
    """The experiment that a sequence belongs to."""

    experiment_id: UUID
    experiment_code: str
    experiment_status: ExperimentStatus = absent()


class Sequence(Shape):
    """A sequence."""

    id: UUID
    aa_string: str = Field(description="Upper case; a colon between chains.")
    name: str | None = None
    length: Count
    is_control: bool
    metadata: Any = None
    created_at: Moment
    experiment: SequenceOwner


class AddedSequences(Shape):
    """What was added (contract 4.3)."""

    added_count: Count
    experiment_code: str
    experiment_id: UUID
    sequence_ids: list[str]
