"""JSON schemas of models that people fill in as forms of Prefect's user interfaces, and that Prefect checks.

Pydantic describes an optional field as "its type or null". Both interfaces make a switch of that, set to None, with the
field hidden behind it. A field that is not required and has no default is shown at once, and Prefect accepts null for it.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

Schema = dict[str, Any]

_NULL: Final = {"type": "null"}
# True, except where Prefect ignores `required`: in default parameters of a deployment, which may be incomplete.
_SUBMITTED: Final[Schema] = {"not": {"required": ["<any>"]}}


def form_of(rule: Schema | None = None) -> Callable[[Schema], None]:
    """The `json_schema_extra` of a model that is a form: plain optional fields, and a rule between fields."""

    def change(schema: Schema) -> None:
        for name, field in schema["properties"].items():
            _show_at_once(field)
            field.setdefault("title", name.replace("_", " ").capitalize())
        # Not within `allOf`: there Prefect would not ignore `required`.
        schema.update(rule or {})

    return change


class ShownAtOnce:
    """Marks a flow's parameter that may be left empty: it is shown at once, as the fields of a form are.

    Prefect's own `json_schema_extra` of a parameter leaves no room for another function.
    """

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], Schema]) -> Schema:
        """Pydantic's hook."""
        schema = handler(core_schema)
        return _WithoutNullDefault(_drop_null(schema) or schema)


class _WithoutNullDefault(Schema):
    """A parameter's schema, to which pydantic adds the default: with it, Prefect would refuse null."""

    def __setitem__(self, name: str, value: Any) -> None:
        if (name, value) != ("default", None):
            super().__setitem__(name, value)


def text_only_for(field: str, *, of: str, among: Iterable[str]) -> Schema:
    """The rule that a text is required if the field `of` has one of the values, or its default; else it stays empty."""
    return {
        "if": {"properties": {of: {"enum": [str(value) for value in sorted(among)]}}, **_SUBMITTED},
        "then": {"properties": {field: {"type": "string", "minLength": 1}}, "required": [field]},
        "else": {"if": _SUBMITTED, "then": {"properties": {field: {"maxLength": 0}}}},
    }


def _show_at_once(field: Schema) -> None:
    plain = _drop_null(field)
    if plain is not None and field.get("default", ...) is None:
        del field["anyOf"], field["default"]
        field |= plain


def _drop_null(field: Schema) -> Schema | None:
    """The schema without the alternative null; None if the field is not optional."""
    kinds = [kind for kind in field.get("anyOf", ()) if kind != _NULL]
    # Prefect adds null to a `type` only: a reference, as to an enumeration, must keep it.
    return kinds[0] if len(kinds) == 1 and "type" in kinds[0] else None
