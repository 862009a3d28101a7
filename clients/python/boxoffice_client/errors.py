"""Error responses."""

from http import HTTPStatus
from typing import TypeVar

from .generated import models
from .generated.types import Response

T = TypeVar("T")


class ApiError(Exception):
    """An error response, or the response to a conditional request that the resource has not changed (304)."""

    def __init__(self, status: int, body: models.ErrorBody | None, request_id: str | None) -> None:
        """Create it from the facts of the response."""
        text = f"{body.code}: {body.error or body.message or ''}" if body else "not modified"
        super().__init__(f"{status} {text} (request {request_id})")
        self.status = status
        self.code = body.code if body else None
        """Stable code, or None for a 304. Later versions of the server may send others."""
        self.body = body
        """The body, or None for a 304."""
        self.fields = (body.fields if body else None) or []
        """The missing and invalid arguments."""
        self.refused = (body.refused if body else None) or []
        """The tickets that were not admitted, with the reasons."""
        self.request_id = request_id
        """Identifier by which the server's log names the request."""


def success(response: Response[T | models.ErrorBody]) -> T:
    """Return the body of a response, or raise the `ApiError` that it is. A 304 is an error, too: it has no body."""
    body = response.parsed
    request_id = response.headers.get("x-request-id")
    if isinstance(body, models.ErrorBody):
        raise ApiError(response.status_code, body, request_id)
    if response.status_code == HTTPStatus.NOT_MODIFIED:
        raise ApiError(response.status_code, None, request_id)
    return body  # type: ignore[return-value]  # A success without a body is None.
