/** A typed client of the boxoffice ticketing API. */

import { createClient, createConfig, type Client } from './generated/client/index.js';
import { retryingFetch } from './retries.js';

export * from './generated/index.js';
export { retryingFetch, type RetryPolicy } from './retries.js';

/** Version of the API for which this client was generated. */
export const VERSION = '3.0.0';

/**
 * Creates a client of the server at `address`, with the key of an application, a session or an admission token. It is passed to each
 * operation as `client`. A response that is an error throws its body, an `Error` of the API with a `code`.
 */
export function connect(address: string, key: string): Client {
  return createClient(
    createConfig({
      baseUrl: address.replace(/\/+$/, ''),
      headers: { 'X-API-Key': key, 'X-Client-Version': VERSION },
      fetch: retryingFetch(),
      throwOnError: true,
    }),
  );
}
