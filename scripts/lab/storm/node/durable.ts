// Charge each order as a Lambda durable function would behind an SQS event source mapping: one execution,
// without a name, for each batch, and a step for each thing that happens outside. A baseline of the storm;
// never deployed.
//
// There is no local durable execution service. That of the SDK's testing package keeps the journal in this
// process, so a killed process ends its execution, and the messages come back as another one. Lambda would
// run the same execution again for up to 15 minutes, and its steps under the same key as here.
import { withDurableExecution } from '@aws/durable-execution-sdk-js';
import { LocalDurableTestRunner } from '@aws/durable-execution-sdk-js-testing';
import { handle } from './order';

// The default waits up to a minute between six attempts; an execution in the storm has five seconds.
const retryStrategy = (_: Error, attempt: number) => ({ shouldRetry: attempt < 2, delay: { seconds: 1 } });

const execute = withDurableExecution(async (event: any, context) => {
  const done = await context.map('orders', event.Records, (order, record: any) =>
    handle(JSON.parse(record.body), (name, work) => order.step(name, work, { retryStrategy })),
    { completionConfig: { toleratedFailurePercentage: 100 } });
  return {
    batchItemFailures: done.failed().map(({ index }) => ({ itemIdentifier: event.Records[index].messageId })),
  };
});

const service = LocalDurableTestRunner.setupTestEnvironment();

export const handler = async (event: any) => {
  await service;
  const ended = await new LocalDurableTestRunner({ handlerFunction: execute }).run({ payload: event });
  return ended.getResult();
};
