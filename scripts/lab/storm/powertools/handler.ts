// Charge each order once, as the documentation of Powertools for AWS Lambda on idempotency and batch
// processing suggests: an idempotency record by orderId for 24 hours, payload validation, partial
// batch responses, and the orderId as Stripe's idempotency key. A baseline of the storm; never deployed.
import { BatchProcessor, EventType, processPartialResponse } from '@aws-lambda-powertools/batch';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb';
import Stripe from 'stripe';

interface Order {
  orderId: string;
  currency: string;
  lines: { quantity: number; unitAmount: number }[];
  payment: { customer: string; method: string };
}

const table = process.env.ORDERS_TABLE!;
const api = new URL(process.env.STRIPE_API_BASE!);
const stripe = new Stripe(process.env.STRIPE_SECRET_KEY!, {
  protocol: api.protocol === 'https:' ? 'https' : 'http', host: api.hostname, port: Number(api.port), telemetry: false,
  timeout: Number(process.env.STRIPE_TIMEOUT_MS),
});
const client = new DynamoDBClient({});
const documents = DynamoDBDocumentClient.from(client);

const config = new IdempotencyConfig({
  eventKeyJmesPath: 'orderId',
  payloadValidationJmesPath: '[currency, lines, payment]',
  expiresAfterSeconds: 24 * 60 * 60,
  throwOnNoIdempotencyKey: true,
});

const chargeOnce = makeIdempotent(charge, {
  config,
  persistenceStore: new DynamoDBPersistenceLayer({ tableName: table, awsSdkV3Client: client }),
});

async function charge(order: Order) {
  const amount = order.lines.reduce((sum, line) => sum + line.quantity * line.unitAmount, 0);
  let status = 'PENDING';
  try {
    const intent = await stripe.paymentIntents.create(
      {
        amount, currency: order.currency, customer: order.payment.customer, payment_method: order.payment.method,
        confirm: true, off_session: true, metadata: { orderId: order.orderId },
      },
      { idempotencyKey: order.orderId },
    );
    if (intent.status === 'succeeded') status = 'PAID';
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeCardError)) throw error;
    status = 'FAILED';
  }
  await documents.send(new PutCommand({ TableName: table, Item: { id: `order#${order.orderId}`, status, amount } }));
  return { status };
}

const processor = new BatchProcessor(EventType.SQS);

export const handler = async (event: any, context: any) => {
  config.registerLambdaContext(context);
  return processPartialResponse(event, (record: any) => chargeOnce(JSON.parse(record.body)), processor, {
    context, throwOnFullBatchFailure: false,
  });
};
