"""Results as the service sends them (contract 2.10 and 4.2). Unknown variants are kept losslessly.

Units: K_D in M, k_on in 1/(M s), k_off in 1/s, concentrations in nM, melting temperature in degrees Celsius.
Null is not zero; `none`, `unknown` and "no expression" are three different outcomes. Numbers and calls are kept as received.
"""

from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from prefect_assay.service.models.base import Moment, WireModel
from prefect_assay.service.models.identifiers import Identifier


def _word(value: Any) -> str | None:
    """A name as text; None for an object or a list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _sequence(value: Any) -> Any:
    return value if isinstance(value, dict | str) else None


def _mapping(value: Any) -> Any:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Any:
    """The objects of a list, as received or as models; other items are left out."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in value if _is_object(item))


def _is_object(item: Any) -> bool:
    return isinstance(item, dict | WireModel)


Word = Annotated[str | None, BeforeValidator(_word)]
AsReceived = Any
"""A number, a word or anything else: `prefect_assay.analysis.results.read_rows` decides what it says."""


class ResultSummary(WireModel):
    """A row of GET /results (contract 2.10)."""

    id: Identifier = Field(validation_alias=AliasChoices("id", "result_id"))
    experiment_id: Identifier | None = None
    result_type: str = ""
    title: str | None = None
    created_at: Moment | None = None
    size_bytes: int | None = None


class Replicate(WireModel):
    """One measured replicate of a result."""

    replicate: AsReceived = None
    kd: AsReceived = None
    kon: AsReceived = None
    koff: AsReceived = None
    tm: AsReceived = None
    concentration_value: AsReceived = None
    binding: AsReceived = None
    expression: AsReceived = None
    fit_quality: AsReceived = None


class ResultEntry(WireModel):
    """One entry of `summary`. Fields that are not named here stay available in `model_extra`."""

    result_type: Word = None
    sequence: Annotated[dict[str, Any] | str | None, BeforeValidator(_sequence)] = None
    sequence_name: Word = None
    sequence_id: Word = None
    kd_mean: AsReceived = None
    kd_log_std: AsReceived = None
    kon_mean: AsReceived = None
    koff_mean: AsReceived = None
    binding: AsReceived = None
    binding_strength: AsReceived = None
    expression: AsReceived = None
    fit_quality: AsReceived = None
    tm: AsReceived = None
    concentration_value: AsReceived = None
    replicates: Annotated[tuple[Replicate, ...], BeforeValidator(_objects)] = ()
    unread_replicates: AsReceived = None
    """What `replicates` has in place of objects."""

    @model_validator(mode="before")
    @classmethod
    def _keep_unread_replicates(cls, data: Any) -> Any:
        unread = data.get("replicates") if isinstance(data, dict) else None
        if isinstance(unread, list | tuple):
            unread = [item for item in unread if not _is_object(item)]
        return {**data, "unread_replicates": unread} if unread else data

    @property
    def name(self) -> str | None:
        """The design's name, in whichever field this variant has it."""
        inner = self.sequence if isinstance(self.sequence, dict) else {}
        named = _word(inner.get("name")) or _word(inner.get("sequence_name"))
        return self.sequence_name or named or _word((self.model_extra or {}).get("name"))

    @property
    def aa_string(self) -> str | None:
        """The design's residues, in whichever field this variant has them."""
        if isinstance(self.sequence, str):
            return self.sequence
        inner = self.sequence or {}
        shown = next((inner[name] for name in ("aa_string", "sequence", "residues") if inner.get(name)), None)
        return _word(shown) or _word((self.model_extra or {}).get("aa_string"))

    @property
    def design_id(self) -> str | None:
        """The service's id of the sequence, in whichever field this variant has it."""
        return self.sequence_id or (
            _word(self.sequence.get("id")) if isinstance(self.sequence, dict) else None
        )


class Result(ResultSummary):
    """A whole result of an experiment."""

    summary: Annotated[tuple[ResultEntry, ...], BeforeValidator(_objects)] = ()
    metadata: Annotated[dict[str, Any], BeforeValidator(_mapping)] = Field(default_factory=dict)
    data_package_url: str | None = None
