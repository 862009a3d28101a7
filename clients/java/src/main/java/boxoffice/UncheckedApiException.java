package boxoffice;

import boxoffice.client.ApiException;

/** The error of an operation, where no checked exception can be thrown. */
public final class UncheckedApiException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Creates it from the error. */
  public UncheckedApiException(ApiException cause) {
    super(cause);
  }

  @Override
  public synchronized ApiException getCause() {
    return (ApiException) super.getCause();
  }
}
