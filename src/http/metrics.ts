/**
 * Metrics for Prometheus at `/metrics`: latencies of requests, counted as they end, and figures that are read when asked for.
 *
 * @module
 */
import { Counter, Gauge, Registry } from "prom-client";
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

/** Keeper of what requests have been, for charts. */
export interface RequestCounts {
  addRequest(ms: number, status: number): void;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = new LatencyHistogram();
  readonly #activity: RequestCounts;

  constructor(sources: readonly MetricSource[], activity: RequestCounts) {
    this.#activity = activity;
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

  observe(route: string, method: string, status: number, ms: number): void {
    this.#requests.observe(route, method, status, ms / 1000);
    this.#activity.addRequest(ms, status);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    return `${this.#requests.text()}\n${await this.#registry.metrics()}`;
  }
}
