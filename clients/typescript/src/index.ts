/** A typed client of the boxoffice ticketing API. */

import { createClient, createConfig, type Client } from './generated/client/index.js';
import type { Error as ErrorBody } from './generated/index.js';
import { retryingFetch, type RetryPolicy } from './retries.js';

export * from './generated/index.js';
export { retryingFetch, type RetryPolicy } from './retries.js';

/** Version of the API for which this client was generated. */
export const VERSION = '3.0.0';

/** An error response. It has the properties of the body, such as `code`, unless the response is not one of the API. */
export interface ApiError extends Partial<Omit<ErrorBody, 'message'>> {}
export class ApiError extends Error {
  /** Creates it from the facts of the response. `requestId` is the identifier by which the server's log names the request. */
  constructor(
    readonly status: number,
    readonly requestId: string | null,
    body: Partial<ErrorBody>,
  ) {
    const text = status === 304 ? 'not modified' : (body.error ?? body.message ?? 'The response is not one of this API.');
    super(`${body.code ? `${status} ${body.code}` : status}: ${text}${requestId ? ` (request ${requestId})` : ''}`);
    const { message: _, ...others } = body;
    Object.assign(this, others, { name: 'ApiError' });
  }
}

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
