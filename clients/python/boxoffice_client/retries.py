"""Sending of requests: idempotency keys and retries."""

import random
import time
import uuid
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anyio
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
    executes it once. A repeated DELETE succeeds if the resource is gone, or the transfer cancelled.

    A response that is not one of the API, such as that of a load balancer, raises `UnexpectedStatus`.
    """

    def __init__(
        self,
        transport: httpx.BaseTransport,
        asynchronous: httpx.AsyncBaseTransport,
        max_attempts: int = 8,
        retry_window: float = 100.0,
    ) -> None:
        """Send with `transport`, or with `asynchronous`, at most `max_attempts` times. No retry starts after `retry_window` seconds."""
        self._transport = transport
        self._asynchronous = asynchronous
        self._max_attempts = max_attempts
        self._retry_window = retry_window

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request until the response is final, and read the response completely."""
        attempts = _Attempts(request, self._max_attempts, self._retry_window)
        while True:
            try:
                response = self._transport.handle_request(request)
                # The connection may fail within the body.
                response.read()
                delay = attempts.delay_after(response)
            except httpx.TransportError as error:
                delay = attempts.delay_after(error)
                if delay is None:
                    raise
            if delay is None:
                if read := attempts.read_of_transfer(response):
                    try:
                        transfer = self._transport.handle_request(read)
                        transfer.read()
                        attempts.is_cancelled = _property(transfer, "status") == "Cancelled"
                    except httpx.TransportError:
                        pass
                return attempts.final(response)
            time.sleep(delay)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Do the same without blocking."""
        attempts = _Attempts(request, self._max_attempts, self._retry_window)
        while True:
            try:
                response = await self._asynchronous.handle_async_request(request)
                await response.aread()
                delay = attempts.delay_after(response)
            except httpx.TransportError as error:
                delay = attempts.delay_after(error)
                if delay is None:
                    raise
            if delay is None:
                if read := attempts.read_of_transfer(response):
                    try:
                        transfer = await self._asynchronous.handle_async_request(read)
                        await transfer.aread()
                        attempts.is_cancelled = _property(transfer, "status") == "Cancelled"
                    except httpx.TransportError:
                        pass
                return attempts.final(response)
            await anyio.sleep(delay)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    async def aclose(self) -> None:
        """Close the connections of asynchronous requests."""
        await self._asynchronous.aclose()


class _Attempts:
    """The attempts to send a request."""

    def __init__(self, request: httpx.Request, max_attempts: int, retry_window: float) -> None:
        if request.method in ("POST", "PATCH"):
            request.headers.setdefault("Idempotency-Key", uuid.uuid4().hex)
        self._request = request
        self._max_attempts = max_attempts
        self._end = time.monotonic() + retry_window
        self._attempt = 1
        self._may_be_executed = False
        self.is_cancelled = False
        """Whether the request is a DELETE of a transfer that is cancelled."""

    def delay_after(self, result: httpx.Response | httpx.TransportError) -> float | None:
        """Return the delay before the next attempt, or nothing if the result of this one is final."""
        response = result if isinstance(result, httpx.Response) else None
        if response is not None and not _is_temporary(response):
            return None
        if isinstance(result, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
            # The address or a header is wrong: nothing was sent.
            return None
        delay = _retry_delay(self._attempt, response)
        if self._attempt >= self._max_attempts or time.monotonic() + delay > self._end:
            return None
        if response is not None:
            self._may_be_executed |= response.status_code == 503
        elif not isinstance(result, (httpx.ConnectError, httpx.ConnectTimeout)):
            # There was a connection.
            self._may_be_executed = True
        self._attempt += 1
        return delay

    def read_of_transfer(self, response: httpx.Response) -> httpx.Request | None:
        """Return the request that shows whether an earlier attempt cancelled the transfer, or nothing if that is no question.

        Another account may have claimed the transfer instead.
        """
        if not self._is_repeated_delete() or _property(response, "code") != "transfer.not-open":
            return None
        headers = self._request.headers.copy()
        headers.pop("If-Match", None)
        return httpx.Request("GET", self._request.url, headers=headers, extensions=self._request.extensions)

    def final(self, response: httpx.Response) -> httpx.Response:
        """Return the response of the last attempt. A DELETE that an earlier attempt executed has succeeded."""
        is_gone = self.is_cancelled or _is_gone(self._request.url.path, _property(response, "code"))
        if self._is_repeated_delete() and is_gone:
            return httpx.Response(204, request=self._request)
        return _response_of_api(response)

    def _is_repeated_delete(self) -> bool:
        return self._may_be_executed and self._request.method == "DELETE"


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


def _is_gone(path: str, code: object) -> bool:
    """Return whether the error of a repeated DELETE shows that an earlier attempt was executed."""
    if code == "resource.not-found":
        # The success of a decision has a body, so its caller has to read the decision.
        return "/submissions/" not in path
    # The session may be that of the key itself.
    return code == "session.ended" or (code == "key.refused" and path.endswith("/sessions/active"))


def _is_temporary(response: httpx.Response) -> bool:
    if response.status_code == 409:
        return _property(response, "code") == "idempotency.under-way"
    return response.status_code in (429, 503)


def _response_of_api(response: httpx.Response) -> httpx.Response:
    """Return the response, or raise an error if it is one that the generated code can't read. The API has no HTML."""
    is_foreign_error = response.is_error and not isinstance(_property(response, "code"), str)
    if is_foreign_error or response.headers.get("Content-Type", "").startswith("text/html"):
        raise UnexpectedStatus(response.status_code, response.content)
    return response


def _property(response: httpx.Response, name: str) -> object:
    try:
        body = response.json()
    except ValueError:
        return None
    return body.get(name) if isinstance(body, dict) else None
