"""Options of commands, made from the models that the flows and their forms share: an option is added there, once."""

import inspect
import json
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import wraps
from types import NoneType
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from prefect_assay.cli.failures import report_errors
from prefect_assay.errors import InputError

T = TypeVar("T")

# Options whose names differ from their field's, because they are typed often or would clash.
_SPELLINGS: Final = {
    ("Assay", "experiment_type"): "--type",
    ("Assay", "n_replicates"): "--replicates",
    ("SpendingOptions", "payment_method"): "--payment",
    ("SelectionSettings", "target"): "--history-target",
    ("SelectionSettings", "higher_is_better"): "--higher-is-better/--lower-is-better",
}


def takes_models(
    *, leave_out: frozenset[str] = frozenset()
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a command an option per field of each model among its parameters; it gets the models, with what was typed.

    Args:
        leave_out: names of fields that the command does not read.

    Example:
        ```python
        @campaigns.command()
        @takes_models()
        def run(designs: str, *, assay: Assay, options: CampaignOptions) -> None: ...
        ```
    """
    return lambda command: _with_models(command, leave_out)


def _with_models(command: Callable[..., T], leave_out: frozenset[str]) -> Callable[..., T]:
    signature = inspect.signature(command)
    models = {p.name: p.annotation for p in signature.parameters.values() if _is_model(p.annotation)}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name in models:
            parameters += _parameters_of(parameter.annotation, parameter.name, leave_out)
        else:
            parameters.append(parameter)

    @wraps(command)
    def call(**values: Any) -> T:
        with report_errors(as_json=values.get("as_json", False)):
            typed = {name: build_model(model, name, values) for name, model in models.items()}
        others = {name: value for name, value in values.items() if name in signature.parameters}
        return command(**others, **typed)

    # What typer reads in place of the command's own.
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def build_model(model: type[BaseModel], place: str, values: dict[str, Any]) -> Any:
    """The model of the values that were typed, by the names that `takes_models` gives its parameters.

    Raises:
        InputError: the model refuses a value, by the option's name.
    """
    typed: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        key = f"{place}__{name}"
        if inner is None:
            if values.get(key) is not None:
                typed[name] = values[key]
        elif any(values.get(other) is not None for other in values if other.startswith(f"{key}__")):
            typed[name] = build_model(inner, key, values)
    try:
        return model(**typed)
    except ValidationError as error:
        raise InputError("; ".join(_describe_problems(model, error))) from None


def option_name(model: type[BaseModel], field: str) -> str:
    """The option of a field: `--name-column` of `name_column`."""
    return _SPELLINGS.get((model.__name__, field), f"--{field.lower().replace('_', '-')}")


def _describe_problems(model: type[BaseModel], error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_context=False):
        place, text = problem["loc"], problem["msg"].removeprefix("Value error, ")
        if place:
            yield f"{option_name(model, str(place[0]))}: {text}"
            continue
        for field in model.model_fields:  # a rule between fields names them
            text = re.sub(rf"(?<![-\w]){field}(?!\w)", option_name(model, field).partition("/")[0], text)
        yield text


def _parameters_of(
    model: type[BaseModel], place: str, leave_out: frozenset[str], without: str | None = None
) -> Iterator[inspect.Parameter]:
    """The options of a model's fields.

    `without` says what is done where nothing of an optional model is typed. Its first option, which the others need,
    shows that in place of the model's default.
    """
    schemas = model.model_json_schema()["properties"]
    panel = model.model_config.get("title")
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        key = f"{place}__{name}"
        if inner is not None:
            optional = field.default is None
            yield from _parameters_of(inner, key, leave_out, _text_of_empty(field) if optional else None)
            continue
        if name in leave_out:
            continue
        shown = without or _shown_default(field.default)
        without = None
        annotation = _annotation_of(
            field, schemas[name], option_name(model, name), panel, shown_default=shown
        )
        yield inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _text_of_empty(field: FieldInfo) -> str | None:
    """What the form says of an empty field, such as `the first ones, in their order`."""
    return (field.description or "").partition("Empty: ")[2].rstrip(".") or None


def _annotation_of(
    field: FieldInfo, schema: dict[str, Any], name: str, panel: str | None, *, shown_default: str | bool
) -> Any:
    """The annotation that typer reads. The default is the model's: an option that is not typed is None."""
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    settings: dict[str, Any] = {
        "help": (field.description or "").replace("Empty:", "Default:"),
        "rich_help_panel": panel,
        "show_default": shown_default,
    }
    choices = _without_none(field.annotation)
    if isinstance(choices, type) and issubclass(choices, Enum):
        return Annotated[choices | None, typer.Option(name, **settings)]
    kind: Any = str
    match kinds[0].get("type"):
        case "boolean":
            kind = bool
        case "integer" | "number" as number:
            kind = int if number == "integer" else float
            settings["min"] = kinds[0].get("minimum", kinds[0].get("exclusiveMinimum"))
            settings["max"] = kinds[0].get("maximum", kinds[0].get("exclusiveMaximum"))
        case "array":
            settings |= {"parser": _split_list, "metavar": "A,B,..."}
        case "object":
            settings |= {"parser": _read_mapping, "metavar": "JSON"}
    return Annotated[kind | None, typer.Option(name, **settings)]


def _split_list(text: str) -> Any:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _read_mapping(text: str) -> Any:
    try:
        mapping = json.loads(text)
    except ValueError:
        mapping = None
    if not isinstance(mapping, dict):
        raise typer.BadParameter('write it as JSON, such as {"temperature": 25}')
    return mapping


def _shown_default(value: Any) -> str | bool:
    if isinstance(value, Enum):
        return str(value.value)
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else False


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model of a field that holds one, or one or nothing."""
    bare = _without_none(annotation)
    return bare if _is_model(bare) else None


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    return _without_none(kinds[0]) if len(kinds) == 1 and NoneType in get_args(annotation) else annotation
