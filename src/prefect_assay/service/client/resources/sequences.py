"""The sequences of experiments (contract 4.3)."""

from collections.abc import Iterator, Sequence
from typing import Final

from prefect_assay.service.client.answers import require_record
from prefect_assay.service.client.checks import check_entries
from prefect_assay.service.client.decoding import build_act, build_read
from prefect_assay.service.client.filters import Condition, Sorting
from prefect_assay.service.client.http.request import drop_none, quote_segment
from prefect_assay.service.client.parameters import FieldTest
from prefect_assay.service.client.resources.resource import ListQuery, Resource
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.sequences import (
    AddedSequences,
    ProteinSequence,
    SequenceEntry,
    StoredSequence,
)
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

_SEQUENCES: Final = ListQuery(path="/sequences", row=StoredSequence)
_READ_AGAIN: Final = "Read the experiment's sequences before anything else"


class Sequences(Resource):
    """The proteins of experiments (contract 4.3)."""

    def add(self, experiment_code: str, designs: Sequence[ProteinSequence | SequenceEntry]) -> AddedSequences:
        """Add designs to a draft, sent once: POST /sequences (contract 2.4 and 4.3).

        A `SequenceEntry` takes any JSON value as its metadata.

        Raises:
            InvalidRequest: names, letters or duplicates, with every finding; nothing was sent.
            Conflict: the experiment is not a draft any more.
            OutcomeUnknown: the answer was lost: read the experiment's sequences.

        Example:
            ```python
            code = client.experiments.get(experiment_id).code
            client.sequences.add(code, [ProteinSequence(name="d9", aa_string="MKTAYIAK")])
            ```
        """
        check_entries(experiment_code, designs)
        body = {"experiment_code": experiment_code, "sequences": [encode_entry(design) for design in designs]}
        operation = build_act("POST", "/sequences", AddedSequences, _READ_AGAIN, body)
        return self._sender.run(require_record(operation, experiment_code, fields=("experiment_code",)))

    def list(
        self,
        *,
        experiment_id: str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[StoredSequence]:
        """List one page of the organization's sequences: GET /sequences (published with contract 4.3).

        `experiment_id` keeps those of one experiment; the other parameters are those of `experiments.list`.

        Example:
            ```python
            print(client.sequences.list(search="d1", limit=10).total)
            ```
        """
        query = _SEQUENCES.select(
            filter, search, sort, where, fields={"experiment_id": experiment_id}, experiment_id=experiment_id
        )
        return self._sender.run(query.build_page(limit, offset))

    def iterate(
        self,
        *,
        experiment_id: str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        page_size: int = PAGE_LIMIT_MAX,
    ) -> Iterator[StoredSequence]:
        """Yield all matching sequences of the organization, page by page; parameters as in `list`.

        Example:
            ```python
            names = [row.name for row in client.sequences.iterate(experiment_id=experiment_id)]
            ```
        """
        return _SEQUENCES.select(
            filter, search, sort, where, fields={"experiment_id": experiment_id}, experiment_id=experiment_id
        ).iterate(self._sender, page_size)

    def get(self, sequence_id: str) -> StoredSequence:
        """Read one sequence with all its residues: GET /sequences/{id} (published with contract 4.3).

        Example:
            ```python
            print(client.sequences.get(sequence_id).aa_string)
            ```
        """
        operation = build_read(f"/sequences/{quote_segment(sequence_id)}", StoredSequence)
        return self._sender.run(require_record(operation, sequence_id))


def encode_entry(design: ProteinSequence | SequenceEntry) -> dict[str, object]:
    """A sequence as an entry of a list (contract 2.4)."""
    fields = drop_none(name=design.name, aa_string=design.aa_string, control=design.control)
    is_empty = design.metadata is None or design.metadata == {}
    return fields | ({} if is_empty else {"metadata": design.metadata})
