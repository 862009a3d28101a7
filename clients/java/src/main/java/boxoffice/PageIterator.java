package boxoffice;

import boxoffice.client.ApiException;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToLongFunction;

/** Reads the entries of a list page by page. */
final class PageIterator<P, T> implements Iterator<T> {
  private final PageLoader<P> load;
  private final Function<P, List<T>> entriesOf;
  private final ToLongFunction<P> totalOf;
  private Iterator<T> entries = Collections.emptyIterator();
  private long number;
  private long received;
  private boolean isLast;

  PageIterator(PageLoader<P> load, Function<P, List<T>> entriesOf, ToLongFunction<P> totalOf) {
    this.load = load;
    this.entriesOf = entriesOf;
    this.totalOf = totalOf;
  }

  @Override
  public boolean hasNext() {
    if (!entries.hasNext() && !isLast) {
      loadPage();
    }
    return entries.hasNext();
  }

  @Override
  public T next() {
    hasNext();
    return entries.next();
  }

  private void loadPage() {
    try {
      P page = load.load(++number);
      List<T> loaded = entriesOf.apply(page);
      // A page may have fewer entries than requested, so page numbers don't reveal the last one.
      received += loaded.size();
      isLast = loaded.isEmpty() || received >= totalOf.applyAsLong(page);
      entries = loaded.iterator();
    } catch (ApiException error) {
      isLast = true;
      // The list may have become shorter.
      if (number == 1 || !Boxoffice.codeOf(error).equals("page.past-end")) {
        throw new UncheckedApiException(error);
      }
    }
  }
}
