/**
 * Requests that present no key and have a small body. All of them share memory.
 *
 * @module
 */
import type { ApiKeyRow } from "../storage/tables.ts";
import type { Admission } from "./admission.ts";
import type { Arrival, Arrivals } from "./arrivals.ts";
import { readBody, readForm, refuseDeclaredBody, type Body } from "./body.ts";
import type { Answer, Exchange } from "./exchange.ts";

const BODY_BYTES_MAX = 32 * 1024;
/** The most that is read for an address without a token left, to see which key a form names: one with a secret and two URLs fits. */
const NAMING_FORM_BYTES_MAX = 8 * 1024;

export class Strangers {
  readonly #admission: Admission;
  readonly #arrivals: Arrivals;

  constructor(admission: Admission, arrivals: Arrivals) {
    this.#admission = admission;
    this.#arrivals = arrivals;
  }

  /** Answers a request that counts for its address. */
  answer(exchange: Exchange, work: (body: Body) => Answer | Promise<Answer>): Promise<Answer> {
    this.#admission.admitAddress(exchange);
    return this.#whileArriving(async (arrival) => work(await read(exchange, BODY_BYTES_MAX, readBody, arrival)));
  }

  /**
   * Answers a request whose form may name a key by a secret of it. It counts for that key, and for its address where it names none: behind
   * a proxy all strangers have one address, and would use up what the holders of secrets need.
   */
  answerHolder(
    exchange: Exchange,
    keyNamedIn: (form: URLSearchParams) => ApiKeyRow | undefined | Promise<ApiKeyRow | undefined>,
    work: (form: URLSearchParams) => Answer | Promise<Answer>,
  ): Promise<Answer> {
    const bytesMax = this.#admission.levelOfAddress(exchange, 0).remaining > 0 ? BODY_BYTES_MAX : NAMING_FORM_BYTES_MAX;
    return this.#whileArriving(async (arrival) => {
      let form: URLSearchParams;
      let key: ApiKeyRow | undefined;
      try {
        form = await read(exchange, bytesMax, readForm, arrival);
        key = await keyNamedIn(form);
      } finally {
        // Also for a form that is refused.
        if (key === undefined) this.#admission.admitAddress(exchange);
        else await this.#admission.admitNamed(exchange, key);
      }
      return work(form);
    });
  }

  async #whileArriving(work: (arrival: Arrival) => Promise<Answer>): Promise<Answer> {
    const arrival = this.#arrivals.begin("strangers");
    try {
      return await work(arrival);
    } finally {
      arrival.end();
    }
  }
}

function read<Sent>(
  { request }: Exchange,
  bytesMax: number,
  reading: (request: Request, bytesMax: number, arrival: Arrival) => Promise<Sent>,
  arrival: Arrival,
): Promise<Sent> {
  refuseDeclaredBody(request.headers, bytesMax);
  return reading(request, bytesMax, arrival);
}
