// Charge each order once, as the documentation of Powertools for AWS Lambda on idempotency and batch
// processing suggests: an idempotency record by orderId for 24 hours, payload validation, partial
// batch responses, and the orderId as Stripe's idempotency key. A baseline of the storm; never deployed.
import { BatchProcessor, EventType, processPartialResponse } from '@aws-lambda-powertools/batch';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';
import { client, handle, Order, table } from './order';

const config = new IdempotencyConfig({
  eventKeyJmesPath: 'orderId',
  payloadValidationJmesPath: '[currency, lines, payment]',
  expiresAfterSeconds: 24 * 60 * 60,
  throwOnNoIdempotencyKey: true,
});

const chargeOnce = makeIdempotent((order: Order) => handle(order), {
  config,
  persistenceStore: new DynamoDBPersistenceLayer({ tableName: table, awsSdkV3Client: client }),
});

const processor = new BatchProcessor(EventType.SQS);

export const handler = async (event: any, context: any) => {
  config.registerLambdaContext(context);
  return processPartialResponse(event, (record: any) => chargeOnce(JSON.parse(record.body)), processor, {
    context, throwOnFullBatchFailure: false,
  });
};
