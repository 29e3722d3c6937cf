"""Common to all blocks: links for the Prefect UI, strict fields, and errors that never repeat a given value."""

from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import BaseModel, ConfigDict, HttpUrl, model_validator

DOCUMENTATION: Final = HttpUrl("https://docs.prefect.io/v3/concepts/blocks")
_LOGOS: Final = "https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos"


def link_logo(name: str) -> HttpUrl:
    """The address of one of the logos of Prefect's own blocks, pinned to the commit that Prefect pins."""
    return HttpUrl(f"{_LOGOS}/{name}.png")


class StrictFields(BaseModel):
    """Base of every block, listed before `Block`, which accepts any field."""

    model_config = ConfigDict(hide_input_in_errors=True)  # the value may be a secret under a wrong name

    if TYPE_CHECKING:

        @classmethod
        def load(cls, name: str, validate: bool = True, client: Any = None) -> Self:  # noqa: FBT001, FBT002 - Prefect's
            """Prefect's, for type checkers: elsewhere than in an event loop, which has `aload`, it returns a block."""
            raise NotImplementedError

        @classmethod
        async def aload(cls, name: str, validate: bool = True, client: Any = None) -> Self:  # noqa: FBT001, FBT002 - as above
            """Prefect's, whose decorators hide its type."""
            raise NotImplementedError

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: Any) -> Any:
        unknown = cls._unknown(values)
        if unknown:
            raise ValueError(
                f"{cls.__name__} has no field {', '.join(map(repr, unknown))}; its fields are {', '.join(cls.model_fields)}"
            )
        return values

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Any:
        """Load a saved block, as Prefect does; fields that another version saved are left out."""
        unknown = cls._unknown(obj)
        return super().model_validate(
            {name: obj[name] for name in obj if name not in unknown} if unknown else obj, **options
        )

    @classmethod
    def _unknown(cls, values: Any) -> list[str]:
        """Fields that are neither the block's nor Prefect's own, such as `_block_document_id`."""
        if not isinstance(values, dict):
            return []
        known = {"block_type_slug", *cls.model_fields}
        return [name for name in values if name not in known and not name.startswith("_")]
