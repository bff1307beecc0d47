/**
 * Metrics for Prometheus at `/metrics`: latencies of requests, counted as they end, and figures that are read when asked for.
 *
 * @module
 */
import { Counter, Gauge, Registry } from "prom-client";
import type { History } from "./history.ts";
import { LatencyHistogram } from "./latency-histogram.ts";

/** A metric that is read when asked for: one value, or several, each under a value of its label. */
export interface MetricSource {
  name: string;
  help: string;
  label?: string;
  /** Set for one that only rises until the next start. */
  counter?: true;
  readonly read: () => number | Record<string, number> | Promise<number | Record<string, number>>;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = new LatencyHistogram();
  readonly #history: Pick<History, "addRequest">;

  constructor(sources: readonly MetricSource[], history: Pick<History, "addRequest">) {
    this.#history = history;
    for (const { name, help, label, counter, read } of sources) {
      const labelNames = label === undefined ? [] : [label];
      const collect = async () => {
        const value = await read();
        metric.reset();
        if (typeof value === "number") metric.inc(value);
        else for (const [of, number] of Object.entries(value)) metric.inc({ [label ?? ""]: of }, number);
      };
      const metric = new (counter === true ? Counter : Gauge)({ name, help, labelNames, collect, registers: [this.#registry] });
    }
  }

  /** @param elapsed - when it was answered, on the clock that only counts on */
  observe(route: string, method: string, status: number, ms: number, elapsed: number): void {
    this.#requests.observe(route, method, status, ms / 1000);
    this.#history.addRequest(elapsed, ms, status);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    return `${this.#requests.text()}\n${await this.#registry.metrics()}`;
  }
}
