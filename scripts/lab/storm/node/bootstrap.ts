// A Lambda runtime in a few lines: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html.
import { handler } from 'handler'; // which one, the build says

const api = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation`;
const real = Date.now;
const timeout = Number(process.env.FUNCTION_TIMEOUT_MS);

async function main() {
  for (;;) {
    const next = await fetch(`${api}/next`);
    const id = next.headers.get('Lambda-Runtime-Aws-Request-Id')!;
    const deadline = Number(next.headers.get('Lambda-Runtime-Deadline-Ms'));
    // The storm's clock: the deadline of the invocation less the timeout is its start.
    const ahead = deadline - timeout - real();
    Date.now = () => real() + ahead;
    const context = { awsRequestId: id, functionName: 'function', getRemainingTimeInMillis: () => deadline - Date.now() };
    try {
      const response = await handler(await next.json(), context);
      await fetch(`${api}/${id}/response`, { method: 'POST', body: JSON.stringify(response) });
    } catch (error) {
      const body = { errorType: (error as Error).name, errorMessage: (error as Error).message };
      await fetch(`${api}/${id}/error`, { method: 'POST', body: JSON.stringify(body) });
    }
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
