"""Send requests to a server of a later version, which `clients/check` simulates."""

import asyncio
import sys

import httpx

from boxoffice_client import ApiError, UnexpectedStatus, async_entries, connect, entries, models, success
from boxoffice_client.generated.api.accounts import account_preferences_update
from boxoffice_client.generated.api.categories import category_list
from boxoffice_client.generated.api.hosts import host_get
from boxoffice_client.generated.api.orders import order_create, order_document_get, order_get
from boxoffice_client.generated.api.regions import region_delete, region_get, region_list
from boxoffice_client.generated.api.reports import event_order_export_get
from boxoffice_client.generated.api.review import submission_delete
from boxoffice_client.generated.api.sessions import account_session_delete, session_active_delete
from boxoffice_client.generated.api.transfers import transfer_delete
from boxoffice_client.generated.api.venues import venue_get
from boxoffice_client.generated.api.zones import zone_delete

client = connect(sys.argv[1], "a secret key")
assert "a secret key" not in repr(client)
try:
    connect(sys.argv[1], "a secret key\n")
except ValueError as error:
    assert "secret" not in str(error)
else:
    raise AssertionError("a header can't have this key")
order = success(order_get.sync_detailed("17637000000081", client=client))


async def check_asynchronous() -> None:
    """Read an order, a region for which the first attempt fails, and lists, and cancel a transfer."""
    assert success(await order_get.asyncio_detailed("17637000000081", client=client)) == order
    assert success(await region_get.asyncio_detailed("2", client=client)).name == "Théâtre"
    all_regions = async_entries(lambda page: region_list.asyncio_detailed(client=client, page=page, records=100))
    assert [region.name async for region in all_regions] == 4 * ["Greater Accra"]
    shortened = async_entries(lambda page: category_list.asyncio_detailed(client=client, page=page, records=100))
    assert len([category async for category in shortened]) == 1
    cancelled = await transfer_delete.asyncio_detailed("1", client=connect(sys.argv[1], "key"), if_match='"1"')
    assert cancelled.status_code == 204


asyncio.run(check_asynchronous())


async def delete_session(session: str, *, is_synchronous: bool) -> None:
    """Delete a session of an account."""
    if is_synchronous:
        account_session_delete.sync_detailed("1", session, client=client)
    else:
        await account_session_delete.asyncio_detailed("1", session, client=client)


# The server closes the connection of the first attempt.
for zone, limits in {"1": {"max_attempts": 1}, "2": {"retry_window": 0}}.items():
    try:
        zone_delete.sync_detailed(zone, client=connect(sys.argv[1], "key", **limits))
    except httpx.TransportError:
        pass
    else:
        raise AssertionError("a second attempt was sent")

# httpx would make requests for other resources of these.
for session in ("", ".", ".."):
    for is_synchronous in (True, False):
        try:
            asyncio.run(delete_session(session, is_synchronous=is_synchronous))
        except ValueError as error:
            assert str(error) == f"{session!r} is not the identifier of a resource"
        else:
            raise AssertionError(f"{session!r} is no session")


def error_of(host: str) -> ApiError:
    """Return the error of reading a host."""
    try:
        success(host_get.sync_detailed(host, client=client))
    except ApiError as error:
        return error
    raise AssertionError("there is no such host")


code = error_of("1").code
# The first attempt of each fails.
body = models.OrderCreate(items=models.OrderCreateItems.from_dict({"/sections/1": 1}))
placed = success(order_create.sync_detailed(client=client, body=body))
removed = region_delete.sync_detailed("1", client=client)
foreign = 0
try:
    venue_get.sync_detailed("1", client=client)
except UnexpectedStatus as error:
    foreign = error.status_code
fields = [field.name for field in error_of("2").fields]
export = success(event_order_export_get.sync_detailed("1", client=client))
document = success(order_document_get.sync_detailed("1", client=client))
region = success(region_get.sync_detailed("1", client=client))
slow = success(event_order_export_get.sync_detailed("2", client=client.with_timeout(httpx.Timeout(2))))
page = "accepted"
try:
    event_order_export_get.sync_detailed("3", client=client)
except UnexpectedStatus:
    page = "rejected"
logout = session_active_delete.sync_detailed(client=client).status_code.value
decision = submission_delete.sync_detailed("1", client=client, approved=True).status_code.value
refused = region_delete.sync_detailed("1", client=connect(sys.argv[2], "key")).status_code.value
unchanged = 0
try:
    success(region_get.sync_detailed("3", client=client, if_none_match='"1"'))
except ApiError as error:
    assert (error.code, error.body, error.fields, str(error)) == (None, None, [], "304 not modified (request 1)")
    unchanged = error.status
cancelled = transfer_delete.sync_detailed("3", client=client, if_match='"1"').status_code.value
claimed = transfer_delete.sync_detailed("2", client=client).status_code.value
regions = entries(lambda page: region_list.sync_detailed(client=client, page=page, records=100))
names = [region.name for region in regions]
shortened = list(entries(lambda page: category_list.sync_detailed(client=client, page=page, records=100)))
preferences = success(
    account_preferences_update.sync_detailed("1", client=client, body=models.PreferencesUpdate(region=None))
)
print(
    f"status {order.status} code {code} retried {placed.status} removed {removed.status_code.value} foreign {foreign}",
    f"fields {','.join(fields)} export {len(export)} document {document.payload.read().decode()} region {region.name}",
    f"slow {len(slow)} page {page} logout {logout} decision {decision} refused {refused}",
    f"unchanged {unchanged} region {preferences.region or 'none'} cancelled {cancelled} claimed {claimed}",
    f"entries {len(names)} shortened {len(shortened)}",
)
