import boxoffice.Boxoffice;
import boxoffice.api.CategoriesApi;
import boxoffice.api.EventsApi;
import boxoffice.api.HostsApi;
import boxoffice.api.OrdersApi;
import boxoffice.api.PaymentsApi;
import boxoffice.api.RegionsApi;
import boxoffice.api.ReviewApi;
import boxoffice.api.SectionsApi;
import boxoffice.api.VenuesApi;
import boxoffice.client.ApiClient;
import boxoffice.client.ApiException;
import boxoffice.model.Category;
import boxoffice.model.CategoryCreate;
import boxoffice.model.Event;
import boxoffice.model.EventCreate;
import boxoffice.model.Host;
import boxoffice.model.HostCreate;
import boxoffice.model.Order;
import boxoffice.model.OrderCreate;
import boxoffice.model.Payment;
import boxoffice.model.PaymentCreate;
import boxoffice.model.PaymentMethodInput;
import boxoffice.model.Region;
import boxoffice.model.RegionCreate;
import boxoffice.model.Section;
import boxoffice.model.SectionCreate;
import boxoffice.model.Submission;
import boxoffice.model.Venue;
import boxoffice.model.VenueCreate;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** Sells tickets on a running server: {@code java Sale ADDRESS ADMINISTRATOR_KEY}. */
public final class Sale {
  private Sale() {}

  public static void main(String[] arguments) throws ApiException {
    ApiClient client = Boxoffice.connect(arguments[0], arguments[1]);
    String run = "Java " + System.nanoTime();

    Region region =
        new RegionsApi(client).regionCreate(new RegionCreate().name("Accra " + run).country("Ghana"), null);
    VenueCreate newVenue = new VenueCreate().name("Theatre " + run).region(region.getSelf()).address("Liberia Road");
    Venue venue = new VenuesApi(client).venueCreate(newVenue.longitude(-0.2009).latitude(5.5527), null);
    CategoryCreate newCategory = new CategoryCreate().name("Music " + run).subcategories(Set.of("Jazz"));
    Category category = new CategoriesApi(client).categoryCreate(newCategory, null);
    HostCreate newHost = new HostCreate().name("Live " + run).contact("Kofi").email("kofi@example.com");
    Host host = new HostsApi(client).hostCreate(newHost, null);
    EventCreate newEvent =
        new EventCreate()
            .host(host.getSelf())
            .title("Jazz Night " + run)
            .description("Jazz, outdoors.")
            .type("Standard")
            ._public(true)
            .category(category.getSelf())
            .subcategory("Jazz")
            .venue(venue.getSelf())
            .start("2999-12-20T19:00")
            .end("2999-12-20T23:00");
    EventsApi events = new EventsApi(client);
    Event event = events.eventCreate(newEvent, null);

    Section box = createSection(client, event, "Box", 150_000.01);
    Section suite = createSection(client, event, "Suite", 411_522.63);
    Submission submission = events.eventSubmissionCreate(idOf(event.getSelf()), null);
    new ReviewApi(client).submissionDelete(idOf(submission.getSelf()), true, null, null);

    OrdersApi orders = new OrdersApi(client);
    Order order = orders.orderCreate(new OrderCreate().items(Map.of(suite.getSelf(), 3L)), null);
    Payment payment = pay(client, order, order.getSubtotal());
    pay(client, order, order.getFees());
    Order paid = orders.orderGet(order.getNumber(), null);
    System.out.printf(
        Locale.ROOT, "prices %.2f paid %.2f order %s%n", box.getPrice().getBase(), payment.getAmount(), paid.getStatus());
  }

  private static Section createSection(ApiClient client, Event event, String name, double basePrice) throws ApiException {
    SectionCreate section = new SectionCreate().name(name).basePrice(basePrice).capacity(60L);
    section.salesStart("2020-01-01T00:00").salesEnd("2999-12-20T19:00");
    return new SectionsApi(client).sectionCreate(idOf(event.getSelf()), section, null);
  }

  private static Payment pay(ApiClient client, Order order, double amount) throws ApiException {
    PaymentCreate payment = new PaymentCreate().method(PaymentMethodInput.CARD).token("tok_approve").amount(amount);
    return new PaymentsApi(client).orderPaymentCreate(order.getNumber(), payment, null);
  }

  /** Returns the identifier at the end of a URI. */
  private static String idOf(String uri) {
    return uri.substring(uri.lastIndexOf('/') + 1);
  }
}
