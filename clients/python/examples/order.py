"""Order two tickets, as the README does: `python examples/order.py KEY`."""

import sys

from boxoffice_client import connect, models, success
from boxoffice_client.generated.api.orders import order_create

(key,) = sys.argv[1:]

client = connect("http://127.0.0.1:8080", key)
items = models.OrderCreateItems.from_dict({"/sections/17637000000062": 2})
order = success(order_create.sync_detailed(client=client, body=models.OrderCreate(items=items)))

print(order.number)
