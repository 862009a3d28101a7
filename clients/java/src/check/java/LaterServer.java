import boxoffice.Boxoffice;
import boxoffice.api.AccountsApi;
import boxoffice.api.CategoriesApi;
import boxoffice.api.HostsApi;
import boxoffice.api.OrdersApi;
import boxoffice.api.RegionsApi;
import boxoffice.api.ReportsApi;
import boxoffice.api.ReviewApi;
import boxoffice.api.SessionsApi;
import boxoffice.api.TransfersApi;
import boxoffice.api.VenuesApi;
import boxoffice.api.ZonesApi;
import boxoffice.client.ApiClient;
import boxoffice.client.ApiException;
import boxoffice.model.Category;
import boxoffice.model.CategoryPage;
import boxoffice.model.Order;
import boxoffice.model.OrderCreate;
import boxoffice.model.Preferences;
import boxoffice.model.PreferencesUpdate;
import boxoffice.model.Region;
import boxoffice.model.RegionPage;
import com.fasterxml.jackson.annotation.JsonInclude;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Sends requests to a server of a later version, which {@code clients/check} simulates. */
public final class LaterServer {
  private LaterServer() {}

  public static void main(String[] arguments) throws ApiException, IOException {
    ApiClient client = Boxoffice.connect(arguments[0], "a secret key");
    if ((client + " " + client.getHttpClient() + " " + client.getRequestInterceptor()).contains("secret")) {
      throw new AssertionError("a log has the key");
    }
    try {
      Boxoffice.connect(arguments[0], "a secret key\n");
      throw new AssertionError("a header can't have this key");
    } catch (IllegalArgumentException error) {
      if (error.getMessage().contains("secret")) {
        throw error;
      }
    }
    // A proxy could make requests for other resources of these.
    for (String session : List.of("", ".", "..")) {
      try {
        new SessionsApi(client).accountSessionDelete("1", session, null);
        throw new AssertionError("nothing must be sent for the session " + session);
      } catch (IllegalArgumentException expected) {
        // It says what is wrong.
      }
    }
    // The server closes the connection of the first attempt.
    ApiClient single = Boxoffice.connect(arguments[0], "key", 1, Duration.ofSeconds(100));
    ApiClient quick = Boxoffice.connect(arguments[0], "key", 8, Duration.ZERO);
    int lost = errorOf(() -> new ZonesApi(single).zoneDelete("1", null)).getCode();
    if (lost != 0 || errorOf(() -> new ZonesApi(quick).zoneDelete("2", null)).getCode() != 0) {
      throw new AssertionError("a second attempt was sent");
    }
    OrdersApi orders = new OrdersApi(client);
    Order order = orders.orderGet("17637000000081", null);
    String code = Boxoffice.codeOf(errorOf(() -> new HostsApi(client).hostGet("1", null)));
    // The first attempt of each fails.
    Order placed = orders.orderCreate(new OrderCreate().items(Map.of("/sections/1", 1L)), null);
    int removed = new RegionsApi(client).regionDeleteWithHttpInfo("1", null).getStatusCode();
    int foreign = errorOf(() -> new VenuesApi(client).venueGet("1", null)).getCode();
    ApiException invalid = errorOf(() -> new HostsApi(client).hostGet("2", null));
    boxoffice.model.Error body = client.getObjectMapper().readValue(invalid.getResponseBody(), boxoffice.model.Error.class);
    String field = body.getFields().get(0).getName();
    if (!invalid.getResponseHeaders().firstValue("x-request-id").equals(Optional.of("1"))) {
      throw new AssertionError("the request's identifier is missing");
    }
    int export = new ReportsApi(client).eventOrderExportGet("1").length();
    String document = Files.readString(orders.orderDocumentGet("1", null).toPath());
    String regionName = new RegionsApi(client).regionGet("1", null).getName();
    int logout = new SessionsApi(client).sessionActiveDeleteWithHttpInfo(null).getStatusCode();
    int decision = errorOf(() -> new ReviewApi(client).submissionDelete("1", true, null, null)).getCode();
    String webPage = errorOf(() -> new ReportsApi(client).eventOrderExportGet("3")).getMessage();
    ApiClient late = Boxoffice.connect(arguments[1], "key");
    int refused = errorOf(() -> new RegionsApi(late).regionDelete("1", null)).getCode();
    int unchanged = errorOf(() -> new RegionsApi(client).regionGet("3", "\"1\"")).getCode();
    PreferencesUpdate noRegion =
        new PreferencesUpdate() {
          @Override
          @JsonInclude(JsonInclude.Include.ALWAYS)
          public String getRegion() {
            return null;
          }
        };
    Preferences preferences = new AccountsApi(client).accountPreferencesUpdate("1", noRegion, null);
    String preferred = preferences.getRegion() == null ? "none" : preferences.getRegion();
    int cancelled = new TransfersApi(client).transferDeleteWithHttpInfo("1", "\"1\"").getStatusCode();
    int claimed = errorOf(() -> new TransfersApi(client).transferDelete("2", null)).getCode();
    RegionsApi regions = new RegionsApi(client);
    List<String> names = new ArrayList<>();
    for (Region region :
        Boxoffice.entries(page -> regions.regionList(null, 100L, page, null), RegionPage::getEntries, RegionPage::getTotal)) {
      names.add(region.getName());
    }
    CategoriesApi categories = new CategoriesApi(client);
    List<String> shortened = new ArrayList<>();
    for (Category category :
        Boxoffice.entries(page -> categories.categoryList(null, 100L, page), CategoryPage::getEntries, CategoryPage::getTotal)) {
      shortened.add(category.getName());
    }
    client.setReadTimeout(Duration.ofSeconds(2));
    int slow = new ReportsApi(client).eventOrderExportGet("2").length();
    client.setReadTimeout(Duration.ofSeconds(1));
    new CategoriesApi(client).categoryGet("1", null);

    PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    output.printf("status %s code %s retried %s removed %d", order.getStatus(), code, placed.getStatus(), removed);
    output.printf(" foreign %d fields %s export %d document %s region %s", foreign, field, export, document, regionName);
    String rejected = webPage.contains("not one of this API") ? "rejected" : webPage;
    output.printf(" slow %d page %s logout %d decision %d refused %d", slow, rejected, logout, decision, refused);
    output.printf(" unchanged %d region %s cancelled %d claimed %d", unchanged, preferred, cancelled, claimed);
    output.printf(" entries %d shortened %d%n", names.size(), shortened.size());
  }

  /** A request that the server rejects. */
  private interface Rejected {
    void send() throws ApiException;
  }

  private static ApiException errorOf(Rejected request) {
    try {
      request.send();
    } catch (ApiException error) {
      return error;
    }
    throw new AssertionError("the request was not rejected");
  }
}
