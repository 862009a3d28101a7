"""Sending of requests: idempotency keys and retries."""

import random
import time
import uuid
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from .generated.errors import UnexpectedStatus

FIRST_DELAY = 0.1
"""Approximate delay before the first retry, in seconds; it doubles before each further one."""
MAX_DELAY = 5.0
"""Maximum delay in seconds, unless the server requests a longer one."""


class RetryingTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Repeats a request if it may succeed later.

    That is if the connection fails or the attempt times out, there were too many requests (429), the server is unavailable (503), or
    an earlier attempt with the same idempotency key is in progress (409). Each POST and PATCH has an `Idempotency-Key`, so the server
    executes it once. A repeated DELETE succeeds if the resource is gone. Asynchronous requests are sent once.

    An error response that is not one of the API, such as that of a load balancer, raises `UnexpectedStatus`.
    """

    def __init__(
        self,
        transport: httpx.BaseTransport,
        asynchronous: httpx.AsyncBaseTransport,
        max_attempts: int = 8,
        retry_window: float = 100.0,
    ) -> None:
        """Send with `transport`, or with `asynchronous`. No retry starts after `retry_window` seconds."""
        self._transport = transport
        self._asynchronous = asynchronous
        self._max_attempts = max_attempts
        self._retry_window = retry_window

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request until the response is final, and read the response completely."""
        if request.method in ("POST", "PATCH"):
            request.headers.setdefault("Idempotency-Key", uuid.uuid4().hex)
        started = time.monotonic()
        may_be_executed = False
        attempt = 1
        while True:
            response: httpx.Response | None = None
            failure: httpx.TransportError | None = None
            try:
                response = self._transport.handle_request(request)
                # The connection may fail within the body.
                response.read()
            except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
                # The address or a header is wrong: nothing was sent.
                raise
            except httpx.TransportError as error:
                response, failure = None, error
            delay = _retry_delay(attempt, response)
            is_last = attempt >= self._max_attempts or time.monotonic() - started + delay > self._retry_window
            if response is not None and (is_last or not _is_temporary(response)):
                is_gone = may_be_executed and request.method == "DELETE" and _code(response) == "resource.not-found"
                return httpx.Response(204, request=request) if is_gone else _response_of_api(response)
            if failure is not None and is_last:
                raise failure
            may_be_executed |= response is None or response.status_code == 503
            attempt += 1
            time.sleep(delay)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request once, and read the response completely."""
        response = await self._asynchronous.handle_async_request(request)
        await response.aread()
        return _response_of_api(response)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    async def aclose(self) -> None:
        """Close the connections of asynchronous requests."""
        await self._asynchronous.aclose()


def _retry_delay(attempt: int, response: httpx.Response | None) -> float:
    retry_after = _retry_after(response) if response is not None else None
    if retry_after is not None:
        return retry_after + FIRST_DELAY * random.random()
    return min(MAX_DELAY, FIRST_DELAY * 2.0**attempt) * (0.5 + random.random() / 2)


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds or the date of `Retry-After` as a delay in seconds."""
    value = response.headers.get("Retry-After", "")
    if value.isdecimal():
        return float(value)
    try:
        # The clock of the server may differ from ours.
        now = parsedate_to_datetime(response.headers["Date"]) if "Date" in response.headers else datetime.now(UTC)
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (TypeError, ValueError):
        return None


def _is_temporary(response: httpx.Response) -> bool:
    if response.status_code == 409:
        return _code(response) == "idempotency.under-way"
    return response.status_code in (429, 503)


def _response_of_api(response: httpx.Response) -> httpx.Response:
    """Return the response, or raise an error if it is one that the generated code can't read."""
    if response.is_error and not isinstance(_code(response), str):
        raise UnexpectedStatus(response.status_code, response.content)
    return response


def _code(response: httpx.Response) -> object:
    try:
        body = response.json()
    except ValueError:
        return None
    return body.get("code") if isinstance(body, dict) else None
