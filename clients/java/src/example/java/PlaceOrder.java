import boxoffice.Boxoffice;
import boxoffice.api.OrdersApi;
import boxoffice.client.ApiClient;
import boxoffice.client.ApiException;
import boxoffice.model.Order;
import boxoffice.model.OrderCreate;
import java.util.Map;

/** Orders two tickets, as the README does: {@code java PlaceOrder KEY}. */
public final class PlaceOrder {
  private PlaceOrder() {}

  public static void main(String[] arguments) throws ApiException {
    String key = arguments[0];

    ApiClient client = Boxoffice.connect("http://127.0.0.1:8080", key);
    Order order = new OrdersApi(client).orderCreate(new OrderCreate().items(Map.of("/sections/17637000000062", 2L)), null);

    System.out.println(order.getNumber());
  }
}
