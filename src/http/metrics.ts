/**
 * What `/metrics` tells Prometheus: how requests went, and what there is in the store. Counted as it happens, read when asked.
 *
 * @module
 */
import { Counter, Gauge, Registry } from "prom-client";
import { RequestTimes } from "./request-times.ts";

/** A metric that is read when it is asked for; several values, each with its own value of the label, or one. */
export interface MetricSource {
  name: string;
  help: string;
  label?: string;
  /** Whether it only rises, until the next start. */
  counter?: true;
  readonly read: () => number | Record<string, number>;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = new RequestTimes();

  constructor(sources: readonly MetricSource[]) {
    for (const { name, help, label, counter, read } of sources) {
      const collect = (put: (labels: Record<string, string>, value: number) => void) => {
        const value = read();
        if (typeof value === "number") put({}, value);
        else for (const [of, number] of Object.entries(value)) put({ [label ?? ""]: of }, number);
      };
      const options = { name, help, labelNames: label === undefined ? [] : [label], registers: [] };
      if (counter === undefined) {
        const gauge = new Gauge({ ...options, collect: () => collect((labels, value) => gauge.set(labels, value)) });
        this.#registry.registerMetric(gauge);
        continue;
      }
      const counted = new Counter({
        ...options,
        collect() {
          counted.reset();
          collect((labels, value) => counted.inc(labels, value));
        },
      });
      this.#registry.registerMetric(counted);
    }
  }

  observe(route: string, method: string, status: number, ms: number): void {
    this.#requests.observe(route, method, status, ms / 1000);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    return `${this.#requests.text()}\n${await this.#registry.metrics()}`;
  }
}
