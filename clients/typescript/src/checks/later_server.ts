/** Sends requests to a server of a later version, which `clients/check` simulates. */

import * as api from '../index.js';

const [address] = process.argv.slice(2);
if (!address) throw new Error('usage: later_server ADDRESS');
const client = api.connect(address, 'key');

const { data: order } = await api.orderGet({ client, throwOnError: true, path: { order: '17637000000081' } });
const error = await api.hostGet({ client, throwOnError: true, path: { host: '1' } }).catch((error: api.Error) => error);
const code = 'code' in error ? error.code : 'none';
// The first attempt of each fails.
const { data: placed } = await api.orderCreate({ client, throwOnError: true, body: { items: { '/sections/1': 1 } } });
const removed = await api.regionDelete({ client, throwOnError: true, path: { region: '1' } });
console.log(`status ${order.status} code ${code} retried ${placed.status} removed ${removed.response.status}`);
