import type { Error as ErrorBody } from './generated/index.js';

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
