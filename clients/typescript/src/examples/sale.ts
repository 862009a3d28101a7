/** Sells tickets on a running server: `node dist/examples/sale.js ADDRESS ADMINISTRATOR_KEY`. */

import * as api from '../index.js';

const [address, key] = process.argv.slice(2);
if (!address || !key) throw new Error('usage: sale ADDRESS ADMINISTRATOR_KEY');
const client = api.connect(address, key);
const throwOnError = true;
const run = `TypeScript ${Date.now()}`;
const idOf = (uri: string) => uri.split('/').at(-1) ?? '';

const { data: region } = await api.regionCreate({ client, throwOnError, body: { name: `Accra ${run}`, country: 'Ghana' } });
const { data: venue } = await api.venueCreate({
  client,
  throwOnError,
  body: { name: `Theatre ${run}`, region: region.self, address: 'Liberia Road', longitude: -0.2009, latitude: 5.5527 },
});
const { data: category } = await api.categoryCreate({ client, throwOnError, body: { name: `Music ${run}`, subcategories: ['Jazz'] } });
const { data: host } = await api.hostCreate({
  client,
  throwOnError,
  body: { name: `Live ${run}`, contact: 'Kofi', email: 'kofi@example.com' },
});
const { data: event } = await api.eventCreate({
  client,
  throwOnError,
  body: {
    host: host.self,
    title: `Jazz Night ${run}`,
    description: 'Jazz, outdoors.',
    type: 'Standard',
    public: true,
    category: category.self,
    subcategory: 'Jazz',
    venue: venue.self,
    start: '2999-12-20T19:00',
    end: '2999-12-20T23:00',
  },
});
const createSection = async (name: string, basePrice: number) => {
  const body = { name, basePrice, capacity: 60, salesStart: '2020-01-01T00:00', salesEnd: '2999-12-20T19:00' };
  const { data: section } = await api.sectionCreate({ client, throwOnError, path: { event: idOf(event.self) }, body });
  return section;
};
const box = await createSection('Box', 150_000.01);
const suite = await createSection('Suite', 411_522.63);
const { data: submission } = await api.eventSubmissionCreate({ client, throwOnError, path: { event: idOf(event.self) } });
const path = { submission: idOf(submission.self) };
await api.submissionDelete({ client, throwOnError, path, query: { approved: true } });

const { data: order } = await api.orderCreate({ client, throwOnError, body: { items: { [suite.self]: 3 } } });
const pay = async (amount: number) => {
  const body = { method: 'card' as const, token: 'tok_approve', amount };
  const { data: payment } = await api.orderPaymentCreate({ client, throwOnError, path: { order: order.number }, body });
  return payment;
};
const payment = await pay(order.subtotal);
await pay(order.fees);
const { data: paid } = await api.orderGet({ client, throwOnError, path: { order: order.number } });
console.log(`prices ${box.price.base.toFixed(2)} paid ${payment.amount.toFixed(2)} order ${paid.status}`);
