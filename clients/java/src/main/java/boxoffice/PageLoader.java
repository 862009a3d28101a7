package boxoffice;

import boxoffice.client.ApiException;

/** Reads a page of a list. */
@FunctionalInterface
public interface PageLoader<P> {
  /** Reads the page of a number, from 1. */
  P load(long number) throws ApiException;
}
