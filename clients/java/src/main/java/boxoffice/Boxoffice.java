package boxoffice;

import boxoffice.client.ApiClient;
import boxoffice.client.ApiException;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToLongFunction;

/** Clients of the boxoffice ticketing API. */
public final class Boxoffice {
  /** Version of the API for which this client was generated. */
  public static final String VERSION = "3.0.0";

  private static final ObjectMapper JSON = new ObjectMapper();

  private Boxoffice() {}

  /**
   * Creates a client of the server at an address, with the key of an application, a session or an admission token. Each class of
   * {@code boxoffice.api} takes it. It retries requests, see {@link RetryingHttpClient}.
   */
  public static ApiClient connect(String address, String key) {
    return connect(address, key, RetryingHttpClient.MAX_ATTEMPTS, RetryingHttpClient.RETRY_WINDOW);
  }

  /**
   * Creates the same client with other limits.
   *
   * @param maxAttempts number of attempts to send a request, the first one included
   * @param retryWindow time after which no retry starts
   */
  public static ApiClient connect(String address, String key, int maxAttempts, Duration retryWindow) {
    if (!key.matches("[ -~]*")) {
      // The error of the HTTP client would have the key.
      throw new IllegalArgumentException("the key contains characters that a header can't have, such as the end of a line");
    }
    // A redirect to another server would reveal the key to it.
    HttpClient http =
        HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NEVER).connectTimeout(Duration.ofSeconds(30)).build();
    RetryingHttpClient retrying = new RetryingHttpClient(http, maxAttempts, retryWindow);
    ApiClient client =
        new ApiClient() {
          @Override
          public HttpClient getHttpClient() {
            return retrying;
          }
        };
    client.updateBaseUri(address.replaceAll("/+$", ""));
    client.setReadTimeout(Duration.ofSeconds(30));
    client.setRequestInterceptor(request -> request.setHeader("X-API-Key", key).setHeader("X-Client-Version", VERSION));
    return client;
  }

  /** Returns the stable code of an error, or an empty text if the server didn't send it. Later versions may send others. */
  public static String codeOf(ApiException error) {
    return textOf(error.getResponseBody(), "code");
  }

  /**
   * Returns the entries of all pages of a list. A page is read when its first entry is needed, and an {@link UncheckedApiException}
   * is thrown if that fails.
   *
   * <p>The server evaluates the list again for each page: an entry may be missing or come twice if the list changes in between.
   *
   * @param load reads the page of a number, from 1, each with the same {@code records}
   * @param entriesOf returns the entries of a page, such as {@code RegionPage::getEntries}
   * @param totalOf returns the number of entries on all pages, such as {@code RegionPage::getTotal}
   */
  public static <P, T> Iterable<T> entries(PageLoader<P> load, Function<P, List<T>> entriesOf, ToLongFunction<P> totalOf) {
    return () -> new PageIterator<>(load, entriesOf, totalOf);
  }

  /** Returns a text of a body in JSON, or an empty one if it has none. */
  static String textOf(String body, String property) {
    if (body == null || !body.startsWith("{")) {
      return "";
    }
    try {
      JsonNode text = JSON.readTree(body).get(property);
      return text == null ? "" : text.asText();
    } catch (JsonProcessingException invalid) {
      return "";
    }
  }
}
