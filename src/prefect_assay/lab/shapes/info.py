"""What the small calls around the account answer (service shapes, Tokens and identity)."""

from typing import Annotated

from pydantic import Field

from prefect_assay.lab.shapes.base import Shape


class FeedbackReceipt(Shape):
    """Feedback has arrived."""

    reference: Annotated[str, Field(pattern="^fb_", description="Names this submission.")]
    message: str
