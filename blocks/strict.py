"""What all blocks have in common: no field is ignored in silence, and no error repeats what was given."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class StrictFields(BaseModel):
    """Mixed into a block, before `Block`, which takes any field."""

    model_config = ConfigDict(hide_input_in_errors=True)  # what was given may be a secret under a wrong name

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        unknown = cls._unknown(given)
        if unknown:
            raise ValueError(
                f"{cls.__name__} has no field {', '.join(map(repr, unknown))}; its fields are {', '.join(cls.model_fields)}"
            )
        return given

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Any:
        """As Prefect loads a saved block. Another version may have saved it with a field that this one does not have."""
        unknown = cls._unknown(obj)
        return super().model_validate(
            {name: obj[name] for name in obj if name not in unknown} if unknown else obj, **options
        )

    @classmethod
    def _unknown(cls, given: Any) -> list[str]:
        """Fields that are neither the block's nor Prefect's own, such as `_block_document_id`."""
        if not isinstance(given, dict):
            return []
        own = {"block_type_slug", *cls.model_fields}
        return [name for name in given if name not in own and not name.startswith("_")]
