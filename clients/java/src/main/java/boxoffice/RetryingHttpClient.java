package boxoffice;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.Authenticator;
import java.net.ConnectException;
import java.net.CookieHandler;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;

/**
 * Repeats a request if the connection fails, the attempt times out, there were too many requests (429), the server is unavailable
 * (503), or an earlier attempt with the same idempotency key is in progress (409). Each POST and PATCH has an {@code
 * Idempotency-Key}, so the server executes it once. A repeated DELETE succeeds if the resource is gone, or the transfer cancelled.
 *
 * <p>An identifier that is empty, {@code .} or {@code ..} is an {@link IllegalArgumentException}, and nothing is sent: a proxy could make
 * a request for another resource of it.
 *
 * <p>The asynchronous methods send each request once.
 */
public final class RetryingHttpClient extends HttpClient {
  static final int MAX_ATTEMPTS = 8;
  private static final long FIRST_DELAY_MILLIS = 100;
  private static final long MAX_DELAY_MILLIS = 5_000;
  private static final Duration ATTEMPT_TIMEOUT = Duration.ofSeconds(30);
  static final Duration RETRY_WINDOW = Duration.ofSeconds(100);

  private static final ObjectMapper JSON = new ObjectMapper();

  private final HttpClient http;
  private final int maxAttempts;
  private final long retryWindowNanos;

  /** Creates a client that sends with another one. */
  public RetryingHttpClient(HttpClient http) {
    this(http, MAX_ATTEMPTS, RETRY_WINDOW);
  }

  /** Creates a client that sends each request at most {@code maxAttempts} times, and starts no retry after {@code retryWindow}. */
  public RetryingHttpClient(HttpClient http, int maxAttempts, Duration retryWindow) {
    this.http = http;
    this.maxAttempts = maxAttempts;
    this.retryWindowNanos = retryWindow.toNanos();
  }

  @Override
  public <T> HttpResponse<T> send(HttpRequest request, HttpResponse.BodyHandler<T> handler)
      throws IOException, InterruptedException {
    HttpRequest keyed = prepare(request);
    long started = System.nanoTime();
    boolean mayBeExecuted = false;
    for (int attempt = 1; ; attempt++) {
      HttpResponse<byte[]> response = null;
      IOException failure = null;
      try {
        response = sendOnce(keyed);
      } catch (IOException error) {
        failure = error;
      }
      long delay = retryDelay(attempt, response);
      boolean isLast =
          attempt >= maxAttempts || System.nanoTime() - started + TimeUnit.MILLISECONDS.toNanos(delay) > retryWindowNanos;
      if (response != null && (isLast || !isTemporary(response))) {
        boolean isDone = mayBeExecuted && request.method().equals("DELETE") && isGone(request, codeOf(response));
        return received(response, handler, isDone ? 204 : response.statusCode());
      }
      if (failure != null && isLast) {
        throw failure;
      }
      // Without a connection, nothing was sent.
      boolean isConnect = failure instanceof ConnectException || failure instanceof HttpConnectTimeoutException;
      mayBeExecuted |= response == null ? !isConnect : response.statusCode() == 503;
      Thread.sleep(delay);
    }
  }

  /** Sends one attempt and reads the whole response, because the connection may fail within the body. */
  private HttpResponse<byte[]> sendOnce(HttpRequest request) throws IOException, InterruptedException {
    AtomicLong lastReceived = new AtomicLong(System.nanoTime());
    HttpResponse.BodyHandler<byte[]> handler =
        head -> {
          lastReceived.set(System.nanoTime());
          return new ObservedBody(HttpResponse.BodySubscribers.ofByteArray(), lastReceived);
        };
    CompletableFuture<HttpResponse<byte[]>> attempt = http.sendAsync(request, handler);
    // The timeout of the request itself ends with the head of the response. Each part of the body has as much time.
    long limit = request.timeout().orElse(ATTEMPT_TIMEOUT).toNanos();
    try {
      while (true) {
        try {
          return attempt.get(limit - (System.nanoTime() - lastReceived.get()), TimeUnit.NANOSECONDS);
        } catch (TimeoutException slow) {
          if (System.nanoTime() - lastReceived.get() >= limit) {
            throw new HttpTimeoutException("the attempt timed out");
          }
        }
      }
    } catch (ExecutionException failed) {
      throw failed.getCause() instanceof IOException cause ? cause : new IOException(failed.getCause());
    } finally {
      attempt.cancel(true);
    }
  }

