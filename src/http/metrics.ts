/**
 * What `/metrics` tells Prometheus: how requests went, and what there is in the store. Counted as it happens, read when asked.
 *
 * @module
 */
import { Gauge, Histogram, Registry } from "prom-client";

/** Seconds; the quick end is where most answers are. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** A figure that is read when it is asked for; several under the values of one label. */
export interface Reading {
  name: string;
  help: string;
  label?: string;
  readonly read: () => number | Record<string, number>;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Histogram<"route" | "method" | "status">;

  constructor(readings: readonly Reading[]) {
    this.#requests = new Histogram({
      name: "cairn_http_request_seconds",
      help: "Requests by route, method and status, with the time they took.",
      labelNames: ["route", "method", "status"],
      buckets: BUCKETS,
      registers: [this.#registry],
    });
    for (const { name, help, label, read } of readings) {
      const gauge = new Gauge({
        name,
        help,
        labelNames: label === undefined ? [] : [label],
        registers: [],
        collect() {
          const value = read();
          if (typeof value === "number") gauge.set(value);
          else for (const [of, number] of Object.entries(value)) gauge.set({ [label ?? ""]: of }, number);
        },
      });
      this.#registry.registerMetric(gauge);
    }
  }

  observe(route: string, method: string, status: number, ms: number): void {
    this.#requests.observe({ route, method, status }, ms / 1000);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
