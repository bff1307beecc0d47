/**
 * Puts load on a server: requests made before, one after the other on each of some connections.
 *
 * @module
 */
import { systemClock } from "../../../lib/clock.ts";
import { Connection, type Address } from "./connection.ts";
import { Stopwatch, type Run } from "./timing.ts";

/** Source of requests; each is a list of steps that are asked one after the other. */
type Next = () => readonly Uint8Array[];

/**
 * @param servers - each of which gets as many connections as the others
 * @param next - for each connection, which request comes next
 */
export async function load(
  servers: readonly Address[],
  concurrency: number,
  seconds: number,
  next: (connection: number) => Next,
): Promise<Run> {
  const connections = await Promise.all(Array.from({ length: concurrency }, (_, lane) => Connection.open(servers[lane % servers.length]!)));
  const watch = new Stopwatch(seconds);
  await Promise.all(connections.map((connection, lane) => drive(connection, next(lane), watch)));
  for (const connection of connections) connection.close();
  return watch.result();
}

/** Asks until the time is over. No promise for each request: that would be measured too. */
function drive(connection: Connection, next: Next, watch: Stopwatch): Promise<void> {
  return new Promise((resolve) => {
    const begin = () => {
      const steps = next();
      const beganAt = systemClock.elapsed();
      let step = 0;
      const answered = (status: number) => {
        if (status < 200 || status > 299) watch.errors++;
        if (status === 0) return resolve();
        if (++step < steps.length) return connection.ask(steps[step] as Uint8Array, answered);
        if (watch.lap(beganAt)) begin();
        else resolve();
      };
      connection.ask(steps[0] as Uint8Array, answered);
    };
    begin();
  });
}