  /** Records when a part of the body is received. */
  private record ObservedBody(HttpResponse.BodySubscriber<byte[]> body, AtomicLong lastReceived)
      implements HttpResponse.BodySubscriber<byte[]> {
    @Override
    public CompletionStage<byte[]> getBody() {
      return body.getBody();
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
      body.onSubscribe(subscription);
    }

    @Override
    public void onNext(List<ByteBuffer> part) {
      lastReceived.set(System.nanoTime());
      body.onNext(part);
    }

    @Override
    public void onError(Throwable error) {
      body.onError(error);
    }

    @Override
    public void onComplete() {
      body.onComplete();
    }
  }

  /** Returns a request with an idempotency key, if it needs one. */
  private static HttpRequest prepare(HttpRequest request) {
    String path = request.uri().getRawPath();
    for (String segment : path.substring(path.isEmpty() ? 0 : 1).split("/", -1)) {
      if (segment.equals(".") || segment.equals("..") || segment.isEmpty() && path.length() > 1) {
        throw new IllegalArgumentException("\"" + segment + "\" is not the identifier of a resource");
      }
    }
    boolean needsKey = request.method().equals("POST") || request.method().equals("PATCH");
    if (!needsKey || request.headers().firstValue("Idempotency-Key").isPresent()) {
      return request;
    }
    return HttpRequest.newBuilder(request, (name, value) -> true).header("Idempotency-Key", UUID.randomUUID().toString()).build();
  }

  /** Returns whether the error of a repeated DELETE shows that an earlier attempt was executed. */
  private boolean isGone(HttpRequest request, String code) throws InterruptedException {
    String path = request.uri().getPath();
    return switch (code) {
      // The success of a decision has a body, so its caller has to read the decision.
      case "resource.not-found" -> !path.contains("/submissions/");
      // Another account may have claimed the transfer instead.
      case "transfer.not-open" -> isCancelled(request);
      case "session.ended" -> true;
      // The session was that of the key itself.
      case "key.refused" -> path.endsWith("/sessions/active");
      default -> false;
    };
  }

  /** Returns whether the transfer of a DELETE is cancelled. */
  private boolean isCancelled(HttpRequest request) throws InterruptedException {
    HttpRequest read = HttpRequest.newBuilder(request, (name, value) -> !name.equalsIgnoreCase("If-Match")).GET().build();
    try {
      return textOf(sendOnce(read), "status").equals("Cancelled");
    } catch (IOException unknown) {
      return false;
    }
  }

  private static long retryDelay(int attempt, HttpResponse<?> response) {
    double jitter = ThreadLocalRandom.current().nextDouble();
    long retryAfter = response == null ? -1 : retryAfter(response.headers());
    if (retryAfter >= 0) {
      return retryAfter + (long) (FIRST_DELAY_MILLIS * jitter);
    }
    return (long) (Math.min(MAX_DELAY_MILLIS, FIRST_DELAY_MILLIS << attempt) * (0.5 + jitter / 2));
  }

  /** Returns the seconds or the date of {@code Retry-After} as a delay in milliseconds, or -1 without either. */
  private static long retryAfter(HttpHeaders headers) {
    String value = headers.firstValue("Retry-After").orElse("");
    if (value.matches("[0-9]+")) {
      // More digits than nine are longer than any window, too.
      return Long.parseLong(value.substring(0, Math.min(value.length(), 9))) * 1000;
    }
    try {
      // The clock of the server may differ from ours.
      Instant now = headers.firstValue("Date").map(RetryingHttpClient::parseDate).orElseGet(Instant::now);
      return Math.max(0, Duration.between(now, parseDate(value)).toMillis());
    } catch (DateTimeParseException neither) {
      return -1;
    }
  }

  private static Instant parseDate(String date) {
    return DateTimeFormatter.RFC_1123_DATE_TIME.parse(date, Instant::from);
  }

  private static boolean isTemporary(HttpResponse<byte[]> response) {
    return switch (response.statusCode()) {
      case 429, 503 -> true;
      case 409 -> codeOf(response).equals("idempotency.under-way");
      default -> false;
    };
  }

