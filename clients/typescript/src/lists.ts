import { ApiError } from './errors.js';

/**
 * Yields the entries of all pages of a list. `load` reads the page of a number, from 1, each with the same `records`. A page is read
 * when its first entry is needed.
 *
 * The server evaluates the list again for each page: an entry may be missing or come twice if the list changes in between.
 */
export async function* entries<T>(load: (page: number) => Promise<{ data: { entries: T[]; total: number } }>): AsyncGenerator<T, void> {
  let received = 0;
  for (let number = 1; ; number++) {
    // The list may have become shorter.
    const isPastEnd = (error: unknown) => number > 1 && error instanceof ApiError && error.code === 'page.past-end';
    const page = await load(number).catch((error: unknown) => {
      if (isPastEnd(error)) return undefined;
      throw error;
    });
    if (!page) return;
    yield* page.data.entries;
    // A page may have fewer entries than requested, so page numbers don't reveal the last one.
    received += page.data.entries.length;
    if (!page.data.entries.length || received >= page.data.total) return;
  }
}
