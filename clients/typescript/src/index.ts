/** A typed client of the boxoffice ticketing API. */

import { ApiError } from './errors.js';
import { createClient, createConfig, type Client } from './generated/client/index.js';
import type { Error as ErrorBody } from './generated/index.js';
import { retryingFetch, type RetryPolicy } from './retries.js';

export * from './generated/index.js';
export { ApiError } from './errors.js';
export { entries } from './lists.js';
export { retryingFetch, type RetryPolicy } from './retries.js';

/** Version of the API for which this client was generated. */
export const VERSION = '3.0.0';

/**
 * Creates a client of the server at `address`, with the key of an application, a session or an admission token. It is passed to each
 * operation as `client`. A response that is an error throws an `ApiError`.
 */
export function connect(address: string, key: string, retries: Partial<RetryPolicy> = {}): Client {
  // The error of `fetch` would have the key.
  if (!/^[ -~]*$/.test(key)) throw new TypeError("The key contains characters that a header can't have, such as the end of a line.");
  const client = createClient(
    createConfig({
      baseUrl: address.replace(/\/+$/, ''),
      headers: { 'X-Client-Version': VERSION },
      // Programs log the configuration, and the request that each result has. So neither has the key.
      fetch: retryingFetch(retries, { 'X-API-Key': key }),
      throwOnError: true,
      requestValidator: checkIdentifiers,
    }),
  );
  client.interceptors.response.use((response) => {
    // The address may be that of another server. The API has no HTML.
    if (response.ok && response.headers.get('Content-Type')?.startsWith('text/html')) throw new ApiError(response.status, null, {});
    return response;
  });
  client.interceptors.error.use((error, response) => {
    if (!response || response.ok) return error;
    const isBody = typeof error === 'object' && error !== null && 'code' in error;
    return new ApiError(response.status, response.headers.get('x-request-id'), isBody ? (error as ErrorBody) : {});
  });
  return client;
}

/**
 * Rejects an identifier that would lead to another resource: `fetch` removes segments like `..` from a path, so a DELETE of the session
 * `..` would delete the account.
 */
async function checkIdentifiers(options: unknown): Promise<void> {
  const { path = {} } = options as { path?: Record<string, unknown> };
  for (const [name, value] of Object.entries(path)) {
    if (['', '.', '..'].some((other) => other === value)) {
      throw new TypeError(`${name}: ${JSON.stringify(value)} is not the identifier of a resource`);
    }
  }
}
