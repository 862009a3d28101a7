"""A typed client of the boxoffice ticketing API."""

from typing import TypeVar

import httpx

from .generated import api, models
from .generated.client import Client
from .generated.types import UNSET, Response
from .retries import RetryingTransport

__all__ = ["UNSET", "VERSION", "ApiError", "Client", "RetryingTransport", "api", "connect", "models", "success"]

VERSION = "3.0.0"
"""Version of the API for which this client was generated."""

T = TypeVar("T")


class ApiError(Exception):
    """An error response."""

    def __init__(self, status: int, code: str, text: str, request_id: str | None) -> None:
        """Create it from the facts of the response."""
        super().__init__(f"{status} {code}: {text} (request {request_id})")
        self.status = status
        self.code = code
        """Stable code. Later versions of the server may send others."""
        self.request_id = request_id
        """Identifier by which the server's log names the request."""


def connect(address: str, key: str) -> Client:
    """Create a client of the server at `address`, with the key of an application, a session or an admission token.

    It is passed to each operation as `client`. It retries requests, see `RetryingTransport`.
    """
    headers = {"X-API-Key": key, "X-Client-Version": VERSION}
    return Client(
        base_url=address.rstrip("/"),
        headers=headers,
        # A redirect to another server would reveal the key to it.
        follow_redirects=False,
        timeout=httpx.Timeout(30),
        raise_on_unexpected_status=True,
        httpx_args={"transport": RetryingTransport(httpx.HTTPTransport())},
    )


def success(response: Response[T | models.ErrorBody]) -> T:
    """Return the body of a response, or raise the `ApiError` that it is."""
    body = response.parsed
    if isinstance(body, models.ErrorBody):
        text = body.error or body.message or ""
        raise ApiError(response.status_code, body.code, str(text), response.headers.get("x-request-id"))
    return body  # type: ignore[return-value]  # A success without a body is None.
