"""Send requests to a server of a later version, which `clients/check` simulates."""

import sys

from boxoffice_client import ApiError, connect, models, success
from boxoffice_client.generated.api.hosts import host_get
from boxoffice_client.generated.api.orders import order_create, order_get
from boxoffice_client.generated.api.regions import region_delete

client = connect(sys.argv[1], "key")
order = success(order_get.sync_detailed("17637000000081", client=client))
code = "none"
try:
    success(host_get.sync_detailed("1", client=client))
except ApiError as error:
    code = error.code
# The first attempt of each fails.
body = models.OrderCreate(items=models.OrderCreateItems.from_dict({"/sections/1": 1}))
placed = success(order_create.sync_detailed(client=client, body=body))
removed = region_delete.sync_detailed("1", client=client)
print(f"status {order.status} code {code} retried {placed.status} removed {removed.status_code.value}")
