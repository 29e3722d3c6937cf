"""The two words of a deployment, from options."""

from pydantic import ValidationError

from prefect_assay.errors import InputError
from prefect_assay.models.words import WireWords


def checked_words(provider: str, service: str) -> WireWords:
    """The words of a deployment.

    Raises:
        InputError: one of them cannot stand in a field or a header name.
    """
    try:
        return WireWords(provider=provider, service=service)
    except ValidationError:
        raise InputError(
            "--provider-word takes lower-case letters and digits, --service-word letters and digits"
        ) from None