  private static String codeOf(HttpResponse<byte[]> response) {
    return textOf(response, "code");
  }

  private static String textOf(HttpResponse<byte[]> response, String property) {
    return Boxoffice.textOf(new String(response.body(), StandardCharsets.UTF_8), property);
  }

  /**
   * Returns a body as the generated code expects it: it parses each one that is no file as JSON, also text, and reads it in the
   * charset of the platform, which may lack characters.
   */
  private static byte[] bodyOf(HttpResponse<byte[]> response) throws IOException {
    String mediaType = response.headers().firstValue("Content-Type").orElse("");
    if (response.statusCode() == 200 && mediaType.startsWith("text/html")) {
      // The address may be that of another server. The API has no HTML.
      throw new IOException("the response is not one of this API, but a web page");
    }
    String text = new String(response.body(), StandardCharsets.UTF_8);
    if (response.statusCode() == 200 && mediaType.startsWith("text/")) {
      text = JSON.writeValueAsString(text);
    } else if (!mediaType.startsWith("application/json") || Charset.defaultCharset().equals(StandardCharsets.UTF_8)) {
      return response.body();
    }
    StringBuilder ascii = new StringBuilder();
    text.chars().forEach(c -> ascii.append(c < 128 ? String.valueOf((char) c) : String.format("\\u%04x", c)));
    return ascii.toString().getBytes(StandardCharsets.US_ASCII);
  }

  /** Passes a response that was read completely to the caller's handler. The generated code reads streams. */
  private static <T> HttpResponse<T> received(HttpResponse<byte[]> response, HttpResponse.BodyHandler<T> handler, int status)
      throws IOException {
    HttpResponse.BodySubscriber<T> subscriber =
        handler.apply(
            new HttpResponse.ResponseInfo() {
              @Override
              public int statusCode() {
                return status;
              }

              @Override
              public HttpHeaders headers() {
                return response.headers();
              }

              @Override
              public Version version() {
                return response.version();
              }
            });
    subscriber.onSubscribe(
        new Flow.Subscription() {
          @Override
          public void request(long number) {}

          @Override
          public void cancel() {}
        });
    subscriber.onNext(List.of(ByteBuffer.wrap(status == 204 ? new byte[0] : bodyOf(response))));
    subscriber.onComplete();
    return new Received<>(response, status, subscriber.getBody().toCompletableFuture().join());
  }

  /** A response with the body that the caller's handler has made of it. */
  private record Received<T>(HttpResponse<byte[]> response, int statusCode, T body) implements HttpResponse<T> {
    @Override
    public HttpRequest request() {
      return response.request();
    }

    @Override
    public Optional<HttpResponse<T>> previousResponse() {
      return Optional.empty();
    }

    @Override
    public HttpHeaders headers() {
      return response.headers();
    }

    @Override
    public Optional<SSLSession> sslSession() {
      return response.sslSession();
    }

    @Override
    public URI uri() {
      return response.uri();
    }

    @Override
    public Version version() {
      return response.version();
    }
  }

  @Override
  public <T> CompletableFuture<HttpResponse<T>> sendAsync(HttpRequest request, HttpResponse.BodyHandler<T> handler) {
    return http.sendAsync(prepare(request), handler);
  }

  @Override
  public <T> CompletableFuture<HttpResponse<T>> sendAsync(
      HttpRequest request, HttpResponse.BodyHandler<T> handler, HttpResponse.PushPromiseHandler<T> pushes) {
    return http.sendAsync(prepare(request), handler, pushes);
  }

  @Override
  public Optional<CookieHandler> cookieHandler() {
    return http.cookieHandler();
  }

  @Override
  public Optional<Duration> connectTimeout() {
    return http.connectTimeout();
  }

  @Override
  public Redirect followRedirects() {
    return http.followRedirects();
  }

  @Override
  public Optional<ProxySelector> proxy() {
    return http.proxy();
  }

  @Override
  public SSLContext sslContext() {
    return http.sslContext();
  }

  @Override
  public SSLParameters sslParameters() {
    return http.sslParameters();
  }

  @Override
  public Optional<Authenticator> authenticator() {
    return http.authenticator();
  }

  @Override
  public Version version() {
    return http.version();
  }

  @Override
  public Optional<Executor> executor() {
    return http.executor();
  }
}
