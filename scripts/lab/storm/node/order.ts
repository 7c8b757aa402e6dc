// What the handlers of the storm share: an order, its charge, and the bind, in steps that an engine may
// journal. With BIND set, an order is charged through the intent that its row names.
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import Stripe from 'stripe';

export interface Order {
  orderId: string;
  currency: string;
  lines: { quantity: number; unitAmount: number }[];
  payment: { customer: string; method: string };
}

type Status = 'PAID' | 'FAILED' | 'PENDING';

interface Row { id: string; amount: number; validation?: string; intent?: string; status?: Status }

// Step runs one step of an order, and returns its result again if the engine knows that it ended.
export type Step = <T>(name: string, work: () => Promise<T>) => Promise<T>;

export class Refused extends Error {
  constructor() { super('order id already used with different content'); }
}

export const contentOf = (order: Order) => JSON.stringify([order.currency, order.lines, order.payment]);

export const table = process.env.ORDERS_TABLE!;
export const client = new DynamoDBClient({});
const documents = DynamoDBDocumentClient.from(client);

const api = new URL(process.env.STRIPE_API_BASE!);
const stripe = new Stripe(process.env.STRIPE_SECRET_KEY!, {
  protocol: api.protocol === 'https:' ? 'https' : 'http', host: api.hostname, port: Number(api.port), telemetry: false,
  timeout: Number(process.env.STRIPE_TIMEOUT_MS),
});

// handle charges an order and saves its row.
export async function handle(order: Order, step: Step = (_, work) => work()) {
  if (process.env.BIND) return bound(order, step);
  const status = await step('charge', () => charge(order));
  await step('save', () => save(rowOf(order, { status })));
  return { status };
}

const rowOf = (order: Order, more: Partial<Row>): Row =>
  ({ id: `order#${order.orderId}`, amount: amountOf(order), ...more });

const amountOf = (order: Order) => order.lines.reduce((sum, line) => sum + line.quantity * line.unitAmount, 0);

const intentOf = (order: Order) => ({
  amount: amountOf(order), currency: order.currency, customer: order.payment.customer,
  payment_method: order.payment.method, metadata: { orderId: order.orderId },
});

async function charge(order: Order): Promise<Status> {
  try {
    return statusOf(await stripe.paymentIntents.create(
      { ...intentOf(order), confirm: true, off_session: true }, { idempotencyKey: order.orderId }));
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeCardError)) throw error;
    return 'FAILED';
  }
}

function statusOf(intent: Stripe.PaymentIntent): Status {
  if (intent.status === 'succeeded') return 'PAID';
  return intent.status === 'requires_payment_method' || intent.status === 'canceled' ? 'FAILED' : 'PENDING';
}

const save = async (row: Row) => { await documents.send(new PutCommand({ TableName: table, Item: row })); };

// bound writes the id of an unconfirmed intent to the row, unless it has one, and confirms the intent of
// the row: Stripe charges an intent at most once, at any age. A row with a status is final.
async function bound(order: Order, step: Step) {
  const validation = contentOf(order);
  const created = await step('create', async () => {
    const { Item: row } = await documents.send(new GetCommand({ TableName: table, Key: { id: rowOf(order, {}).id } }));
    return row?.intent ?? (await stripe.paymentIntents.create(intentOf(order), { idempotencyKey: order.orderId })).id;
  });
  const row = await step('bind', () => put(rowOf(order, { validation, intent: created }), 'attribute_not_exists(id)'));
  if (row.validation !== validation) throw new Refused();
  if (row.status) return { status: row.status, content: validation };
  const status = await step('confirm', () => confirm(row.intent!));
  await step('save', () => put({ ...row, status }, 'attribute_not_exists(#status)', { '#status': 'status' }));
  return { status, content: validation };
}

// put writes the row if the condition holds, and returns the row that is there.
async function put(row: Row, condition: string, names?: Record<string, string>): Promise<Row> {
  try {
    await documents.send(new PutCommand({
      TableName: table, Item: row, ConditionExpression: condition, ExpressionAttributeNames: names,
    }));
    return row;
  } catch (error) {
    if ((error as Error).name !== 'ConditionalCheckFailedException') throw error;
    const { Item } = await documents.send(new GetCommand({ TableName: table, Key: { id: row.id }, ConsistentRead: true }));
    return Item as Row;
  }
}

// confirm confirms an intent. After an error the intent says what happened.
async function confirm(id: string): Promise<Status> {
  try {
    return statusOf(await stripe.paymentIntents.confirm(id, { off_session: true }));
  } catch (error) {
    const intent = await stripe.paymentIntents.retrieve(id);
    if (intent.status === 'requires_confirmation') throw error;
    return statusOf(intent);
  }
}
