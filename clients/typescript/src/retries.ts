/** Number and duration of attempts to send a request. */
export interface RetryPolicy {
  /** Maximum number of attempts, the first one included. */
  maxAttempts: number;
  /** Timeout of each attempt, in milliseconds. */
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
 * `Idempotency-Key`, so the server executes it once. A repeated DELETE succeeds if the resource is gone. Redirects are not followed,
 * because the server that they lead to would receive the key.
 */
export function retryingFetch(policy: Partial<RetryPolicy> = {}): typeof fetch {
  const { maxAttempts, attemptTimeout, retryWindow } = { ...DEFAULT, ...policy };
  return async (input, init) => {
    const request = new Request(input, init);
    if (['POST', 'PATCH'].includes(request.method) && !request.headers.has('Idempotency-Key')) {
      request.headers.set('Idempotency-Key', crypto.randomUUID());
    }
    const body = request.body ? await request.arrayBuffer() : undefined;
    const { method, headers, url } = request;
    const started = Date.now();
    let mayBeExecuted = false;
    for (let attempt = 1; ; attempt++) {
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(attemptTimeout)]);
      let response: Response | undefined;
      let failure: unknown;
      try {
        response = await fetch(url, { method, headers, body, signal, redirect: 'manual' });
        if (response.headers.get('Content-Type')?.startsWith('application/json')) {
          // The connection may fail within the body.
          response = new Response(await response.arrayBuffer(), response);
        }
      } catch (error) {
        request.signal.throwIfAborted();
        response = undefined;
        failure = error;
      }
      const delay = retryDelay(attempt, response);
      const isLast = attempt >= maxAttempts || Date.now() - started + delay > retryWindow;
      if (isLast || (response && !(await isTemporary(response)))) {
        if (!response) throw failure;
        const isGone = mayBeExecuted && method === 'DELETE' && (await codeOf(response)) === 'resource.not-found';
        return isGone ? new Response(null, { status: 204 }) : response;
      }
      mayBeExecuted ||= !response || response.status === 503;
      await new Promise((done) => setTimeout(done, delay));
    }
  };
}

function retryDelay(attempt: number, response?: Response): number {
  const seconds = Number.parseInt(response?.headers.get('Retry-After') ?? '', 10);
  if (Number.isFinite(seconds)) return seconds * 1000 + FIRST_DELAY * Math.random();
  return Math.min(MAX_DELAY, FIRST_DELAY * 2 ** attempt) * (0.5 + Math.random() / 2);
}

async function isTemporary(response: Response): Promise<boolean> {
  return [429, 503].includes(response.status) || (response.status === 409 && (await codeOf(response)) === 'idempotency.under-way');
}

async function codeOf(response: Response): Promise<unknown> {
  if (response.ok || !response.headers.get('Content-Type')?.startsWith('application/json')) return undefined;
  const body: unknown = await response.clone().json();
  return typeof body === 'object' && body !== null && 'code' in body ? body.code : undefined;
}
