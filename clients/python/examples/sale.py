"""Sell tickets on a running server: `python examples/sale.py ADDRESS ADMINISTRATOR_KEY`."""

import sys
import time

from boxoffice_client import connect, models, success
from boxoffice_client.generated.api.categories import category_create
from boxoffice_client.generated.api.events import event_create, event_submission_create
from boxoffice_client.generated.api.hosts import host_create
from boxoffice_client.generated.api.orders import order_create, order_get
from boxoffice_client.generated.api.payments import order_payment_create
from boxoffice_client.generated.api.regions import region_create
from boxoffice_client.generated.api.review import submission_delete
from boxoffice_client.generated.api.sections import section_create
from boxoffice_client.generated.api.venues import venue_create

address, key = sys.argv[1:]
client = connect(address, key)
run = f"Python {time.time_ns()}"


def id_of(uri: str) -> str:
    """Return the identifier at the end of a URI."""
    return uri.rsplit("/", 1)[-1]


region = success(region_create.sync_detailed(client=client, body=models.RegionCreate(name=f"Accra {run}", country="Ghana")))
venue = success(
    venue_create.sync_detailed(
        client=client,
        body=models.VenueCreate(
            name=f"Theatre {run}", region=region.self_, address="Liberia Road", longitude=-0.2009, latitude=5.5527
        ),
    )
)
category = success(
    category_create.sync_detailed(client=client, body=models.CategoryCreate(name=f"Music {run}", subcategories=["Jazz"]))
)
host = success(
    host_create.sync_detailed(
        client=client, body=models.HostCreate(name=f"Live {run}", contact="Kofi", email="kofi@example.com")
    )
)
event = success(
    event_create.sync_detailed(
        client=client,
        body=models.EventCreate(
            host=host.self_,
            title=f"Jazz Night {run}",
            description="Jazz, outdoors.",
            type_="Standard",
            public=True,
            category=category.self_,
            subcategory="Jazz",
            venue=venue.self_,
            start="2999-12-20T19:00",
            end="2999-12-20T23:00",
        ),
    )
)


def create_section(name: str, base_price: float) -> models.Section:
    """Create a section of the event with 60 tickets."""
    body = models.SectionCreate(
        name=name, base_price=base_price, capacity=60, sales_start="2020-01-01T00:00", sales_end="2999-12-20T19:00"
    )
    return success(section_create.sync_detailed(id_of(event.self_), client=client, body=body))


box = create_section("Box", 150_000.01)
suite = create_section("Suite", 411_522.63)
submission = success(event_submission_create.sync_detailed(id_of(event.self_), client=client))
success(submission_delete.sync_detailed(id_of(submission.self_), client=client, approved=True))

items = models.OrderCreateItems.from_dict({suite.self_: 3})
order = success(order_create.sync_detailed(client=client, body=models.OrderCreate(items=items)))


def pay(amount: float) -> models.Payment:
    """Pay a part of the order."""
    body = models.PaymentCreate(method=models.PaymentMethodInput.CARD, token="tok_approve", amount=amount)
    return success(order_payment_create.sync_detailed(order.number, client=client, body=body))


payment = pay(order.subtotal)
pay(order.fees)
paid = success(order_get.sync_detailed(order.number, client=client))
print(f"prices {box.price.base:.2f} paid {payment.amount:.2f} order {paid.status}")
