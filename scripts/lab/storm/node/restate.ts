// Charge each order with Restate. This function of the queue calls the service of endpoint.ts through
// Restate's ingress, with the orderId as idempotency key, and waits for its result. A baseline of the storm;
// never deployed.
import { readFileSync } from 'node:fs';
import { contentOf, Order, Refused } from './order';

let ingress: string | undefined; // the storm writes it into a file when the server runs

async function charge(order: Order) {
  ingress ??= readFileSync(process.env.INGRESS_FILE!, 'utf8');
  const id = encodeURIComponent(order.orderId);
  const response = await fetch(`${ingress}/orders/${id}/charge`, {
    method: 'POST', body: JSON.stringify(order), signal: AbortSignal.timeout(Number(process.env.INGRESS_TIMEOUT_MS)),
    headers: { 'content-type': 'application/json', 'idempotency-key': id },
  });
  if (!response.ok) throw new Error(`order ${order.orderId}: ${response.status} ${await response.text()}`);
  const { content } = await response.json() as { content?: string };
  if (content && content !== contentOf(order)) throw new Refused();
}

export const handler = async (event: any) => {
  const ended = await Promise.allSettled(event.Records.map(async (record: any) => charge(JSON.parse(record.body))));
  const failed = event.Records.filter((_: any, index: number) => ended[index].status === 'rejected');
  return { batchItemFailures: failed.map((record: any) => ({ itemIdentifier: record.messageId })) };
};
