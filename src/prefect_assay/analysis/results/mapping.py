"""A declared mapping: which fields of an assay type's records go to which columns, in which unit, with which words.

Most assay types have no published result shape. What a laboratory sends in another shape is archived and unread; a mapping says
what it means, and the same reader checks its units and words.
"""

import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import from_json

from prefect_assay.analysis.results.calls import CALL_FIELDS, read_call
from prefect_assay.analysis.results.quantities import SIGNS, find_unit_factor
from prefect_assay.errors import InputError
from prefect_assay.service.assays import QUANTITIES, QuantityKind, find_assay_type
from prefect_assay.service.models.base import Model

MAPPING_PATH: Final = "mapping.json"

_KINDS: Final[Mapping[str, QuantityKind]] = {kind.column: kind for kind in QUANTITIES}
_QUALIFIER: Final = "qualifier"
_Text = Annotated[str, Field(min_length=1, max_length=200)]


class FieldMapping(Model):
    """Where one field goes: a column of the results table, or a measured field of its assay type.

    `unit` is required for a column with a unit. `words` translate calls into those of docs/results.md, and qualifiers into
    `<`, `>` or `=`.
    """

    model_config = ConfigDict(strict=True)

    column: _Text
    unit: _Text | None = None
    words: dict[_Text, _Text] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_column(self) -> Self:
        kind = _KINDS.get(self.column)
        if kind is not None:
            if self.unit is None:
                raise ValueError(f"{self.column} needs a unit, such as {kind.shown[0]!r}")
            if find_unit_factor(kind, self.unit) is None:
                raise ValueError(
                    f"{self.unit!r} is not a unit of {self.column}; use one of {', '.join(kind.shown)}"
                )
        has_words = self.column in CALL_FIELDS or self.column == _QUALIFIER
        if self.words and not has_words:
            raise ValueError(f"{self.column} is a number, and takes no words")
        if has_words and self.unit is not None:
            raise ValueError(f"{self.column} is a word, and takes no unit")
        for word in self.words.values():
            is_known = (
                word in SIGNS if self.column == _QUALIFIER else read_call(word, self.column).unread is None  # type: ignore[arg-type]
            )
            if not is_known:
                raise ValueError(f"{word!r} is not a known word of {self.column} (docs/results.md)")
        return self


class AssayMapping(Model):
    """The fields of one assay type, each by its name in a record or, with dots, by its path."""

    fields: dict[_Text, FieldMapping] = Field(min_length=1)


class ResultMapping(Model):
    """The mappings of assay types, as results state them (`fluorescence`, or a type that this package does not know)."""

    assays: dict[_Text, AssayMapping] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        for assay, mapping in self.assays.items():
            kind = find_assay_type(assay)
            known = {*_KINDS, *CALL_FIELDS, _QUALIFIER, *(kind.other_fields if kind else ())}
            for name, field in mapping.fields.items():
                if field.column not in known:
                    raise ValueError(
                        f"{assay}.fields.{name}: {field.column!r} is not a column of a result of this type; use one of "
                        f"{', '.join(sorted(known))}"
                    )
        return self

    def find_kinds(self, assay: str) -> tuple[QuantityKind, ...]:
        """The quantities that the mapping declares for an assay type."""
        columns = {field.column for field in self._fields(assay).values()}
        return tuple(kind for kind in QUANTITIES if kind.column in columns)

    def apply(self, assay: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """The record with its mapped fields under the published names, which `results.read_rows` reads."""
        mapped = dict(record)
        for path, field in self._fields(assay).items():
            value = _find_field(record, path)
            if value is None:
                continue
            mapped.pop(path, None)
            if isinstance(value, str):
                value = field.words.get(value, value)
            kind = _KINDS.get(field.column)
            name = field.column if kind is None else kind.fields[0]
            # Two fields that say different things of one column are neither a number nor a word.
            other = mapped.get(name)
            mapped[name] = value if other is None or other == value else [other, value]
            if kind is not None:
                mapped[f"{kind.fields[0]}_units"] = field.unit
        return mapped

    def _fields(self, assay: str) -> Mapping[str, FieldMapping]:
        return self.assays[assay].fields if assay in self.assays else {}


def read_mapping(content: bytes, place: str) -> ResultMapping:
    """Read a mapping from TOML or JSON; `place` names it in errors.

    Raises:
        InputError: it is neither, or says something that is not known here.
    """
    try:
        value = from_json(content) if content.lstrip().startswith(b"{") else tomllib.loads(content.decode())
    except ValueError as error:
        raise InputError(f"{place} is neither TOML nor JSON: {error}") from None
    try:
        return ResultMapping.model_validate({"assays": value})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"][1:]))
        raise InputError(
            f"{place}{f', {where}' if where else ''}: {first['msg'].removeprefix('Value error, ')}"
        ) from None


def _find_field(record: Mapping[str, Any], path: str) -> Any:
    """The value of a field by its name, or else by its path of names with dots."""
    if path in record:
        return record[path]
    value: Any = record
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
