"""Strict schema of the feedback call (service shapes, Tokens and identity)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from prefect_assay.lab.schemas import Body

UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


class SubmitFeedback(Body):
    """POST /feedback/submit."""

    request_uuid: Annotated[str, Field(pattern=UUID)]
    feedback_type: Literal["feature_request", "feedback", "bug_report"]
    title: str | None = None
    json_body: Any = None
    human_note: str | None = None
