/**
 * Orders a certificate: proves to an authority that the names lead here, and takes what it gives.
 *
 * ```
 * account ─► order ─► a challenge for each name ─► answers published ─► the authority asks for them ─► request ─► certificate
 * ```
 * @module
 */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import type { Clock } from "../lib/clock.ts";
import { MINUTE_MS, SECOND_MS } from "../lib/duration.ts";
import type { Network } from "../lib/outbound.ts";
import { AcmeClient, AcmeError, objectIn, wordsOf, type AcmeAnswer, type Problem } from "./acme.ts";
import { certificateOf, type Certificate } from "./certificate.ts";
import type { ChallengeAnswers } from "./challenge-answers.ts";
import { certificateRequest } from "./csr.ts";

const POLL_MS = SECOND_MS;
const POLL_MS_MAX = 15 * SECOND_MS;
/** An authority has this long for each of the two things that are waited for. */
const WAIT_MS_MAX = 5 * MINUTE_MS;

interface OrderOptions {
  readonly directory: URL;
  /** Key of the account. */
  readonly account: KeyObject;
  readonly names: readonly string[];
  readonly answers: ChallengeAnswers;
  readonly network: Network;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface Order {
  readonly status?: string;
  readonly authorizations?: readonly string[];
  readonly finalize?: string;
  readonly certificate?: string;
  readonly error?: Problem;
}

interface Authorization {
  readonly status?: string;
  readonly identifier?: { readonly value?: string };
  readonly challenges?: readonly { readonly type?: string; readonly url?: string; readonly token?: string; readonly error?: Problem }[];
}

/** @throws {AcmeError} that says why there is none */
export async function orderCertificate(options: OrderOptions): Promise<Certificate> {
  const { account: key, names, answers } = options;
  const client = new AcmeClient({ ...options, key });
  await client.register();
  const { url, answer } = await client.order(names);
  try {
    await prove(client, (objectIn(answer.text) as Order).authorizations ?? [], options);
    return await take(client, url, options);
  } finally {
    // Answers that a stop leaves are withdrawn by the next order.
    if (!options.signal.aborted) await answers.withdraw();
  }
}

/** Has the authority see that every name leads here. */
async function prove(client: AcmeClient, authorizations: readonly string[], options: OrderOptions): Promise<void> {
  await options.answers.withdraw();
  const challenges: string[] = [];
  for (const url of authorizations) {
    const { status, identifier, challenges: offered = [] } = objectIn((await client.ask(url)).text) as Authorization;
    if (status === "valid") continue;
    const { url: challenge, token } = offered.find(({ type }) => type === "http-01") ?? {};
    if (challenge === undefined || token === undefined)
      throw new AcmeError(`The certificate authority offers no challenge of HTTP-01 for ${identifier?.value}.`);
    await options.answers.publish(token, client.answerTo(token));
    challenges.push(challenge);
  }
  for (const url of challenges) await client.ask(url, {});
  for (const url of authorizations) {
    const ended = objectIn((await whenEnded(client, url, ["pending"], options)).text) as Authorization;
    if (ended.status === "valid") continue;
    const problem = ended.challenges?.find(({ error }) => error !== undefined)?.error;
    throw new AcmeError(`${ended.identifier?.value} is not proven: ${wordsOf(problem ?? {})}`);
  }
}

/** Asks for the certificate of a new key. */
async function take(client: AcmeClient, url: string, options: OrderOptions): Promise<Certificate> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ready = objectIn((await whenEnded(client, url, ["pending"], options)).text) as Order;
  if (ready.finalize === undefined || ready.status !== "ready") throw refusedOrder(ready);
  await client.ask(ready.finalize, { csr: certificateRequest(options.names, privateKey).toString("base64url") });
  const ended = objectIn((await whenEnded(client, url, ["ready", "processing"], options)).text) as Order;
  if (ended.certificate === undefined || ended.status !== "valid") throw refusedOrder(ended);
  const { text } = await client.ask(ended.certificate);
  return certificateOf(text, privateKey.export({ type: "pkcs8", format: "pem" }), options.names);
}

function refusedOrder({ status, error = {} }: Order): AcmeError {
  return new AcmeError(`The certificate authority refused the order (${status}): ${wordsOf(error)}`);
}

/** Reads what is there until its status is another one than these. */
async function whenEnded(
  client: AcmeClient,
  url: string,
  waiting: readonly string[],
  { clock, signal }: OrderOptions,
): Promise<AcmeAnswer> {
  const end = clock.elapsed() + WAIT_MS_MAX;
  for (let pause = POLL_MS; ; pause = Math.min(pause * 2, POLL_MS_MAX)) {
    const answer = await client.ask(url);
    if (!waiting.includes(String(objectIn(answer.text)["status"]))) return answer;
    if (clock.elapsed() > end) throw new AcmeError("The certificate authority has not come to an end in five minutes.", answer.waitMs);
    await clock.sleep(Math.min(answer.waitMs ?? pause, POLL_MS_MAX), signal);
    if (signal.aborted) throw new AcmeError("The server stops.");
  }
}
