/** Sends requests to a server of a later version, which `clients/check` simulates. */

import { inspect } from 'node:util';

import * as api from '../index.js';
import { entries, regionList } from '../index.js';

const [address, late] = process.argv.slice(2);
if (!address || !late) throw new Error('usage: later_server ADDRESS ADDRESS_OF_LATE_SERVER');
const client = api.connect(address, 'a secret key');
const quick = api.connect(address, 'a secret key', { attemptTimeout: 2000 });
const throwOnError = true;

const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => new api.ApiError(0, null, {}),
    (error: api.ApiError) => error,
  );

const read = await api.orderGet({ client, throwOnError, path: { order: '17637000000081' } });
const { data: order } = read;
if (inspect([client, client.getConfig(), read], { depth: null, showHidden: true }).includes('secret')) throw new Error('A log has the key.');
const { code } = await errorOf(api.hostGet({ client, throwOnError, path: { host: '1' } }));
// The first attempt of each fails.
const { data: placed } = await api.orderCreate({ client, throwOnError, body: { items: { '/sections/1': 1 } } });
const removed = await api.regionDelete({ client, throwOnError, path: { region: '1' } });
const { status: foreign } = await errorOf(api.venueGet({ client, throwOnError, path: { venue: '1' } }));
const { fields } = await errorOf(api.hostGet({ client, throwOnError, path: { host: '2' } }));
const { data: csv } = await api.eventOrderExportGet({ client, throwOnError, path: { event: '1' } });
const { data: pdf } = await api.orderDocumentGet({ client, throwOnError, path: { order: '1' } });
const { data: region } = await api.regionGet({ client, throwOnError, path: { region: '1' } });
const { data: slow } = await api.eventOrderExportGet({ client: quick, throwOnError, path: { event: '2' } });
const { message: page } = await errorOf(api.eventOrderExportGet({ client, throwOnError, path: { event: '3' } }));
const logout = await api.sessionActiveDelete({ client, throwOnError });
const { status: decision } = await errorOf(
  api.submissionDelete({ client, throwOnError, path: { submission: '1' }, query: { approved: true } }),
);
const { status: refused } = await errorOf(
  api.regionDelete({ client: api.connect(late, 'key'), throwOnError, path: { region: '1' } }),
);
const { status: unchanged } = await errorOf(
  api.regionGet({ client, throwOnError, path: { region: '3' }, headers: { 'If-None-Match': '"1"' } }),
);
const { data: preferences } = await api.accountPreferencesUpdate({ client, throwOnError, path: { number: '1' }, body: { region: null } });
const { status: cancelledTransfer } = (
  await api.transferDelete({ client, throwOnError, path: { transfer: '1' }, headers: { 'If-Match': '"1"' } })
).response;
const { status: claimed } = await errorOf(api.transferDelete({ client, throwOnError, path: { transfer: '2' } }));
const names: string[] = [];
for await (const region of entries((page) => regionList({ client, throwOnError: true, query: { page, records: 100 } }))) {
  names.push(region.name);
}
let shortened = 0;
for await (const _ of entries((page) => api.categoryList({ client, throwOnError, query: { page, records: 100 } }))) shortened++;
console.log(
  `status ${order.status} code ${code} retried ${placed.status} removed ${removed.response.status} foreign ${foreign}`,
  `fields ${fields?.map((field) => field.name)} export ${csv.length} document ${await (pdf as Blob).text()} region ${region.name}`,
  `slow ${slow.length} page ${page.includes('not one of this API') ? 'rejected' : page} logout ${logout.response.status} decision ${decision} refused ${refused}`,
  `unchanged ${unchanged} region ${preferences.region ?? 'none'} cancelled ${cancelledTransfer} claimed ${claimed}`,
  `entries ${names.length} shortened ${shortened}`,
);

try {
  api.connect(address, 'a secret key\n');
  throw new Error("A header can't have this key.");
} catch (error) {
  if (!(error instanceof TypeError) || error.message.includes('secret')) throw error;
}

// `fetch` would make requests for other resources of these.
for (const session of ['', '.', '..']) {
  const error = await api.accountSessionDelete({ client, path: { number: '1', session } }).catch((error: unknown) => error);
  if (!(error instanceof TypeError) || !error.message.includes(`session: "${session}"`)) throw new Error(`${session}: ${inspect(error)}`);
}

// Requests that stall end, although signals that nothing refers to are collected.
setInterval(() => globalThis.gc?.(), 50).unref();
const nameOf = (error: unknown) => (error instanceof Error ? error.name : error);
const timedOut = await api.retryingFetch({ maxAttempts: 1, attemptTimeout: 500 })(`${address}/categories/1`).catch(nameOf);
const controller = new AbortController();
setTimeout(() => controller.abort(), 500);
const cancelled = await api.retryingFetch()(`${address}/categories/2`, { signal: controller.signal }).catch(nameOf);
if (timedOut !== 'TimeoutError' || cancelled !== 'AbortError') throw new Error(`${timedOut} ${cancelled}`);
