import boxoffice.Boxoffice;
import boxoffice.api.HostsApi;
import boxoffice.api.OrdersApi;
import boxoffice.api.RegionsApi;
import boxoffice.client.ApiClient;
import boxoffice.client.ApiException;
import boxoffice.model.Order;
import boxoffice.model.OrderCreate;
import java.util.Map;

/** Sends requests to a server of a later version, which {@code clients/check} simulates. */
public final class LaterServer {
  private LaterServer() {}

  public static void main(String[] arguments) throws ApiException {
    ApiClient client = Boxoffice.connect(arguments[0], "key");
    OrdersApi orders = new OrdersApi(client);
    Order order = orders.orderGet("17637000000081", null);
    String code = "none";
    try {
      new HostsApi(client).hostGet("1", null);
    } catch (ApiException error) {
      code = Boxoffice.codeOf(error);
    }
    // The first attempt of each fails.
    Order placed = orders.orderCreate(new OrderCreate().items(Map.of("/sections/1", 1L)), null);
    int removed = new RegionsApi(client).regionDeleteWithHttpInfo("1", null).getStatusCode();
    System.out.printf("status %s code %s retried %s removed %d%n", order.getStatus(), code, placed.getStatus(), removed);
  }
}
