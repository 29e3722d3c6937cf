"""Results as the service sends them (contract 2.10 and 4.2). Unknown variants are kept losslessly.

Units: K_D in M, k_on in 1/(M s), k_off in 1/s, concentrations in nM, melting temperature in degrees Celsius.
Null is not zero; `none`, `unknown` and "no expression" are three different outcomes.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)

from prefect_assay.models.base import Moment, WireModel
from prefect_assay.models.identifiers import Identifier


def _word(value: Any) -> str | None:
    """A call as text: `true` and `"true"` are the same. The archive has the body as received."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _number(value: Any) -> float | None:
    """A finite float, or None. Unknown notations are tolerated so that a long wait does not fail on parsing."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None


def _text(value: Any) -> str:
    """What a value says; a number that is none, such as NaN, says nothing."""
    return "" if isinstance(value, float) else str(value).strip()


def _sequence(value: Any) -> Any:
    return value if isinstance(value, dict | str) else None


def _mapping(value: Any) -> Any:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Any:
    """The objects of a list, as received or as models; other items are left out."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in value if isinstance(item, dict | WireModel))


Word = Annotated[str | None, BeforeValidator(_word)]
Number = Annotated[float | None, BeforeValidator(_number)]


class ResultSummary(WireModel):
    """A row of GET /results (contract 2.10)."""

    id: Identifier = Field(validation_alias=AliasChoices("id", "result_id"))
    experiment_id: Identifier | None = None
    result_type: str = ""
    title: str | None = None
    created_at: Moment | None = None
    size_bytes: int | None = None


class _Measured(WireModel):
    """A record of numbers, which keeps what is none."""

    _unread: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _keep_unread(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(data)
        if isinstance(data, Mapping):
            made._unread = {  # noqa: SLF001  its own model
                name: value
                for name in cls.model_fields
                if (value := data.get(name)) is not None and _text(value) and getattr(made, name) is None
            }
        return made

    @property
    def unread(self) -> Mapping[str, Any]:
        """What came in place of a number or a word, such as `>1e-4` or an object with a value and a unit, by field."""
        return self._unread


class Replicate(_Measured):
    """One measured replicate of an affinity or screening result."""

    replicate: Annotated[int | None, BeforeValidator(_whole)] = None
    kd: Number = None
    kon: Number = None
    koff: Number = None
    tm: Number = None
    concentration_value: Number = None
    binding: Word = None
    expression: Word = None
    fit_quality: Word = None


class ResultEntry(_Measured):
    """One entry of `summary`. Fields that are not named here stay available in `model_extra`."""

    result_type: Word = None
    sequence: Annotated[dict[str, Any] | str | None, BeforeValidator(_sequence)] = None
    sequence_name: Word = None
    sequence_id: Word = None
    kd_mean: Number = None
    kd_log_std: Number = None
    kon_mean: Number = None
    koff_mean: Number = None
    binding: Word = None
    binding_strength: Word = None
    expression: Word = None
    fit_quality: Word = None
    tm: Number = None
    concentration_value: Number = None
    replicates: Annotated[tuple[Replicate, ...], BeforeValidator(_objects)] = ()

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
