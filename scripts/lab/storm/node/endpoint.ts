// The service that Restate's server calls for the function of restate.ts: a virtual object, so that Restate
// runs one call of an order at a time. It listens at file descriptor 3, which outlives this process: the
// storm kills it and starts it again.
import { createServer } from 'node:http2';
import * as restate from '@restatedev/restate-sdk';
import { handle, Order, Refused } from './order';

// The SDK needs it; Node.js has it from version 22 on.
(Promise as any).withResolvers ??= () => {
  const all: any = {};
  all.promise = new Promise((resolve, reject) => Object.assign(all, { resolve, reject }));
  return all;
};

// What Stripe refuses for good must not be tried again for ever.
const terminal = (error: any) => error instanceof Refused || error.statusCode === 400;

const orders = restate.object({
  name: 'orders',
  handlers: {
    charge: async (context: restate.ObjectContext, order: Order) => {
      const step = <T>(name: string, work: () => Promise<T>) => context.run(name, async () => {
        try {
          return await work();
        } catch (error) {
          throw terminal(error) ? new restate.TerminalError((error as Error).message) : error;
        }
      });
      try {
        return await handle(order, step as any);
      } catch (error) {
        throw error instanceof Refused ? new restate.TerminalError(error.message) : error;
      }
    },
  },
  options: {
    // Its default is a day, by the server's clock, which the storm cannot advance.
    idempotencyRetention: { days: 30 },
    // In a storm, years pass in a minute. By default the interval grows to a minute, and the call is paused
    // after 70 attempts, for a person.
    retryPolicy: { initialInterval: 50, maxInterval: 500, exponentiationFactor: 2 },
  },
});

createServer(restate.createEndpointHandler({ services: [orders] })).listen({ fd: 3 });
