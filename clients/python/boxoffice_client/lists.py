"""Reading of lists page by page."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import count
from typing import Protocol, TypeVar

from .errors import ApiError, success
from .generated import models
from .generated.types import Response

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Page(Protocol[T_co]):
    """A page of a list."""

    @property
    def entries(self) -> Sequence[T_co]:
        """The entries of this page."""

    @property
    def total(self) -> int:
        """The number of entries on all pages."""


def entries(load: Callable[[int], Response[Page[T] | models.ErrorBody]]) -> Iterator[T]:
    """Yield the entries of all pages of a list, or raise the `ApiError` of a page.

    `load` reads the page of a number, from 1, each with the same `records`. A page is read when its first entry is needed. The server
    evaluates the list again for each page: an entry may be missing or come twice if the list changes in between.
    """
    received = 0
    for number in count(1):
        page = _page(number, load(number))
        if page is None:
            return
        yield from page.entries
        received += len(page.entries)
        if _is_last(page, received):
            return


async def async_entries(load: Callable[[int], Awaitable[Response[Page[T] | models.ErrorBody]]]) -> AsyncIterator[T]:
    """Do the same without blocking."""
    received = 0
    for number in count(1):
        page = _page(number, await load(number))
        if page is None:
            return
        for entry in page.entries:
            yield entry
        received += len(page.entries)
        if _is_last(page, received):
            return


def _page(number: int, response: Response[Page[T] | models.ErrorBody]) -> Page[T] | None:
    """Return the page in a response, or nothing if the list has become shorter."""
    try:
        return success(response)
    except ApiError as error:
        if number > 1 and error.code == "page.past-end":
            return None
        raise


def _is_last(page: Page[T], received: int) -> bool:
    """Return whether no entries follow. A page may have fewer than requested, so page numbers don't reveal it."""
    return not page.entries or received >= page.total
