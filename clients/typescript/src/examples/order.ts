/** Orders two tickets, as the README does: `node dist/examples/order.js KEY`. */

import { connect, orderCreate } from 'boxoffice-client';

const [key] = process.argv.slice(2);
if (!key) throw new Error('usage: order KEY');

const client = connect('http://127.0.0.1:8080', key);
const { data: order } = await orderCreate({ client, throwOnError: true, body: { items: { '/sections/17637000000062': 2 } } });

console.log(order.number);
