import { setTimeout as sleep } from 'node:timers/promises';

/** Number and duration of attempts to send a request. */
export interface RetryPolicy {
  /** Maximum number of attempts, the first one included. */
  maxAttempts: number;
  /**
   * Timeout of each attempt, in milliseconds: until the head of the response, and then for each part of its body, so that a long
   * response may take longer.
   */
  attemptTimeout: number;
  /** Time after which no retry starts, in milliseconds. */
  retryWindow: number;
}

const DEFAULT: RetryPolicy = { maxAttempts: 8, attemptTimeout: 30_000, retryWindow: 100_000 };
const FIRST_DELAY = 100;
const MAX_DELAY = 5_000;

/**
 * Returns a `fetch` that repeats a request if the connection fails, the attempt times out, there were too many requests (429), the
 * server is unavailable (503), or an earlier attempt with the same idempotency key is in progress (409). Each POST and PATCH has an
 * `Idempotency-Key`, so the server executes it once. A repeated DELETE succeeds if the resource is gone, or the transfer cancelled.
 * Redirects are not followed, because the server that they lead to would receive the key. `headers` are added to each request that
 * doesn't have them.
 */
export function retryingFetch(policy: Partial<RetryPolicy> = {}, headers: Record<string, string> = {}): typeof fetch {
  const { maxAttempts, attemptTimeout, retryWindow } = { ...DEFAULT, ...policy };
  return async (input, init) => {
    const request = new Request(input, init);
    if (['POST', 'PATCH'].includes(request.method) && !request.headers.has('Idempotency-Key')) {
      request.headers.set('Idempotency-Key', crypto.randomUUID());
    }
    const body = request.body ? await request.arrayBuffer() : undefined;
    const { method, url, signal: cancelled } = request;
    const sentHeaders = new Headers(headers);
    request.headers.forEach((value, name) => sentHeaders.set(name, value));
    const started = Date.now();
    let mayBeExecuted = false;
    for (let attempt = 1; ; attempt++) {
      // Node may collect a signal of `AbortSignal.timeout` or `any` before it fires.
      const ended = new AbortController();
      const timeout = new DOMException('The attempt timed out.', 'TimeoutError');
      // The arguments keep the signal of the caller, also while the caller reads the body.
      const timer = setTimeout((..._kept: unknown[]) => ended.abort(timeout), attemptTimeout, input, request);
      cancelled.addEventListener('abort', () => ended.abort(cancelled.reason));
      let response: Response | undefined;
      let failure: unknown;
      try {
        cancelled.throwIfAborted();
        response = restart(timer, await fetch(url, { method, headers: sentHeaders, body, signal: ended.signal, redirect: 'manual' }));
        if (isJson(response)) {
          // The connection may fail within the body. The caller reads other bodies.
          const content = await response.arrayBuffer();
          response = new Response(content.byteLength ? content : null, response);
        }
      } catch (error) {
        clearTimeout(timer);
        cancelled.throwIfAborted();
        response = undefined;
        failure = error;
      }
      const delay = retryDelay(attempt, response);
      const isLast = attempt >= maxAttempts || Date.now() - started + delay > retryWindow;
      if (isLast || (response && !(await isTemporary(response)))) {
        if (!response) throw failure;
        const isCancelled = async () => {
          sentHeaders.delete('If-Match');
          const read = retryingFetch({ maxAttempts: 1, attemptTimeout })(url, { headers: sentHeaders, signal: cancelled });
          return (await read.then((transfer) => propertyOf(transfer, 'status')).catch(() => undefined)) === 'Cancelled';
        };
        const mayBeDone = mayBeExecuted && method === 'DELETE';
        const isDone = mayBeDone && (await isGone(new URL(url).pathname, await codeOf(response), isCancelled));
        return isDone ? new Response(null, { status: 204 }) : response;
      }
      mayBeExecuted ||= response ? response.status === 503 : !isConnect(failure);
      await sleep(delay, undefined, { signal: cancelled }).catch(() => cancelled.throwIfAborted());
    }
  };
}

/** Returns a response that restarts a timer with each part of its body, and stops the timer at its end. */
function restart(timer: NodeJS.Timeout, response: Response): Response {
  if (!response.body) {
    clearTimeout(timer);
    return response;
  }
  timer.refresh().unref();
  const parts = new TransformStream<Uint8Array, Uint8Array>({
    transform(part, controller) {
      timer.refresh();
      controller.enqueue(part);
    },
    flush() {
      clearTimeout(timer);
    },
  });
  return new Response(response.body.pipeThrough(parts), response);
}

/** Returns whether there was no connection, so that nothing was sent. */
function isConnect(failure: unknown): boolean {
  const cause = failure instanceof TypeError ? failure.cause : undefined;
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  return ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'].some((known) => known === code);
}

/** Returns whether the error of a repeated DELETE shows that an earlier attempt was executed. */
async function isGone(path: string, code: unknown, isCancelled: () => Promise<boolean>): Promise<boolean> {
  // The success of a decision has a body, so its caller has to read the decision.
  if (code === 'resource.not-found') return !path.includes('/submissions/');
  // Another account may have claimed the transfer instead.
  if (code === 'transfer.not-open') return isCancelled();
  // The session may be that of the key itself.
  return code === 'session.ended' || (code === 'key.refused' && path.endsWith('/sessions/active'));
}

function retryDelay(attempt: number, response?: Response): number {
  const retryAfter = response && retryAfterOf(response.headers);
  if (retryAfter !== undefined) return retryAfter + FIRST_DELAY * Math.random();
  return Math.min(MAX_DELAY, FIRST_DELAY * 2 ** attempt) * (0.5 + Math.random() / 2);
}

/** Returns the seconds or the date of `Retry-After` as a delay in milliseconds. */
function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('Retry-After') ?? '';
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  // The clock of the server may differ from ours.
  if (!value.endsWith('GMT')) return undefined;
  const delay = Date.parse(value) - Date.parse(headers.get('Date') ?? new Date().toUTCString());
  return Number.isNaN(delay) ? undefined : Math.max(0, delay);
}

function isJson(response: Response): boolean {
  return response.headers.get('Content-Type')?.startsWith('application/json') ?? false;
}

async function isTemporary(response: Response): Promise<boolean> {
  return [429, 503].includes(response.status) || (response.status === 409 && (await codeOf(response)) === 'idempotency.under-way');
}

async function codeOf(response: Response): Promise<unknown> {
  return response.ok ? undefined : propertyOf(response, 'code');
}

/** Returns a property of a body in JSON. */
async function propertyOf(response: Response, name: string): Promise<unknown> {
  if (!isJson(response)) return undefined;
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => undefined);
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>)[name] : undefined;
}
